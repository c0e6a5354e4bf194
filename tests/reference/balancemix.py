"""The paper's Eqs. 1–10 as they read, one function each, row by row and class by class; slow.

f is the confidence in presence, Y the given labels, both N×K; k counts classes, l is a side.
"""

import math

import numpy as np
from sklearn.mixture import GaussianMixture

C, R, U = 0, 1, 2  # reliability: clean, re-labelled, ambiguous


def bce(f, y):
    """Eq. 1, second line: of one label, which may be soft."""
    return -y * math.log(f) - (1 - y) * math.log(1 - f)


def batch_loss(f, Y):
    """Eq. 1: sum over classes, mean over the batch."""
    total = 0.0
    for i in range(len(Y)):
        for k in range(len(Y[i])):
            total += bce(f[i][k], float(Y[i][k]))
    return total / len(Y)


def presence_and_absence(f, Y):
    """Eq. 2: P(k) and A(k); NaN where a class has no label of that side."""
    N, K = Y.shape
    P, A = [], []
    for k in range(K):
        P_k = [f[i, k] for i in range(N) if Y[i, k] == 1]
        A_k = [1 - f[i, k] for i in range(N) if Y[i, k] == 0]
        P.append(sum(P_k) / len(P_k) if P_k else math.nan)
        A.append(sum(A_k) / len(A_k) if A_k else math.nan)
    return P, A


def scores(f, Y):
    """Eq. 3: Score of every row."""
    P, A = presence_and_absence(f, Y)
    result = []
    for y in Y:
        result.append(sum(P[k] if y[k] == 1 else A[k] for k in range(len(y))))
    return result


def sampling_probability(f, Y):
    """Eq. 4: of every row."""
    inverse = [1 / score for score in scores(f, Y)]
    return np.array([weight / sum(inverse) for weight in inverse])


def dominant(lam):
    """Eq. 5, second row."""
    return max(lam, 1 - lam)


def mix(a_R, a_M, lam):
    """Eq. 5, first row: of one pair of inputs, or of labels."""
    R_, M_ = np.asarray(a_R, dtype=float), np.asarray(a_M, dtype=float)
    result = np.empty(R_.shape)
    for place in np.ndindex(R_.shape):
        result[place] = lam * R_[place] + (1 - lam) * M_[place]
    return result


def partition(f, Y, k, l):  # noqa: E741 -- the paper's letter
    """Eq. 6: row numbers and losses of the labels of class k whose given value is l."""
    rows = [i for i in range(len(Y)) if Y[i, k] == l]
    return rows, [bce(f[i, k], l) for i in rows]


def mixture(losses, reg_covar=None, max_iter=1000, tol=1e-6, starts=5):
    """Eq. 7: one G, the most likely of several EM runs; by default variances have no floor."""
    losses = np.asarray(losses, dtype=float).reshape(-1, 1)
    floor = 1e-12 * losses.var() if reg_covar is None else reg_covar
    return GaussianMixture(
        2, reg_covar=floor, max_iter=max_iter, tol=tol, n_init=starts, random_state=0
    ).fit(losses)


def posterior(G, loss):
    """Eq. 8: of one loss; g is the component of small losses."""
    joint = []
    for mean, variance, share in zip(
        G.means_[:, 0], G.covariances_[:, 0, 0], G.weights_, strict=True
    ):
        density = math.exp(-((loss - mean) ** 2) / (2 * variance)) / math.sqrt(
            2 * math.pi * variance
        )
        joint.append(density * share)
    g = int(np.argmin(G.means_[:, 0]))
    return joint[g] / sum(joint) if sum(joint) else math.nan


def clean_probability(f, Y):
    """Eqs. 6–8 for all 2·K mixtures: N×K."""
    result = np.empty(Y.shape)
    for k in range(Y.shape[1]):
        for l in (0, 1):  # noqa: E741
            rows, losses = partition(f, Y, k, l)
            G = mixture(losses)
            for i, loss in zip(rows, losses, strict=True):
                result[i, k] = posterior(G, loss)
    return result


def refine(Y, p_G, f_1, f_2, epsilon):
    """Eq. 9, and what it leaves untouched: labels and their reliability, N×K."""
    N, K = Y.shape
    labels, reliability = np.array(Y, dtype=float), np.full((N, K), U)
    for i in range(N):
        for k in range(K):
            if p_G[i, k] > 0.5:
                reliability[i, k] = C
                continue
            ensemble = 1 / 2 * (f_1[i, k] + f_2[i, k])
            if ensemble > epsilon:
                labels[i, k], reliability[i, k] = 1, R
            if ensemble < 1 - epsilon:
                labels[i, k], reliability[i, k] = 0, R
    return labels, reliability


def instance_loss(f, y, reliability, p_G):
    """Eq. 10, second line: of one mixed row."""
    total = 0.0
    for k in range(len(y)):
        if reliability[k] in (C, R):
            total += bce(f[k], y[k])
        if reliability[k] == U:
            total += p_G[k] * bce(f[k], y[k])
    return total


def loss(model, x_R, y_R, x_M, y_M, lam, reliability_R, p_G_R):
    """Eq. 10: `model` takes a mixed row to its K confidences; labels are refined, λ one a pair."""
    total = 0.0
    for i in range(len(x_R)):
        f = model(mix(x_R[i], x_M[i], lam[i]))
        y = mix(y_R[i], y_M[i], lam[i])
        total += instance_loss(f, y, reliability_R[i], p_G_R[i])
    return total / len(x_R)


def blended_loss(model, x_R, y_R, x_M, y_M, lam, weight_R, weight_M):
    """Not of the paper: the weights of a pair are mixed as its labels are."""
    total = 0.0
    for i in range(len(x_R)):
        f = model(mix(x_R[i], x_M[i], lam[i]))
        y = mix(y_R[i], y_M[i], lam[i])
        for k in range(len(f)):
            weight = lam[i] * weight_R[i][k] + (1 - lam[i]) * weight_M[i][k]
            total += weight * bce(f[k], y[k])
    return total / len(x_R)
