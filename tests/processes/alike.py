"""What rounding may change between trainings in one process and in several."""

import torch

DECIDED = ("target", "status")
# Two processes add up gradients in another order than one, and processors round differently. A
# label within rounding of a threshold may then be decided otherwise, and what follows with it.
FLIPPED = 0.005  # the share of the labels, or one of them
EQUAL, SHIFTED = 1e-4, 1e-2  # weights: where all labels are decided alike, and where not


def assert_alike(table, expected, weights, expected_weights) -> None:
    """Hold two trainings to what rounding may change."""
    other = torch.zeros_like(expected["status"], dtype=torch.bool)
    for name in DECIDED:
        other |= table[name] != expected[name]
    assert int(other.sum()) <= max(1, FLIPPED * other.numel())
    tolerance = SHIFTED if other.any() else EQUAL
    for name, weight in expected_weights.items():
        torch.testing.assert_close(weights[name], weight, rtol=tolerance, atol=tolerance)
