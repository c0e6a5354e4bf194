"""Statistics by batches against those of all rows at once, and against Eqs. 2 and 3."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from balancemix.labels.mixtures import Guard, fit_mixtures, label_loss
from balancemix.methods.sampling import minority_odds, odds_of_rows
from balancemix.methods.statistics import Statistics, over_positives
from tests.reference import balancemix as reference


def drawn(n=300, k=5, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.random((n, k)) < rng.uniform(0.05, 0.6, k)
    logits = rng.normal(np.where(labels, 2, -3), 2)
    confidence = torch.tensor(1 / (1 + np.exp(-logits)), dtype=torch.float32)
    return confidence, torch.tensor(labels.astype(np.uint8))


def whole(confidence, labels):
    return Statistics.empty(labels.shape[1]).update(confidence, labels)


def assert_same(got, want):
    for ours, theirs in zip(got.tensors(), want.tensors(), strict=True):
        assert ours.dtype == torch.int64
        assert ours.equal(theirs)


def parts_of(n, cuts):
    return torch.arange(n).tensor_split(sorted(cuts))


CUTS = st.lists(st.integers(0, 300), max_size=12)


@settings(deadline=None, max_examples=40)
@given(CUTS, st.integers(0, 2**31))
def test_batches_of_any_size_make_the_same_statistics(cuts, seed):
    confidence, labels = drawn(seed=seed)
    streamed = Statistics.empty(5)
    for index in parts_of(300, cuts):
        streamed.update(confidence[index], labels[index])
    assert_same(streamed, whole(confidence, labels))


@settings(deadline=None, max_examples=40)
@given(CUTS, st.integers(0, 2**31))
def test_statistics_of_parts_merge_to_those_of_the_whole(cuts, seed):
    confidence, labels = drawn(seed=seed)
    parts = [whole(confidence[index], labels[index]) for index in parts_of(300, cuts)]
    merged = Statistics.empty(5)
    for part in reversed(parts):
        assert merged.merge(part) is merged
    assert_same(merged, whole(confidence, labels))


def test_summing_the_tensors_in_place_is_merging():
    confidence, labels = drawn()
    one, other = (whole(confidence[half::2], labels[half::2]) for half in (0, 1))
    for mine, theirs in zip(one.tensors(), other.tensors(), strict=True):
        mine += theirs  # as a reduction over processes does
    assert_same(one, whole(confidence, labels))


def test_presence_absence_and_scores_are_equations_2_and_3():
    confidence, labels = drawn(80)
    f, Y = confidence.double().numpy(), labels.numpy()
    statistics = whole(confidence, labels)
    P, A = reference.presence_and_absence(f, Y)
    np.testing.assert_allclose(statistics.presence, P, rtol=1e-9)
    np.testing.assert_allclose(statistics.absence, A, rtol=1e-9)
    np.testing.assert_allclose(statistics.scores(labels), reference.scores(f, Y), rtol=1e-9)
    assert statistics.scores(labels[20:50]).equal(statistics.scores(labels)[20:50])


@pytest.mark.parametrize("score", ["paper", "positive-mean", "inverse-frequency", "uniform"])
def test_odds_from_streamed_statistics_are_the_minority_odds(score):
    confidence, labels = drawn()
    streamed = Statistics.empty(5, losses=False)
    for index in torch.arange(300).split(64):
        streamed.update(confidence[index], labels[index])
    got = odds_of_rows(streamed, labels, 3.0, score)
    torch.testing.assert_close(
        got, minority_odds(confidence, labels, 3.0, score), rtol=1e-12, atol=0
    )


@pytest.mark.parametrize("fit", ["raw", "dividemix"])
def test_mixtures_are_those_of_the_losses_of_all_rows(fit):
    confidence, labels = drawn(2_000)
    want = fit_mixtures(label_loss(labels, confidence), labels, fit=fit, fewest=150)
    streamed = Statistics.empty(5)
    for index in torch.arange(2_000).split(300):
        streamed.update(confidence[index], labels[index])
    got = streamed.mixtures(fit=fit, fewest=150)
    for part, whole_part in zip(vars(got).values(), vars(want).values(), strict=True):
        assert part.equal(whole_part)
    assert Guard.FITTED in got.guard


def test_no_rows_are_all_clean_and_have_no_scores():
    statistics = Statistics.empty(3)
    assert (statistics.mixtures().guard == Guard.FEW).all()
    assert statistics.scores(torch.zeros(0, 3)).shape == (0,)


def test_a_class_without_positives_or_negatives_has_confidence_zero():
    confidence, labels = drawn(50)
    labels[:, 0], labels[:, 1] = 0, 1
    statistics = whole(confidence, labels)
    assert statistics.presence[0] == 0
    assert statistics.absence[1] == 0


def test_without_losses_there_are_no_mixtures():
    statistics = Statistics.empty(5, losses=False).update(*drawn())
    with pytest.raises(ValueError, match="without losses"):
        statistics.mixtures()
    with pytest.raises(ValueError, match="zip"):
        statistics.merge(whole(*drawn()))


def test_more_rows_than_a_bin_can_count_are_refused():
    statistics = whole(*drawn())
    statistics.rows += 2**28
    with pytest.raises(ValueError, match="more than"):
        statistics.mixtures()


@pytest.mark.parametrize("value", [torch.nan, -0.1, 1.1])
def test_what_is_no_confidence_is_refused(value):
    confidence, labels = drawn()
    confidence[7, 2] = value
    with pytest.raises(ValueError, match="between 0 and 1"):
        whole(confidence, labels)


@pytest.mark.parametrize("shape", [(300, 4), (299, 5), (300,)])
def test_other_shapes_are_refused(shape):
    with pytest.raises(ValueError, match="B×5"):
        Statistics.empty(5).update(torch.zeros(shape), torch.zeros(300, 5))


def test_another_number_of_classes_is_refused():
    with pytest.raises(ValueError, match="B×5"):
        Statistics.empty(5).update(torch.zeros(300, 4), torch.zeros(300, 4))


def test_half_precision_is_widened():
    confidence, labels = drawn()
    half = confidence.bfloat16()
    assert_same(whole(half, labels), whole(half.float(), labels))


def test_sums_over_positives_are_a_matrix_product():
    _, labels = drawn(70_000, 3)  # more than a chunk
    value = torch.tensor([0.5, -2.0, 1 / 3], dtype=torch.float64)
    torch.testing.assert_close(over_positives(labels, value), labels.double() @ value)
