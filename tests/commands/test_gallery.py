"""`balancemix audit --gallery`: a page of pictures of every kind of data, and what it refuses."""

import base64
import io
import json
import re

import numpy as np
import pytest
from PIL import Image

from balancemix.cli import main
from balancemix.data.images import ENDINGS
from balancemix.report.pictures import SIDE
from tests.conftest import tiny_arrays
from tests.page import Page

PICTURE = re.compile(r'<img alt="([^"]*)" src="data:image/jpeg;base64,([^"]+)">')


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Write features of pictures of which some labels are wrong, and stand beside them."""
    monkeypatch.chdir(tmp_path)
    arrays = tiny_arrays(300)
    flips = np.random.default_rng(0).random(arrays["labels"].shape) < 0.1
    arrays["labels"] = np.where(flips, 1 - arrays["labels"], arrays["labels"])
    np.savez("rows.npz", **arrays)
    (tmp_path / "photos").mkdir()
    names = [f"{i:03}.jpg" for i in range(300)]
    for i, name in enumerate(names):
        Image.new("RGB", (800, 600), (i % 256, 90, 90)).save(tmp_path / "photos" / name)
    np.savez("x.npz", **arrays, images=np.array(names), root=np.array("photos"))
    return tmp_path


def gallery(place, capsys, *call):
    """Audit, and return the page and the summary."""
    capsys.readouterr()
    assert main(["audit", *call, "--gallery", "page.html", "--out", "f.csv", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["gallery"] == "page.html"
    return (place / "page.html").read_text(encoding="utf-8"), facts


def test_embeddings_of_a_folder(place, capsys):
    text, facts = gallery(place, capsys, "x.npz")
    found = PICTURE.findall(text)
    rows = {line.split(",")[0] for line in (place / "f.csv").read_text().splitlines()[1:]}
    assert {name for name, _ in found} == rows
    with Image.open(io.BytesIO(base64.b64decode(found[0][1]))) as image:
        assert image.size == (SIDE, SIDE * 3 // 4)
    assert f"{facts['findings']} of 1,500 labels of x.npz look wrong or missing" in text
    assert f"All {len(rows)} pictures with findings are shown." in text
    assert "Nothing has been changed." in text
    assert "<code>balancemix review x.npz</code>" in text
    assert Page(text).loaded == []
    assert text.count('<del class="tag wrong">') - 1 == facts["wrong"]  # one is in the legend
    assert text.count('<ins class="tag missing">') - 1 == facts["missing"]


def test_a_folder_of_images(photos, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    how = ["--backbone", "test_resnet", "--no-pretrained", "--image-size", "32", "--workers", "0"]
    text, _ = gallery(tmp_path, capsys, "photos", "--above", "0", *how)
    assert len(re.findall("<img ", text)) == 40
    assert {f".{each}" for each in re.findall(r'<img alt="[^"]*\.(\w+)"', text)} <= ENDINGS


def test_rows_without_pictures_show_names_and_values(place, capsys):
    text, facts = gallery(place, capsys, "rows.npz")
    assert "<img" not in text
    assert " rows with findings are shown." in text
    assert re.search(r'<p class="values">-?[\d.]+, .* … \(12 values\)</p>', text)
    assert f"row {facts['images'][0]['image'].split()[1]}" in text


def test_arrays_by_themselves(place, capsys):
    arrays = np.load("rows.npz")
    np.save("y.npy", arrays["labels"])
    np.save("p.npy", np.random.default_rng(1).random(arrays["labels"].shape))
    text, _ = gallery(place, capsys, "--labels", "y.npy", "--confidence", "p.npy", "--above", "0.4")
    assert "balancemix review" not in text


def test_a_run(place, capsys):
    call = ["train", "x.npz", "--epochs", "1", "--method", "bce", "--set", "model.hidden=8"]
    assert main([*call, "--out", "run"]) == 0
    capsys.readouterr()
    assert main(["audit", "run", "--gallery", "run/gallery.html"]) == 0
    assert "pictures: run/gallery.html (all " in capsys.readouterr().out
    assert len(PICTURE.findall((place / "run/gallery.html").read_text())) > 20
    assert main(["audit", "run", "--gallery", "run/gallery.html"]) == 0  # it is its own
    with (place / "run/gallery.html").open("a") as page:
        page.write("mine")
    assert main(["audit", "run", "--gallery", "run/gallery.html"]) == 2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("x.npz --gallery x.npz --force", "x.npz: is part of what this command reads"),
        ("x.npz --gallery mine.html", "mine.html: already exists; pass --force to replace it"),
        ("x.npz --gallery photos", "photos: is a directory"),
        ("x.npz --gallery p.html --sample 50", "--gallery is about findings; leave it out"),
    ],
)
def test_what_is_refused_before_anything_is_computed(place, capsys, monkeypatch, call, message):
    (place / "mine.html").write_text("mine")
    before = sorted(path.name for path in place.iterdir())
    assert main(["audit", *call.split()]) == 2
    assert message in capsys.readouterr().err
    assert sorted(path.name for path in place.iterdir()) == before
    assert (place / "mine.html").read_text() == "mine"


def test_names_are_text(place, capsys):
    hostile = '<img src=x onerror="alert(1)">'
    arrays = dict(np.load("x.npz"))
    arrays["classes"] = np.array([hostile, "b" * 200, "ا", "'\"&", "e"])
    np.savez("h.npz", **arrays)
    text, _ = gallery(place, capsys, "h.npz")
    assert hostile not in text
    assert set(Page(text).tags) & {"b", "img"} == {"img"}
    assert "&lt;img src=x onerror=" in text
