"""A folder of images that changes under an unfinished run: matched or refused, never mixed up."""

import shutil
from pathlib import Path

import pytest

from balancemix.cli import main
from balancemix.run import Run

TRAIN = ["--method", "bce", "--backbone", "mobilenetv3_small_050", "--no-pretrained", "--workers"]
TRAIN += ["0", "--image-size", "32", "--epochs", "2", "--batch-size", "14", "--device", "cpu"]


@pytest.fixture
def stopped(photos, monkeypatch) -> Path:
    """Train without a stop, and with one after the first epoch."""
    folder = photos.parent
    monkeypatch.chdir(folder)
    assert main(["train", "photos", *TRAIN, "--out", "run"]) == 0
    save = Run.save_epoch
    with pytest.MonkeyPatch.context() as patch:

        def stop(self, *state):
            save(self, *state)
            raise KeyboardInterrupt

        patch.setattr(Run, "save_epoch", stop)
        assert main(["train", "photos", *TRAIN, "--out", "stopped"]) == 130
    return folder


def test_changes_under_a_run_are_matched_by_name_or_refused(stopped, capsys):
    labels = stopped / "photos" / "labels.csv"
    text = labels.read_text()
    head, *lines = text.splitlines()
    resume = ["train", "--resume", "--out", "stopped"]

    labels.write_text("\n".join([head, *(line.replace("red", "blue") for line in lines)]) + "\n")
    assert main(resume) == 2
    labels.write_text("\n".join([head, *lines[:-1]]) + "\n")
    assert main(resume) == 2
    assert "rows of the run are gone: '39.png'" in capsys.readouterr().err
    labels.write_text(text)

    shutil.copy(stopped / "photos/images/0.png", stopped / "kept.png")
    image = stopped / "photos/images/0.png"
    image.write_bytes(image.read_bytes() + b"\0")
    assert main(resume) == 2
    assert "inputs are not what they were: '0.png'" in capsys.readouterr().err
    shutil.copy(stopped / "kept.png", image)

    labels.write_text("\n".join([head, *reversed(lines)]) + "\n")
    assert main(resume) == 0
    errors = capsys.readouterr().err
    assert "its rows are in another order; matched by name" in errors
    assert "files have another date but their old size" in errors
    weights = [Path(name, "model.safetensors").read_bytes() for name in ("run", "stopped")]
    assert weights[0] == weights[1]
