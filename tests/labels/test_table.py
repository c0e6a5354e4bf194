"""The fate of each label against a hand-written truth table and Eqs. 8–10."""

import numpy as np
import pytest
import torch

from balancemix.labels.table import LabelTable, Status, manage
from tests.reference import balancemix as reference

C, R, U = Status.CLEAN, Status.RELABELLED, Status.AMBIGUOUS

# given, P(clean), confidence (of ε = 0.975) -> target, weight, status
TRUTH = [
    # Clean labels stay, whatever the model says of them.
    (1, 0.9, 0.00, 1, 1, C),
    (0, 0.9, 1.00, 0, 1, C),
    (1, 0.501, 0.5, 1, 1, C),
    (0, 1.0, 0.5, 0, 1, C),
    # Doubted and contradicted: flipped.
    (1, 0.2, 0.01, 0, 1, R),
    (0, 0.2, 0.99, 1, 1, R),
    # Doubted but confirmed: re-labelled as they were, at full weight.
    (1, 0.2, 0.99, 1, 1, R),
    (0, 0.2, 0.01, 0, 1, R),
    # Exactly a half is not clean (Eq. 8 is strict).
    (1, 0.5, 0.01, 0, 1, R),
    (1, 0.5, 0.60, 1, 0.5, U),
    # Doubted, and the model is not sure: as given, weighted by P(clean).
    (1, 0.3, 0.50, 1, 0.3, U),
    (0, 0.0, 0.90, 0, 0.0, U),
    (0, 0.25, 0.10, 0, 0.25, U),
    # Exactly at the threshold is not beyond it (Eq. 9 is strict).
    (0, 0.3, 0.975, 0, 0.3, U),
    (1, 0.3, 0.025, 1, 0.3, U),
    (1, 0.3, 0.975, 1, 0.3, U),
    (0, 0.3, 0.025, 0, 0.3, U),
    # One float beyond it is.
    (0, 0.3, float(np.nextafter(np.float32(0.975), np.float32(1))), 1, 1, R),
    (1, 0.3, float(np.nextafter(np.float32(0.025), np.float32(0))), 0, 1, R),
]


def column(place, dtype=torch.float32):
    return torch.tensor([row[place] for row in TRUTH])[:, None].to(dtype)


def fates(**options):
    return manage(column(0, torch.uint8), column(1), column(2), **options)


def drawn(seed=0, n=40, k=6):
    generator = torch.Generator().manual_seed(seed)
    given = (torch.rand(n, k, generator=generator) < 0.3).to(torch.uint8)
    return given, *torch.rand(3, n, k, generator=generator, dtype=torch.float64).unbind()


def test_truth_table():
    target, weight, status = fates()
    assert target.tolist() == column(3).tolist()
    assert weight.tolist() == column(4).tolist()
    assert status.tolist() == column(5, torch.uint8).tolist()
    assert status.dtype == torch.uint8


def test_truth_table_without_relabelling_has_clean_and_ambiguous_labels_only():
    target, weight, status = fates(relabel=False)
    clean = column(1) > 0.5
    assert target.equal(column(0))
    assert weight.equal(torch.where(clean, 1.0, column(1)))
    assert status.equal(torch.where(clean, C, U).to(torch.uint8))


def test_without_reweighting_ambiguous_labels_are_dropped_and_nothing_else_changes():
    target, weight, status = fates()
    without = fates(reweight=False)
    assert without[0].equal(target)
    assert without[2].equal(status)
    assert without[1].equal(torch.where(status == U, 0.0, weight))


def test_without_relabelling_and_reweighting_only_clean_labels_are_left():
    target, weight, _ = fates(relabel=False, reweight=False)
    assert target.equal(column(0))
    assert weight.equal((column(1) > 0.5).float())


def test_relabel_weight_confidence_weighs_by_the_confidence_in_the_new_label():
    target, weight, status = fates()
    got = fates(relabel_weight="confidence")
    assert got[0].equal(target)
    assert got[2].equal(status)
    sure = torch.where(target > 0, column(2), 1 - column(2))
    torch.testing.assert_close(got[1], torch.where(status == R, sure, weight))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("epsilon", [0.5, 0.55, 0.75, 0.9, 0.975, 1.0])
def test_exactly_epsilon_and_one_minus_epsilon_are_ambiguous(epsilon, dtype):
    confidence = torch.tensor([[epsilon, 1 - epsilon]], dtype=dtype)
    for value in (0, 1):
        given = torch.full((1, 2), value, dtype=torch.uint8)
        clean = torch.full((1, 2), 0.4, dtype=dtype)
        target, weight, status = manage(given, clean, confidence, epsilon=epsilon)
        assert status.tolist() == [[U, U]]
        assert target.equal(given.to(dtype))
        assert weight.equal(clean)


@pytest.mark.parametrize("epsilon", [0.55, 0.75, 0.9])
def test_random_matrices_agree_with_equation_9(epsilon):
    given, clean, first, second = drawn()
    target, weight, status = manage(given, clean, (first + second) / 2, epsilon=epsilon)
    Y, p_G = given.numpy(), clean.numpy()
    labels, reliability = reference.refine(Y, p_G, first.numpy(), second.numpy(), epsilon)
    np.testing.assert_array_equal(target, labels)
    np.testing.assert_array_equal(status, reliability)
    np.testing.assert_array_equal(weight, np.where(reliability == reference.U, p_G, 1))
    assert set(np.unique(reliability)) == {C, R, U}


@pytest.mark.parametrize("options", [{}, {"relabel": False}, {"relabel_weight": "confidence"}])
def test_ambiguous_weights_are_clean_probabilities_of_a_half_at_most(options):
    given, clean, confidence, _ = drawn(1)
    _, weight, status = manage(given, clean, confidence, epsilon=0.8, **options)
    assert weight[status == U].equal(clean[status == U])
    assert (weight[status == U] <= 0.5).all()
    assert (weight[status != U] > 0.5).all()


def test_managing_changes_none_of_its_inputs():
    inputs = drawn(2)[:3]
    kept = [tensor.clone() for tensor in inputs]
    target, weight, _ = manage(*inputs, epsilon=0.6)
    target.fill_(7)
    weight.fill_(7)
    assert all(tensor.equal(copy) for tensor, copy in zip(inputs, kept, strict=True))


@pytest.mark.parametrize("dtype", [torch.uint8, torch.bool, torch.int64, torch.float32])
def test_trusting_table_believes_every_label(dtype):
    given = drawn()[0]
    table = LabelTable.trusting(given.to(dtype))
    assert table.given.equal(given)
    assert table.given.dtype == torch.uint8
    assert table.target.equal(given.float())
    assert table.weight.equal(torch.ones(given.shape))
    assert table.clean.equal(torch.ones(given.shape))
    assert table.status.equal(torch.full(given.shape, C, dtype=torch.uint8))


def test_trusting_table_shares_no_memory_with_the_callers_labels():
    given = drawn()[0]
    table = LabelTable.trusting(given)
    given.fill_(1)
    assert table.given.sum() < given.sum()


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (torch.zeros(3), r"N×K matrix, not of shape \(3,\)"),
        (torch.zeros(3, 2, 2), "N×K matrix"),
        (torch.tensor([[0, 2]]), "0 or 1"),
        (torch.tensor([[0, -1]]), "0 or 1"),
        (torch.tensor([[0.0, 0.5]]), "0 or 1"),
        (torch.tensor([[0.0, torch.nan]]), "0 or 1"),
    ],
)
def test_trusting_table_refuses_what_is_no_matrix_of_zeros_and_ones(labels, message):
    with pytest.raises(ValueError, match=message):
        LabelTable.trusting(labels)


def test_rows_are_copies_in_the_order_asked_for():
    table = LabelTable.trusting(drawn()[0])
    table.weight = torch.rand(table.given.shape, generator=torch.Generator().manual_seed(0))
    index = torch.tensor([5, 0, 5])
    target, weight = table.rows(index)
    assert target.equal(table.target[index])
    assert weight.equal(table.weight[index])
    target.fill_(7)
    weight.fill_(7)
    assert (table.target <= 1).all()
    assert (table.weight <= 1).all()


def test_state_makes_the_table_again():
    given, clean, soft, weight = drawn()
    table = LabelTable.trusting(given)
    table.clean, table.status = clean, torch.full(given.shape, U)
    for change in ({}, {"target": soft.float()}, {"weight": weight.float()}):
        for name, matrix in change.items():
            setattr(table, name, matrix)
        again = LabelTable(**table.state_dict())
        for name, matrix in table.matrices().items():
            assert getattr(again, name).equal(matrix)


def test_two_bytes_a_label_until_targets_or_weights_are_soft():
    given = drawn()[0]
    table = LabelTable.trusting(given)
    table.target, table.status = 1 - given, torch.full(given.shape, R)
    stored = [tensor for tensor in table.state_dict().values() if tensor is not None]
    assert sum(tensor.nbytes for tensor in stored) == 2 * given.numel()


def test_each_matrix_is_written_without_touching_the_others():
    given, clean, _, _ = drawn()
    changes = {"target": 1 - given, "status": torch.full(given.shape, R), "clean": clean}
    for changed, matrix in changes.items():
        table = LabelTable.trusting(given)
        table.status, table.clean = torch.full(given.shape, U), torch.full(given.shape, 0.3)
        before = table.matrices()
        setattr(table, changed, matrix)
        for name, after in table.matrices().items():
            moved = {changed, "weight"} if changed in ("status", "clean") else {changed}
            assert after.equal(before[name]) == (name not in moved)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_clean_probabilities_are_kept_closely_and_on_their_side_of_a_half(dtype):
    odds = torch.linspace(-15.9, 15.9, 4001, dtype=torch.float64)
    near = torch.tensor([0.5, 0.5 - 1e-7, 0.5 + 1e-7, 0.0, 1.0])
    wanted = torch.cat([odds.sigmoid(), near.double()]).to(dtype)[:, None]
    table = LabelTable.trusting(torch.zeros(wanted.shape))
    table.clean = wanted
    assert (table.clean > 0.5).equal(wanted > 0.5)
    torch.testing.assert_close(table.clean.to(dtype), wanted, rtol=0.004, atol=0)
    assert table.clean[-2:, 0].tolist() == [0.0, 1.0]


def test_weight_follows_equation_10_unless_it_is_set():
    given, clean, _, other = drawn()
    table = LabelTable.trusting(given)
    table.clean, table.status = clean, torch.where(clean > 0.7, C, U)
    assert table.weight.equal(torch.where(clean > 0.7, 1.0, table.clean))
    table.weight = other.float()
    assert table.weight.equal(other.float())
