"""The pictures of a run's worst findings: where they are looked for, and what if they are gone."""

import base64
import contextlib
import io
import re
import shutil

import numpy as np
import pytest
from PIL import Image

from balancemix.cli import main
from balancemix.report.pictures import SIDE, PicturedRows, data_uri, find_folder
from balancemix.run import Run
from tests.conftest import tiny_arrays

SMALL = ["--epochs", "2", "--batch-size", "16", "--set", "model.hidden=16", "--noise", "flip:0.2"]
PICTURE = re.compile(r'<img alt="([^"]*)" src="data:image/(png|jpeg);base64,([^"]+)">')
MISSING = re.compile(r"pictures of rows are not there \((\d+) of \1\); pass --images and their ")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run on an .npz that names the folder of its pictures."""
    folder = tmp_path_factory.mktemp("pictures")
    (folder / "photos").mkdir()
    names = [f"{i}.png" for i in range(120)]
    for i, name in enumerate(names):
        Image.new("RGB", (6, 4), (i, 0, 0)).save(folder / "photos" / name)
    arrays = tiny_arrays() | {"images": np.array(names), "root": np.array("photos")}
    np.savez(folder / "x.npz", **arrays)
    with contextlib.chdir(folder):
        assert main(["train", "x.npz", "--out", "run", *SMALL]) == 0
    return folder


@pytest.fixture
def place(trained, tmp_path, monkeypatch):
    """A copy of it all to work in."""
    shutil.copytree(trained, tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    return tmp_path / "copy"


def page(place, capsys, *more):
    capsys.readouterr()
    code = main(["report", str(place / "run"), "--force", *map(str, more)])
    said = capsys.readouterr().err
    return code or PICTURE.findall((place / "run" / "report.html").read_text()), said


def test_the_folder_that_the_npz_names(place, capsys):
    found, said = page(place, capsys)
    assert len(found) > 24
    assert "pictures" not in said
    for name, _, content in found:
        with Image.open(io.BytesIO(base64.b64decode(content))) as image:
            assert image.getpixel((0, 0)) == (int(name.removesuffix(".png")), 0, 0)


def test_a_moved_folder_is_named_by_images(place, capsys):
    (place / "photos").rename(place / "elsewhere")
    found, said = page(place, capsys)
    assert found == []
    assert MISSING.search(said)
    assert len(said.splitlines()) == 1
    found, said = page(place, capsys, "--images", place / "elsewhere")
    assert len(found) > 24
    assert "pictures" not in said


def test_data_that_is_gone(place, capsys):
    (place / "x.npz").unlink()
    found, said = page(place, capsys)
    assert found == []
    assert MISSING.search(said)
    assert len(page(place, capsys, "--images", place / "photos")[0]) > 24


def test_images_must_be_a_folder(place, capsys):
    code, said = page(place, capsys, "--images", place / "nowhere")
    assert code == 2
    assert "nowhere: is not a folder" in said


def test_a_benchmark_has_no_pictures(place, capsys):
    (place / "run" / "bench.json").write_text("{}")
    code, said = page(place, capsys, "--images", place / "photos")
    assert code == 2
    assert "run is a benchmark, the page of which has no pictures" in said


def test_some_are_missing_or_damaged(place, capsys):
    found, _ = page(place, capsys)
    (place / "photos" / found[0][0]).unlink()
    (place / "photos" / found[1][0]).write_bytes(b"no image")
    fewer, said = page(place, capsys)
    assert [name for name, *_ in fewer] == [name for name, *_ in found[2:]]
    assert f"not there (2 of {len(found)})" in said


def test_names_do_not_lead_out_of_the_folder(place):
    rows = PicturedRows(Run(place / "run").names, place / "photos")
    Image.new("RGB", (3, 3)).save(place / "private.png")
    rows.names[:3] = ["../private.png", str(place / "private.png"), "5.png"]
    assert [rows.picture(i) is not None for i in range(3)] == [False, False, True]


def test_a_large_picture_is_made_small():
    kind, content = data_uri(Image.new("RGB", (4000, 1000))).split(";base64,")
    assert kind == "data:image/jpeg"
    with Image.open(io.BytesIO(base64.b64decode(content))) as image:
        assert image.size == (SIDE, SIDE // 4)
    assert data_uri(None) == ""


def test_rows_without_names_have_no_pictures(tmp_path, capsys):
    np.savez(tmp_path / "x.npz", **tiny_arrays())
    assert main(["train", str(tmp_path / "x.npz"), "--out", str(tmp_path / "run"), *SMALL]) == 0
    assert find_folder(Run(tmp_path / "run")) is None
    assert page(tmp_path, capsys)[0] == []


@pytest.mark.filterwarnings("ignore:.*no training row has the class")
def test_a_folder_of_images(photos, tmp_path, capsys):
    how = ["--backbone", "test_resnet", "--no-pretrained", "--image-size", "32", "--epochs", "1"]
    out = str(tmp_path / "run")
    assert (
        main(["train", str(photos), "--out", out, "--method", "bce", "--workers", "0", *how]) == 0
    )
    rows = PicturedRows(Run(tmp_path / "run").names, find_folder(Run(tmp_path / "run")))
    assert rows.picture(3).size == (24, 24)
    found, said = page(tmp_path, capsys)
    assert "not there" not in said
    assert all(name.endswith(".png") for name, *_ in found)


@pytest.mark.parametrize("images", [[], ["--images", "shots"]])
def test_the_images_that_a_table_by_itself_names(tmp_path, monkeypatch, images):
    """Without their ending, too."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "shots" if images else tmp_path
    folder.mkdir(exist_ok=True)
    for i in range(8):
        Image.new("RGB", (8, 8), (9 * i, 0, 0)).save(folder / f"{i}.png")
    rows = [f"{i},{'cat|dog' if i % 3 else 'cat'},{'test' if i > 5 else 'train'}" for i in range(8)]
    (tmp_path / "x.csv").write_text("\n".join(["id,tags,split", *rows]))
    call = ["train", "x.csv", *images, "--method", "bce", "--epochs", "1", "--no-pretrained"]
    call += ["--backbone", "test_efficientnet", "--image-size", "32", "--workers", "0"]
    assert main([*call, "--out", "run"]) == 0
    run = Run.open(tmp_path / "run")
    found = find_folder(run)
    assert found is not None
    assert found.resolve() == folder
    picture = PicturedRows(run.names, found).picture(3)
    assert picture is not None
    assert picture.getpixel((0, 0)) == (27, 0, 0)
