"""Comparison of findings: how rankings are scored, and what a person looks at in some time."""

import pytest
import torch
from sklearn.metrics import average_precision_score

from benchmarks.checking import listed, settled, swept


@pytest.fixture
def rankings(load):
    return load("rankings")


@pytest.fixture
def findings(load):
    return load("findings")


def test_both_lists_are_scored_apart_and_unknown_truth_is_left_out(rankings):
    given = torch.tensor([[1, 1, 0, 0], [1, 0, 0, 0]])
    truth = torch.tensor([[1, 0, 1, 0], [1, -1, 0, 0]])
    doubt = torch.tensor([[0.1, 0.9, 0.3, 0.4], [0.2, 9.0, 0.1, 0.2]])
    scores = rankings.score(given, truth, doubt)
    assert (scores["wrong_errors"], scores["wrong_labels"]) == (1, 3)
    assert (scores["missing_errors"], scores["missing_labels"]) == (1, 4)
    assert (scores["wrong_ap"], scores["wrong_at"]) == (100, 100)
    expected = 100 * average_precision_score([1, 0, 0, 0], [0.3, 0.4, 0.1, 0.2])
    assert scores["missing_ap"] == pytest.approx(expected)
    assert scores["missing_at"] == 0


def test_a_list_without_errors_has_no_score(rankings):
    given = torch.tensor([[1, 0]])
    scores = rankings.score(given, given, torch.zeros(1, 2))
    assert scores == {
        "wrong_errors": 0, "wrong_labels": 1, "missing_errors": 0, "missing_labels": 1,
    }  # fmt: skip


def test_precision_with_ties_is_its_mean_over_orders(rankings):
    wrong = torch.tensor([True, True, False, False, True])
    order = torch.tensor([5.0, 2.0, 2.0, 2.0, 1.0])
    generator, hits = torch.Generator().manual_seed(0), []
    for _ in range(4000):
        ranked = (order + 1e-3 * torch.rand(5, generator=generator)).argsort(descending=True)
        hits.append(float(wrong[ranked[:3]].float().mean()))
    expected = sum(hits) / len(hits)
    assert rankings.precision_at(wrong, order, 3) == pytest.approx(expected, abs=0.01)


def line(by, seed, ap, **more):
    score = {"wrong_errors": 5, "wrong_labels": 50, "wrong_ap": ap, "wrong_at": ap, **more}
    return {"set": "birds", "noise": "real", "seed": seed, "by": by, **score}


def test_the_table_compares_with_the_best_of_cleanlab(findings):
    kept = [line(name, seed, 40.0 + seed) for seed in (0, 1) for name in findings.CONTROLS]
    kept += [line(findings.OURS, seed, 60.0 + seed) for seed in (0, 1)]
    for number, name in enumerate(findings.names()):
        kept.append(line(findings.by(name, findings.HEADS[0]), 0, 50.0 + number))
        kept.append(line(findings.by(name, findings.JUDGE), 0, 30.0 + number))
        kept.append(line(findings.by(name, findings.HEADS[1]), 0, 20.0 + number))
    best = 50 + len(findings.names()) - 1
    text = findings.cells(findings.over_seeds(kept), "ap")
    (row,) = (text_line for text_line in text.splitlines() if text_line.startswith("| birds"))
    assert row.startswith("| birds | real | wrong | 5 | 10.0 | 40.5 | 40.5 | 40.5 |")
    assert row.endswith(f"| {best:.1f} | {best - 30:.1f} | {best - 20:.1f} | **60.5** |")
    assert "in 1 of 1 lines (logistic), 1 of 1 lines (bce), 1 of 1 lines (judge); of" in text


def test_what_was_not_measured_is_left_out(findings):
    kept = [line(name, 0, 40.0) for name in (findings.OURS, *findings.CONTROLS)]
    kept.append(line(findings.by("self_confidence", findings.JUDGE), 0, 41.0))
    text = findings.cells(findings.over_seeds(kept), "ap")
    assert "| – | – | 41.0 | 40.0 |" in text
    assert "in 0 of 0 lines (logistic), 0 of 0 lines (bce), 0 of 1 lines (judge); of" in text


def test_a_list_costs_each_image_once():
    doubt = torch.tensor([[9.0, 8.0, 1.0], [7.0, 2.0, 0.0]])
    assert listed(doubt, 5.9).images == 0
    assert listed(doubt, 6.0).labels.sum() == 1
    assert listed(doubt, 8.0).labels.tolist() == [[True, True, False], [False] * 3]
    assert (listed(doubt, 14.0).images, int(listed(doubt, 14.0).labels.sum())) == (2, 3)
    assert listed(doubt, 1e9).labels.all()


def test_a_sweep_costs_each_label_and_a_settled_image_all_of_its_labels():
    doubt = torch.tensor([[9.0, 8.0, 1.0], [7.0, 2.0, 0.0]])
    assert swept(doubt, 3.0).labels.tolist() == [[True, True, False], [True, False, False]]
    checked = settled(doubt.shape, torch.tensor([1, 0]), 1)
    assert checked.labels.tolist() == [[False] * 3, [True] * 3]
    assert checked.images == 1
