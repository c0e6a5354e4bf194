"""No command writes over a person's file; data or files that change under a run are noticed."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from balancemix.cli import main
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
    (folder / "tasks.xml").write_text("<View>somebody else's</View>")
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
        "audit x.npz --for cleanlab --out x.npz --force",
        "audit photos --for label-studio --out tasks.json",
        "audit x.npz --out photos/labels.csv",
        "audit x.npz --out f.csv --gallery x.npz",
        "audit x.npz --out f.csv --gallery x.npz --force",
        "audit photos --out f.csv --gallery photos/labels.csv --force",
        "audit run --gallery run/metrics.json --force",
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


def test_findings_for_a_tool_are_replaced_until_somebody_edits_them(work, capsys):
    for _ in range(2):
        assert main(["audit", "run", "--for", "cleanlab"]) == 0
    with (work / "run" / "findings.cleanlab.npz").open("ab") as findings:
        findings.write(b"mine")
    before = contents(work)
    assert main(["audit", "run", "--for", "cleanlab"]) == 2
    assert "findings.cleanlab.npz" in capsys.readouterr().err
    assert contents(work) == before


@pytest.mark.parametrize(
    ("call", "code"),
    [
        ("audit run", 0),
        ("predict run x.npz", 0),
        ("report run", 0),
        ("export run", 2),  # must end in .csv or .npz
        ("noise photos --noise single", 2),
    ],
)
def test_the_null_device_is_written_to_or_refused_and_stays(work, capsys, call, code):
    if not Path("/dev/null").is_char_device():
        pytest.skip("there is no null device")
    assert main([*call.split(), "--out", "/dev/null"]) == code
    assert ("/dev/null: must end in" in capsys.readouterr().err) == (code == 2)
    assert Path("/dev/null").is_char_device()


@pytest.mark.parametrize(
    ("call", "begins"),
    [
        ("audit run", b"image,class,problem"),
        ("predict run x.npz", b"image,"),
        ("report run", b"<!doctype html>"),
        ("export run", b"image,labels"),
        ("noise photos --noise single", b"image,labels"),
    ],
)
def test_a_pipe_is_written_to_and_stays(work, call, begins):
    os.mkfifo("pipe.csv")
    with ThreadPoolExecutor(1) as reader:
        content = reader.submit(Path("pipe.csv").read_bytes)
        assert main([*call.split(), "--out", "pipe.csv"]) == 0
        assert content.result(60).startswith(begins)
    assert Path("pipe.csv").is_fifo()


@pytest.mark.parametrize("how", ["--resume", "--force"])
def test_two_trainings_cannot_share_a_directory(work, capsys, how):
    words = ["train", "x.npz", *SMALL, "--out", "shared", "--set", "train.epochs=100000"]
    first = subprocess.Popen([sys.executable, "-m", "balancemix", *words], stderr=subprocess.PIPE)
    try:
        while not (work / "shared" / "checkpoint.pt").exists() and first.poll() is None:
            time.sleep(0.02)
        first.send_signal(signal.SIGSTOP)  # it still trains, but writes nothing meanwhile
        before = contents(work / "shared")
        assert main([*words, how]) == 2
        assert "another process is training in it" in capsys.readouterr().err
        assert contents(work / "shared") == before
    finally:
        first.send_signal(signal.SIGCONT)
        first.send_signal(signal.SIGINT)
        _, errors = first.communicate(timeout=120)
    assert first.returncode == 130, errors


def test_of_two_trainings_that_start_at_once_one_is_refused(work):
    words = ["train", "x.npz", *SMALL, "--out", "shared"]
    call = [sys.executable, "-m", "balancemix", *words, "--set"]
    both = [
        subprocess.Popen([*call, f"train.lr={rate}"], stderr=subprocess.PIPE, text=True)
        for rate in (0.1, 0.2)
    ]
    ended = [(process.communicate(timeout=120)[1], process.returncode) for process in both]
    codes = sorted(code for _, code in ended)
    assert codes == [0, 2], ended
    winner = 0.1 if both[0].returncode == 0 else 0.2
    plan = json.loads((work / "shared" / "plan.json").read_bytes())
    assert plan["train"]["lr"] == winner
    assert (work / "shared" / "metrics.json").exists()
