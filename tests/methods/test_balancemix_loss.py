"""BalanceMix's loss against Eq. 10, end to end."""

import numpy as np
import pytest
import torch

from balancemix.labels.table import Status
from balancemix.methods import BCE, BalanceMix
from tests.methods.cases import confidence_of, known_case
from tests.methods.draws import lambda_of, pairing_of
from tests.reference import balancemix as reference
from tests.toys import EPOCHS, K, make_data, make_model

RELIABILITY = np.array([0, 1, 1, 2, 2, 0])  # the reference's codes, C, R and U, of ours


def refined(method, model, views, index):
    """The reference's labels, reliability, P(clean) and weights of a batch."""
    Y, p_G = method.table.given[index].numpy(), method.table.clean[index].float().numpy()
    f_1, f_2 = (np.array([confidence_of(model)(row) for row in view]) for view in views)
    labels, reliability = reference.refine(Y, p_G, f_1, f_2, method.epsilon)
    weight = np.where(reliability == reference.U, p_G, 1)
    return labels, reliability, p_G, weight


def test_warm_up_mixes_given_labels_at_full_weight():
    method, model, x, index = known_case(warmup=1)
    method.epoch = 0
    lam = [lambda_of(method)] * 4
    got = method.loss(model, x[index], index).item()
    Y = method.table.given[index].numpy()
    clean = np.full((4, K), reference.C)
    f = confidence_of(model)
    x = x[index].numpy()
    want = reference.loss(f, x[:4], Y[:4], x[4:], Y[4:], lam, clean, np.ones((4, K)))
    assert got == pytest.approx(want, rel=1e-5)


def test_warm_up_without_mixing_is_bce_of_the_random_rows():
    method, model, x, index = known_case(warmup=1, warmup_mix=False)
    method.epoch = 0
    got = method.loss(model, x[index], index)
    want = BCE().start(method.table.given, 1).loss(model, x[index[:4]], index[:4])
    assert got.equal(want)


@pytest.mark.parametrize("pairs", [1, 4])
@pytest.mark.parametrize("views", [1, 2])
def test_paper_mode_loss_equals_equation_10(views, pairs):
    method, model, x, index = known_case(lambda_per="pair" if pairs > 1 else "batch")
    first, second = x[index], x[index] + (0.5 if views == 2 else 0.0)
    Y, reliability, p_G, _ = refined(method, model, (first, second), index)
    assert set(reliability[:4].flatten()) == {reference.C, reference.R, reference.U}
    lam = lambda_of(method, pairs) if pairs > 1 else [lambda_of(method)] * 4
    want = reference.loss(
        confidence_of(model), first[:4], Y[:4], first[4:], Y[4:], lam, reliability[:4], p_G[:4]
    )
    got = method.loss(model, [first, second] if views == 2 else first, index)
    assert got.item() == pytest.approx(want, rel=1e-5)


@pytest.mark.parametrize("pairs", [1, 4])
def test_online_loss_is_equation_10_with_minority_labels_of_the_table(pairs):
    method, model, x, index = known_case(
        relabel="online", lambda_per="pair" if pairs > 1 else "batch"
    )
    given = method.table.given[index[4:]]  # as if all of them had been re-labelled
    method.table.write(index[4:], torch.where(given > 0, Status.ABSENT, Status.PRESENT))
    assert (method.table.whole().target[index[4:]] != given).all()
    first, second = x[index], x[index] + 0.5
    Y, reliability, p_G, _ = refined(method, model, (first, second), index)
    Y[4:] = method.table.whole().target[index[4:]].numpy()
    lam = lambda_of(method, pairs) if pairs > 1 else [lambda_of(method)] * 4
    want = reference.loss(
        confidence_of(model), first[:4], Y[:4], first[4:], Y[4:], lam, reliability[:4], p_G[:4]
    )
    got = method.loss(model, [first, second], index)
    assert got.item() == pytest.approx(want, rel=1e-5)


@pytest.mark.parametrize("pairs", [1, 4])
def test_blended_loss_mixes_the_weights_as_the_labels(pairs):
    method, model, x, index = known_case(blend=True, lambda_per="pair" if pairs > 1 else "batch")
    first, second = x[index], x[index] + 0.5
    Y, _, _, weight = refined(method, model, (first, second), index)
    lam = lambda_of(method, pairs) if pairs > 1 else [lambda_of(method)] * 4
    want = reference.blended_loss(
        confidence_of(model), first[:4], Y[:4], first[4:], Y[4:], lam, weight[:4], weight[4:]
    )
    got = method.loss(model, [first, second], index)
    assert got.item() == pytest.approx(want, rel=1e-5)


def test_blend_changes_nothing_where_all_weights_are_one():
    x, labels = make_data()
    model, index = make_model(norm=False), torch.arange(8)
    plain, blend = (
        BalanceMix(warmup=1, blend=blend).start(labels, 1).loss(model, x[index], index)
        for blend in (False, True)
    )
    torch.testing.assert_close(plain, blend)


@pytest.mark.parametrize("pairs", [1, 4])
def test_epoch_mode_equals_equations_2_to_10_from_confidences_to_loss(pairs):
    rng = np.random.default_rng(0)
    n = 300
    truth = rng.random((n, K)) < 0.4
    labels = np.where(rng.random((n, K)) < 0.15, ~truth, truth).astype(np.uint8)
    margin = np.where(truth, 2.5, -2.5)
    f, f_1, f_2 = (1 / (1 + np.exp(-rng.normal(margin, 1)).astype(np.float32)) for _ in range(3))

    method = BalanceMix(
        warmup=0, relabel="epoch", epsilon=0.9, lambda_per="pair" if pairs > 1 else "batch"
    ).start(torch.tensor(labels), EPOCHS)
    method.end_epoch(torch.tensor(f), torch.tensor((f_1 + f_2) / 2))
    p_G = reference.clean_probability(f.astype(float), labels)
    Y, reliability = reference.refine(labels, p_G, f_1, f_2, 0.9)
    np.testing.assert_array_equal(RELIABILITY[method.table.status], reliability)
    np.testing.assert_array_equal(method.table.whole().target, Y)
    doubted = p_G <= 0.5
    np.testing.assert_allclose(method.table.clean[doubted], p_G[doubted], atol=0.004)
    np.testing.assert_allclose(
        method.odds, reference.sampling_probability(f.astype(float), labels), rtol=1e-6
    )

    model, batch = make_model(norm=False), torch.tensor(next(iter(method.batches(16))))
    x = make_data(5, n)[0][batch].numpy()
    (R, M), b = batch.numpy().reshape(2, -1), len(batch) // 2
    assert set(reliability[R].flatten()) == {reference.C, reference.R, reference.U}
    lam = lambda_of(method, b) if pairs > 1 else [lambda_of(method)] * b
    want = reference.loss(
        confidence_of(model), x[:b], Y[R], x[b:], Y[M], lam, reliability[R], p_G[R]
    )
    got = method.loss(model, torch.tensor(x), batch)
    assert got.item() == pytest.approx(want, rel=1e-3)


@pytest.mark.parametrize("relabel", ["online", "epoch", "paper"])
def test_reliability_and_weights_come_from_the_random_row_alone(relabel):
    def loss(rows, **options):
        """The loss when the P(clean) of the ambiguous labels of `rows` is halved."""
        method, model, x, index = known_case(relabel=relabel, epsilon=1.0, **options)
        index = torch.tensor([7, 30, 2, 19, 5, 31, 11, 26])
        clean = method.table.clean.float()
        if rows is not None:
            clean[index[rows]] = (
                torch.where(clean[index[rows]] > 0.5, 1.0, 0.5) * clean[index[rows]]
            )
        status = torch.where(clean > 0.5, Status.CLEAN, Status.AMBIGUOUS)
        method.table.write(slice(None), status, clean)
        return method.loss(model, x[index], index)

    first, second = slice(0, 4), slice(4, 8)
    assert loss(second).equal(loss(None))
    assert loss(first) < loss(None)
    assert loss(second, blend=True) < loss(None, blend=True)


def test_a_partner_permuted_within_the_batch_brings_labels_but_no_weights():
    method, model, x, index = known_case(minority=False, relabel="epoch")
    method.table.write(slice(None), Status.AMBIGUOUS)
    partner, lam = pairing_of(method, 8)
    x_R, Y, p_G = x[index].numpy(), method.table.given[index].numpy(), method.table.clean[index]
    ambiguous = np.full((8, K), reference.U)
    want = reference.loss(
        confidence_of(model), x_R, Y, x_R[partner], Y[partner], [lam] * 8, ambiguous, p_G.numpy()
    )
    assert method.loss(model, x[index], index).item() == pytest.approx(want, rel=1e-5)
