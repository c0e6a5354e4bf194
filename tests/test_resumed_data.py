"""Data and files that change under an unfinished run: matched or refused, never mixed up."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from balancemix.cli import main
from balancemix.run import Run

TRAIN = ("--epochs", "4", "--batch-size", "16", "--device", "cpu", "--set", "model.hidden=8")
ROWS = 40


def write_data(path: Path, order: Any = None, **changes: Any) -> None:
    generator = np.random.default_rng(0)
    labels = (generator.random((ROWS, 3)) < 0.4).astype(np.uint8)
    labels[:3] = labels[-3:] = np.eye(3, dtype=np.uint8)
    arrays: dict[str, Any] = {
        "features": (labels @ generator.normal(size=(3, 4))).astype(np.float32),
        "labels": labels,
        "images": np.array([f"{i:02}.png" for i in range(ROWS)]),
        "split": np.array(["train"] * 30 + ["test"] * 10),
    }
    order = np.arange(ROWS) if order is None else order
    arrays = {name: array[order] for name, array in arrays.items()}
    arrays["classes"] = np.array(["cat", "dog", "cup"])
    for name, change in changes.items():
        arrays[name] = change(arrays["labels" if name == "verified" else name].copy())
    np.savez(path, **arrays)


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """Train without a stop, and with one after the second epoch."""
    folder = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        write_data(folder / "x.npz")
        call = ["train", "x.npz", "--noise", "flip:0.2", *TRAIN, "--out"]
        assert main([*call, "run"]) == 0
        save, epochs = Run.save_epoch, list[int]()

        def stop(self, *state):
            save(self, *state)
            epochs.append(1)
            if len(epochs) == 2:
                raise KeyboardInterrupt

        patch.setattr(Run, "save_epoch", stop)
        assert main([*call, "stopped"]) == 130
    return folder


@pytest.fixture
def stopped(whole, tmp_path, monkeypatch) -> Path:
    shutil.copytree(whole, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def resume(capsys) -> tuple[int, str]:
    capsys.readouterr()
    code = main(["train", "--resume", "--out", "stopped"])
    return code, capsys.readouterr().err


def assert_ended_alike(folder: Path) -> None:
    """Compare weights and labels bit for bit."""
    name = "model.safetensors"
    assert (folder / "stopped" / name).read_bytes() == (folder / "run" / name).read_bytes()
    table = "label_table.npz"
    with np.load(folder / "stopped" / table) as found, np.load(folder / "run" / table) as expected:
        for key in expected.files:
            assert np.array_equal(found[key], expected[key]), key


def test_a_stopped_run_ends_as_one_that_was_not(stopped, capsys):
    assert resume(capsys)[0] == 0
    assert_ended_alike(stopped)


@pytest.mark.parametrize("order", ["reversed", "shuffled"])
def test_rows_in_another_order_are_matched_by_name(stopped, capsys, order):
    places = np.arange(ROWS)[::-1]
    if order == "shuffled":
        places = np.random.default_rng(1).permutation(ROWS)
    write_data(stopped / "x.npz", places)
    code, said = resume(capsys)
    assert code == 0
    assert "matched by name" in said
    assert_ended_alike(stopped)


def flip_label(labels):
    labels[5, 1] ^= 1
    return labels


def hide_label(labels):
    labels = labels.astype(np.float32)
    labels[5, 1] = np.nan
    return labels


def rename(classes):
    classes[1] = "fog"
    return classes


def replace_features(features):
    features[7] += 1
    return features


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"labels": flip_label}, "labels are not those that the run trains on (1 of them)"),
        ({"labels": hide_label}, "'05.png', 'dog' was absent and is unknown"),
        (
            {"verified": lambda labels: labels},
            "other labels are verified than when the run started",
        ),
        ({"order": np.delete(np.arange(ROWS), 4)}, "rows of the run are gone: '04.png'"),
        ({"classes": rename}, "its classes, or their order, are not those that the run knows"),
        ({"features": replace_features}, "inputs are not what they were: '07.png'"),
    ],
)
def test_data_that_changed_is_refused(stopped, capsys, changes, said):
    write_data(stopped / "x.npz", **changes)
    code, message = resume(capsys)
    assert code == 2
    assert said in message
    assert not (stopped / "stopped" / "metrics.json").exists()


def flip_byte(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)


def test_a_damaged_checkpoint_is_replaced_by_the_one_before(stopped, capsys):
    flip_byte(stopped / "stopped" / "checkpoint.pt")
    code, said = resume(capsys)
    assert code == 0
    assert "checkpoint.pt: is damaged; resuming from the one before" in said
    assert_ended_alike(stopped)


def test_a_damaged_log_is_written_again(stopped, capsys):
    flip_byte(stopped / "stopped" / "log.jsonl")
    assert resume(capsys)[0] == 0
    assert_ended_alike(stopped)


@pytest.mark.parametrize("name", ["plan.json", "data.npz"])
def test_a_run_is_not_resumed_by_a_damaged_plan_or_fingerprint(stopped, capsys, name):
    flip_byte(stopped / "stopped" / name)
    code, said = resume(capsys)
    assert code == 2
    assert f"stopped/{name}: is not as balancemix wrote it" in said


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("metrics.json", "report run"),
        ("log.jsonl", "report run"),
        ("label_table.npz", "audit run"),
        ("model.safetensors", "predict run x.npz --out p.csv"),
        ("plan.json", "predict run x.npz --out p.csv"),
    ],
)
def test_a_damaged_file_of_a_finished_run_is_refused(stopped, capsys, name, call):
    flip_byte(stopped / "run" / name)
    capsys.readouterr()
    assert main(call.split()) == 2
    assert f"run/{name}: is not as balancemix wrote it" in capsys.readouterr().err
