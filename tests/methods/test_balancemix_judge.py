"""BalanceMix that starts from the judge: the state after a warm-up, made of its confidence."""

import dataclasses

import pytest
import torch

from balancemix.errors import InputError
from balancemix.judge.held_out import estimate_errors
from balancemix.labels.noise import parse
from balancemix.labels.table import Status
from balancemix.methods import BalanceMix
from balancemix.methods.base import Request
from balancemix.methods.sampling import minority_odds
from tests.methods.settings import draw_opinion, ready
from tests.toys import EPOCHS, SIZE, Training, make_data, same


def informed(labels, **options):
    method = BalanceMix(start_from="judge", min_labels=4, epsilon=0.55, **options)
    return ready(method, labels).start(labels, EPOCHS)


def test_it_starts_where_an_epoch_of_that_confidence_ends():
    _, labels = make_data()
    confidence = draw_opinion(labels).confidence
    warmed = BalanceMix(warmup=1, min_labels=4, epsilon=0.55).start(labels, EPOCHS)
    warmed.end_epoch(confidence)
    started = informed(labels, trust_positives=False)
    assert started.epoch == 0
    assert not started.warming
    want, state = warmed.state_dict(), started.state_dict()
    for name in ("table", "odds", "mixtures", "threshold", "trusting"):
        assert same(state[name], want[name]), name
    assert started.odds is not None
    assert started.odds.equal(minority_odds(labels, confidence))


@pytest.mark.parametrize("relabel", ["epoch", "online", "paper"])
def test_labels_are_managed_from_the_first_epoch_on(relabel):
    x, labels = make_data()
    method = informed(labels, relabel=relabel)
    index = torch.tensor(next(iter(method.batches(SIZE))))
    training = Training(method, x, views=True)
    method.loss(training.model, [x[index], x[index]], index).backward()
    training.run()
    assert method.epoch == EPOCHS


def test_without_an_opinion_it_says_what_to_call():
    method = BalanceMix(start_from="judge")
    with pytest.raises(InputError, match=r"informed_by\(judge\(given, features\), None\)"):
        method.start(make_data()[1], EPOCHS)


def test_the_judge_decides_what_a_pilot_would():
    assert not BalanceMix(start_from="judge").undecided
    assert BalanceMix().undecided
    generator = torch.Generator().manual_seed(0)
    truth = (torch.rand(2000, 4, generator=generator) < 0.4).int()
    score = 0.1 + 0.8 * truth + 0.1 * torch.rand(2000, 4, generator=generator)
    for noise, trusted in (("drop:0.8", True), ("mislabel:0.4", False)):
        given = parse(noise).apply(truth, 5).given
        opinion = dataclasses.replace(draw_opinion(given), confidence=score)
        method = BalanceMix(start_from="judge").informed_by(opinion, None).start(given, EPOCHS)
        assert method.trusting == trusted == estimate_errors(given, score).only_missing


@pytest.mark.parametrize("relabel", ["epoch", "online", "paper", "off"])
def test_with_the_judge_only_labels_and_odds_stay_as_it_made_them(relabel):
    x, labels = make_data()
    method = informed(labels, relabel=relabel, judge_only=True)
    table, odds = method.table.copy(), method.odds
    training = Training(method, x, views=True)
    for _ in range(EPOCHS):
        assert method.request() == Request()  # one view, and no pass over the data
        assert {"clean", "ambiguous"} <= training.epoch().keys()
    assert same(method.table.state_dict(), table.state_dict())
    assert odds is not None
    assert odds.equal(method.odds)
    assert not table.status.eq(Status.CLEAN).all()


def test_with_the_judge_only_the_model_decides_in_no_step():
    x, labels = make_data()
    ends = [
        Training(informed(labels, relabel=relabel, judge_only=True), x, views=True).run()
        for relabel in ("epoch", "online", "paper")
    ]
    for end in ends[1:]:
        assert end.losses == ends[0].losses
        assert end.weights().equal(ends[0].weights())


def test_the_judge_only_is_no_setting_of_a_warm_up():
    with pytest.raises(ValueError, match="judge_only needs start_from='judge'"):
        BalanceMix(judge_only=True)


def test_by_default_nothing_is_asked():
    assert not BalanceMix().needs_opinion
    assert BalanceMix().start_from == "warmup"
