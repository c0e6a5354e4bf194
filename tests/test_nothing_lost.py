"""No command writes over a person's file; data or files that change under a run are noticed."""

import multiprocessing
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from balancemix.cli import main
from balancemix.files import locked
from tests.conftest import tiny_arrays

SMALL = ("--epochs", "3", "--batch-size", "16", "--device", "cpu", "--set", "model.hidden=8")


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """Make data, a finished run with findings, and other files."""
    folder = tmp_path_factory.mktemp("made")
    np.savez(folder / "x.npz", **tiny_arrays())
    call = ["train", str(folder / "x.npz"), "--noise", "flip:0.2", *SMALL]
    assert main([*call, "--out", str(folder / "run")]) == 0
    assert main(["audit", str(folder / "run")]) == 0
    (folder / "d").mkdir()
    shutil.copy(folder / "x.npz", folder / "d" / "labels.npz")
    return folder


@pytest.fixture
def work(made, photos, tmp_path, monkeypatch) -> Path:
    """Copy all of it beside a folder of images, and stand there."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "call",
    [
        "train x.npz --out ",
        "train x.npz --out .",
        "train x.npz --out . --force",
        "train d/labels.npz --out d",
        "train d/labels.npz --out d --force",
        "train x.npz --out photos",
        "train x.npz --out x.npz",
        "predict run x.npz --out x.npz",
        "predict run x.npz --out x.npz --force",
        "predict run x.npz --out photos/labels.csv",
        "predict run x.npz --out run/metrics.json --force",
        "noise photos --noise flip:0.1 --out photos/labels.csv",
        "noise photos --noise flip:0.1 --out photos/labels.csv --force",
        "export run --out photos/labels.csv",
        "audit run --out run/metrics.json",
        "audit run --out run/metrics.json --force",
        "report run --out photos/labels.csv",
        "report run --out run/metrics.json",
    ],
)
def test_files_of_people_and_of_runs_are_not_replaced(work, capsys, call):
    before = contents(work)
    assert main(call.split(" ")) == 2
    assert capsys.readouterr().err.startswith("balancemix: ")
    assert contents(work) == before


@pytest.mark.parametrize("call", ["audit run", "train x.npz --out run --force"])
def test_edited_findings_are_not_replaced(work, capsys, call):
    with (work / "run" / "findings.csv").open("a") as findings:
        findings.write("my remark\n")
    before = contents(work)
    assert main(call.split()) == 2
    assert "findings.csv" in capsys.readouterr().err
    assert contents(work) == before


@pytest.mark.parametrize(
    "call",
    ["audit run", "predict run x.npz", "export run", "report run", "noise photos --noise single"],
)
def test_a_device_is_written_to_and_stays(work, call):
    if os.geteuid() == 0 and not Path("/dev/null").is_char_device():
        pytest.skip("there is no null device")
    main([*call.split(), "--out", "/dev/null"])
    assert Path("/dev/null").is_char_device()


def hold(path, ready, done):
    with locked(path, "training in it"):
        ready.set()
        done.wait(60)


def test_two_trainings_cannot_share_a_directory(work, capsys):
    (work / "shared").mkdir()
    spawn = multiprocessing.get_context("spawn")
    ready, done = spawn.Event(), spawn.Event()
    other = spawn.Process(target=hold, args=(work / "shared", ready, done))
    other.start()
    assert ready.wait(60)
    try:
        assert main(["train", "x.npz", *SMALL, "--out", "shared"]) == 2
        assert "another process is training in it" in capsys.readouterr().err
        assert not (work / "shared" / "metrics.json").exists()
    finally:
        done.set()
        other.join()
