"""How many labels are wrong or missing, judged by rows that a pilot was not trained on."""

import copy
import math
from contextlib import nullcontext

import numpy as np
import pytest
import torch
from torch import nn

from balancemix.data import FeatureRows, Splits
from balancemix.judge.held_out import LabelErrors, estimate_errors
from balancemix.labels.noise import parse
from balancemix.methods import BalanceMix
from balancemix.plan.plan import Plan
from balancemix.progress import Silent
from balancemix.run import Run
from balancemix.training import pilot
from balancemix.training.experiment import Experiment
from balancemix.training.fit import fit
from balancemix.training.pilot import explore
from tests.toys import EPOCHS, make_data


def planted(wrong, missing, seed=0, rows=9000, classes=6):
    """Confidence of a fair model, and labels of which known shares are wrong or missing."""
    random = np.random.default_rng(seed)
    truth = random.random((rows, classes)) < 0.1
    logits = np.where(truth, 2.0, -2.0) + random.normal(size=truth.shape)
    given = truth & (random.random(truth.shape) < 1 / (1 + missing))
    # So many negatives are called positive that they are the wanted share of all positives.
    rate = wrong / (1 - wrong) * given.sum() / (~truth).sum()
    given = given | (~truth & (random.random(truth.shape) < rate))
    confidence = torch.from_numpy(logits).sigmoid()
    return torch.from_numpy(given.astype(np.uint8)), confidence


def slow(confidence, given, end=0.2):
    """The two formulas of the module's docstring, label by label."""
    low = high = top = 0
    chance = 0.0
    for k in range(given.shape[1]):
        positive = sorted(c for c, y in zip(confidence[:, k], given[:, k], strict=True) if y)
        negative = sorted(c for c, y in zip(confidence[:, k], given[:, k], strict=True) if not y)
        lowest, highest = int(end * len(negative)), int(end * len(positive))
        if lowest:
            low += sum(c < negative[lowest] for c in positive)
            chance += len(positive) * lowest / len(negative)
        if highest:
            high += sum(c > positive[-highest] for c in negative)
            top += highest
    wrong = low / chance
    return wrong, (1 - wrong) * high / top


def test_the_two_formulas():
    given, confidence = planted(wrong=0.3, missing=0.5, rows=400)
    errors = estimate_errors(given, confidence)
    assert (errors.wrong, errors.missing) == pytest.approx(slow(confidence.numpy(), given.numpy()))
    assert errors.positives == int(given.sum())


@pytest.mark.parametrize("wrong", [0.0, 0.1, 0.2, 0.4, 0.8])
def test_a_planted_share_of_wrong_positives_is_found(wrong):
    assert estimate_errors(*planted(wrong, missing=0.0)).wrong == pytest.approx(wrong, abs=0.05)


@pytest.mark.parametrize("missing", [0.0, 1.0, 3.0])
@pytest.mark.parametrize("wrong", [0.0, 0.2])
def test_planted_missing_positives_are_found(missing, wrong):
    # An upper bound, and not far above for classes that are easy to recognise.
    assert 0.7 * missing <= estimate_errors(*planted(wrong, missing)).missing < missing + 1


@pytest.mark.parametrize(
    ("wrong", "missing", "expected"),
    [(0.0, 3.0, True), (0.0, 0.0, False), (0.3, 3.0, False), (0.3, 0.0, False)],
)
def test_labels_that_are_only_missing_are_told_from_others(wrong, missing, expected):
    assert estimate_errors(*planted(wrong, missing)).only_missing is expected


def test_the_error_is_that_of_counting():
    found = [estimate_errors(*planted(0.2, 0.0, seed=seed, rows=2000)) for seed in range(12)]
    spread = float(np.std([errors.wrong for errors in found], ddof=1))
    assert found[0].error == pytest.approx(spread, rel=0.7)


def test_wrong_positives_must_be_sure_to_be_doubted():
    assert LabelErrors(positives=500, wrong=0.15, missing=5.0, error=0.04).only_missing
    assert not LabelErrors(positives=500, wrong=0.15, missing=5.0, error=0.01).only_missing


def test_most_positives_must_be_sure_to_be_wrong():
    assert LabelErrors(positives=500, wrong=0.6, missing=0.5, error=0.04).mostly_wrong
    assert not LabelErrors(positives=500, wrong=0.6, missing=0.5, error=0.06).mostly_wrong


def test_few_positives_decide_nothing():
    assert not LabelErrors(positives=99, wrong=0.9, missing=0.5).mostly_wrong
    assert not LabelErrors(positives=99, wrong=0.0, missing=5.0).only_missing
    assert LabelErrors(positives=100, wrong=0.0, missing=5.0).only_missing


@pytest.mark.parametrize("labels", [torch.zeros(9, 2), torch.ones(9, 2), torch.zeros(0, 2)])
def test_a_side_without_labels_is_no_evidence(labels):
    errors = estimate_errors(labels, torch.full(labels.shape, 0.5))
    assert (errors.wrong, errors.missing) == (0.0, 0.0)


def test_shapes_must_agree():
    with pytest.raises(ValueError, match=r"N×K.*\(3, 1\).*\(3, 2\)"):
        estimate_errors(torch.zeros(3, 1), torch.zeros(3, 2))


AUTO = {"name": "balancemix", "epsilon": "auto", "trust_positives": "auto", "min_labels": 4}


def small(noise="none", **method):
    plan = Plan.from_tree({"method": {**AUTO, **method}, "noise": noise})
    plan.train.epochs, plan.train.batch_size = 4, 32
    return plan


def rows(rule=1.0, seed=0):
    """Rows of which a linear rule says whether each of five classes is there."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(3000, 12, generator=generator)
    truth = (x @ torch.randn(12, 5, generator=generator) > rule).to(torch.uint8)
    return FeatureRows(x, truth, [f"class {k}" for k in range(5)])


def linear():
    return nn.Linear(12, 5)


class Trial(Experiment):
    def make_model(self):
        return linear()


def trial(plan, data):
    """An experiment on these rows, whatever the plan names."""
    return Trial(plan, Splits(data, data, {"train": data, "test": data}), data, {})


@pytest.mark.parametrize(
    ("noise", "trusted"), [("drop:0.8", True), ("none", False), ("mislabel:0.4", False)]
)
def test_a_pilot_tells_what_is_wrong_with_the_labels(noise, trusted):
    data = rows(rule=0.0)
    given = parse(noise).apply(data.given, 0).given if noise != "none" else data.given
    plan = small()
    plan.train.epochs, plan.train.lr = 40, 0.1
    errors = explore(linear, data.with_given(given, data.given), plan)
    assert errors.only_missing is trusted
    assert errors.positives == pytest.approx(int(given.sum()) / 10, rel=0.2)


def test_a_pilot_s_batches_are_counted():
    class Count(Silent):
        steps = 0

        def advance(self, steps=1):
            self.steps += steps

    data, plan, show = rows(), small(), Count()
    wanted = pilot.steps(data, plan) + 4 * math.ceil(len(data) / 32)
    totals = []

    def bar(what, total):
        totals.append(total)
        return nullcontext(show)

    trial(plan, data).fit(bar=bar)
    assert totals == [wanted]
    assert show.steps == wanted > 4 * math.ceil(len(data) / 32)
    assert pilot.steps(data, small(epsilon=0.9, trust_positives=False)) == 0


def test_too_few_rows_are_not_explored():
    few = rows().subset(torch.arange(50))
    errors = explore(None, few, small())  # no model is made
    assert errors.positives < 100
    assert not errors.only_missing


def test_what_is_chosen_is_all_that_a_pilot_leaves_behind():
    data = rows()
    by_hand = small(epsilon=0.975, trust_positives=False)
    auto, hand = (trial(plan, data).fit() for plan in (small(), by_hand))
    for name, weight in hand.model.state_dict().items():
        assert auto.model.state_dict()[name].equal(weight)
    assert auto.metrics["last"] == hand.metrics["last"]


def test_without_a_pilot_auto_settings_are_their_defaults():
    data, plan = rows(), small()
    by_hand = small(epsilon=0.975, trust_positives=False)
    auto, hand = (fit(linear, data, data, each) for each in (plan, by_hand))
    for name, weight in hand.model.state_dict().items():
        assert auto.model.state_dict()[name].equal(weight)
    assert isinstance(auto.method, BalanceMix)
    assert auto.method.chosen == {}


def test_the_plan_s_method_stays_as_it_was():
    data, plan = rows(), small()
    kept = copy.deepcopy(vars(plan.method))
    trained = trial(plan, data).fit()
    assert vars(plan.method) == kept
    assert trained.method is not plan.method
    assert trained.method.epoch == 4
    assert trained.method.chosen


def test_what_was_chosen_is_logged_and_not_asked_again(tmp_path, monkeypatch):
    plan, data = small(), rows()
    run = Run.create(tmp_path / "run", plan)
    decided = trial(plan, data).fit(run).method
    first, *others = run.log
    assert {"positives", "wrong", "missing", "error", "trust_positives"} <= first.keys()
    assert not any("wrong" in line for line in others)
    assert run.read_json("pilot").items() <= first.items()

    def never(*_):
        raise AssertionError("a resumed run was explored again")

    monkeypatch.setattr(pilot, "explore", never)
    (run.path / "metrics.json").unlink()
    again = trial(small(), data).fit(run).method
    assert again.chosen == decided.chosen != {}


@pytest.mark.parametrize("options", [{"select": False}, {"epsilon": 0.9, "trust_positives": True}])
def test_nothing_is_asked_where_nothing_is_left_open(options):
    settings = {key: value for key, value in {**AUTO, **options}.items() if key != "name"}
    assert not BalanceMix(**settings).start(make_data()[1], EPOCHS).undecided


@pytest.mark.parametrize(("wrong", "missing"), [(0.0, 4.0), (0.3, 0.0)])
def test_positives_are_trusted_where_labels_are_only_missing(wrong, missing):
    given, confidence = planted(wrong, missing)
    auto = BalanceMix(trust_positives="auto", warmup=0)
    assert auto.undecided
    method = auto.decided_by(estimate_errors(given, confidence)).start(given, 3)
    assert auto.undecided
    assert not method.undecided
    facts = method.end_epoch(confidence)
    assert method.trusting == (missing > 0) == bool(facts["trust_positives"])
    assert bool((method.table.clean[given > 0] == 1).all()) == (missing > 0)


@pytest.mark.parametrize(
    ("wrong", "warmup", "expected"), [(0.3, None, 6), (0.8, None, 3), (0.8, 6, 6), (0.8, 1, 1)]
)
def test_the_warm_up_is_halved_where_most_positives_are_wrong(wrong, warmup, expected):
    errors = LabelErrors(positives=500, wrong=wrong, missing=0.5)
    method = BalanceMix(warmup=warmup).decided_by(errors).start(make_data()[1], 30)
    assert method.warm == method.chosen["warmup"] == expected
    again = BalanceMix(warmup=warmup).start(make_data()[1], 30)
    assert again.load_state_dict(method.state_dict()).warm == expected


def test_what_was_chosen_is_kept_in_the_state():
    given, confidence = planted(0.0, 4.0)
    errors = estimate_errors(given, confidence)
    method = BalanceMix(trust_positives="auto").decided_by(errors).start(given, 4)
    again = BalanceMix(trust_positives="auto").start(given, 4, seed=3)
    again.load_state_dict(method.state_dict())
    assert again.trusting is True
    assert again.chosen == method.chosen


def test_the_settings_reader_knows_auto():
    for text, expected in (
        ({"epsilon": "auto", "trust_positives": "auto"}, ("auto", "auto")),
        ({"epsilon": 1, "trust_positives": True}, (1.0, True)),
    ):
        method = Plan.from_tree({"method": text}).method
        assert isinstance(method, BalanceMix)
        assert (method.epsilon, method.trust_positives) == expected


@pytest.mark.parametrize(
    ("wrong", "missing", "only_missing", "mostly_wrong"),
    [
        (0.0, 1.9, False, False),
        (0.0, 2.1, True, False),
        (0.12, 2.1, True, False),
        (0.13, 2.1, False, False),
        (0.49, 0.0, False, False),
        (0.51, 0.0, False, True),
    ],
)
def test_the_thresholds_are_where_the_documents_say(wrong, missing, only_missing, mostly_wrong):
    errors = LabelErrors(1000, wrong, missing)
    assert (errors.only_missing, errors.mostly_wrong) == (only_missing, mostly_wrong)
    few = LabelErrors(99, wrong, missing)
    assert not few.only_missing
    assert not few.mostly_wrong
