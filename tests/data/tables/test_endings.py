"""Images that a table names without their ending."""

import pytest
from PIL import Image

from balancemix.cli import main
from balancemix.data import ReadOptions, load, read
from balancemix.errors import InputError

TABLE = "image_name,tags\ntrain_0,cat|dog\nsub/train.1,cat\ntrain_2,dog\n"


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "photos"
    (place / "sub").mkdir(parents=True)
    (place / "images").mkdir()
    for i, name in enumerate(["train_0.jpg", "sub/train.1.PNG", "images/train_2.tif"]):
        Image.new("RGB", (8, 6), (i, 0, 0)).save(place / name)
    (place / "train_0.txt").write_text("no image")
    (place / "labels.csv").write_text(TABLE)
    return place


def test_the_one_file_with_that_name_is_taken(folder):
    source = read(folder)
    assert source.names == ["train_0", "sub/train.1", "train_2"]
    paths = ["train_0.jpg", "sub/train.1.PNG", "images/train_2.tif"]
    assert source.images == [folder / path for path in paths]
    assert load(folder, options=ReadOptions(holdout=0.3)).train.picture(0).size == (8, 6)


def test_two_files_with_that_name_are_refused_by_both(folder):
    Image.new("RGB", (8, 6)).save(folder / "train_0.png")
    with pytest.raises(InputError) as caught:
        read(folder)
    said = "labels.csv: image 'train_0' may be 'train_0.jpg' or 'train_0.png'; write which"
    assert str(caught.value).endswith(said)
    (folder / "labels.csv").write_text(TABLE.replace("train_0", "train_0.png"))
    assert read(folder).images[0] == folder / "train_0.png"


def test_no_file_is_taken_for_another(folder):
    """A name with an ending is that file; a folder, or a way out of it, is no image."""
    Image.new("RGB", (8, 6)).save(folder.parent / "photos.png")
    for name in ("train_0.png", "train", "sub", "sub/", ".", "..", "train_0.txt"):
        (folder / "labels.csv").write_text(TABLE.replace("train_0", name))
        with pytest.raises(InputError, match=r"1 of 3 images cannot be read: .*row 2, "):
            read(folder)


def test_one_image_by_two_names_is_refused(folder):
    (folder / "labels.csv").write_text(TABLE + "train_0.jpg,cat\n")
    with pytest.raises(InputError) as caught:
        read(folder)
    said = "'train_0' (row 2) and 'train_0.jpg' (row 5) are one image; leave one of them out"
    assert str(caught.value).endswith(said)


def test_features_keep_their_pictures(folder, tmp_path, capsys):
    out = tmp_path / "x.npz"
    call = ["embed", str(folder), "--backbone", "test_efficientnet", "--no-pretrained"]
    assert main([*call, "--views", "0", "--workers", "0", "--out", str(out)]) == 0
    images = read(out).images
    assert [path.suffix for path in images] == [".jpg", ".PNG", ".tif"]


def test_images_in_another_folder_are_asked_for(folder, tmp_path, capsys):
    (folder / "labels.csv").rename(tmp_path / "x.csv")
    assert main(["train", str(tmp_path / "x.csv"), "--out", str(tmp_path / "run")]) == 2
    said = capsys.readouterr().err
    assert "3 of 3 images cannot be read: 'train_0' (row 2, missing)" in said
    assert said.endswith("; name their folder with --images\n")
