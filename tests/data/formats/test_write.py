"""What is written is what was read, but for the labels that changed; and `train` reads it."""

import json
import shutil

import numpy as np
import pytest
import torch
from PIL import Image

from balancemix.cli import main
from balancemix.data import ReadOptions, load, read
from balancemix.data.formats import find_writer, npz, table
from balancemix.data.formats.mapped import write_stored
from balancemix.errors import InputError
from tests.conftest import tiny_arrays
from tests.data.formats.contract import check_writing, feature_rows
from tests.data.formats.test_coco import make as make_coco

TABLE = (
    "\ufeffsplit,image,note,labels\r\n"
    'train,a.png,"x, ""y""",cat | dog\r\n'
    "\r\n"
    " train,b.png,,dog\r\n"
    ",,,\r\n"
    "train,c.png,,owl\r\n"
    "test,d.png,last,owl|cat"
)


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "photos"
    place.mkdir()
    for name in "abcd":
        Image.new("RGB", (6, 4)).save(place / f"{name}.png")
    (place / "labels.csv").write_bytes(TABLE.encode())
    return place


PLAIN = ReadOptions(labels_only=True)


def write(source, given, out):
    find_writer(out).write(source, given, out)
    return out


def test_a_table_keeps_to_the_contract(folder, tmp_path):
    check_writing(table, folder, folder / "labels.csv", tmp_path / "same.csv")


def test_an_npz_keeps_to_the_contract(tmp_path):
    write_stored(tmp_path / "x.npz", tiny_arrays())
    check_writing(npz, tmp_path / "x.npz", tmp_path / "x.npz", tmp_path / "same.npz")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_quotes_marks_and_ends_of_lines_are_kept(folder, tmp_path, end):
    lines = [
        '\ufeff"image","labels"',
        '"a.png","cat"',
        "b.png,dog",
        "c.png,",
        'd.png,"dog|cat"',
        "",
    ]
    (folder / "labels.csv").write_bytes(end.join(lines).encode())
    check_writing(table, folder, folder / "labels.csv", tmp_path / "same.csv")
    lines[2] = "b.png,cat|dog"
    assert (tmp_path / "same.csv").read_bytes() == end.join(lines).encode()


@pytest.mark.parametrize(
    ("row", "before", "after"),
    [
        (0, '"x, ""y""",cat | dog\r\n', '"x, ""y""",cat | dog | owl\r\n'),
        (1, "b.png,,dog\r\n", "b.png,,dog|owl\r\n"),
        (3, "last,owl|cat", "last,cat"),
    ],
)
def test_one_changed_label_changes_its_cell(folder, tmp_path, row, before, after):
    source = read(folder)
    given = source.given.clone()
    given[row, 2] = 1 - given[row, 2]
    out = write(source, given, tmp_path / "changed.csv")
    assert out.read_bytes().decode() == TABLE.replace(before, after)
    shutil.copy(out, folder / "labels.csv")
    assert torch.equal(read(folder).given, given)


def test_rows_that_were_left_out_stay_as_they_are(folder, tmp_path):
    (folder / "b.png").unlink()
    with pytest.warns(UserWarning, match="1 of 4 images cannot be read"):
        source = read(folder, ReadOptions(skip_bad=True))
    out = write(source, source.given, tmp_path / "some.csv")
    assert out.read_bytes().decode() == TABLE
    given = 1 - source.given
    out = write(source, given, tmp_path / "other.csv")
    assert " train,b.png,,dog\r\n" in out.read_bytes().decode()


@pytest.mark.filterwarnings("ignore:.*no training row has the class")
def test_a_random_holdout_is_not_written(folder, tmp_path):
    (folder / "labels.csv").write_text("image,labels\na.png,cat\n\nb.png,dog\nc.png,cat|dog\n")
    data = load(folder, options=ReadOptions(holdout=0.3, seed=5))
    out = write(data.source, data.source.given, tmp_path / "held.csv")
    assert out.read_bytes() == (folder / "labels.csv").read_bytes()


def test_an_npz_is_written_as_it_was_read(tmp_path):
    arrays = tiny_arrays() | {"made": np.array("by hand"), "truth": tiny_arrays()["labels"] > 0}
    write_stored(tmp_path / "x.npz", arrays)
    source = read(tmp_path / "x.npz")
    out = write(source, source.given, tmp_path / "same.npz")
    assert out.read_bytes() == (tmp_path / "x.npz").read_bytes()
    given = source.given.clone()
    given[7, 3] = 1 - given[7, 3]
    with np.load(write(source, given, tmp_path / "changed.npz")) as changed:
        assert list(changed) == list(arrays)
        assert np.argwhere(changed["labels"] != arrays["labels"]).tolist() == [[7, 3]]
        for name in set(arrays) - {"labels"}:
            assert changed[name].dtype == arrays[name].dtype
            assert np.array_equal(changed[name], arrays[name])


def test_built_in_data_can_be_written(tmp_path):
    source = read("digits")
    again = read(write(source, source.given, tmp_path / "digits.npz"))
    assert (again.names, again.classes, again.split) == (source.names, source.classes, source.split)
    assert torch.equal(again.given, source.given)
    assert torch.equal(again.features, source.features)


def test_what_cannot_be_written_is_refused(folder, tmp_path):
    source = read(folder)
    with pytest.raises(InputError, match=r"x\.npz: an \.npz holds features, .* write a \.csv, or"):
        write(source, source.given, tmp_path / "x.npz")
    with pytest.raises(InputError, match=r"^--out x\.doc: must end in \.csv or \.json or "):
        find_writer(tmp_path.relative_to(tmp_path) / "x.doc")
    with pytest.raises(InputError, match="cannot say that a label is unknown"):
        write(source, source.given - 1, tmp_path / "x.csv")


@pytest.mark.filterwarnings("ignore:.*no training row has the class")
def test_noise_writes_a_table_that_train_reads(tmp_path, capsys):
    make_coco(tmp_path)
    out = tmp_path / "labels.csv"
    clean = load(tmp_path)
    assert main(["noise", str(tmp_path), "--noise", "flip:0.5", "--out", str(out), "--json"]) == 0
    measured = json.loads(capsys.readouterr().out)
    noisy = load(tmp_path)
    assert noisy.train.names == clean.train.names
    assert torch.equal(noisy.test.given.sort(1)[0], clean.test.given.sort(1)[0])
    columns = [noisy.classes.index(name) for name in clean.classes]
    wrong = (noisy.train.given[:, columns] != clean.train.given).float().mean().item()
    assert wrong == pytest.approx(measured["wrong"])
    assert wrong > 0


def test_noise_writes_features_that_train_reads(tiny, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["noise", str(tiny), "--noise", "mislabel:0.4"]) == 0
    clean, noisy = load(tiny), load("noisy.npz")
    assert torch.equal(feature_rows(noisy.train).features, feature_rows(clean.train).features)
    assert torch.equal(noisy.train.truth, clean.train.given)
    assert torch.equal(noisy.test.given, clean.test.given)
    assert not torch.equal(noisy.train.given, clean.train.given)
    call = ["train", "noisy.npz", "--epochs", "2", "--set", "model.hidden=8", "--out", "run"]
    assert main(call) == 0
    assert (tmp_path / "run" / "truth.npz").exists()
    assert main(["export", "run", "--out", "corrected.npz"]) == 0
    with np.load("run/label_table.npz") as record:
        assert record["given"].tolist() == noisy.train.given.tolist()
    assert load("corrected.npz").train.names == noisy.train.names


@pytest.mark.filterwarnings("ignore:.*no training row has the class")
def test_noise_of_images_is_a_table_unless_asked(folder, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["noise", str(folder), "--noise", "drop:0.5"]) == 0
    assert "written: noisy.csv" in capsys.readouterr().out
    assert (tmp_path / "noisy.csv").read_bytes().startswith("\ufeffsplit,image,note".encode())
    assert main(["noise", str(folder), "--noise", "drop:0.5", "--out", "x.npz"]) == 2
    assert "an .npz holds features" in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore:.*no training row has the class")
def test_a_table_that_does_not_hold_what_was_verified_is_told(folder, tmp_path, capsys):
    call = ["noise", str(folder), "--force", "--out", str(tmp_path / "x.csv"), "--noise"]
    assert main([*call, "keep:1"]) == 0
    assert "as it has no column of that name" in capsys.readouterr().err
    lines = "image,labels,verified\na.png,cat,*\nb.png,dog,\nc.png,dog,\nd.png,cat,\n"
    (folder / "labels.csv").write_text(lines)
    assert main([*call, "keep:1"]) == 0
    assert "verified" not in capsys.readouterr().err
    given, verified = read(folder).given, read(tmp_path / "x.csv", PLAIN).verified
    assert read(tmp_path / "x.csv", PLAIN).given.equal(given)
    held = (tmp_path / "x.csv").read_text().count(",\n")  # at most one row, which is not trained on
    assert held <= 1
    assert verified.sum() == (4 - held) * 2
    assert main([*call, "drop:0.5"]) == 0
    assert "verified" not in capsys.readouterr().err
