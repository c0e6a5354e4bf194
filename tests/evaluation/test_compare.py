"""Two models by class: differences, intervals over rows and over classes."""

import math

import numpy as np
import pytest
import torch

from balancemix.evaluation.compare import compare_predictions, compare_scores, extremes
from balancemix.evaluation.metrics import average_precision
from balancemix.evaluation.resampling import draw_rows, resampled_ap

CLASSES = ["a", "b", "c", "d"]
GROUPS = {"many": torch.tensor([0, 1]), "medium": torch.tensor([2]), "few": torch.tensor([3])}


def models(rows: int = 300, gain: float = 1.0):
    generator = torch.Generator().manual_seed(0)
    truth = (torch.rand(rows, 4, generator=generator) < 0.3).to(torch.int8)
    noise = torch.randn(rows, 4, generator=generator)
    return truth, truth + noise, (1 + gain) * truth + noise


def test_a_draw_of_rows_scores_as_those_rows_repeated():
    truth, logits, _ = models(40)
    truth[3, 1] = -1
    logits = logits.round(decimals=1)  # ties
    drawn = resampled_ap(truth, logits, 5, seed=7)
    counts = draw_rows(40, 5, np.random.default_rng(7))
    for draw in range(5):
        rows = torch.repeat_interleave(torch.arange(40), torch.from_numpy(counts[:, draw]).long())
        expected = average_precision(truth[rows], logits[rows])
        assert drawn[:, draw] == pytest.approx(expected.numpy(), nan_ok=True)


def test_blocks_of_draws_are_the_same_draws(monkeypatch):
    truth, logits, _ = models(40)
    whole = resampled_ap(truth, logits, 9)
    monkeypatch.setattr("balancemix.evaluation.resampling._BLOCK", 100)
    assert resampled_ap(truth, logits, 9) == pytest.approx(whole, rel=1e-12)  # sums by columns


def test_a_better_model_is_shown_to_be_better_and_the_other_way_round():
    truth, before, after = models()
    result = compare_predictions(truth, before, after, CLASSES, GROUPS)
    assert result.all.verdict == "better"
    assert 0 < result.all.low < result.all.value < result.all.high
    assert result.over == "test rows"
    back = compare_predictions(truth, after, before, CLASSES, GROUPS)
    assert back.all.verdict == "worse"
    assert back.all.low == pytest.approx(-result.all.high)
    same = compare_predictions(truth, before, before, CLASSES, GROUPS)
    assert (same.all.value, same.all.low, same.all.high) == (0, 0, 0)
    assert same.all.verdict == "not shown"


def test_the_mean_is_the_difference_of_both_map():
    truth, before, after = models()
    result = compare_predictions(truth, before, after, CLASSES, GROUPS)
    scores = [100 * average_precision(truth, each).numpy() for each in (before, after)]
    assert result.all.value == pytest.approx(scores[1].mean() - scores[0].mean())
    assert result.by_group["many"].value == pytest.approx((scores[1] - scores[0])[:2].mean())
    assert {name: each.classes for name, each in result.by_group.items()} == {
        "many": 2,
        "medium": 1,
        "few": 1,
    }


def test_intervals_over_rows_hold_the_true_difference_nearly_always():
    generator = torch.Generator().manual_seed(1)
    everything = (torch.rand(24_000, 2, generator=generator) < 0.3).to(torch.int8)
    noise = torch.randn(2, 24_000, 2, generator=generator)
    before, after = everything + noise[0], 1.2 * everything + 0.7 * noise[0] + 0.7 * noise[1]
    true = 100 * (average_precision(everything, after) - average_precision(everything, before))
    held = 0
    for i in range(60):
        part = slice(400 * i, 400 * i + 400)
        each = compare_predictions(everything[part], before[part], after[part], ["a", "b"], {})
        held += each.all.low <= float(true.mean()) <= each.all.high
    assert 52 <= held <= 60


def test_a_class_without_positives_is_left_out_of_both():
    truth, before, after = models()
    truth[:, 3] = 0
    result = compare_predictions(truth, before, after, CLASSES, GROUPS)
    assert result.all.classes == 3
    assert "few" not in result.by_group
    assert math.isnan(result.difference[3])
    assert 3 not in result.ranked()
    assert result.all.value == pytest.approx(np.nanmean(result.difference))


def test_recorded_scores_are_compared_over_classes():
    result = compare_scores([10, 20, 30, math.nan], [12, 21, 29, math.nan], CLASSES, GROUPS)
    assert result.over == "classes"
    assert result.all.value == pytest.approx(2 / 3)
    assert result.all.low < 0 < result.all.high
    assert result.all.verdict == "not shown"
    assert math.isnan(result.by_group["medium"].low)  # one class has no spread
    assert result.by_group["medium"].verdict == "not shown"
    assert list(extremes(result, 5)) == [("gained", 0), ("gained", 1), ("lost", 2)]
    assert compare_scores([10, 20], [11, 21], ["a", "b"], {}).all.verdict == "better"


def test_nothing_to_score_is_no_difference():
    result = compare_scores([math.nan], [math.nan], ["a"], {})
    assert math.isnan(result.all.value)
    assert result.all.verdict == "not shown"
    assert list(extremes(result, 5)) == []
