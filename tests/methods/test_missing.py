"""SPLC, AN-LS, EPR, ROLE and EM-APL against their equations, and what they make of the table."""

import math

import numpy as np
import pytest
import torch

from balancemix.labels.table import Status
from balancemix.methods import ANLS, ASL, EMAPL, EPR, ROLE, SPLC, Focal, Hill
from balancemix.methods.em_apl import least_confident
from balancemix.methods.single_positive import label_step
from tests.methods.draws import pairing_of
from tests.reference import losses as reference
from tests.toys import Echo, Training, draw_logits, make_data

B, K = 12, 6


def loss_of(method, logits):
    return method.loss(Echo(), logits, torch.arange(B)).item()


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


# One label at a time.


@pytest.mark.parametrize(
    ("method", "formula", "settings"),
    [
        (Focal(gamma=1.5), reference.focal, (1.5,)),
        (ASL(), reference.asl, (4.0, 0.0, 0.05)),
        (Hill(), reference.hill, (2.0, 1.0, 1.5)),
        (ANLS(), reference.smoothed, (0.1,)),
        (ANLS(smoothing=0.3), reference.smoothed, (0.3,)),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("alpha", [0.0, 4.0])
def test_a_batch_equals_the_equation_on_mixed_rows(method, formula, settings, alpha):
    logits, labels = draw_logits(0, B, K)
    method.alpha = alpha
    method.start(labels, 10)
    partner, lam = pairing_of(method, B)
    z = lam * logits + (1 - lam) * logits[partner]
    y = lam * labels.double() + (1 - lam) * labels[partner].double()
    want = reference.each(formula, z.numpy(), y.numpy(), *settings).sum() / B
    assert loss_of(method, logits) == pytest.approx(want, rel=1e-6)


@pytest.mark.parametrize("strength", [0.0, 0.25, 0.75, 1.0])
@pytest.mark.parametrize("kind", [Hill, EPR, ROLE, EMAPL])
def test_strength_blends_with_bce(kind, strength):
    logits, labels = draw_logits(1, B, K)
    plain, blend, own = (
        loss_of(kind(alpha=0.0, strength=value).start(labels, 4), logits)
        for value in (0.0, strength, 1.0)
    )
    bce = reference.each(reference.bce, logits.numpy(), labels.numpy()).sum() / B
    assert plain == pytest.approx(bce)
    assert own != pytest.approx(bce)
    assert blend == pytest.approx((1 - strength) * plain + strength * own)


@pytest.mark.parametrize("epoch", [0, 1, 2])
@pytest.mark.parametrize("warmup", [1, 2])
def test_splc_corrects_after_its_warm_up(epoch, warmup):
    logits, labels = draw_logits(2, B, K)
    method = SPLC(alpha=0.0, warmup=warmup).start(labels, 5)
    method.epoch = epoch
    settings = (0.6, 1.0, 2.0, epoch - warmup + 1)
    want = reference.each(reference.splc, logits.numpy(), labels.numpy(), *settings)
    assert loss_of(method, logits) == pytest.approx(want.sum() / B)
    assert method.table.whole().target.equal(labels.float())


# EPR.


@pytest.mark.parametrize("expected", [None, 2.9])
def test_epr_equals_its_equation(expected):
    logits, labels = draw_logits(3, B, K)
    method = EPR(alpha=0.0, expected=expected, reduction="mean").start(labels, 5)
    k = float(labels.sum()) / B if expected is None else expected
    want = reference.epr(logits.numpy(), labels.numpy(), k)
    assert loss_of(method, logits) == pytest.approx(want, rel=1e-6)
    method.reduction = "sum"
    assert loss_of(method, logits) == pytest.approx(want * K, rel=1e-6)


def test_epr_predicts_more_positives_where_more_are_expected():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(64, 6, generator=generator)
    labels = torch.zeros(64, 5, dtype=torch.uint8)
    labels[torch.arange(64), torch.randint(5, (64,), generator=generator)] = 1
    predicted = []
    for expected in (0.0, 1.0, 3.0, 5.0):
        torch.manual_seed(0)
        model = torch.nn.Linear(6, 5)
        Training(EPR(expected=expected).start(labels, 40), x, model).run(40)
        predicted.append(model(x).sigmoid().sum(1).mean().item())
    assert predicted == sorted(predicted)
    assert predicted[0] < 2.5 < 4 < predicted[-1]


# ROLE.


@pytest.mark.parametrize("alpha", [0.0, 4.0])
def test_role_s_classifier_learns_its_half_of_the_equation(alpha):
    logits, labels = draw_logits(4, B, K)
    method = ROLE(alpha=alpha, expected=2.0, reduction="mean").start(labels, 5)
    partner, lam = pairing_of(method, B)
    g = method.matrix.double().sigmoid()
    z = lam * logits + (1 - lam) * logits[partner]
    mixed = (lam * g + (1 - lam) * g[partner]).numpy()
    if alpha:  # the transcription wants hard labels; of two rows, each has its share
        both = ((lam, labels), (1 - lam, labels[partner]))
        f = sigmoid(z.numpy())
        want = sum(share * reference.role_half(f, mixed, y.numpy(), 2.0) for share, y in both)
    else:
        want = reference.role_half(sigmoid(logits.numpy()), g.numpy(), labels.numpy(), 2.0)
    assert loss_of(method, logits) == pytest.approx(want, rel=1e-5)


def test_role_s_matrix_steps_down_its_half_of_the_equation():
    matrix, labels = draw_logits(5, B, K)
    confidence = sigmoid(draw_logits(6, B, K)[0].numpy())
    got = label_step(matrix, labels, torch.from_numpy(confidence), 2.5, rate=3.0)

    def loss(logits):
        return reference.role_half(sigmoid(logits), confidence, labels.numpy(), 2.5) * B * K

    slope = np.empty((B, K))
    for place in np.ndindex(B, K):
        shift = np.zeros((B, K))
        shift[place] = 1e-5
        slope[place] = (loss(matrix.numpy() + shift) - loss(matrix.numpy() - shift)) / 2e-5
    np.testing.assert_allclose(got.numpy(), matrix.numpy() - 3.0 * slope, atol=1e-6)


def test_role_s_labels_begin_as_published_and_follow_the_model():
    _, labels = draw_logits(7, B, K)
    method = ROLE().start(labels, 50)
    target = method.table.whole().target
    assert ((target > 0.399) & (target < 0.601))[labels == 0].all()
    assert target[labels == 1] == pytest.approx(0.995, abs=2**-11)  # of float16
    confidence = torch.full((B, K), 0.05)
    for _ in range(50):
        facts = method.end_epoch(confidence)
    assert method.table.whole().target[labels == 0].max() < 0.15
    assert (
        method.table.whole().target[labels == 1].min() > 0.5
    )  # half of their loss is the given label
    assert facts["flipped"] == 0
    assert method.table.given.equal(labels.to(torch.int8))
    assert (method.table.status[labels == 0] == Status.ABSENT).all()
    assert (method.table.status[labels == 1] == Status.CLEAN).all()


def test_another_seed_draws_another_matrix():
    _, labels = draw_logits(8, B, K)
    first, second = (ROLE().start(labels, 5, seed).matrix for seed in (0, 1))
    assert not first.equal(second)


# EM-APL.


def test_em_apl_equals_its_equation_in_each_state():
    logits, labels = draw_logits(9, B, K)
    method = EMAPL(alpha=0.0, entropy=0.2, pseudo=0.7, warmup=1).start(labels, 3)
    states = np.where(labels.numpy() == 1, "positive", "unknown").astype(object)
    soft = labels.double().numpy()
    for _ in range(3):
        want = sum(
            reference.em_apl(float(logits[place]), soft[place], states[place], 0.2, 0.7)
            for place in np.ndindex(B, K)
        )
        assert loss_of(method, logits) == pytest.approx(want / B, rel=1e-6)
        confidence = sigmoid(draw_logits(10, B, K)[0].numpy()).astype(np.float32)
        if method.epoch + 1 < 3:
            places = reference.pseudo_negatives(
                confidence, states == "unknown", (labels == 0).sum(0).tolist(), 0.9, 3, 1
            )
            for place in places:
                states[place], soft[place] = "pseudo", confidence[place]
        method.end_epoch(torch.from_numpy(confidence))
    status = method.table.status.numpy()
    assert ((status == Status.ABSENT) == (states == "pseudo")).all()
    assert ((status == Status.IGNORED) == (states == "unknown")).all()
    assert (states == "pseudo").any()


def test_em_apl_of_a_mixed_row_is_the_mix_of_its_losses():
    logits, labels = draw_logits(11, B, K)
    method = EMAPL(alpha=4.0, warmup=1).start(labels, 3)
    method.end_epoch(torch.from_numpy(sigmoid(draw_logits(12, B, K)[0].numpy())))
    partner, lam = pairing_of(method, B)
    names = {Status.CLEAN: "positive", Status.IGNORED: "unknown", Status.ABSENT: "pseudo"}
    total = 0.0
    for i, k in np.ndindex(B, K):
        j = int(partner[i])
        z = float(lam * logits[i, k] + (1 - lam) * logits[j, k])
        for share, row in ((lam, i), (1 - lam, j)):
            state = names[Status(int(method.table.status[row, k]))]
            y = float(method.table.whole().target[row, k])
            total += share * reference.em_apl(z, y, state, 0.1, 0.9)
    assert loss_of(method, logits) == pytest.approx(total / B, rel=1e-5)


@pytest.mark.parametrize(
    ("warmup", "epochs", "wanted"),
    [
        (None, 4, [False, True, True, False]),
        (1, 3, [True, True, False]),
        (0, 2, [True, False]),
        (3, 3, [False, False, False]),
        (None, 1, [False]),
    ],
)
def test_em_apl_wants_confidence_while_it_is_of_use(warmup, epochs, wanted):
    method = EMAPL(warmup=warmup).start(draw_logits(0, B, K)[1], epochs)
    seen = []
    for _ in range(epochs):
        seen.append(bool(method.request().passes))
        method.end_epoch(*([torch.rand(B, K)] if seen[-1] else []))
    assert seen == wanted


def test_em_apl_s_pseudo_negatives_come_to_the_share_of_the_unknown():
    x, labels = make_data(n=400)
    method = EMAPL(warmup=2).start(labels, 6)
    facts = [Training(method, x).epoch() for _ in range(6)]
    unknown = 1 - float(labels.float().mean())
    shares = [fact["unknown"] / unknown for fact in facts]
    assert shares[0] == pytest.approx(1)
    np.testing.assert_allclose(np.diff(shares), [-0.225] * 4 + [0], atol=0.005)
    assert shares[-1] == pytest.approx(0.1, abs=0.02)


def test_the_least_confident_are_found_in_each_class():
    confidence = torch.tensor([[0.3, 0.1], [0.1, 0.2], [0.2, 0.9], [0.0, 0.9]])
    unknown = torch.tensor([[True, True], [True, True], [True, True], [False, False]])
    marked = least_confident(confidence, unknown, torch.tensor([2, 9]))
    assert marked.tolist() == [[False, True], [True, True], [True, True], [False, False]]
    assert not least_confident(confidence, unknown, torch.tensor([0, 0])).any()


# What is refused.


@pytest.mark.parametrize("kind", [ROLE, EMAPL])
@pytest.mark.parametrize("confidence", [[], [torch.rand(B, K + 1)], [torch.full((B, K), math.nan)]])
def test_an_epoch_without_a_usable_confidence_is_refused(kind, confidence):
    method = kind().start(draw_logits(0, B, K)[1], 2)
    with pytest.raises(ValueError, match="confidence"):
        method.end_epoch(*confidence)
    assert method.epoch == 0


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        (Focal, {"gamma": -1.0}, r"gamma must be at least 0, it is -1\.0"),
        (ASL, {"clip": 1.5}, r"clip must be between 0 and 1, it is 1\.5"),
        (ASL, {"gamma_negative": -1.0}, "gamma_negative"),
        (Hill, {"strength": 2.0}, "strength"),
        (SPLC, {"tau": 1.1}, "tau"),
        (SPLC, {"warmup": -1}, "warmup"),
        (ANLS, {"smoothing": 0.6}, "smoothing"),
        (EPR, {"expected": -1.0}, "expected"),
        (ROLE, {"rate": -1.0}, "rate"),
        (ROLE, {"strength": math.nan}, "strength"),
        (EMAPL, {"share": 1.1}, "share"),
        (EMAPL, {"warmup": -1}, "warmup"),
    ],
)
def test_settings_out_of_range_are_refused(kind, options, message):
    with pytest.raises(ValueError, match=message):
        kind(**options)
