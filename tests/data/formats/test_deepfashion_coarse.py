"""DeepFashion's coarse annotations: 0 is unknown, −1 absent; some of the images are enough."""

from pathlib import Path

import pytest
from PIL import Image

from balancemix.data import ReadOptions, View, load, read
from tests.data.formats.contract import refused
from tests.data.formats.test_deepfashion import make as make_fine

NAMES = ["floral print", "lace", "denim"]
LABELS = {
    "img/Top_1/img_1.jpg": "1 -1  0",
    "img/Top_1/img_2.jpg": "-1 1 1",
    "img/Top_2/img_1.jpg": "0 0 1",
    "img/Top_2/img_2.jpg": "1 1 1",
}
SPLITS = ["train", "train", "val", "test"]


def make(folder: Path, home: str = "Anno_coarse") -> Path:
    lines = {
        f"{home}/list_attr_cloth.txt": ["3", "attribute_name attribute_type"]
        + [f"{name}   {k}" for k, name in enumerate(NAMES)],
        f"{home}/list_attr_img.txt": ["4", "image_name attribute_labels"]
        + [f"{name}   {cells}" for name, cells in LABELS.items()],
        "Eval/list_eval_partition.txt": ["4", "image_name evaluation_status"]
        + [f"{name}  {part}" for name, part in zip(LABELS, SPLITS, strict=True)],
    }
    for name, text in lines.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("\n".join(text) + "\n")
    for name in LABELS:
        path = folder / "Img" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (4, 6)).save(path)
    return folder


@pytest.mark.parametrize("home", ["Anno_coarse", "Anno"])
def test_zero_is_unknown(tmp_path, home):
    data = load(make(tmp_path, home), View(size=8))
    assert data.classes == NAMES
    assert data.train.given.tolist() == [[1, 0, -1], [0, 1, 1]]
    assert data.splits["val"].given.tolist() == [[-1, -1, 1]]
    assert data.test.given.tolist() == [[1, 1, 1]]
    assert data.train.names[0] == "Img/img/Top_1/img_1.jpg"


def test_some_of_the_images_are_enough(tmp_path):
    make(tmp_path)
    (tmp_path / "Img/img/Top_1/img_1.jpg").unlink()
    source = read(tmp_path)
    assert len(source) == 3
    assert source.recognised[-1] == "3 of 4 images are there; the others are left out"
    assert len(read(tmp_path, ReadOptions(labels_only=True))) == 4
    for path in list(tmp_path.rglob("*.jpg")):
        path.unlink()
    refused(tmp_path, "has none of its 4 images; unpack them to Img")


def test_the_fine_annotations_go_first_unless_asked(tmp_path):
    make(make_fine(tmp_path))
    source = read(tmp_path)
    assert len(source.classes) == 26
    assert "--format deepfashion-coarse reads the 1,000 coarse attributes" in source.recognised[0]
    assert read(tmp_path, ReadOptions(format="deepfashion-coarse")).classes == NAMES


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("Anno_coarse/list_attr_img.txt", "0 0 1", "0 0 2", "line 5: '2' is not 1, 0 or -1"),
        ("Anno_coarse/list_attr_img.txt", "0 0 1", "0 1", "line 5: has 2 values, 3 are named"),
        ("Eval/list_eval_partition.txt", "val", "vale", "line 5: unknown split 'vale'"),
        ("Eval/list_eval_partition.txt", "Top_2/img_1", "Top_3/x", "img_1.jpg' has no split"),
        ("Eval/list_eval_partition.txt", "  val", "", "is not an image and its split"),
    ],
)
def test_a_bad_line_is_named(tmp_path, file, old, new, message):
    path = make(tmp_path) / file
    path.write_text(path.read_text().replace(old, new))
    refused(tmp_path, message)
