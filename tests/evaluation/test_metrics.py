"""Average precision and F1 against literal transcriptions, scikit-learn and their own laws."""

import warnings
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score
from torch.utils._python_dispatch import TorchDispatchMode

from balancemix.evaluation.metrics import (
    Convention,
    average_precision,
    evaluate,
    f1_scores,
    mean_average_precision,
)
from tests.reference import metrics as reference

ORACLES: dict[Convention, Any] = {
    "sklearn": reference.ap_sklearn,
    "raw": reference.ap_raw,
    "voc": reference.ap_voc,
}
UNKNOWN: Any = "drop"
TOO_HIGH = torch.full((2, 1), 255, dtype=torch.uint8)


def drawn(seed, n, k=6, levels=None, unknown=0.0, rate=0.3):
    """Scores and truth: `levels` makes ties; class 0 has no positive, class 1 nothing else."""
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(n, k, generator=generator)
    if levels:
        scores = (scores * levels).round()
    truth = (torch.rand(n, k, generator=generator) < rate).to(torch.int8)
    truth[:, 0], truth[:, 1] = 0, 1
    truth[torch.rand(n, k, generator=generator) < unknown] = -1
    return scores, truth


CASES = {
    "free of ties": drawn(0, 60),
    "heavy ties": drawn(1, 60, levels=1),
    "all equal": (torch.zeros(30, 6), drawn(2, 30)[1]),
    "unknown entries": drawn(3, 60, unknown=0.4),
    "unknown entries and ties": drawn(4, 60, levels=2, unknown=0.4),
    "nothing known": (drawn(5, 10)[0], torch.full((10, 6), -1)),
    "one row": drawn(6, 1),
    "no rows": drawn(7, 0),
    "rare": drawn(8, 200, rate=0.01, levels=3),
}


@pytest.mark.parametrize("convention", ORACLES)
@pytest.mark.parametrize("case", CASES)
def test_average_precision_equals_its_definition(case, convention):
    scores, truth = CASES[case]
    got = average_precision(truth, scores, convention)
    want = [ORACLES[convention](scores[:, k], truth[:, k]) for k in range(scores.shape[1])]
    assert got.dtype == torch.float64
    np.testing.assert_allclose(got, want, rtol=1e-12)


@pytest.mark.parametrize("levels", [None, 1, 50])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_default_equals_sklearn(levels, dtype):
    scores, truth = drawn(9, 500, levels=levels)
    scores = scores.to(dtype)
    got = average_precision(truth, scores)[1:]
    want = [average_precision_score(truth[:, k], scores[:, k]) for k in range(1, 6)]
    np.testing.assert_allclose(got, want, rtol=1e-12)


def test_unknown_entries_are_as_if_removed():
    scores, truth = drawn(10, 300, unknown=0.3, levels=4)
    for k in range(1, 6):
        kept = truth[:, k] >= 0
        want = average_precision_score(truth[kept, k], scores[kept, k])
        assert average_precision(truth, scores)[k].item() == pytest.approx(want, rel=1e-12)


def test_raw_ranks_equal_scores_in_row_order():
    truth = torch.tensor([[0], [1]])
    assert average_precision(truth, torch.zeros(2, 1), "raw").item() == 0.5
    assert average_precision(truth.flip(0), torch.zeros(2, 1), "raw").item() == 1.0


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int64, torch.float32])
def test_truth_may_have_any_type(dtype):
    scores, truth = drawn(11, 40)
    expected = average_precision(truth, scores)
    assert torch.equal(
        average_precision(truth.to(dtype), scores).nan_to_num(), expected.nan_to_num()
    )


def test_inputs_stay_untouched():
    scores, truth = drawn(12, 40, unknown=0.2)
    before = scores.clone(), truth.clone()
    for convention in ORACLES:
        average_precision(truth, scores, convention)
    f1_scores(truth, scores.sigmoid())
    assert torch.equal(scores, before[0])
    assert torch.equal(truth, before[1])


class Work(TorchDispatchMode):
    """Count operations, and the entries of the largest result."""

    count = largest = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        self.count += 1
        parts = result if isinstance(result, tuple) else [result]
        sizes = [part.numel() for part in parts if isinstance(part, torch.Tensor)]
        self.largest = max([self.largest, *sizes])
        return result


@pytest.mark.parametrize("convention", ORACLES)
def test_more_rows_and_classes_take_no_more_steps(convention):
    # Counted, not timed: no loop over rows or classes, and nothing of N×N.
    counts = []
    for n, k in ((50, 6), (500, 60)):
        scores, truth = drawn(0, n, k)
        with Work() as work:
            average_precision(truth, scores, convention)
        assert work.largest == n * k
        counts.append(work.count)
    assert counts[0] == counts[1]


def columns(ties=True):
    """Scores, truth with a positive, and an order of the rows to move them to."""

    def of_length(n):
        scores = st.permutations(range(n))
        if ties:
            scores |= st.lists(st.integers(-4, 4), min_size=n, max_size=n)
        truth = st.lists(st.sampled_from([0, 1, -1]), min_size=n, max_size=n)
        return st.tuples(scores, truth.filter(lambda y: 1 in y), st.permutations(range(n)))

    return st.integers(1, 30).flatmap(of_length)


def ap(scores, truth, convention):
    column = torch.tensor(scores, dtype=torch.float64)[:, None]
    return average_precision(torch.tensor(truth)[:, None], column, convention).item()


@settings(deadline=None, max_examples=60)
@given(columns())
def test_order_of_rows_does_not_matter_where_ties_are_grouped(column):
    scores, truth, order = column
    moved = [scores[i] for i in order], [truth[i] for i in order]
    for convention in ("sklearn", "voc"):
        assert ap(*moved, convention) == pytest.approx(ap(scores, truth, convention), abs=1e-12)


@settings(deadline=None, max_examples=60)
@given(columns())
def test_only_the_ranking_matters(column):
    scores, truth, _ = column
    stretched = [np.exp(s / 3) - 7 for s in scores]
    for convention in ORACLES:
        assert ap(stretched, truth, convention) == ap(scores, truth, convention)


@settings(deadline=None, max_examples=60)
@given(columns(ties=False))
def test_without_ties_raw_is_sklearn_and_voc_at_least_that(column):
    scores, truth, order = column
    raw = ap(scores, truth, "raw")
    assert ap(scores, truth, "sklearn") == pytest.approx(raw, abs=1e-12)
    assert ap(scores, truth, "voc") >= raw - 1e-12
    moved = [scores[i] for i in order], [truth[i] for i in order]
    assert ap(*moved, "raw") == pytest.approx(raw, abs=1e-12)


@settings(deadline=None, max_examples=60)
@given(columns())
def test_precision_stays_in_its_range(column):
    scores, truth, _ = column
    for convention in ORACLES:
        assert 0 < ap(scores, truth, convention) <= 1 + 1e-12


def test_absent_classes_in_the_mean():
    ap = torch.tensor([0.5, torch.nan, 1.0])
    assert mean_average_precision(ap, "zero") == pytest.approx(50.0)
    assert np.isnan(mean_average_precision(ap, "nan"))
    with pytest.warns(UserWarning, match="without positives: cup$"):
        assert mean_average_precision(ap, "skip", ["cat", "cup", "dog"]) == 75.0
    with pytest.warns(UserWarning, match="without positives: 1$"):
        mean_average_precision(ap)


def test_warning_names_at_most_five_classes():
    names = list("abcdefg")
    with pytest.warns(UserWarning, match="positives: a, b, c, d, e and 2 more$"):
        assert np.isnan(mean_average_precision(torch.full((7,), torch.nan), classes=names))
    with pytest.warns(UserWarning, match="positives: a, b, c, d, e$"):
        mean_average_precision(torch.full((5,), torch.nan), classes=names)


@pytest.mark.parametrize("threshold", [0.1, 0.5, 0.8])
@pytest.mark.parametrize("case", CASES)
def test_f1_equals_its_definition(case, threshold):
    scores, truth = CASES[case]
    confidence = scores.double().sigmoid()
    got = f1_scores(truth, confidence, threshold)
    assert got == pytest.approx(reference.f1(confidence.numpy(), truth.numpy(), threshold))
    assert all(type(value) is float for value in got.values())


def test_f1_without_any_predicted_positive_is_zero():
    assert set(f1_scores(torch.ones(4, 2), torch.zeros(4, 2)).values()) == {0.0}


def test_evaluate_joins_all_scores():
    logits, truth = drawn(13, 80, unknown=0.1)
    truth[0, 0] = 1
    groups = {"many": torch.tensor([1, 2]), "medium": torch.tensor([], dtype=torch.int64)}
    groups["few"] = torch.tensor([0, 3, 4, 5])
    scores = evaluate(truth, logits, groups)
    ap = average_precision(truth, logits)
    assert list(scores)[:4] == ["mAP", "mAP_many", "mAP_few", "CF1_mean"]
    assert scores["mAP"] == pytest.approx(100 * ap.mean().item())
    assert scores["mAP_few"] == pytest.approx(100 * ap[[0, 3, 4, 5]].mean().item())
    assert scores["OF1"] == f1_scores(truth, logits.double().sigmoid())["OF1"]


def test_evaluate_warns_once_and_leaves_out_a_group_without_positives():
    logits, truth = drawn(14, 50)
    groups = {"many": torch.tensor([1, 2]), "few": torch.tensor([0])}
    with pytest.warns(UserWarning, match="without positives: 0$") as caught:
        scores = evaluate(truth, logits, groups)
    assert len(caught) == 1
    assert "mAP_few" not in scores
    assert evaluate(truth, logits, groups, absent="zero")["mAP_few"] == 0.0
    assert np.isnan(evaluate(truth, logits, groups, absent="nan")["mAP_few"])


def test_threshold_at_half_is_a_logit_of_zero():
    logits = torch.tensor([[0.0], [-1e-9]])
    with warnings.catch_warnings(action="ignore"):
        assert evaluate(torch.tensor([[1], [0]]), logits)["OF1"] == 100.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: average_precision(torch.zeros(2, 3), torch.zeros(3, 2)), "one shape"),
        (lambda: average_precision(torch.zeros(2), torch.zeros(2)), "N×K"),
        (lambda: average_precision(torch.zeros(2, 1), torch.full((2, 1), torch.nan)), "row 0, cl"),
        (lambda: average_precision(torch.full((2, 1), 0.5), torch.zeros(2, 1)), "0, 1 or −1"),
        (lambda: average_precision(torch.full((2, 1), -2.5), torch.zeros(2, 1)), "truth .* first"),
        (lambda: average_precision(TOO_HIGH, torch.zeros(2, 1)), "0, 1 or −1"),
        (lambda: average_precision(torch.zeros(2, 1), torch.zeros(2, 1), UNKNOWN), "sklearn, raw"),
        (lambda: mean_average_precision(torch.zeros(2), UNKNOWN), "skip, zero, nan, not 'drop'"),
        (lambda: f1_scores(torch.zeros(2, 1), torch.full((2, 1), 3.0)), "look like logits"),
    ],
)
def test_mistakes_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("score", [average_precision, f1_scores, evaluate])
@pytest.mark.parametrize("shift", [-5.0, 0.0, 5.0])
def test_swapped_arguments_are_noticed(score, shift):
    scores, truth = drawn(15, 40)
    with pytest.raises(ValueError, match=r"truth must be 0, 1 or −1 .* give it first"):
        score(scores + shift, truth)
