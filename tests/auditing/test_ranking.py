"""The order of findings and their modelled probabilities, against slow oracles."""

import numpy as np
import pytest
import torch
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

from balancemix.auditing.judged import weigh
from balancemix.auditing.probability import _TIES, NOT_JUDGED, SIDES, modelled
from balancemix.auditing.ranking import EDGE, RANK, SURE, doubt


def some(seed: int, rows: int = 60, classes: int = 3):
    generator = torch.Generator().manual_seed(seed)
    given = torch.randint(-1, 2, (rows, classes), generator=generator).to(torch.int8)
    score = 1.4 * torch.rand(rows, classes, generator=generator) - 0.2
    posterior = torch.rand(rows, classes, generator=generator) ** 3
    return given, score, posterior


def log_odds(p: float) -> float:
    return float(np.log(p) - np.log1p(-p))


def slow_doubt(given, score, confidence, posterior, verified, smooth):
    """Compute doubt label by label, in double precision."""
    result = np.empty(given.shape)
    for i in range(given.shape[0]):
        for k in range(given.shape[1]):
            belief = posterior if given[i, k] == 1 else confidence
            p = min(max(float(belief[i, k]), SURE), 1 - SURE)
            rated = smooth if given[i, k] == 1 else score
            s = min(max(float(rated[i, k]), EDGE), 1 - EDGE)
            present = 0.5 * log_odds(p) + 0.5 * log_odds(s)
            result[i, k] = present
            if given[i, k] == 1:
                others = [smooth[j, k] for j in range(given.shape[0]) if given[j, k] == 0]
                less = sum(bool(other < smooth[i, k]) for other in others)
                equal = sum(bool(other == smooth[i, k]) for other in others)
                rank = (less + equal / 2 + 0.5) / (len(others) + 1)
                result[i, k] = -present - RANK * log_odds(rank)
            if verified[i, k]:
                result[i, k] = -np.inf
    return result


def test_doubt_is_that_of_the_oracle():
    given, score, confidence = some(0)
    score = (10 * score).round() / 10  # with ties
    verified = torch.rand(given.shape, generator=torch.Generator().manual_seed(9)) < 0.1
    posterior = confidence.flip(0)
    for smooth in (None, score.flip(0).contiguous()):
        result = doubt(given, score, confidence, posterior, verified, smooth)
        rated = score if smooth is None else smooth
        expected = slow_doubt(given, score, confidence, posterior, verified, rated)
        np.testing.assert_allclose(result.numpy(), expected, rtol=1e-4, atol=1e-4)
        assert result.dtype == torch.float32


def test_doubt_grows_with_what_speaks_against_the_label():
    p = torch.linspace(0.02, 0.98, 50)[:, None]
    half = torch.full_like(p, 0.5)
    for value, sign in ((1, -1), (0, 1), (-1, 1)):
        given = torch.full(p.shape, value)
        assert bool((sign * doubt(given, half, p, p).diff(dim=0) > 0).all())
        assert bool((sign * doubt(given, p, half, half).diff(dim=0) > 0).all())


def pool(values: list[float]) -> list[float]:
    """Make values increase by pooling neighbours that do not, until none is left."""
    blocks = [[value] for value in values]
    while True:
        means = [sum(block) / len(block) for block in blocks]
        bad = next((i for i in range(len(means) - 1) if means[i] > means[i + 1]), None)
        if bad is None:
            return [mean for block, mean in zip(blocks, means, strict=True) for _ in block]
        blocks[bad : bad + 2] = [blocks[bad] + blocks[bad + 1]]


def slow_modelled(given, rank, posterior):
    """Compute probabilities by sorting, bins that grow from the top, pooling and interpolation."""
    result = np.zeros(given.shape)
    for side in SIDES.values():
        places = [tuple(p) for p in np.argwhere((given == side) & np.isfinite(rank))]
        places.sort(key=lambda p: -rank[p])
        bins: list[list[tuple[int, ...]]] = []
        above = 0
        while above < len(places):
            size = max(1, above // 10)
            bins.insert(0, places[above : above + size])
            above += size
        if not bins:
            continue
        centres = [np.mean([rank[p] for p in each]) for each in bins]
        error = [
            np.mean([1 - posterior[p] if side == 1 else posterior[p] for p in b]) for b in bins
        ]
        # Weighted pooling: repeat each bin's mean as often as it has members.
        repeated = pool([e for e, b in zip(error, bins, strict=True) for _ in b])
        ends = np.cumsum([len(b) for b in bins]) - 1
        heights = [repeated[end] for end in ends]
        for p in places:
            own = 1 / (1 + np.exp(-rank[p]))
            result[p] = (1 - _TIES) * np.interp(rank[p], centres, heights) + _TIES * own
    return result


@pytest.mark.parametrize("seed", range(4))
def test_probabilities_are_those_of_the_oracle(seed):
    given, score, posterior = some(seed)
    rank = doubt(given, score, posterior, posterior)
    rank[::7, 1] = -torch.inf
    same, result = modelled(given, rank, posterior)
    assert torch.equal(same, rank)
    expected = slow_modelled(given.numpy(), rank.double().numpy(), posterior.double().numpy())
    np.testing.assert_allclose(result.numpy(), expected, atol=1e-6)
    assert result.dtype == torch.float32


@settings(deadline=None, max_examples=30)
@drawn(st.integers(0, 2**31), st.integers(1, 300))
def test_probabilities_increase_with_doubt_on_each_side(seed, rows):
    given, score, posterior = some(seed, rows, 2)
    rank = doubt(given, score, posterior, posterior)
    _, result = modelled(given, rank, posterior)
    assert bool(((result > 0) & (result < 1)).all())
    for side in SIDES.values():
        order = rank[given == side].double().sort()
        assert bool((result[given == side][order.indices].diff() >= 0).all())
        apart = (order.values.diff() > 1e-2) & (order.values[1:] < 4)  # float32 ends there
        assert bool((result[given == side][order.indices].diff()[apart] > 0).all())


def test_the_probabilities_of_a_side_sum_to_the_posterior_s():
    given, score, posterior = some(3, 5000, 3)
    rank = doubt(given, score, posterior, posterior)
    result = modelled(given, rank, posterior)[1].double()
    error = torch.where(given > 0, 1 - posterior, posterior).double()
    for side in SIDES.values():
        assert float(result[given == side].mean()) == pytest.approx(
            float(error[given == side].mean()), rel=0.02
        )


@pytest.mark.parametrize("seed", range(3))
def test_a_class_that_cannot_be_judged_stays_below_a_half_and_in_order(seed):
    given, score, posterior = some(seed, 400, 3)
    judged = torch.tensor([True, False, True])
    rank = doubt(given, score, posterior, posterior)
    limited, result = modelled(given, rank, posterior, judged)
    assert torch.equal(limited[:, judged], rank[:, judged])
    assert 0 < float(result[:, 1].max()) <= NOT_JUDGED
    error = torch.where(given > 0, 1 - posterior, posterior)[:, 1]
    assert bool((result[:, 1] <= error + 1e-6).all())
    alone = modelled(given[:, judged], rank[:, judged], posterior[:, judged])[1]
    assert torch.equal(result[:, judged], alone)
    for side in SIDES.values():
        order = limited[given == side].sort().indices
        assert bool((result[given == side][order].diff() >= 0).all())
    assert bool((modelled(given, rank, posterior, ~judged & judged)[1] == 0).all())


def test_rows_are_summed_up():
    given, score, posterior = some(5, 200, 4)
    judged = weigh(given, score, posterior, posterior, torch.ones(4, dtype=torch.bool))
    for i in range(0, 200, 17):
        for side, value in enumerate((1, 0)):
            columns = [k for k in range(4) if given[i, k] == value]
            expected = sum(float(judged.probability[i, k]) for k in columns)
            off = sum(abs(value - min(max(float(score[i, k]), 0), 1)) for k in columns)
            assert float(judged.expected[i, side]) == pytest.approx(expected, abs=1e-5)
            assert float(judged.disagreement[i, side]) == pytest.approx(off, abs=1e-5)
