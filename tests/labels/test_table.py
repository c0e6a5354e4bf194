"""What becomes of each label, against a hand-written truth table and Eqs. 8–10; and the table."""

import numpy as np
import pytest
import torch

from balancemix.labels.table import LabelTable, Status, as_given, manage, training_labels
from tests.reference import balancemix as reference

C, P, A, U, IGNORED, VERIFIED = Status
RELIABILITY = np.array([reference.C, reference.R, reference.R, reference.U, 3, 4])

# given, P(clean), confidence (of ε = 0.975) -> target, weight, status
TRUTH = [
    # Clean labels stay, whatever the model says of them.
    (1, 0.9, 0.00, 1, 1, C),
    (0, 0.9, 1.00, 0, 1, C),
    (1, 0.501, 0.5, 1, 1, C),
    (0, 1.0, 0.5, 0, 1, C),
    # Doubted and contradicted: flipped.
    (1, 0.2, 0.01, 0, 1, A),
    (0, 0.2, 0.99, 1, 1, P),
    # Doubted but confirmed: re-labelled as they were, at full weight.
    (1, 0.2, 0.99, 1, 1, P),
    (0, 0.2, 0.01, 0, 1, A),
    # Exactly a half is not clean (Eq. 8 is strict).
    (1, 0.5, 0.01, 0, 1, A),
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
    (0, 0.3, float(np.nextafter(np.float32(0.975), np.float32(1))), 1, 1, P),
    (1, 0.3, float(np.nextafter(np.float32(0.025), np.float32(0))), 0, 1, A),
    # An unknown label is filled in by a sure model, and ignored otherwise.
    (-1, 1.0, 0.99, 1, 1, P),
    (-1, 1.0, 0.01, 0, 1, A),
    (-1, 0.3, 0.99, 1, 1, P),
    (-1, 1.0, 0.50, 0, 0, IGNORED),
    (-1, 0.3, 0.975, 0, 0, IGNORED),
]


def column(place, dtype=torch.float32):
    return torch.tensor([row[place] for row in TRUTH])[:, None].to(dtype)


def fates(**options):
    """Target, weight and status of the cases above."""
    given, clean = column(0, torch.int8), column(1)
    status = manage(given, clean, column(2), **options)
    return *training_labels(given, status, clean), status


def drawn(seed=0, n=40, k=6):
    generator = torch.Generator().manual_seed(seed)
    given = (torch.rand(n, k, generator=generator) < 0.3).to(torch.int8)
    return given, *torch.rand(3, n, k, generator=generator, dtype=torch.float64).unbind()


def test_truth_table():
    target, weight, status = fates()
    assert target.tolist() == column(3).tolist()
    assert weight.tolist() == column(4).tolist()
    assert status.tolist() == column(5, torch.uint8).tolist()
    assert status.dtype == torch.uint8


def test_truth_table_without_relabelling_has_clean_and_ambiguous_labels_only():
    target, weight, status = fates(relabel=False)
    clean, known = column(1) > 0.5, column(0) >= 0
    assert target.equal(column(0).clamp(min=0))
    assert weight.equal(torch.where(known, torch.where(clean, 1.0, column(1)), 0.0))
    want = torch.where(known, torch.where(clean, C, U), IGNORED)
    assert status.equal(want.to(torch.uint8))


def test_without_reweighting_ambiguous_labels_are_dropped_and_nothing_else_changes():
    target, weight, status = fates()
    without = fates(reweight=False)
    assert without[0].equal(target)
    assert without[2].equal(status.masked_fill(status == U, IGNORED))
    assert without[1].equal(torch.where(status == U, 0.0, weight))


def test_without_relabelling_and_reweighting_only_clean_labels_are_left():
    target, weight, _ = fates(relabel=False, reweight=False)
    assert target.equal(column(0).clamp(min=0))
    assert weight.equal(((column(1) > 0.5) & (column(0) >= 0)).float())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("epsilon", [0.5, 0.55, 0.75, 0.9, 0.975, 1.0])
def test_exactly_epsilon_and_one_minus_epsilon_are_ambiguous(epsilon, dtype):
    confidence = torch.tensor([[epsilon, 1 - epsilon]], dtype=dtype)
    for value in (0, 1):
        given = torch.full((1, 2), value, dtype=torch.uint8)
        clean = torch.full((1, 2), 0.4, dtype=dtype)
        status = manage(given, clean, confidence, epsilon)
        target, weight = training_labels(given, status, clean)
        assert status.tolist() == [[U, U]]
        assert target.equal(given.to(dtype))
        assert weight.equal(clean)


@pytest.mark.parametrize("epsilon", [0.55, 0.75, 0.9])
def test_random_matrices_agree_with_equation_9(epsilon):
    given, clean, first, second = drawn()
    status = manage(given, clean, (first + second) / 2, epsilon)
    target, weight = training_labels(given, status, clean)
    Y, p_G = given.numpy(), clean.numpy()
    labels, reliability = reference.refine(Y, p_G, first.numpy(), second.numpy(), epsilon)
    np.testing.assert_array_equal(target, labels)
    np.testing.assert_array_equal(RELIABILITY[status], reliability)
    np.testing.assert_array_equal(weight, np.where(reliability == reference.U, p_G, 1))
    assert set(np.unique(reliability)) == {reference.C, reference.R, reference.U}


@pytest.mark.parametrize("options", [{}, {"relabel": False}])
def test_ambiguous_weights_are_clean_probabilities_of_a_half_at_most(options):
    given, clean, confidence, _ = drawn(1)
    status = manage(given, clean, confidence, 0.8, **options)
    _, weight = training_labels(given, status, clean)
    assert weight[status == U].equal(clean[status == U])
    assert (weight[status == U] <= 0.5).all()
    assert (weight[status != U] > 0.5).all()


def test_managing_changes_none_of_its_inputs():
    given, clean, confidence, _ = inputs = drawn(2)
    kept = [tensor.clone() for tensor in inputs]
    status = manage(given, clean, confidence, 0.6)
    for result in (*training_labels(given, status, clean), status):
        result.fill_(7)
    assert all(tensor.equal(copy) for tensor, copy in zip(inputs, kept, strict=True))


def test_each_status_says_what_is_trained_on():
    given = torch.tensor([[0] * 6, [1] * 6, [-1] * 6])
    clean = torch.full(given.shape, 0.25)
    target, weight = training_labels(given, torch.arange(6).expand(3, 6), clean)
    assert target.tolist() == [[0, 1, 0, 0, 0, 0], [1, 1, 0, 1, 1, 1], [0, 1, 0, 0, 0, 0]]
    assert weight.tolist() == [[1, 1, 1, 0.25, 0, 1], [1, 1, 1, 0.25, 0, 1], [0, 1, 1, 0, 0, 0]]


@pytest.mark.parametrize("dtype", [torch.uint8, torch.bool, torch.int64, torch.float32])
def test_a_new_table_believes_every_label(dtype):
    given = drawn()[0]
    table = LabelTable.from_given(given.to(dtype))
    assert table.given.equal(given)
    assert table.given.dtype == torch.int8
    labels = table.whole()
    assert labels.target.equal(given.float())
    assert labels.weight.equal(torch.ones(given.shape))
    assert labels.clean.equal(torch.ones(given.shape))
    assert table.status.equal(torch.full(given.shape, C, dtype=torch.uint8))


def test_unknown_labels_have_no_weight_until_they_are_filled_in():
    table = LabelTable.from_given(torch.tensor([[1, 0, -1, -1]]))
    assert table.status.tolist() == [[C, C, IGNORED, IGNORED]]
    assert table.rows(torch.tensor([0]))[1].tolist() == [[1, 1, 0, 0]]
    table.write(slice(None), torch.tensor([[C, U, U, P]]), torch.full((1, 4), 0.25))
    assert table.status.tolist() == [[C, U, IGNORED, P]]
    assert table.rows(torch.tensor([0]))[0].tolist() == [[1, 0, 0, 1]]
    assert table.rows(torch.tensor([0]))[1].tolist() == [[1, 0.25, 0, 1]]


def test_verified_labels_are_not_written_over():
    table = LabelTable.from_given(torch.tensor([[1, 0], [1, 0]]))
    table.status[0] = VERIFIED
    table.write(slice(None), torch.tensor([[A, P], [A, U]]), torch.full((2, 2), 0.25))
    assert table.status.tolist() == [[VERIFIED, VERIFIED], [A, U]]
    assert table.clean.tolist() == [[1, 1], [0.25, 0.25]]
    target, weight = table.rows(torch.tensor([0, 1]))
    assert target.tolist() == [[1, 0], [0, 0]]
    assert weight.tolist() == [[1, 1], [1, 0.25]]


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8])
def test_bytes_are_shared_with_the_data_and_never_written_to(dtype):
    given = drawn()[0].to(dtype)
    kept, table = given.clone(), LabelTable.from_given(given)
    assert table.given.data_ptr() == given.data_ptr()
    table.write(slice(None), P, torch.zeros(given.shape))
    assert given.equal(kept)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (torch.zeros(3), r"N×K matrix, not of shape \(3,\)"),
        (torch.zeros(3, 2, 2), "N×K matrix"),
        (torch.tensor([[0, 2]]), "0, 1 or −1"),
        (torch.tensor([[0, -2]]), "0, 1 or −1"),
        (torch.tensor([[0, 255]], dtype=torch.uint8), "0, 1 or −1"),
        (torch.tensor([[0.0, 0.5]]), "0, 1 or −1"),
        (torch.tensor([[0.0, torch.inf]]), "0, 1 or −1"),
        ([["a", "b"]], "numbers"),
        ([[0, 1], [1]], "inhomogeneous|numbers"),
        (np.array([[2**64 - 1]], dtype=np.uint64), "0, 1 or −1"),
        ([[0.5, 1]], "0.5: round shares of votes"),
    ],
)
def test_what_is_no_matrix_of_labels_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        LabelTable.from_given(given)


def filled(seed=0):
    """A table with labels of every status."""
    given, clean, _, _ = drawn(seed)
    table = LabelTable.from_given(given)
    status = torch.randint(6, given.shape, generator=torch.Generator().manual_seed(seed))
    table.write(slice(None), status, clean)
    return table


def test_rows_are_copies_in_the_order_asked_for():
    table, index = filled(), torch.tensor([5, 0, 5])
    before, labels = table.state_dict(), table.whole()
    target, weight = table.rows(index)
    assert target.dtype == weight.dtype == torch.float32
    assert target.equal(labels.target[index])
    assert weight.equal(labels.weight[index])
    target.fill_(7)
    weight.fill_(7)
    for name, matrix in table.state_dict().items():
        assert matrix is before[name] is None or matrix.equal(before[name])


def test_rows_are_written_and_no_others():
    table, index = filled(), torch.tensor([5, 0])
    before = table.copy()
    table.write(index, P, torch.full((2, 6), 0.125))
    written = torch.zeros(40, dtype=torch.bool).index_fill(0, index, True)
    verified = before.status == VERIFIED
    assert (table.status[written] == P)[~verified[written]].all()
    assert (table.clean[written] == 0.125)[~verified[written]].all()
    assert table.status[~written].equal(before.status[~written])
    assert table.clean[~written].equal(before.clean[~written])
    assert table.given.equal(before.given)


def test_soft_targets_take_the_place_of_derived_ones():
    table = filled()
    weight, soft = table.whole().weight, torch.rand(40, 6)
    table.soft = soft
    want = torch.where(table.status == VERIFIED, table.given, soft)  # of those nobody doubts
    assert table.rows(torch.tensor([3]))[0].equal(want[3:4])
    assert table.whole().target.equal(want)
    assert table.whole().weight.equal(weight)


WAYS = [
    torch.tensor([[1, 0], [-1, 1]]),
    torch.tensor([[1.0, 0.0], [torch.nan, 1.0]], dtype=torch.float16),
    [[1, 0], [-1, 1]],
    [[True, False], [None, True]],
    np.array([[1, 0], [-1, 1]], dtype=">i4"),
    np.array([[1, 0], [np.nan, 1]], dtype=np.longdouble),
    np.array([[0, 1], [1, np.nan]])[:, ::-1],
]


@pytest.mark.parametrize("labels", WAYS)
def test_labels_come_in_any_type(labels):
    given = as_given(labels)
    assert given.dtype == torch.int8
    assert given.tolist() == [[1, 0], [-1, 1]]


def test_labels_that_are_read_only_come_in_without_a_warning():
    labels = np.array([[1, 0]], dtype=np.uint16)
    labels.flags.writeable = False
    assert as_given(labels).tolist() == [[1, 0]]
    assert as_given(labels.astype(bool)).tolist() == [[1, 0]]


def test_frames_come_in_with_their_missing_values():
    pandas = pytest.importorskip("pandas")
    columns = {"cat": [True, False], "dog": [1, 0], "cow": [1.0, np.nan]}
    frame = pandas.DataFrame(columns)
    assert as_given(frame).tolist() == [[1, 1, 1], [0, 0, -1]]
    frame["ant"] = pandas.array([None, 1], dtype="Int64")
    assert as_given(frame).tolist() == [[1, 1, 1, -1], [0, 0, -1, 1]]


def test_verified_labels_are_verified_where_they_are_known():
    table = LabelTable.from_given([[1, 0, -1, -1]], [[1, 0, 1, 0]])
    assert table.status.tolist() == [[VERIFIED, C, IGNORED, IGNORED]]
    assert table.verified().tolist() == [[True, False, False, False]]
    assert table.doubtful().tolist() == [[-1, 0, -1, -1]]
    assert table.clean.tolist() == [[1, 1, 0, 0]]


@pytest.mark.parametrize(
    ("verified", "message"), [([[1]], r"shape of given, \(1, 2\)"), ([[2, 0]], "0 or 1")]
)
def test_what_cannot_be_verified_is_refused(verified, message):
    with pytest.raises(ValueError, match=message):
        LabelTable.from_given([[1, 0]], verified)


def test_shares_are_those_of_the_statuses():
    table = filled()
    labels, status, shares = table.whole(), table.status, table.shares()
    for name, kinds in {
        "clean": [C], "relabelled": [P, A], "ambiguous": [U], "ignored": [IGNORED],
        "verified": [VERIFIED],
    }.items():  # fmt: skip
        assert shares[name] == pytest.approx(
            float(torch.isin(status, torch.tensor(kinds)).double().mean())
        )
    flipped = (labels.target != labels.given) & ((status == P) | (status == A))
    assert shares["flipped"] == pytest.approx(float(flipped.double().mean()))
    assert 0 < shares["flipped"] < shares["relabelled"]
    assert set(LabelTable.from_given(drawn()[0]).shares()) == {
        "clean", "relabelled", "ambiguous", "flipped"
    }  # fmt: skip


def test_state_makes_the_table_again():
    table = filled()
    for soft in (None, torch.rand(40, 6)):
        table.soft = soft
        again = LabelTable(**table.state_dict())
        for matrix, other in zip(table.whole(), again.whole(), strict=True):
            assert matrix.equal(other)


def test_a_copy_is_written_to_apart():
    table = filled()
    kept, other = table.state_dict(), table.copy()
    other.write(slice(None), P, torch.zeros(40, 6))
    assert all(kept[name] is None or kept[name].equal(m) for name, m in vars(table).items())


def test_four_bytes_a_label():
    stored = [matrix for matrix in filled().state_dict().values() if matrix is not None]
    assert sum(matrix.nbytes for matrix in stored) == 4 * 40 * 6


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_clean_probabilities_are_kept_closely_and_on_their_side_of_a_half(dtype):
    odds = torch.linspace(-9, 15.9, 4001, dtype=torch.float64)
    near = torch.tensor([0.5, 0.5 - 1e-7, 0.5 + 1e-7, 0.0, 1.0])
    expected = torch.cat([odds.sigmoid(), near.double()]).to(dtype)[:, None]
    table = LabelTable.from_given(torch.zeros(expected.shape))
    table.write(slice(None), U, expected)
    assert (table.clean > 0.5).equal(expected > 0.5)
    torch.testing.assert_close(table.clean.to(dtype), expected, rtol=0.001, atol=0)
    assert table.clean[-2:, 0].tolist() == [0.0, 1.0]
