"""Mislabelling as the paper writes it, one label at a time."""

import numpy as np


def transition(labels, tau):
    """ρ_{i→j} = τ·N_j / (N − N_i), where N counts positive labels; ρ_{i→i} = 1 − τ."""
    K = labels.shape[1]
    N_k = labels.sum(axis=0).astype(float)
    N = N_k.sum()
    rho = np.zeros((K, K))
    for i in range(K):
        for j in range(K):
            rho[i, j] = 1 - tau if i == j else tau * N_k[j] / (N - N_k[i])
    return rho


def mislabel(labels, tau, rng):
    """Move label by label to a class the row truly lacks and has not been moved to."""
    N_k = labels.sum(axis=0).astype(float)
    noisy = labels.copy()
    for x in range(len(labels)):
        free = [j for j in range(labels.shape[1]) if labels[x, j] == 0 and N_k[j] > 0]
        for i in np.flatnonzero(labels[x]):
            if rng.random() < tau and free:
                weight = np.array([N_k[j] for j in free])
                j = free.pop(rng.choice(len(free), p=weight / weight.sum()))
                noisy[x, i], noisy[x, j] = 0, 1
    return noisy
