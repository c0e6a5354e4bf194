"""The baselines' equations as they read, label by label; slow.

p, y are of one label; f, Y of a batch, B×K; a soft y is a share of each of its two losses.
"""

import math

import numpy as np


def sigmoid(z):
    return 1 / (1 + math.exp(-z))


def each(function, z, Y, *settings):
    """Apply a loss of one label to a matrix."""
    result = np.empty(np.shape(z))
    for place in np.ndindex(result.shape):
        result[place] = function(float(z[place]), float(Y[place]), *settings)
    return result


def bce(z, y):
    return -y * math.log(sigmoid(z)) - (1 - y) * math.log(sigmoid(-z))


def focal(z, y, gamma):
    p = sigmoid(z)
    return -y * (1 - p) ** gamma * math.log(p) - (1 - y) * p**gamma * math.log(1 - p)


def asl(z, y, gamma_negative, gamma_positive, clip):
    p = sigmoid(z)
    p_m = max(p - clip, 0)
    positive = (1 - p) ** gamma_positive * math.log(p)
    negative = p_m**gamma_negative * math.log(1 - p_m)
    return -y * positive - (1 - y) * negative


def asl_slope(z, y, gamma_negative, gamma_positive, clip):
    """The derivative of ASL by the logit, the focusing weights held fixed."""
    p = sigmoid(z)
    positive = -((1 - p) ** gamma_positive) * (1 - p)
    negative = (p - clip) ** gamma_negative * p * (1 - p) / (1 - p + clip) if p > clip else 0
    return y * positive + (1 - y) * negative


def hill(z, y, gamma, margin, bound):
    p, p_margin = sigmoid(z), sigmoid(z - margin)
    return -y * (1 - p_margin) ** gamma * math.log(p_margin) + (1 - y) * (bound - p) * p**2


def splc(z, y, tau, margin, gamma, epoch=1):
    """Of a hard label, in the order of the published steps."""
    if y == 1:
        z = z - margin
    if epoch >= 1 and sigmoid(z) > tau:
        y = 1
    return focal(z, y, gamma)


def large_loss(z, Y, t, delta, scheme):
    """LL in epoch t = 1, 2, …: the losses, and the places to keep as positive (LL-Cp)."""
    B, K = Y.shape
    loss = each(bce, z, Y)
    if scheme == "LL-Cp":
        k = math.ceil(B * K * delta / 100) if t > 1 else 0
    else:
        k = math.ceil(B * K * (t - 1) * delta / 100)
    unobserved = sorted((loss[place] for place in np.ndindex(B, K) if Y[place] == 0), reverse=True)
    k = min(k, len(unobserved))
    if k == 0:
        return loss, []
    kept, threshold = [], unobserved[k - 1]
    for place in np.ndindex(B, K):
        if Y[place] == 0 and loss[place] >= threshold:
            if loss[place] > threshold:
                kept.append(place)
            loss[place] = 0 if scheme == "LL-R" else bce(z[place], 1)
    return loss, kept


def smoothed(z, y, epsilon):
    """AN-LS."""
    return (1 - epsilon) * bce(z, y) + epsilon * bce(z, 1 - y)


def regulariser(f, k):
    """EPR's R: of the rows' predicted positives."""
    B, K = f.shape
    predicted = sum(f[i, j] for i in range(B) for j in range(K)) / B
    return ((predicted - k) / K) ** 2


def epr(z, Y, k):
    """EPR: mean over all labels."""
    B, K = Y.shape
    f = np.array([[sigmoid(value) for value in row] for row in z])
    positives = sum(-math.log(f[i, j]) for i in range(B) for j in range(K) if Y[i, j] == 1)
    return positives / (B * K) + regulariser(f, k)


def role_half(f, g, Y, k):
    """ROLE: what `f` learns of the labels and of `g`; mean over all labels, halved."""
    B, K = Y.shape
    total = 0.0
    for i in range(B):
        for j in range(K):
            if Y[i, j] == 1:
                total -= math.log(f[i, j])
            total -= g[i, j] * math.log(f[i, j]) + (1 - g[i, j]) * math.log(1 - f[i, j])
    return 0.5 * (total / (B * K) + regulariser(f, k))


def em_apl(z, y, state, a, b):
    """EM-APL of one label: `state` is "positive", "unknown" or "pseudo" with y its soft label."""
    p = sigmoid(z)
    if state == "positive":
        return -math.log(p)
    if state == "unknown":
        return a * (p * math.log(p) + (1 - p) * math.log(1 - p))
    return b * (-y * math.log(p) - (1 - y) * math.log(1 - p))


def pseudo_negatives(f, unknown, total_unknown, share, epochs, warmup):
    """APL: the places that become soft negatives at the end of an epoch."""
    places = set()
    for k in range(f.shape[1]):
        count = int(share * total_unknown[k] / (epochs - warmup))
        rows = sorted((i for i in range(len(f)) if unknown[i, k]), key=f[:, k].__getitem__)
        places |= {(i, k) for i in rows[:count]}
    return places
