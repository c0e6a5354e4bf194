"""How many labels are wrong or missing, judged by rows kept out of the warm-up."""

import numpy as np
import pytest
import torch

from balancemix.evidence import Evidence, keep_out, weigh
from balancemix.methods import BalanceMix
from balancemix.plan import Plan
from tests.test_methods import EPOCHS, N, Training, make_data


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
    return confidence, torch.from_numpy(given.astype(np.uint8))


def slow(confidence, given, end=0.2):
    """The two formulas of the module's docstring, label by label."""
    low = chance = high = top = 0
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
    confidence, given = planted(wrong=0.3, missing=0.5, rows=400)
    evidence = weigh(confidence, given)
    assert (evidence.wrong, evidence.missing) == pytest.approx(
        slow(confidence.numpy(), given.numpy())
    )
    assert evidence.positives == int(given.sum())


@pytest.mark.parametrize("wrong", [0.0, 0.1, 0.2, 0.4, 0.8])
def test_a_planted_share_of_wrong_positives_is_found(wrong):
    assert weigh(*planted(wrong, missing=0.0)).wrong == pytest.approx(wrong, abs=0.05)


@pytest.mark.parametrize("missing", [0.0, 1.0, 3.0])
@pytest.mark.parametrize("wrong", [0.0, 0.2])
def test_planted_missing_positives_are_found(missing, wrong):
    # An upper bound, and not far above for classes that are easy to recognise.
    assert 0.7 * missing <= weigh(*planted(wrong, missing)).missing < missing + 1


@pytest.mark.parametrize(
    ("wrong", "missing", "expected"),
    [(0.0, 3.0, True), (0.0, 0.0, False), (0.3, 3.0, False), (0.3, 0.0, False)],
)
def test_labels_that_are_only_missing_are_told_from_others(wrong, missing, expected):
    assert weigh(*planted(wrong, missing)).only_missing is expected


def test_few_positives_decide_nothing():
    assert not Evidence(positives=99, wrong=0.0, missing=5.0).only_missing
    assert Evidence(positives=100, wrong=0.0, missing=5.0).only_missing


@pytest.mark.parametrize("labels", [torch.zeros(9, 2), torch.ones(9, 2), torch.zeros(0, 2)])
def test_a_side_without_labels_is_no_evidence(labels):
    evidence = weigh(torch.full(labels.shape, 0.5), labels)
    assert (evidence.wrong, evidence.missing) == (0.0, 0.0)


def test_shapes_must_agree():
    with pytest.raises(ValueError, match=r"N×K.*\(3, 2\).*\(3, 1\)"):
        weigh(torch.zeros(3, 2), torch.zeros(3, 1))


AUTO = {"epsilon": "auto", "trust_positives": "auto", "warmup": 2, "fewest": 4}


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"minority": False},
        {"mix": False},
        {"blend": True},
        {"warmup_mix": False},
        {"lambda_per": "pair"},
    ],
)
def test_the_warm_up_sees_nothing_of_rows_kept_out(options):
    x, labels = make_data()
    method = BalanceMix(**AUTO | options).start(labels, EPOCHS)
    unseen = method.unseen.nonzero()[:, 0]
    assert len(unseen) == N // 10
    other = labels.clone()
    other[unseen] = 1 - other[unseen]
    first, second = (
        Training(BalanceMix(**AUTO | options).start(given, EPOCHS), x).run(2).weights()
        for given in (labels, other)
    )
    assert first.equal(second)


def test_rows_kept_out_are_seen_after_the_warm_up():
    x, labels = make_data()
    training = Training(BalanceMix(**AUTO).start(labels, EPOCHS), x)
    assert (training.method.odds[training.method.unseen] == 0).all()
    training.epoch()
    assert (training.method.odds[training.method.unseen] == 0).all()
    facts = training.epoch()
    assert {"positives", "wrong", "missing", "epsilon", "trust_positives"} <= facts.keys()
    assert not training.method.unseen.any()
    assert (training.method.odds > 0).all()
    clean = training.method.table.status == 0
    assert (training.method.table.weight[clean] == 1).all()


@pytest.mark.parametrize("options", [{"select": False}, {"warmup": 0}, {"warmup": EPOCHS}])
def test_no_row_is_kept_out_where_nothing_is_to_be_chosen(options):
    method = BalanceMix(**AUTO | options).start(make_data()[1], EPOCHS)
    assert not method.unseen.any()
    assert (method.threshold, method.trusting) == (0.975, False)


@pytest.mark.parametrize(("wrong", "missing"), [(0.0, 4.0), (0.3, 0.0)])
def test_positives_are_trusted_where_labels_are_only_missing(wrong, missing):
    confidence, given = planted(wrong, missing, rows=30_000)
    method = BalanceMix(trust_positives="auto", warmup=1).start(given, 3)
    facts = method.end_epoch(confidence)
    assert method.trusting == (missing > 0) == bool(facts["trust_positives"])
    assert bool((method.table.clean[given > 0] == 1).all()) == (missing > 0)


def test_what_was_chosen_is_kept_in_the_state():
    confidence, given = planted(0.0, 4.0, rows=30_000)
    method = BalanceMix(trust_positives="auto", warmup=2).start(given, 4)
    method.end_epoch(confidence)
    again = BalanceMix(trust_positives="auto", warmup=2).start(given, 4, seed=3)
    again.load_state_dict(method.state_dict())
    assert again.unseen.equal(method.unseen)
    method.end_epoch(confidence)
    again.load_state_dict(method.state_dict())
    assert again.trusting is True
    assert not again.unseen.any()


def test_kept_out_rows_depend_on_the_seed_alone():
    assert keep_out(500, 0.1, 3).equal(keep_out(500, 0.1, 3))
    assert not keep_out(500, 0.1, 3).equal(keep_out(500, 0.1, 4))


def test_the_settings_reader_knows_auto():
    plan = Plan.from_tree({"method": {"epsilon": "auto", "trust_positives": "auto"}})
    assert (plan.method.epsilon, plan.method.trust_positives) == ("auto", "auto")
    plan = Plan.from_tree({"method": {"epsilon": 1, "trust_positives": True}})
    assert (plan.method.epsilon, plan.method.trust_positives) == (1.0, True)
