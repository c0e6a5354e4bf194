"""`balancemix compare` through main(argv)."""

import json
import os
import shutil

import numpy as np
import pytest

from balancemix.cli import main
from balancemix.report.figures.differences import differences
from tests.conftest import tiny_arrays
from tests.test_cli import SMALL, refused


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Train on the truth and on noise, and on other rows and classes."""
    folder = tmp_path_factory.mktemp("compare")
    before = os.getcwd()
    os.chdir(folder)
    np.savez("tiny.npz", **tiny_arrays())
    plans = {"noisy": "mislabel:0.5", "clean": "none"}
    for name, noise in plans.items():
        call = ["train", "tiny.npz", *SMALL, "--method", "bce", "--noise", noise, "--lr", "0.05"]
        assert main([*call, "--out", name]) == 0
    os.chdir(before)
    return folder


def compared(capsys, *words: str):
    assert main(["compare", *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def train(capsys, data: str, out: str, *flags: str) -> None:
    assert main(["train", data, *SMALL, "--method", "bce", *flags, "--out", out]) == 0
    capsys.readouterr()


def test_two_runs_are_compared_by_class(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    facts = compared(capsys, "noisy", "clean")
    last = [json.loads((folder / n / "metrics.json").read_text())["last"]["mAP"] for n in plans()]
    assert facts["mAP"]["before"] == pytest.approx(last[0])
    assert facts["mAP"]["after"] == pytest.approx(last[1])
    assert facts["mAP"]["difference"] == pytest.approx(last[1] - last[0])
    assert facts["mAP"]["low"] <= facts["mAP"]["difference"] <= facts["mAP"]["high"]
    assert facts["rows"] == 30
    assert facts["interval_over"] == "test rows"
    assert list(facts["classes"]) == [f"c{k}" for k in range(5)]
    assert "seed" in facts["notes"][-1]
    again = compared(capsys, "noisy", "clean")
    assert again == facts


def plans():
    return ("noisy", "clean")


def test_people_are_told_the_verdict_and_what_it_leaves_out(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    assert main(["compare", "noisy", "clean"]) == 0
    text = capsys.readouterr().out
    assert "mAP" in text
    assert "95 %" in text
    assert "does not include how much results change with the seed" in text
    assert main(["compare", "clean", "clean"]) == 0
    assert "no difference between clean and clean is shown" in capsys.readouterr().out


@pytest.mark.parametrize("ending", ["svg", "png"])
def test_the_figure_is_one_file(folder, monkeypatch, capsys, tmp_path, ending):
    monkeypatch.chdir(folder)
    out = tmp_path / f"gain.{ending}"
    assert main(["compare", "noisy", "clean", "--figure", str(out)]) == 0
    assert [file.name for file in tmp_path.iterdir()] == [out.name]
    if ending == "svg":
        text = out.read_text()
        assert "clean against noisy" in text
        assert all(f"c{k}" in text for k in range(5))
    capsys.readouterr()
    assert "exists" in refused(capsys, "compare", "noisy", "clean", "--figure", out)
    assert main(["compare", "noisy", "clean", "--figure", str(out), "--force"]) == 0


def test_many_classes_are_named_at_the_ends_only():
    change = np.linspace(5, -3, 80)
    change[7] = np.nan
    names = [f"class {k}" for k in range(80)]
    drawing = differences(change, (1.0, 0.5, 1.5), {"many": range(40), "few": [41]}, names, "b")
    texts = [text.get_text() for text in drawing.axes[0].texts]
    assert [text.splitlines()[1] for text in texts] == ["class 0 +5.0", "class 79 -3.0"]
    assert "class 40" not in " ".join(texts)
    (legend,) = drawing.legends
    assert [text.get_text() for text in legend.get_texts()] == ["many-shot", "few-shot"]


def test_other_endings_are_refused(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    said = refused(capsys, "compare", "noisy", "clean", "--figure", "gain.pdf")
    assert ".svg or .png" in said


def test_other_rows_and_classes_are_refused(folder, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    arrays = tiny_arrays()
    np.savez(tmp_path / "named.npz", **arrays, images=np.array([f"x{i}.png" for i in range(120)]))
    train(capsys, str(tmp_path / "named.npz"), str(tmp_path / "named"))
    assert "other test rows" in refused(capsys, "compare", "clean", tmp_path / "named")
    arrays["classes"] = np.array(["zebra", "c1", "c2", "c3", "c4"])
    np.savez(tmp_path / "other.npz", **arrays)
    train(capsys, str(tmp_path / "other.npz"), str(tmp_path / "other"))
    said = refused(capsys, "compare", "clean", tmp_path / "other")
    assert "other classes" in said
    assert "zebra" in said


def test_digits_of_another_seed_are_other_rows(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for seed in ("0", "1"):
        train(capsys, "digits", seed, "--epochs", "1", "--seed", seed)
    assert "one seed" in refused(capsys, "compare", "0", "1")


def test_rows_and_classes_in_another_order_are_matched_by_name(
    folder, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    arrays = tiny_arrays() | {"images": np.array([f"x{i}.png" for i in range(120)])}
    np.savez("a.npz", **arrays)
    rows, columns = np.random.default_rng(0).permutation(120), [4, 2, 0, 1, 3]
    mixed = {name: arrays[name][rows] for name in ("features", "split", "images")}
    mixed |= {"labels": arrays["labels"][rows][:, columns], "classes": arrays["classes"][columns]}
    np.savez("b.npz", **mixed)
    for name in ("a", "b"):
        train(capsys, f"{name}.npz", name)
    facts = compared(capsys, "a", "b")
    for name in ("a", "b"):
        assert main(["evaluate", name, "--json"]) == 0
        key = {"a": "before", "b": "after"}[name]
        assert json.loads(capsys.readouterr().out)["mAP"] == pytest.approx(facts["mAP"][key])


def test_test_labels_that_were_corrected_score_both(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    arrays = tiny_arrays()
    np.savez("new.npz", **arrays)
    old = arrays["labels"].copy()
    old[100:103, 0] ^= 1
    np.savez("old.npz", **{**arrays, "labels": old})
    for name in ("old", "new"):
        train(capsys, f"{name}.npz", name)
    facts = compared(capsys, "old", "new")
    assert facts["notes"][0].startswith("3 labels of the test rows differ between the two")
    assert main(["evaluate", "old", "new.npz", "--json"]) == 0
    assert facts["mAP"]["before"] == pytest.approx(json.loads(capsys.readouterr().out)["mAP"])


def test_without_data_the_recorded_scores_are_compared(folder, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    expected = compared(capsys, "noisy", "clean")
    for name in plans():
        shutil.copytree(name, tmp_path / name)
    monkeypatch.chdir(tmp_path)  # where there is no tiny.npz
    facts = compared(capsys, "noisy", "clean")
    assert facts["interval_over"] == "classes"
    assert "recorded" in facts["notes"][0]
    assert facts["mAP"]["difference"] == pytest.approx(expected["mAP"]["difference"])
    (tmp_path / "clean" / "data.npz").unlink()
    assert "tiny.npz" in refused(capsys, "compare", "noisy", "clean")
