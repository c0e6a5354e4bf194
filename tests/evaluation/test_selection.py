"""Selection metrics against a literal transcription, and by hand."""

import math
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given as drawn_from
from hypothesis import settings
from hypothesis import strategies as st

from balancemix.evaluation.selection import _quality, _tabulate, table_quality
from balancemix.labels.table import LabelTable, Status
from tests.reference import metrics as reference


def table(seed, n, k, noise=0.3, unknown=0.0):
    generator = torch.Generator().manual_seed(seed)

    def chance(p):
        return torch.rand(n, k, generator=generator) < p

    truth = chance(0.4).to(torch.int8)
    given = torch.where(chance(noise), 1 - truth, truth).to(torch.uint8)
    status = torch.randint(len(Status), (n, k), generator=generator, dtype=torch.uint8)
    present, absent = status == Status.PRESENT, status == Status.ABSENT
    target = given.float().masked_fill(present, 1.0).masked_fill(absent, 0.0)
    clean = torch.rand(n, k, generator=generator)
    truth[chance(unknown)] = -1
    return given, truth, target, status, clean


def quality_of(given, truth, target, status, clean, groups=None):
    return table_quality(LabelTable(given.to(torch.int8), status, clean, target), truth, groups)


# The reference's codes (0 clean, 1 re-labelled, 2 in doubt) of ours.
RELIABILITY = np.array([0, 1, 1, 2, 2, 0])


def is_in(members, i, k):
    return k in members


def slow(matrices, groups):
    given, truth, target, status, clean = (matrix.numpy() for matrix in matrices)
    status = RELIABILITY[status]
    insides = {
        "": lambda i, k: True,
        "_positive": lambda i, k: given[i, k] == 1,
        "_negative": lambda i, k: given[i, k] == 0,
    }
    for name, index in groups.items():
        insides[f"_{name}"] = partial(is_in, index)
    return {
        name + part: value
        for part, inside in insides.items()
        for name, value in reference.selection(given, truth, target, status, clean, inside).items()
        if not math.isnan(value)
    }


@settings(deadline=None, max_examples=40)
@drawn_from(
    st.integers(0, 1_000), st.integers(0, 12), st.sampled_from([0, 0.3]), st.sampled_from([0, 0.3])
)
def test_equals_the_definitions(seed, n, noise, unknown):
    given, truth, target, status, clean = matrices = table(seed, n, 5, noise, unknown)
    groups = {
        "many": torch.tensor([0, 3]),
        "medium": torch.tensor([1]),
        "few": torch.tensor([2, 4]),
    }
    got = quality_of(given, truth, target, status, clean, groups)
    assert got == pytest.approx(slow(matrices, groups))
    assert all(type(value) is float for value in got.values())


@pytest.mark.parametrize("rows", [0, 5, 60_000])
def test_a_table_is_scored_as_its_matrices_are(rows):
    """Of 60,000 rows a piece at a time."""
    given, truth, target, status, clean = table(1, rows, 5, unknown=0.2)
    kept = LabelTable.from_given(given)
    kept.write(slice(None), status, clean)
    known = kept.whole()
    assert known.weight.shape == known.target.shape
    assert known.target.equal(target)
    groups = {"many": torch.tensor([0, 3]), "few": torch.tensor([1, 2, 4])}
    cells = _tabulate(known.given, truth, known.target, known.status, known.clean)
    want = _quality(*cells, groups)
    assert table_quality(kept, truth, groups) == pytest.approx(want, rel=1e-12)


def test_by_hand():
    given = torch.tensor([[1, 1, 0, 0, 1, 0]])
    truth = torch.tensor([[1, 0, 0, 1, 1, 0]])
    status = torch.tensor([[0, 2, 2, 2, 3, 5]])
    target = torch.tensor([[1, 0, 0, 0, 1, 0]])
    clean = torch.tensor([[1.0, 0.25, 0.5, 0.25, 0.5, 1.0]])
    quality = quality_of(given, truth, target, status, clean)
    assert quality["clean_precision"] == 1
    assert quality["clean_recall"] == 0.5
    assert quality["relabel_proportion"] == 0.5
    assert quality["relabel_accuracy"] == pytest.approx(2 / 3)
    assert quality["flip_proportion"] == pytest.approx(1 / 6)
    assert quality["flip_accuracy"] == 1
    assert quality["confirm_accuracy"] == 0.5
    assert quality["ambiguous_proportion"] == pytest.approx(1 / 6)
    assert quality["target_accuracy"] == pytest.approx(5 / 6)
    assert quality["clean_probability_right"] == 0.75
    assert quality["clean_probability_wrong"] == 0.25
    assert quality["relabel_proportion_positive"] == pytest.approx(1 / 3)


def test_a_share_of_nothing_is_left_out():
    given, truth, _, status, clean = table(0, 20, 3, noise=0.0)
    everything_kept = torch.zeros_like(status)
    quality = quality_of(given, truth, given.float(), everything_kept, clean)
    assert quality["clean_precision"] == quality["clean_recall"] == 1.0
    assert quality["relabel_proportion"] == 0.0
    assert not {"relabel_accuracy", "flip_accuracy", "clean_probability_wrong"} & set(quality)


def test_without_a_known_truth_nothing_is_said():
    given, truth, target, status, clean = table(0, 5, 3)
    assert quality_of(given, truth.fill_(-1), target, status, clean) == {}


def test_unknown_given_labels_are_left_out_and_what_fills_them_is_scored():
    given, truth, target, status, clean = table(4, 30, 4, unknown=0.2)
    hidden = torch.rand(given.shape, generator=torch.Generator().manual_seed(1)) < 0.4
    known = quality_of(given, truth.masked_fill(hidden, -1), target, status, clean)
    partly = given.char().masked_fill(hidden, -1)
    found = quality_of(partly, truth, target, status, clean)
    judged = hidden & (truth >= 0)
    filled = judged & ((status == Status.PRESENT) | (status == Status.ABSENT))
    right = filled & (target == truth)
    assert found.pop("fill_proportion") == pytest.approx(int(filled.sum()) / int(judged.sum()))
    assert found.pop("fill_accuracy") == pytest.approx(int(right.sum()) / int(filled.sum()))
    assert found == pytest.approx(known)


def test_inputs_stay_untouched():
    matrices = table(3, 10, 4, unknown=0.2)
    before = [matrix.clone() for matrix in matrices]
    quality_of(*matrices)
    assert all(torch.equal(a, b) for a, b in zip(matrices, before, strict=True))


def test_a_truth_of_another_shape_is_refused():
    given, truth, target, status, clean = table(0, 4, 3)
    with pytest.raises(ValueError, match=r"like the table, \(4, 3\), not \(2, 3\)"):
        quality_of(given, truth[:2], target, status, clean)
