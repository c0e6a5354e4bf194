"""The minority sampler against Eqs. 2–4."""

import numpy as np
import pytest
import torch

from balancemix.methods.sampling import (
    class_confidence,
    effective_rows,
    minority_odds,
    over_positives,
    row_scores,
    upsampling,
)
from tests.reference import balancemix as reference
from tests.toys import draw_confidence


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("seed", range(4))
def test_odds_equal_equation_4(seed, dtype):
    labels, confidence = draw_confidence(seed, rate=[0.05, 0.3, 0.5, 0.9][seed])
    confidence = confidence.to(dtype)
    got = minority_odds(labels, confidence)
    assert got.dtype == torch.float64
    want = reference.sampling_probability(confidence.double().numpy(), labels.numpy())
    np.testing.assert_allclose(got, want, rtol=1e-9)


def test_confidence_by_class_and_scores_are_equations_2_and_3():
    labels, confidence = draw_confidence(n=80)
    f, Y = confidence.numpy(), labels.numpy()
    presence, absence, positives = class_confidence(labels, confidence)
    P, A = reference.presence_and_absence(f, Y)
    np.testing.assert_allclose(presence, P, rtol=1e-9)
    np.testing.assert_allclose(absence, A, rtol=1e-9)
    assert positives.equal(labels.sum(0))
    np.testing.assert_allclose(row_scores(labels, confidence), reference.scores(f, Y), rtol=1e-9)


def test_a_class_without_positives_or_negatives_has_confidence_zero():
    labels, confidence = draw_confidence()
    labels[:, 0], labels[:, 1] = 0, 1
    presence, absence, _ = class_confidence(labels, confidence)
    assert presence[0] == 0
    assert absence[1] == 0


def test_unknown_labels_are_of_no_side():
    labels, confidence = draw_confidence()
    known = torch.rand(labels.shape, generator=torch.Generator().manual_seed(1)) < 0.6
    given = labels.to(torch.int8).masked_fill(~known, -1)
    presence, absence, positives = class_confidence(given, confidence)
    for k in range(labels.shape[1]):
        present, absent = given[:, k] == 1, given[:, k] == 0
        assert presence[k] == pytest.approx(float(confidence[present, k].mean()))
        assert absence[k] == pytest.approx(float(1 - confidence[absent, k].mean()))
        assert positives[k] == present.sum()


def test_half_precision_is_widened():
    labels, confidence = draw_confidence()
    half = confidence.bfloat16()
    assert minority_odds(labels, half).equal(minority_odds(labels, half.float()))


def test_sums_over_positives_are_a_matrix_product():
    labels, _ = draw_confidence(n=70_000, k=3)  # more than a chunk
    value = torch.tensor([0.5, -2.0, 1 / 3], dtype=torch.float64)
    torch.testing.assert_close(over_positives(labels, value), labels.double() @ value)


@pytest.mark.parametrize("value", [torch.nan, -0.1, 1.1])
def test_what_is_no_confidence_is_refused(value):
    labels, confidence = draw_confidence()
    confidence[7, 2] = value
    with pytest.raises(ValueError, match="confidence must be between 0 and 1"):
        minority_odds(labels, confidence)


@pytest.mark.parametrize("shape", [(50, 5), (49, 6), (50,)])
def test_other_shapes_are_refused(shape):
    with pytest.raises(ValueError, match="must both be N×K"):
        minority_odds(torch.zeros(50, 6), torch.zeros(shape))


def test_arguments_in_the_wrong_order_are_noticed():
    labels, confidence = draw_confidence()
    with pytest.raises(ValueError, match="0, 1 or −1"):
        minority_odds(confidence, labels)


@pytest.mark.parametrize("power", [0.0, 0.5, 3.0])
def test_power_raises_the_inverse_score(power):
    labels, confidence = draw_confidence()
    score = np.array(reference.scores(confidence.numpy(), labels.numpy()))
    want = score**-power / (score**-power).sum()
    np.testing.assert_allclose(minority_odds(labels, confidence, power), want, rtol=1e-9)


@pytest.mark.parametrize("power", [1.0, 30.0])
def test_full_confidence_in_every_given_label_gives_uniform_odds(power):
    labels, _ = draw_confidence()
    odds = minority_odds(labels, labels.float(), power)
    torch.testing.assert_close(odds, torch.full((50,), 1 / 50, dtype=torch.float64))


@pytest.mark.parametrize("score", ["paper", "positive-mean", "inverse-frequency"])
def test_a_high_power_of_float32_confidences_of_80_classes_is_finite(score):
    labels, confidence = draw_confidence(1, n=400, k=80, rate=0.04)
    confidence = (0.05 * confidence + torch.linspace(0.1, 0.9, 80) * labels).float()
    odds = minority_odds(labels, confidence, 30, score)
    assert odds.isfinite().all()
    assert (odds > 0).all()
    assert float(odds.sum()) == pytest.approx(1)
    assert odds.max() > 2 * odds.min()


@pytest.mark.parametrize("score", ["paper", "positive-mean", "inverse-frequency", "uniform"])
@pytest.mark.parametrize("power", [0.0, 1.0, 5.0])
def test_odds_sum_to_one(score, power):
    odds = minority_odds(*draw_confidence(), power, score)
    assert odds.shape == (50,)
    assert float(odds.sum()) == pytest.approx(1, rel=1e-12)


def test_uniform_ignores_everything():
    odds = minority_odds(*draw_confidence(), 5.0, "uniform")
    assert odds.tolist() == [1 / 50] * 50


def test_positive_mean_is_the_inverse_of_the_mean_presence_of_a_rows_positives():
    labels, confidence = draw_confidence()
    labels[3] = 0
    P, _ = reference.presence_and_absence(confidence.numpy(), labels.numpy())
    score = []
    for y in labels.tolist():
        own = [P[k] for k in range(6) if y[k]]
        score.append(sum(own) / len(own) if own else max(P))
    want = np.array([1 / s for s in score])
    got = minority_odds(labels, confidence, score="positive-mean")
    np.testing.assert_allclose(got, want / want.sum(), rtol=1e-9)


def test_inverse_frequency_is_the_mean_inverse_share_of_a_rows_positives():
    labels, confidence = draw_confidence(rate=0.2)
    labels[3] = 0
    labels[:, 1] = 0
    count = labels.sum(0).tolist()
    weight = []
    for y in labels.tolist():
        own = [50 / count[k] for k in range(6) if y[k]]
        weight.append(sum(own) / len(own) if own else 50 / max(count))
    want = np.array(weight)
    got = minority_odds(labels, confidence, score="inverse-frequency")
    np.testing.assert_allclose(got, want / want.sum(), rtol=1e-9)
    assert got.equal(minority_odds(labels, torch.zeros(50, 6), score="inverse-frequency"))


@pytest.mark.parametrize("score", ["paper", "positive-mean", "inverse-frequency"])
def test_a_class_without_positives_or_without_negatives_and_a_row_without_positives(score):
    labels, confidence = draw_confidence()
    labels[:, 2], labels[:, 4] = 0, 1
    labels[7] = torch.tensor([0, 0, 0, 0, 1, 0])
    odds = minority_odds(labels, confidence, score=score)
    assert odds.isfinite().all()
    assert (odds > 0).all()
    if score == "paper":
        want = reference.sampling_probability(confidence.numpy(), labels.numpy())
        np.testing.assert_allclose(odds, want, rtol=1e-9)


@pytest.mark.parametrize("score", ["paper", "positive-mean", "inverse-frequency"])
def test_no_positives_at_all_give_uniform_odds(score):
    labels, confidence = draw_confidence()
    odds = minority_odds(torch.zeros_like(labels), confidence, score=score)
    torch.testing.assert_close(odds, torch.full((50,), 1 / 50, dtype=torch.float64))


@pytest.mark.parametrize("score", ["paper", "positive-mean"])
def test_confidence_of_nothing_in_any_label_is_finite(score):
    labels = draw_confidence()[0]
    odds = minority_odds(labels, 1 - labels.float(), 30, score)
    assert odds.isfinite().all()


def test_rows_of_the_class_of_lowest_confidence_are_preferred():
    labels = torch.eye(3).repeat(10, 1)
    confidence = torch.where(labels > 0, torch.tensor([0.9, 0.6, 0.2]), 0.1)
    odds = minority_odds(labels, confidence)
    assert odds[2] > odds[1] > odds[0]


def test_upsampling_is_the_mean_drawn_share_of_a_class_over_its_share_of_rows():
    odds, labels = torch.tensor([0.5, 0.25, 0.25]), torch.tensor([[1, 1], [1, 0], [0, 0]])
    assert upsampling(labels, odds).tolist() == pytest.approx([1.125, 1.5])
    assert upsampling(draw_confidence()[0], torch.full((50,), 1 / 50)).tolist() == pytest.approx(
        [1.0] * 6
    )


def test_effective_rows_is_one_for_uniform_odds_and_a_row_for_a_single_one():
    assert effective_rows(torch.full((8,), 1 / 8)) == pytest.approx(1)
    assert effective_rows(torch.eye(8)[0]) == pytest.approx(1 / 8)
