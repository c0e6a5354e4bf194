"""BalanceMix with unknown (−1) and verified labels."""

import numpy as np
import pytest
import torch

from balancemix.judge.held_out import estimate_errors
from balancemix.labels.histogram import BINS
from balancemix.labels.mixtures import fit_mixtures
from balancemix.labels.table import Status
from balancemix.methods import BalanceMix
from balancemix.methods.base import Batch
from balancemix.methods.sampling import minority_odds
from balancemix.processes import Shard
from tests.methods.cases import managed, some_mixtures
from tests.methods.draws import lambda_of
from tests.methods.settings import draw_opinion
from tests.methods.test_unknown import hidden, loss_of_label
from tests.toys import EPOCHS, SIZE, Echo, K, N, Training, draw_confidence, make_data, make_model

MODES = ["epoch", "online", "paper", "off"]


def some_verified(seed=1, share=0.3):
    return torch.rand(N, K, generator=torch.Generator().manual_seed(seed)) < share


@pytest.mark.parametrize("score", ["paper", "positive-mean", "inverse-frequency"])
def test_odds_are_those_of_the_known_labels(score):
    labels, confidence = draw_confidence()
    given = hidden(labels)
    given[7] = -1  # nothing known of this row
    G, f = given.numpy(), confidence.numpy()
    P, A, rarity = [], [], []
    for k in range(6):
        P.append(np.mean(f[G[:, k] == 1, k]))
        A.append(np.mean(1 - f[G[:, k] == 0, k]))
        rarity.append(np.sum(G[:, k] >= 0) / np.sum(G[:, k] == 1))
    odds = []
    for row in G:
        present = [k for k in range(6) if row[k] == 1]
        known = [P[k] if row[k] == 1 else A[k] for k in range(6) if row[k] >= 0]
        if not known:
            odds.append(0.0)
        elif score == "paper":
            odds.append(1 / (6 * np.mean(known)))
        elif score == "positive-mean":
            odds.append(1 / (np.mean([P[k] for k in present]) if present else max(P)))
        else:
            odds.append(np.mean([rarity[k] for k in present]) if present else min(rarity))
    want = np.array(odds) / np.sum(odds)
    np.testing.assert_allclose(minority_odds(given, confidence, 1.0, score), want, rtol=1e-9)
    assert minority_odds(given, confidence, 0.0, score).isfinite().all()


@pytest.mark.parametrize("rows", [300, BINS + 300])  # single losses, and bins
def test_mixtures_are_those_of_the_known_labels(rows):
    labels, confidence = draw_confidence(n=rows, k=1)
    given = hidden(labels, 0.2)
    known = given[:, 0] >= 0
    extra = torch.cat([given[known], torch.full((int(known.sum()), 1), -1)])  # as many unknown
    one = fit_mixtures(extra, torch.cat([confidence[known], confidence[known].flip(0)]))
    other = fit_mixtures(given, confidence)
    for name in ("share", "mean", "variance"):
        torch.testing.assert_close(getattr(one, name), getattr(other, name))
    assert (one.guard == 0).all()


def test_errors_are_estimated_from_known_labels():
    labels, confidence = draw_confidence(n=4000, k=1)
    confidence = (confidence + labels) / 2
    given = hidden(labels, 0.3)
    confidence[given < 0] = 1.0  # as if these were all present
    known = given[:, 0] >= 0
    errors = estimate_errors(given, confidence)
    assert errors == estimate_errors(given[known], confidence[known])
    assert errors.missing < 0.1


@pytest.mark.parametrize("blend", [False, True])
def test_a_mixed_label_is_that_of_the_row_that_has_one(blend):
    """Against Eq. 10 by hand, with weights of one: λ·ℓ(y_R) + (1 − λ)·ℓ(y_M) over known labels."""
    given = hidden(make_data()[1])
    method = BalanceMix(warmup=2, blend=blend).start(given, EPOCHS)
    index = torch.tensor([7, 30, 2, 19, 5, 30, 11, 26])
    lam = lambda_of(method)
    logits = torch.randn(8, K, generator=torch.Generator().manual_seed(3))
    got = method.loss(Echo(), logits, index).item()
    mixed = (lam * logits[:4] + (1 - lam) * logits[4:]).double().numpy()
    R, M = given[index[:4]].numpy(), given[index[4:]].numpy()
    want = np.mean([
        sum(
            lam * loss_of_label(mixed[i, k], R[i, k])
            + (1 - lam) * loss_of_label(mixed[i, k], M[i, k])
            for k in range(K)
        )
        for i in range(4)
    ])  # fmt: skip
    assert got == pytest.approx(want, rel=1e-5)


def test_the_weight_is_the_random_rows_unless_its_label_is_unknown_or_the_other_is_verified():
    given = torch.tensor([[1, -1, 1, 1, -1], [0, 0, -1, 0, -1]], dtype=torch.int8)
    verified = torch.tensor([[0, 0, 0, 0, 0], [0, 0, 0, 1, 0]])
    method = BalanceMix(warmup=0, relabel="off").start(given, 2, verified=verified)
    method.table.write(slice(None), Status.AMBIGUOUS, torch.tensor([[0.25], [0.5]]).expand(2, 5))
    index, lam = torch.tensor([0, 1]), lambda_of(method)
    batch = Batch([torch.zeros(2, 1)], index, Shard(1))
    _, (target, weight) = method.paired(batch, *method.table.rows(index))
    last = 0.25 * lam + 1 - lam  # each label by its own weight
    want = [0.25, 0.5 * (1 - lam), 0.25 * lam, last, 0]
    assert weight[0].tolist() == pytest.approx(want)
    assert target[0].tolist() == pytest.approx([lam, 0, 1, 0.25 * lam / last, 0])


@pytest.mark.parametrize("mode", MODES)
def test_unknown_labels_are_filled_in_where_the_model_is_sure(mode):
    given = hidden(make_data()[1])
    method = BalanceMix(warmup=0, relabel=mode, epsilon=0.9, min_labels=4).start(given, EPOCHS)
    confidence = torch.rand(N, K, generator=torch.Generator().manual_seed(5))
    method.end_epoch(confidence)
    status, unknown = method.table.status, given < 0
    present, absent = unknown & (confidence > 0.9), unknown & (confidence < 0.1)
    if mode == "off":
        assert (status[unknown] == Status.IGNORED).all()
        return
    assert present.any()
    assert absent.any()
    assert (status[present] == Status.PRESENT).all()
    assert (status[absent] == Status.ABSENT).all()
    assert (status[unknown & ~present & ~absent] == Status.IGNORED).all()
    assert (method.table.clean[unknown] == 0).all()


def test_unknown_labels_are_filled_in_within_a_step():
    given = hidden(make_data()[1])
    method = BalanceMix(warmup=0, relabel="paper", epsilon=0.9).start(given, EPOCHS)
    method.mixtures, method.epoch = some_mixtures(), 1
    index = torch.arange(SIZE)
    logits = 4 * torch.randn(SIZE, K, generator=torch.Generator().manual_seed(3))
    target, weight = managed(method, Echo(), logits, index)
    unknown, sure = given[index] < 0, (logits.sigmoid() - 0.5).abs() > 0.4
    assert (unknown & sure).any()
    assert (weight[unknown & sure] == 1).all()
    assert target[unknown & sure].equal((logits > 0)[unknown & sure].float())
    assert (weight[unknown & ~sure] == 0).all()
    assert target[~unknown].equal(given[index][~unknown].float())


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("options", [{}, {"reweight": False}, {"start_from": "judge"}])
def test_verified_labels_stay_as_they_are(mode, options):
    x, labels = make_data()
    given, verified = hidden(labels, 0.2), some_verified()
    kept = {"warmup": 1, "min_labels": 4, "epsilon": 0.55, "relabel": mode}
    method = BalanceMix(**kept | options)
    if method.needs_opinion:
        method = method.informed_by(draw_opinion(labels), None)
    method.start(given, EPOCHS, verified=verified)
    sure = verified & (given >= 0)
    training = Training(method, x, views=True)
    for _ in range(EPOCHS):
        index = torch.arange(N)
        if method.mixtures is not None and method.manages_in_step:
            target, weight = managed(method, make_model(norm=False), [x, x + 0.5], index)
            assert target[sure].equal(given[sure].float())
            assert (weight[sure] == 1).all()
        training.epoch()
        target, weight = method.table.rows(index)
        assert ((method.table.status == Status.VERIFIED) == sure).all()
        assert target[sure].equal(given[sure].float())
        assert (weight[sure] == 1).all()
    others = method.table.status[~sure & (given >= 0)]
    assert (others != Status.CLEAN).any()  # the rest is doubted


def test_verified_labels_take_no_part_in_the_mixtures():
    labels, confidence = make_data()[1], torch.rand(N, K)
    verified = some_verified()
    method = BalanceMix(warmup=0, min_labels=4).start(labels, EPOCHS, verified=verified)
    method.end_epoch(confidence)
    doubtful = labels.to(torch.int8).masked_fill(verified, -1)
    want = fit_mixtures(doubtful, confidence, min_labels=4)
    assert method.mixtures is not None
    assert method.mixtures.mean.equal(want.mean)
    assert method.odds is not None
    assert method.odds.equal(minority_odds(labels, confidence))
