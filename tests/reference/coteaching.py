"""Co-teaching with mixtures, row by row; slow. f is a peer's confidence, Y the given labels."""

import numpy as np

from tests.reference.balancemix import bce, mixture, posterior


def instance_loss(f, y):
    """Mean over classes of the BCE of one row's given labels."""
    return sum(bce(f[k], int(y[k])) for k in range(len(y))) / len(y)


def clean_rows(f, Y):
    """The rows that one peer holds to be clean."""
    losses = [instance_loss(f[i], Y[i]) for i in range(len(Y))]
    G = mixture(losses)
    return np.array([posterior(G, loss) > 0.5 for loss in losses])


def sets(f_a, f_b, Y):
    """The rows that peer a trains on, and those of peer b."""
    return np.array([clean_rows(f_b, Y), clean_rows(f_a, Y)])


def loss(f, Y, kept):
    """Eq. 1 over the kept rows of one peer's batch; 0 if there are none."""
    rows = [i for i in range(len(Y)) if kept[i]]
    total = sum(bce(f[i][k], float(Y[i][k])) for i in rows for k in range(len(Y[i])))
    return total / len(rows) if rows else 0.0
