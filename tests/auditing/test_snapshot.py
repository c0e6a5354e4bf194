"""What an audit keeps in the store for the review page."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch

from balancemix.auditing.findings import find
from balancemix.auditing.judged import judge_features
from balancemix.auditing.snapshot import (
    BANDS,
    Judge,
    bands_of,
    changes_since,
    fingerprint_of,
    save_snapshot,
)
from balancemix.cli import main
from balancemix.data import ReadOptions, read
from balancemix.data.decisions import store_folder
from balancemix.data.decisions.store import Store
from tests.conftest import tiny_arrays

FILES = ReadOptions(verified=False)


@pytest.fixture
def tiny(tmp_path):
    """Write features with a tenth of the labels flipped."""
    arrays = tiny_arrays(rows=400)
    flipped = np.random.default_rng(1).random(arrays["labels"].shape) < 0.1
    arrays["labels"] ^= flipped.astype(np.uint8)
    np.savez(tmp_path / "tiny.npz", **arrays)
    return tmp_path / "tiny.npz"


@pytest.fixture
def judged(tiny):
    source = read(tiny, FILES)
    return judge_features(
        source.given, source.features, names=source.names, classes=source.classes, source=source
    )


def newest(path):
    with Store.open(store_folder(path), write=False) as store:
        return store.newest_snapshot()


def test_an_audit_keeps_its_findings_once(tiny, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["audit", str(tiny), "--above", "0.3"]) == 0
    snapshot = newest(tiny)
    lines = (tmp_path / "findings.csv").read_text().splitlines()[1:]
    found = {(f.image, f.class_, f.problem) for f in snapshot.findings}
    assert found == {tuple(line.split(",")[:3]) for line in lines}
    assert snapshot.fingerprint == fingerprint_of(read(tiny, FILES))
    assert main(["audit", str(tiny), "--above", "0.3", "--force"]) == 0
    assert newest(tiny).id == snapshot.id
    assert main(["audit", str(tiny), "--above", "0.9", "--force"]) == 0
    assert newest(tiny).id == snapshot.id + 1


def test_what_is_below_one_in_ten_is_not_kept(tiny, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["audit", str(tiny), "--above", "0"]) == 0
    assert min(f.probability for f in newest(tiny).findings) >= 0.1


def test_a_run_with_noise_of_its_own_keeps_nothing_of_it(tiny, tmp_path):
    small = ["--epochs", "1", "--device", "cpu", "--set", "model.hidden=4", "--method", "bce"]
    for noise, kept in (("flip:0.2", False), ("none", True)):
        run = str(tmp_path / f"run{kept}")
        assert main(["train", str(tiny), *small, "--noise", noise, "--out", run]) == 0
        assert main(["audit", run]) == 0
        assert (store_folder(tiny) / "review.sqlite").exists() is kept
    assert newest(tiny).source == str(tiny)


def test_an_audit_goes_on_where_nothing_can_be_kept(tiny, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    store_folder(tiny).write_text("a file in its place")
    assert main(["audit", str(tiny)]) == 0
    assert (tmp_path / "findings.csv").exists()
    assert "the findings are not kept for `balancemix review`" in capsys.readouterr().err


def test_without_what_people_decided_nothing_is_kept(tiny, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["audit", str(tiny), "--no-verified"]) == 0
    assert not store_folder(tiny).exists()


def test_bands_count_every_label(judged):
    bands = bands_of(judged)
    assert sum(band.labels for band in bands) == judged.given.numel()
    assert all(0 <= band.band < len(BANDS) - 1 for band in bands)
    for band in bands:
        low, high = BANDS[band.band], BANDS[band.band + 1]
        assert band.labels * low - 1e-6 <= band.sum_p <= band.labels * high + 1e-6
    for side, column in (("wrong", 0), ("missing", 1)):
        total = sum(band.sum_p for band in bands if band.side == side)
        assert total == pytest.approx(float(judged.expected[:, column].sum()), rel=1e-4)


def test_a_snapshot_says_how_it_was_judged(judged, tmp_path):
    able = judged.judged.clone()
    able[1] = False
    findings = replace(find(replace(judged, judged=able)), measured=frozenset({"wrong"}))
    with Store.open(tmp_path, create=True) as store:
        save_snapshot(store, findings)
        snapshot = store.newest_snapshot()
    assert Judge.read(snapshot.judge) == Judge(("wrong",), ("c1",))
    assert snapshot.expected == pytest.approx(judged.expected.double().sum(0).tolist())
    assert len(snapshot.findings) == len(findings)
    first, kept = next(iter(findings)), {(f.image, f.class_): f for f in snapshot.findings}
    found = kept[judged.names[first.row], judged.classes[first.column]]
    assert (found.problem, found.given, found.suggested) == (
        first.problem, first.given, first.suggested
    )  # fmt: skip
    assert found.probability == pytest.approx(first.probability)


def test_the_order_of_rows_and_the_decisions_of_people_do_not_change_the_data(photos, tmp_path):
    before = fingerprint_of(read(photos))
    lines = (photos / "labels.csv").read_text().splitlines()
    (photos / "labels.csv").write_text("\n".join([lines[0], *lines[:0:-1]]) + "\n")
    assert fingerprint_of(read(photos)) == before
    table = tmp_path / "filled.csv"
    table.write_text("image,class,verdict\n0.png,red,present\n1.png,blue,absent\n")
    assert main(["review", str(photos), "--read", str(table), "--name", "Ana"]) == 0
    decided = read(photos)
    assert decided.decided.sum() == 2
    assert fingerprint_of(decided) == before


def test_what_has_changed_is_said(photos):
    source = read(photos, FILES)
    with Store.open(store_folder(photos), create=True) as store:
        number = store.add_snapshot(
            source="", fingerprint=fingerprint_of(source), judge="", seed=0, expected=(0, 0),
            names=source.names,
        )  # fmt: skip
        snapshot = store.newest_snapshot()
        assert snapshot.id == number
        assert changes_since(snapshot, source, store) is None
        table, text = photos / "labels.csv", (photos / "labels.csv").read_text()
        shutil.copy(photos / "images" / "0.png", photos / "images" / "new.png")
        table.write_text(text + "new.png,red,train\n")
        said = changes_since(snapshot, read(photos, FILES), store)
        assert said.startswith("The data has changed since this audit: 1 picture is new or gone. ")
        (photos / "images" / "1.png").unlink()
        with pytest.warns(UserWarning, match="left out"):
            changed = read(photos, replace(FILES, skip_bad=True))
        assert "2 pictures are new or gone" in changes_since(snapshot, changed, store)
        table.write_text(text)
        shutil.copy(photos / "images" / "0.png", photos / "images" / "1.png")
        other = replace(source, given=1 - source.given)
        assert "its labels are not what they were" in changes_since(snapshot, other, store)
        other = replace(source, classes=["a", "b", "c"])
        assert "its classes are not what they were" in changes_since(snapshot, other, store)


def test_rows_without_their_image_do_not_count(photos):
    (photos / "images" / "3.png").unlink()
    with pytest.warns(UserWarning, match="left out"):
        here = read(photos, replace(FILES, skip_bad=True))
    every = replace(
        here,
        names=[*here.names, "3.png"],
        given=torch.cat([here.given, here.given[:1]]),
        images=[*here.images, photos / "images" / "3.png"],
        split=[*here.split, "train"],
    )
    assert fingerprint_of(every) == fingerprint_of(here)


def test_features_make_a_row_count_without_its_image(tmp_path):
    arrays = tiny_arrays()
    np.savez(tmp_path / "x.npz", **arrays)
    assert fingerprint_of(read(tmp_path / "x.npz")).startswith(f"{len(arrays['labels'])} ")
