"""Errors as a system: one tree, one place that prints, an exit code for each kind."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from balancemix import commands
from balancemix.cli import main
from balancemix.errors import BalanceMixError, DamagedFile, InputError, printable


def failing_with(monkeypatch, error):
    def run(arguments):
        raise error

    monkeypatch.setattr(commands.COMMANDS["presets"], "run", run)


def test_every_error_is_one_of_ours_and_an_input_error_a_value_error():
    assert issubclass(InputError, BalanceMixError)
    assert issubclass(InputError, ValueError)
    assert issubclass(DamagedFile, InputError)


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (InputError("a.csv line 3: no name"), "a.csv line 3: no name"),
        (InputError("\x1b[2Jcat\nx"), "\\x1b[2Jcat\\nx"),
        (OSError(28, "No space left on device", "/x/y"), "/x/y: No space left on device"),
        (FileNotFoundError(2, "No such file", "a", None, "b"), "a to b: No such file"),
        (OSError(28, "No space left on device"), "the system says: No space left on device"),
        (MemoryError(), "not enough memory; try fewer rows"),
    ],
)
def test_what_a_user_can_mend_is_one_line_and_exit_code_2(monkeypatch, capsys, error, line):
    failing_with(monkeypatch, error)
    assert main(["presets"]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith(f"balancemix: {line}")
    assert output.err.count("\n") == 1


def test_a_bug_is_called_one_and_its_traceback_is_in_a_file(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    failing_with(monkeypatch, KeyError("odds"))
    assert main(["presets"]) == 70
    line = capsys.readouterr().err
    assert line.startswith("balancemix: this is a bug in balancemix, please report it: KeyError")
    assert line.count("\n") == 1
    (file,) = tmp_path.iterdir()
    assert str(file) in line
    assert "Traceback" in file.read_text()


@pytest.mark.parametrize("call", [["--debug", "presets"], ["presets", "--debug"]])
def test_debug_shows_the_traceback(monkeypatch, capsys, call):
    failing_with(monkeypatch, InputError("odd"))
    assert main(call) == 2
    assert "Traceback" in capsys.readouterr().err


def test_a_closed_pipe_is_no_error():
    command = f"{sys.executable} -m balancemix presets | head -1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout.count("\n") == 1


def test_a_terminal_without_our_letters_shows_escapes(tmp_path: Path):
    name = tmp_path / "café – ×.npz"
    call = [sys.executable, "-m", "balancemix", "stats", str(name)]
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    done = subprocess.run(call, capture_output=True, text=True, env=environment)
    assert done.returncode == 2
    assert "caf\\xe9 \\u2013 \\xd7.npz" in done.stderr
    assert "Traceback" not in done.stderr


def test_control_characters_are_shown_and_letters_stay():
    assert printable("café – 犬 é\N{RIGHT-TO-LEFT OVERRIDE}") == "café – 犬 é\\u202e"
    assert printable(os.fsdecode(b"caf\xe9")) == "caf\\udce9"
