"""Probes: one question in ten, at random; what they say of what is left."""

from itertools import islice

import numpy as np
import pytest

from balancemix.review.order import picture_order, worth_of
from balancemix.review.probes import (
    EVERY,
    next_probe,
    probe_order,
    turns,
    weigh_probes,
    what_is_left,
)
from tests.review.listed import listed

COUNTS = [20] * 6


def test_the_order_of_probes_is_a_permutation_that_a_seed_repeats():
    order = probe_order(500, 3)
    assert sorted(order) == list(range(500))
    assert (order == probe_order(500, 3)).all()
    assert (order != probe_order(500, 4)).any()


def test_the_next_probe_is_the_first_that_is_open():
    order, open_ = np.array([3, 1, 0, 2]), np.array([True, True, False, False])
    assert next_probe(order, open_) == 1
    assert next_probe(order, np.zeros(4, dtype=bool)) is None


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("since", [0, 5, 9])
def test_one_question_in_ten_is_a_probe_and_the_others_keep_their_order(seed, since):
    findings = listed(seed=seed)
    open_ = np.random.default_rng(seed).random(200) < 0.8
    rows = picture_order(findings, open_, np.full(200, -1), COUNTS)
    shown = list(turns(rows, findings, open_, probe_order(200, seed), since))
    seen = [turn.row for turn in shown]
    assert sorted(seen) == sorted(set(seen))
    rest = [turn.row for turn in shown if turn.probe is None]
    assert rest == [row for row in rows if row in set(rest)]
    questions = since
    for turn in shown:
        asked = int((open_ & (findings.row == turn.row)).sum())
        assert (turn.probe is not None) == (questions >= EVERY - 1)
        if turn.probe is not None:
            assert open_[turn.probe]
            assert findings.row[turn.probe] == turn.row
        questions = asked - 1 if turn.probe is not None else questions + asked
    probes = sum(turn.probe is not None for turn in shown)
    assert probes >= open_.sum() // 20


def test_probes_come_in_the_order_that_was_drawn():
    findings = listed(rows=400, classes=1)._replace(row=np.arange(200))
    order, open_ = probe_order(200, 0), np.ones(200, dtype=bool)
    shown = turns(list(range(200)), findings, open_, order)
    drawn = [turn.probe for turn in islice(shown, 100) if turn.probe is not None]
    assert drawn == [i for i in order if i in drawn]


def single(count=100):
    """Findings of one class, one a picture, the surest first."""
    return listed(count, rows=count, classes=1)._replace(
        row=np.arange(count), column=np.zeros(count, dtype=int), given=np.zeros(count, dtype=int)
    )


def weights(findings, open_, probed, swept=None):
    none = np.zeros(len(open_), dtype=bool)
    worth = worth_of(findings, np.full(len(open_), -1), COUNTS)
    return weigh_probes(findings, worth, open_, probed, none if swept is None else swept)


def test_probes_that_the_queue_has_reached_stand_for_nothing():
    probed = np.arange(100) % 5 == 0
    open_ = (np.arange(100) >= 50) & ~probed
    weight = weights(single(), open_, probed)
    assert not weight[~probed].any()
    assert weight[probed][:5].max() == 0
    assert weight.sum() == open_.sum() == 40


def test_what_was_skipped_is_stood_for_by_probes_like_it():
    probed = np.arange(100) % 5 == 0
    open_ = (np.arange(100) < 20) & (np.arange(100) % 5 == 2)  # skipped among the surest
    weight = weights(single(), open_, probed)
    assert weight[probed][:5].sum() == pytest.approx(open_.sum())
    assert not weight[25:].any()


@pytest.mark.parametrize("count", [0, 1, 4, 5, 6, 9, 10, 11, 31])
def test_every_open_finding_is_stood_for_once(count):
    generator = np.random.default_rng(count)
    probed = np.zeros(100, dtype=bool)
    probed[generator.permutation(100)[:count]] = True
    open_ = ~probed & (generator.random(100) < 0.5)
    weight = weights(single(), open_, probed)
    assert weight.sum() == pytest.approx(open_.sum() if count else 0)


def test_a_probe_is_reached_when_a_sweep_of_its_class_and_kind_is_past_it():
    findings = listed(4, rows=9, classes=9)._replace(
        row=np.arange(4), column=np.array([1, 1, 1, 2]), given=np.array([0, 0, 1, 0]),
        p=np.array([0.6, 0.7, 0.7, 0.7]),
    )  # fmt: skip
    swept, probed = np.array([True, False, False, False]), np.array([False, True, True, True])
    weight = weights(findings, ~swept, probed, swept)
    assert (weight > 0).tolist() == [False, False, True, True]


def test_unknown_labels_and_unsure_probes_are_left_out():
    findings = listed(100)._replace(given=np.repeat([0, -1], 50))
    probed = np.arange(100) % 2 == 0
    error = np.where(probed, 1, -1)
    error[0] = -1
    left = what_is_left(findings, ~probed, probed, probed.astype(float), error)
    assert (left.left, left.drawn, left.rate) == (25, 24, 1)
    assert left.estimate.value == 25


def test_probes_of_unequal_weight_tell_less():
    findings, probed = single(), np.arange(100) < 50
    error = (np.arange(100) < 10).astype(int)
    even = what_is_left(findings, ~probed, probed, probed.astype(float), error)
    assert (even.drawn, even.rate) == (50, 0.2)
    weight = np.where(error == 1, 1.0, 3.0)
    uneven = what_is_left(findings, ~probed, probed, weight, error)
    assert uneven.drawn < 50
    assert uneven.rate == pytest.approx(10 / 130)


def test_few_probes_say_nothing():
    findings = listed(100)
    probed = np.arange(100) < 19
    left = what_is_left(findings, ~probed, probed, probed.astype(float), np.ones(100))
    assert left.estimate is None


def test_without_findings_nothing_is_left():
    findings = listed(0)
    none = np.zeros(0, dtype=bool)
    weight = weights(findings, none, none)
    assert what_is_left(findings, none, none, weight, np.zeros(0)).estimate.high == 0
