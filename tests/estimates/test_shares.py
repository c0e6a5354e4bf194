"""Shares, what is left, and agreement: against SciPy, against every possibility, against draws."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from balancemix.estimates.agreement import kappa
from balancemix.estimates.left import errors_left
from balancemix.estimates.shares import wilson


@given(st.integers(0, 500), st.integers(1, 500))
def test_wilson_is_that_of_scipy(hits, count):
    hits = min(hits, count)
    found, known = wilson(hits, count), binomtest(hits, count).proportion_ci(method="wilson")
    assert found.value == hits / count
    assert (found.low, found.high) == pytest.approx((known.low, known.high), abs=1e-9)


def test_without_answers_there_is_no_share():
    assert wilson(0, 0) is None


@given(st.integers(0, 60), st.integers(20, 60), st.integers(0, 2000))
def test_what_is_left_has_the_interval_of_clopper_and_pearson(errors, drawn, left):
    errors = min(errors, drawn)
    found = errors_left(errors / drawn, drawn, left)
    known = binomtest(errors, drawn).proportion_ci(method="exact")
    assert (found.low, found.high) == pytest.approx((left * known.low, left * known.high))
    assert 0 <= found.low <= found.value <= found.high <= left


def test_under_twenty_draws_nothing_is_said_unless_nothing_is_left():
    assert errors_left(0.3, 19.9, 100) is None
    assert errors_left(0.3, 20.0, 100) is not None
    assert errors_left(0.3, 19, 0).high == 0


@pytest.mark.parametrize("rate", [0.0, 0.02, 0.3, 0.9, 1.0])
def test_what_is_left_covers_the_truth(rate):
    generator, size, drawn, held = np.random.default_rng(0), 300, 40, 0
    for _ in range(400):
        error = generator.random(size) < rate
        left = errors_left(error[:drawn].mean(), drawn, size - drawn)
        held += left.low <= error[drawn:].sum() <= left.high
    assert held / 400 >= 0.94


def slow_kappa(pairs):
    """Cohen's definition in words: agreement beyond chance, of what is possible beyond chance."""
    n = len(pairs)
    seen = sum(a == b for a, b in pairs) / n
    yes = [sum(pair[i] for pair in pairs) / n for i in range(2)]
    chance = yes[0] * yes[1] + (1 - yes[0]) * (1 - yes[1])
    return None if chance == 1 else (seen - chance) / (1 - chance)


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60))
def test_kappa_is_that_of_its_definition_and_symmetric(pairs):
    first, second = zip(*pairs, strict=True)
    found, other, known = kappa(first, second), kappa(second, first), slow_kappa(pairs)
    if known is None:
        assert found is None
    else:
        assert found.value == pytest.approx(known)
        assert -1 <= found.low <= found.value <= found.high <= 1
        assert (other.low, other.high) == pytest.approx((found.low, found.high))


def test_kappa_agrees_with_a_published_example():
    """Fleiss, Cohen and Everitt (1969) have three answers; two make the usual 2×2 example."""
    cells = {(True, True): 20, (True, False): 5, (False, True): 10, (False, False): 15}
    pairs = [pair for pair, count in cells.items() for _ in range(count)]
    assert kappa(*zip(*pairs, strict=True)).value == pytest.approx(0.4)


def test_the_interval_of_kappa_covers_the_truth():
    generator, held = np.random.default_rng(0), 0
    for _ in range(400):
        truth = generator.random(200) < 0.6
        one, two = (truth ^ (generator.random(200) < 0.1) for _ in range(2))
        agree, yes = 0.9**2 + 0.1**2, 0.6 * 0.9 + 0.4 * 0.1
        chance = yes**2 + (1 - yes) ** 2
        found = kappa(one, two)
        held += found.low <= (agree - chance) / (1 - chance) <= found.high
    assert held / 400 >= 0.92
