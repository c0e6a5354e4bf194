"""The files of a run without checksums, damaged: refused by name, with advice that fits."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from balancemix.cli import main
from tests.conftest import tiny_arrays


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("finished")
    np.savez(folder / "tiny.npz", **tiny_arrays())
    call = ["train", str(folder / "tiny.npz"), "--noise", "flip:0.2", "--epochs", "2"]
    assert main([*call, "--set", "model.hidden=8", "--out", str(folder / "run")]) == 0
    return folder / "run"


@pytest.fixture
def unchecked(finished, tmp_path) -> Path:
    """Copy the run as one of before there were checksums."""
    shutil.copytree(finished, tmp_path / "run")
    (tmp_path / "run" / "checksums.json").unlink()
    return tmp_path / "run"


ARRAYS = {
    "missing": lambda array: None,
    "text": lambda array: np.full(array.shape, "x"),
    "dates": lambda array: np.full(array.shape, np.datetime64(0, "s")),
    "complex": lambda array: np.full(array.shape, 1j),
    "big-endian": lambda array: np.full(array.shape, 7, ">i4"),
    "a row short": lambda array: array[:-1],
    "flat": lambda array: array.reshape(-1, 1).repeat(2, 1),
    "one number": lambda array: np.float32(3),
    "large": lambda array: np.full_like(array, 9) if array.dtype.kind != "U" else array[:0],
    "nan": lambda array: np.full(array.shape, np.nan, np.float32),
    "empty": lambda array: array[:0],
}
TABLE = ["given", "target", "weight", "status", "clean", "confidence", "names", "classes"]


@pytest.mark.parametrize("damage", ARRAYS)
@pytest.mark.parametrize("name", [*TABLE, "truth"])
def test_an_array_of_another_kind_is_refused(unchecked, capsys, name, damage):
    if (name, damage) == ("names", "text"):
        pytest.skip("names may be any text")
    file = unchecked / ("truth.npz" if name == "truth" else "label_table.npz")
    with np.load(file) as stored:
        arrays = dict(stored)
    changed = ARRAYS[damage](arrays.pop(name))
    np.savez(file, **arrays, **({} if changed is None else {name: changed}))
    said = refused(capsys, "audit", unchecked)
    assert said.startswith(f"balancemix: {file}: ")
    assert said.endswith(f"`balancemix train --resume --out {unchecked}` writes it again")


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("per_class.json", {}),
        ("per_class.json", {"classes": 3}),
        ("per_class.json", {"classes": "abcde"}),
        ("per_class.json", {"classes": [{"AP": 3.0}]}),
        ("per_class.json", {"classes": [{"name": "a"}] * 5}),
        ("per_class.json", {"classes": [{"AP": "3"}] * 5}),
        ("per_class.json", {"classes": [{"AP": 10**400}] * 5}),
        ("per_class.json", {"classes": [None] * 5}),
        ("metrics.json", {}),
        ("metrics.json", {"last": {}, "best": {}}),
        ("metrics.json", {"last": {"mAP": "x"}, "best": {"mAP": 1.0}}),
        ("metrics.json", {"last": [], "best": 3}),
        ("metrics.json", {"last": {"mAP": 1}, "best": {"mAP": 1}, "selection": 3}),
        ("metrics.json", {"last": {"mAP": 1}, "best": {"mAP": 1}, "seconds_per_epoch": {}}),
        ("noise.json", {"measured": 3}),
        ("noise.json", {"measured": {"wrong": "x"}}),
        ("noise.json", {"realised": {"wrong": [1]}}),
        ("log.jsonl", {}),
        ("log.jsonl", {"mAP": "x"}),
        ("log.jsonl", {"mAP": 1.0, "selection": {"clean_recall": "x"}}),
        ("log.jsonl", {"mAP": 1.0, "loss": [1]}),
        ("log.jsonl", {"mAP": 1.0, "penalty": {"x": 1}}),
        ("log.jsonl", {"mAP": 1.0, "penalty": 1, "leave_one_out": 3}),
        ("log.jsonl", {"mAP": 1.0, "penalty": 1, "leave_one_out": {"x": 1.0}}),
        ("log.jsonl", {"mAP": 1.0, "penalty": 1, "leave_one_out": {"-1": 1.0}}),
        ("log.jsonl", None),
    ],
)
def test_other_content_is_refused_by_the_report(unchecked, capsys, file, content):
    text = json.dumps(content) + "\n" if content is not None else ""
    (unchecked / file).write_text(text)
    said = refused(capsys, "report", unchecked)
    assert said.startswith(f"balancemix: {unchecked / file}: ")
    assert said.endswith(f"`balancemix train --resume --out {unchecked}` writes it again")


def test_a_damaged_plan_is_refused_by_its_name(unchecked, capsys):
    plan = json.loads((unchecked / "plan.json").read_text())
    plan["train"]["epochs"] = "many"
    (unchecked / "plan.json").write_text(json.dumps(plan))
    said = refused(capsys, "predict", unchecked, plan["data"]["path"])
    assert (
        said == f"balancemix: {unchecked / 'plan.json'}: train.epochs must be a whole number, "
        "it is 'many'"
    )


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"x" * 100])
def test_a_damaged_fingerprint_is_refused_by_its_name(unchecked, capsys, content):
    (unchecked / "data.npz").write_bytes(content)
    assert str(unchecked / "data.npz") in refused(capsys, "train", "--resume", "--out", unchecked)


def refused(capsys, *words) -> str:
    capsys.readouterr()
    assert main([str(word) for word in words]) == 2
    lines = capsys.readouterr().err.splitlines()
    lines = [line for line in lines if not line.startswith("warning: ")]
    assert len(lines) == 1
    return lines[0]
