"""Paired comparisons: their statistics against slow literal ones, and what is computed again."""

import importlib
import json
import math
from statistics import mean, stdev

import numpy as np
import pytest
import torch
from sklearn.metrics import average_precision_score

from balancemix.cli import main
from balancemix.evaluation.metrics import evaluate
from benchmarks.paired import draw_rows, mean_ap, over_rows, over_seeds
from tests.conftest import ROOT, tiny_arrays


def slow_mean_ap(truth, logits, counts):
    """Repeat each row as often as it was drawn, and ask scikit-learn."""
    results = []
    for draw in counts.T:
        rows = [row for row, count in enumerate(draw) for _ in range(count)]
        each = []
        for k in range(truth.shape[1]):
            known = [row for row in rows if truth[row, k] >= 0]
            labels, scores = truth[known, k].numpy(), logits[known, k].numpy()
            if labels.sum() > 0:
                each.append(100 * average_precision_score(labels, scores))
        results.append(mean(each))
    return results


@pytest.mark.parametrize("levels", [3, 1000])
@pytest.mark.parametrize("unknown", [False, True])
def test_the_map_of_a_draw_is_that_of_its_rows(levels, unknown):
    generator = torch.Generator().manual_seed(levels)
    truth = (torch.rand(40, 5, generator=generator) < 0.3).int()
    truth[:, 4] = 0
    truth[7, 4] = 1  # in some draws a class without positives
    if unknown:
        truth[torch.rand(40, 5, generator=generator) < 0.2] = -1
        truth[:2, :4] = torch.tensor([[1], [0]])
    logits = torch.randint(-levels, levels, (40, 5), generator=generator) / 7  # with ties
    counts = draw_rows(40, 30)
    assert mean_ap(truth, logits, counts) == pytest.approx(slow_mean_ap(truth, logits, counts))
    once = mean_ap(truth[:, :4], logits[:, :4], np.ones((40, 1), np.int32))
    assert once == pytest.approx([evaluate(truth[:, :4], logits[:, :4])["mAP"]])


def test_draws_are_with_replacement_and_always_the_same():
    counts = draw_rows(50, 200)
    assert counts.shape == (50, 200)
    assert (counts.sum(0) == 50).all()
    assert counts.mean(1) == pytest.approx(np.ones(50), abs=0.4)
    assert (counts == 0).mean() == pytest.approx((1 - 1 / 50) ** 50, abs=0.02)
    assert (counts == draw_rows(50, 200)).all()


def test_the_interval_over_seeds_is_student_s():
    ours, others = [52.0, 51.0, 53.5], [50.0, 50.5, 51.0]
    found = over_seeds(ours, others)
    differences = [2.0, 0.5, 2.5]
    error = stdev(differences) / math.sqrt(3)
    assert found.mean == pytest.approx(mean(differences))
    assert found.error == pytest.approx(error)
    assert found.low == pytest.approx(mean(differences) - 4.30265273 * error)
    assert found.high == pytest.approx(mean(differences) + 4.30265273 * error)
    assert math.isnan(over_seeds([1.0], [2.0]).low)


def test_the_interval_over_rows_is_of_the_mean_over_seeds():
    generator = np.random.default_rng(0)
    ours, others = generator.normal(size=(2, 3, 1000))
    means = sorted(
        sum(a[i] - b[i] for a, b in zip(ours, others, strict=True)) / 3 for i in range(1000)
    )
    low, high = over_rows(list(ours), list(others))
    assert means[24] <= low <= means[25]
    assert means[974] <= high <= means[975]


PLAN = """
data = ["tiny.npz"]
noises = ["none"]
seeds = [0, 1]
[settings.train]
epochs = 2
[[methods]]
name = "bce"
[[methods]]
name = "mixup"
label = "Mixup"
"""


@pytest.fixture
def script(tmp_path, monkeypatch):
    """Train a small bench and load the script, which finds its siblings by their names."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    monkeypatch.chdir(tmp_path)
    np.savez("tiny.npz", **tiny_arrays())
    (tmp_path / "benchmarks" / "plans").mkdir(parents=True)
    (tmp_path / "benchmarks" / "plans" / "small.toml").write_text(PLAN)
    script = importlib.import_module("bootstrap")
    bench = importlib.import_module("results").Bench("small")
    monkeypatch.setattr(script, "ROOT", tmp_path)
    monkeypatch.setattr(script, "BENCHES", {"small": bench})
    assert main([*bench.command("small"), "--jobs", "1"]) == 0
    return script


def test_a_bench_is_compared_once_and_again_where_its_runs_change(
    script, tmp_path, monkeypatch, capsys
):
    capsys.readouterr()
    script.main(["small"])
    (line,) = map(json.loads, script.LINES.read_text().splitlines())
    assert (line["method"], line["reference"], line["seeds"]) == ("bce", "Mixup", [0, 1])
    ledger = [json.loads(text) for text in (tmp_path / script.LEDGER).read_text().splitlines()]
    scores = {(each["label"], each["plan"]["seed"]): each["last"]["mAP"] for each in ledger}
    assert line["ours"] == [scores["bce", 0], scores["bce", 1]]
    assert line["mean"] == pytest.approx(
        mean(scores["bce", seed] - scores["Mixup", seed] for seed in (0, 1)), abs=1e-4
    )
    assert line["rows_low"] <= line["rows_high"]
    table = capsys.readouterr().out
    assert "tiny, Clean, 2 seeds" in table
    assert f"| bce | Mixup | {line['mean']:+.2f} |" in table

    drawn = []
    monkeypatch.setattr(script, "draw", lambda *call: drawn.append(call))
    script.main(["small"])
    script.main(["small", "--tables"])
    assert drawn == []
    assert capsys.readouterr().out == 2 * table
    ledger[0]["last"]["mAP"] += 1
    del ledger[0]["checksum"]
    text = "".join(json.dumps(each) + "\n" for each in ledger)
    (tmp_path / script.LEDGER).write_text(text)
    script.main(["small"])
    assert len(drawn) == 4


def test_a_model_that_does_not_score_as_the_ledger_says_is_reported(script, tmp_path):
    path = tmp_path / script.LEDGER
    ledger = [json.loads(text) for text in path.read_text().splitlines()]
    ledger[0]["last"]["mAP"] /= 2
    del ledger[0]["checksum"]
    path.write_text("".join(json.dumps(each) + "\n" for each in ledger))
    with pytest.raises(SystemExit, match=r"bce-none-0: its model scores .*, the ledger says"):
        script.main(["small"])


def test_without_the_models_only_seeds_are_compared(script, tmp_path, capsys):
    for model in tmp_path.glob("bench/small/runs/*/model.safetensors"):
        model.unlink()
    script.main(["small"])
    (line,) = map(json.loads, script.LINES.read_text().splitlines())
    assert line["rows_low"] is None
    assert line["low"] < line["high"]
    interval = f"{line['low']:+.2f} to {line['high']:+.2f}"
    assert f" | {interval} | – |  |" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("seeds", "rows", "verdict"),
    [
        ((0.1, 1), (0.2, 1), "ahead"),
        ((-1, -0.1), (-1, -0.2), "behind"),
        ((0.1, 1), (-0.1, 1), ""),
        ((0.1, 1), (math.nan, math.nan), ""),
        ((math.nan, math.nan), (0.1, 1), ""),
    ],
)
def test_a_method_is_ahead_where_both_intervals_say_so(monkeypatch, seeds, rows, verdict):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    line = {"method": "a", "reference": "b", "mean": 1.0, "error": 0.1}
    line |= dict(zip(("low", "high", "rows_low", "rows_high"), (*seeds, *rows), strict=True))
    assert importlib.import_module("bootstrap").row_of(line).endswith(f"| {verdict} |\n")
