"""Ctrl-C and SIGTERM: the right exit code, and no signal is lost."""

import io
import os
import re
import signal
import subprocess
import sys
import time

import pytest
import torch

from balancemix import commands, interrupts
from balancemix.cli import main
from balancemix.run import Run


@pytest.mark.parametrize("number", interrupts.SIGNALS)
def test_a_signal_raises_and_is_remembered_where_the_exception_is_dropped(number, monkeypatch):
    class Careless:
        def __del__(self):
            os.kill(os.getpid(), number)
            time.sleep(0.01)  # the handler runs here, in a finaliser: Python drops what it raises

    handler = signal.getsignal(number)
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: None)
    with interrupts.listening():
        careless = Careless()
        del careless
        with pytest.raises(interrupts.Stopped) as stopped:
            interrupts.check()
    assert stopped.value.code == 128 + number
    interrupts.check()  # forgotten with the command that it was meant for
    assert signal.getsignal(number) is handler


def test_what_a_signal_becomes_in_c_code_still_ends_as_a_stop(monkeypatch, capsys):
    def run(arguments):
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(1)
        except interrupts.Stopped as error:
            raise RuntimeError("failed writing file") from error  # as torch does

    monkeypatch.setattr(commands.COMMANDS["presets"], "run", run)
    assert main(["presets"]) == 143
    assert capsys.readouterr().err.startswith("balancemix: stopped; ")


class Interrupted(io.BytesIO):
    """A file at the first write to which somebody presses Ctrl-C."""

    def __init__(self, out):
        super().__init__()
        self.out, self.pressed = out, False

    def write(self, content):
        if not self.pressed:
            self.pressed = True
            signal.raise_signal(signal.SIGINT)
        return self.out.write(content)

    def flush(self):
        self.out.flush()


def test_ctrl_c_in_a_script_while_torch_saves_is_a_keyboard_interrupt(tmp_path, monkeypatch):
    save = torch.save
    monkeypatch.setattr(torch, "save", lambda state, out: save(state, Interrupted(out)))
    run, weights = Run(tmp_path), torch.arange(100_000)
    with pytest.raises(KeyboardInterrupt):
        run.save_checkpoint({"weights": weights, "log": "[]"})
    state, _ = run.read_checkpoint()  # what was being saved is saved
    assert torch.equal(state["weights"], weights)
    assert not list(tmp_path.glob("*.draft"))
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@interrupts.deferred()
def press_twice():
    signal.raise_signal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_a_second_ctrl_c_does_not_wait():
    with pytest.raises(KeyboardInterrupt):
        press_twice()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_training_on_images_stops_with_what_is_saved(photos, tmp_path, number, code):
    call = [sys.executable, "-m", "balancemix", "train", str(photos), "--out", str(tmp_path / "r")]
    call += ["--epochs", "500", "--workers", "1", "--image-size", "32", "--batch-size", "8"]
    process = subprocess.Popen(
        [*call, "--no-pretrained", "--method", "bce"],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    log = tmp_path / "r" / "log.jsonl"
    while not log.exists() and process.poll() is None:
        time.sleep(0.05)
    os.killpg(process.pid, number)  # as a terminal does: the loading processes get it too
    _, errors = process.communicate(timeout=120)
    assert process.returncode == code, errors
    assert "Traceback" not in errors
    last = errors.strip().splitlines()[-1]
    assert re.fullmatch(r"balancemix: stopped; .*train --resume --out .*r` continues", last)
