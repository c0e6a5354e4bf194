"""Do 95 % intervals hold the truth? Many draws of made-up data; docs/estimates.md has real data."""

import numpy as np
import pytest

from balancemix.estimates import (
    Side,
    among_top,
    by_class,
    calibrate,
    draw_strata,
    first_phase,
    from_pictures,
    from_strata,
    missing_rate,
    pictures_with_errors,
    second_phase,
)

DRAWS = 400
LEAST = 0.915  # 95 % is 3.2 standard errors above it
ROWS, CLASSES = 3000, 12


def made(rate, clumps=2.0, seed=0):
    """Make labels of which a share is an error, more in some pictures, and a judge that is partly
    right: errors N×K, doubt N×K, and two sums of each picture."""
    generator = np.random.default_rng(seed)
    level = rate * generator.gamma(1 / clumps, clumps, (ROWS, 1))
    error = generator.random((ROWS, CLASSES)) < level.clip(max=0.9)
    doubt = generator.normal(-3, 1.5, error.shape) + 2.5 * error
    chance = 1 / (1 + np.exp(-doubt))
    return error, doubt, np.stack([chance.sum(1), np.sqrt(chance).sum(1)], 1)


def rows_of(count, seed=1):
    generator = np.random.default_rng(seed)
    return (generator.choice(ROWS, count, replace=False) for _ in range(DRAWS))


def held(estimates, truth):
    return np.mean([each.low <= truth <= each.high for each in estimates])


@pytest.mark.parametrize("count", [50, 200])
@pytest.mark.parametrize("rate", [0.01, 0.05, 0.3])
def test_pictures_hold_the_total_and_the_number_of_pictures(rate, count):
    error, _, sums = made(rate)
    errors = error.sum(1).astype(float)
    totals = [from_pictures(errors[rows], sums[rows], sums) for rows in rows_of(count)]
    assert held(totals, errors.sum()) >= LEAST
    several = [pictures_with_errors(errors[rows], ROWS) for rows in rows_of(count)]
    assert held(several, (errors > 0).sum()) >= 0.94  # exact intervals cover at least 95 %


@pytest.mark.parametrize("rate", [0.01, 0.1, 0.6])
def test_labels_by_rank_hold_the_total(rate):
    error, doubt, _ = made(rate, clumps=0.5)
    wrong, x = error.ravel()[:6000].astype(float), doubt.ravel()[:6000]
    generator, found = np.random.default_rng(2), []
    for _ in range(DRAWS):
        parts = [wrong[part] for part in draw_strata(x, generator)]
        sizes = [len(part) for part in parts]
        first = first_phase(sizes, 200)
        seen = [part[:n] for part, n in zip(parts, first, strict=True)]
        both = first + second_phase(seen, sizes, 200)
        answers = [part[:n] for part, n in zip(parts, both, strict=True)]
        found.append(from_strata(answers, sizes))
    assert held(found, wrong.sum()) >= LEAST


@pytest.mark.parametrize("rate", [0.9, 0.97])
def test_labels_hold_the_total_where_the_ranking_is_nearly_perfect(rate):
    generator, found = np.random.default_rng(3), []
    hits = [int(600 * rate), *[0] * 9]
    for _ in range(DRAWS):
        counts = [generator.hypergeometric(k, 600 - k, 20) for k in hits]
        found.append(from_strata([np.arange(20) < count for count in counts], [600] * 10))
    assert held(found, sum(hits)) >= LEAST


@pytest.mark.parametrize("exchanged", [False, True])
@pytest.mark.parametrize("rate", [0.03, 0.1])
def test_pictures_hold_the_rate_of_missing_labels(rate, exchanged):
    error, _, sums = made(rate)
    missing = error.sum(1).astype(float)
    wrong = missing if exchanged else made(0.05, seed=5)[0].sum(1).astype(float)
    given = 12_000
    truth = missing.sum() / (given - wrong.sum() + missing.sum())
    found = [
        missing_rate(Side(wrong[r], sums[r], sums), Side(missing[r], sums[r], sums), given)
        for r in rows_of(60)
    ]
    assert held(found, truth) >= LEAST


def test_pictures_hold_the_errors_of_a_class_and_of_the_top_of_the_list():
    error, doubt, _ = made(0.1)
    top = np.argsort(-doubt.ravel())[:2500]
    listed = np.zeros(doubt.size, dtype=bool)
    listed[top] = True
    listed = listed.reshape(doubt.shape)
    of_class, of_list = [], []
    for rows in rows_of(100):
        part = listed[rows]
        of_class += by_class([error[rows, 0].sum()], [100], [ROWS], [ROWS])
        of_list.append(among_top((error[rows] & part).sum(1), part.sum(1), 2500))
    assert held(of_class, error[:, 0].sum()) >= 0.94
    assert held(of_list, (error & listed).sum()) >= LEAST


@pytest.mark.parametrize("side", ["wrong", "missing"])
def test_calibrated_probabilities_say_how_often_a_label_is_an_error(side):
    error, doubt, sums = made(0.1)
    errors, apart, better = error.sum(1).astype(float), [], []
    for rows, _ in zip(rows_of(50), range(20), strict=False):
        total = from_pictures(errors[rows], sums[rows], sums)
        seen = doubt[rows].ravel(), error[rows].ravel()
        p = calibrate(*seen, side, doubt.ravel(), total).probability(doubt.ravel())
        p, z = p[p >= 0.2], error.ravel()[p >= 0.2]
        bins = np.array_split(np.argsort(p), 10)
        apart.append(np.mean([abs((p - z)[part].mean()) for part in bins]))
        better.append(((p - z) ** 2).mean() < z.var())
    assert np.median(apart) <= 0.1
    assert np.mean(better) >= 0.9
