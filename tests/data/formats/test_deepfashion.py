"""DeepFashion's fine annotations in their own layout, small and with the real attributes."""

from pathlib import Path

import pytest
import torch
from PIL import Image

from balancemix.data import ReadOptions, View, load
from balancemix.data.formats import deepfashion, table
from tests.conftest import SHARED
from tests.data.formats.contract import refused

NAMES = [f"attribute_{k}" for k in range(25)] + ["long sleeve"]
COUNTS = {"train": 4, "val": 2, "test": 3}


def labels(part: str) -> torch.Tensor:
    generator = torch.Generator().manual_seed(len(part))
    drawn = (torch.rand(COUNTS[part], 26, generator=generator) < 0.3).to(torch.uint8)
    drawn[0] = 1
    return drawn


def write(folder: Path, names, parts) -> Path:
    """Write `Anno_fine` of {part: (images, rows of 0 and 1)}."""
    home = folder / "Anno_fine"
    home.mkdir(parents=True)
    lines = [str(len(names)), "attribute_name  attribute_type"]
    lines += [f"{name}    {k // 6 + 1}" for k, name in enumerate(names)]
    (home / "list_attr_cloth.txt").write_text("\n".join(lines) + "\n")
    for part, (images, rows) in parts.items():
        (home / f"{part}.txt").write_text("".join(f"{image}\n" for image in images))
        text = "".join(" ".join(map(str, row)) + " \n" for row in rows)
        (home / f"{part}_attr.txt").write_text(text)
    return folder


def make(folder: Path, inside: str = "") -> Path:
    parts = {}
    for part, count in COUNTS.items():
        images = [f"img/Sheer_Blouse_{i}/img_{part}{i:05}.jpg" for i in range(count)]
        parts[part] = (images, labels(part).tolist())
        for image in images:
            path = folder / inside / image
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (8, 12)).save(path)
    return write(folder, NAMES, parts)


def changed(folder: Path, name: str, change) -> Path:
    file = folder / "Anno_fine" / name
    file.write_text(change(file.read_text()))
    return folder


@pytest.mark.parametrize("inside", ["", "Img"])
def test_train_and_val_train_and_test_is_scored_on(tmp_path, inside):
    data = load(make(tmp_path, inside), View(size=8))
    assert data.classes == NAMES
    assert list(data.splits) == ["train", "test"]
    assert torch.equal(data.train.given, torch.cat([labels("train"), labels("val")]))
    assert torch.equal(data.test.given, labels("test"))
    first = Path(inside, "img", "Sheer_Blouse_0", "img_train00000.jpg").as_posix()
    assert data.train.names[0] == first
    assert data.train.__getitems__([0, 5])[0].shape == (2, 3, 8, 8)


def test_missing_images_are_named_or_left_out(tmp_path):
    make(tmp_path)
    (tmp_path / "img" / "Sheer_Blouse_1" / "img_val00001.jpg").unlink()
    message = "1 of 9 images are missing: 'img/Sheer_Blouse_1/img_val00001.jpg'; restore them"
    refused(tmp_path, message)
    with pytest.warns(UserWarning, match="1 of 9 images are missing: .*; left out"):
        data = load(tmp_path, options=ReadOptions(skip_bad=True))
    assert torch.equal(data.train.given, torch.cat([labels("train"), labels("val")[:1]]))


def without_last(text: str) -> str:
    return "".join(text.splitlines(keepends=True)[:-1])


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("val_attr.txt", without_last, "val_attr.txt: has 1 lines where val.txt has 2; unpack"),
        ("val.txt", without_last, "val_attr.txt: has 2 lines where val.txt has 1; unpack all of"),
        ("test_attr.txt", lambda t: t.replace("1", "2", 1), "line 1: '2' is neither 0 nor 1"),
        ("test_attr.txt", lambda t: t.replace("1 ", "", 1), "line 1: has 25 values, 26 are named"),
        ("test_attr.txt", lambda t: "\n" + t, "test_attr.txt line 1: has 0 values, 26 are named"),
        ("test.txt", lambda t: t.replace("\n", "\n\n", 1), "test.txt line 2: names no image"),
        ("test.txt", lambda t: "", "test.txt line 1: names no image"),
        ("list_attr_cloth.txt", lambda t: t.replace("26", "27", 1), "line 1: '27' is not"),
        ("list_attr_cloth.txt", lambda t: "", "line 1: '' is not the count of the 0 names"),
        ("list_attr_cloth.txt", lambda t: t.replace("_3    1", "_3"), "line 6: 'attribute_3' is"),
        ("list_attr_cloth.txt", lambda t: t.replace("_3    1", "_3 \uff11"), "line 6: 'attribute"),
        ("list_attr_cloth.txt", lambda t: t.replace("_3 ", "_4 "), "names repeated: 'attribute_4'"),
        ("list_attr_cloth.txt", lambda t: t.replace("attribute_3    1", ""), "line 6: '' is not a"),
        ("test.txt", lambda t: "/etc/hosts\n" + without_last(t), "'/etc/hosts' is not below this"),
        ("test.txt", lambda t: "../x.jpg\n" + without_last(t), "x.jpg' is not below this folder"),
        ("test.txt", lambda t: t.replace("_test00001", "_test00000").replace("_1/", "_0/"),
         "images named twice: 'img/Sheer_Blouse_0/img_test00000.jpg'; name each one once"),
        ("test.txt", lambda t: "img/a\0b/x.jpg\n" + without_last(t), "1 of 9 images are missing"),
        ("test.txt", lambda t: "x" * 300 + ".jpg\n" + without_last(t), "1 of 9 images are missing"),
        ("test.txt", lambda t: "x" * 300 + "/a.jpg\n" + without_last(t), "1 of 9 images are miss"),
        ("test.txt", lambda t: "img/Sheer_Blouse_0\n" + without_last(t), "1 of 9 images are"),
    ],
)  # fmt: skip
def test_a_bad_line_is_named(tmp_path, name, change, message):
    refused(changed(make(tmp_path), name, change), message)


def test_blanks_around_a_name_are_not_part_of_it(tmp_path):
    changed(
        make(tmp_path), "list_attr_cloth.txt", lambda t: t.replace("long sleeve", "  long sleeve")
    )
    assert load(tmp_path).classes == NAMES


@pytest.mark.parametrize("name", ["train.txt", "val_attr.txt", "list_attr_cloth.txt"])
def test_a_missing_file_is_named(tmp_path, name):
    (make(tmp_path) / "Anno_fine" / name).unlink()
    refused(tmp_path, f"{name}: not found; unpack all of Anno_fine")


@pytest.mark.shared
def test_real_attributes_come_back_in_full_number(tmp_path):
    """Write 16,000 and 4,000 rows of the real attributes, some of them more than once."""
    file = SHARED / "deepfashion" / "labels.csv"
    source = table.read(file, ReadOptions(labels_only=True))
    classes = source.classes
    assert len(classes) == 26
    real = source.given.tolist()
    parts, begin = {}, 0
    for part, count in {"train": 14_000, "val": 2_000, "test": 4_000}.items():
        images = [f"img/item/img_{i:08}.jpg" for i in range(begin, begin + count)]
        rows = [real[i % len(real)] for i in range(begin, begin + count)]
        parts[part], begin = (images, rows), begin + count
    data = deepfashion.read(write(tmp_path, classes, parts), ReadOptions())
    assert (data.split.count("train"), data.split.count("test")) == (16_000, 4_000)
    assert data.classes == classes
    expected = torch.tensor(real, dtype=torch.int8)
    assert torch.equal(data.given[:4_000], expected)
    assert data.given.float().sum(1).mean().item() == pytest.approx(6, abs=0.1)
