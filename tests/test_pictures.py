"""Pictures for people: turned, small, below one folder, and refused with a sentence."""

import io
import os
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from balancemix.pictures import MAX_BYTES, NotShown, PictureFile, jpeg

RED, BLUE = (200, 0, 0), (0, 0, 200)


def halves(size=(40, 20)):
    """Draw a picture with a red left and a blue right half."""
    image = Image.new("RGB", size, BLUE)
    image.paste(RED, (0, 0, size[0] // 2, size[1]))
    return image


def find(path):
    return PictureFile.find(path, path.parent)


def refusal(call, *arguments):
    with pytest.raises(NotShown) as raised:
        call(*arguments)
    return raised.value.reason, str(raised.value)


def near(pixel, colour):
    return np.abs(np.subtract(pixel, colour)).max() < 30


# Where the red half is after each orientation is undone.
@pytest.mark.parametrize(
    ("orientation", "size", "red"),
    [
        (1, (40, 20), (2, 10)),
        (2, (40, 20), (38, 10)),
        (3, (40, 20), (38, 10)),
        (4, (40, 20), (2, 10)),
        (5, (20, 40), (10, 2)),
        (6, (20, 40), (10, 2)),
        (7, (20, 40), (10, 38)),
        (8, (20, 40), (10, 38)),
        (9, (40, 20), (2, 10)),
    ],
)
@pytest.mark.parametrize("ending", ["jpg", "png", "webp"])
def test_a_picture_is_turned_as_the_camera_was_held(tmp_path, orientation, size, red, ending):
    path, exif = tmp_path / f"a.{ending}", Image.Exif()
    exif[0x0112] = orientation
    halves().save(path, exif=exif)
    assert find(path).size() == size
    picture = find(path).read(256)
    assert picture.size == size
    assert near(picture.getpixel(red), RED)


@pytest.mark.filterwarnings("ignore:Corrupt EXIF data")
def test_damaged_notes_do_not_hide_a_picture(tmp_path):
    halves().save(tmp_path / "a.jpg", exif=b"Exif\0\0MM\0*\0\0\0\x08\xff\xff\x01")
    assert find(tmp_path / "a.jpg").size() == (40, 20)
    assert near(find(tmp_path / "a.jpg").read(256).getpixel((2, 10)), RED)


def test_a_picture_is_made_small_and_never_large(tmp_path):
    halves((4000, 1000)).save(tmp_path / "a.jpg")
    assert find(tmp_path / "a.jpg").size() == (4000, 1000)
    assert find(tmp_path / "a.jpg").read(256).size == (256, 64)
    assert find(tmp_path / "a.jpg").read(5000).size == (4000, 1000)
    halves((1, 3000)).save(tmp_path / "thin.png")
    assert find(tmp_path / "thin.png").read(256).size == (1, 256)


@pytest.mark.parametrize("mode", ["RGBA", "LA", "PA", "P", "L", "1", "CMYK", "I;16", "YCbCr"])
def test_every_mode_becomes_rgb(tmp_path, mode):
    ending = "tif" if mode in ("CMYK", "YCbCr", "PA", "LA") else "png"
    drawn = halves().convert("L") if mode == "I;16" else halves()
    drawn.convert("RGBA" if mode == "PA" else mode).save(tmp_path / f"a.{ending}")
    assert find(tmp_path / f"a.{ending}").read(256).mode == "RGB"


def test_what_is_transparent_is_white(tmp_path):
    Image.new("RGBA", (8, 8), (0, 0, 0, 0)).save(tmp_path / "a.png")
    assert find(tmp_path / "a.png").read(256).getpixel((4, 4)) == (255, 255, 255)


def test_links_are_followed_inside_only(tmp_path):
    inside, outside = tmp_path / "photos", tmp_path / "photos-private"
    inside.mkdir()
    outside.mkdir()
    for folder in (inside, outside):
        halves().save(folder / "a.png")
    (inside / "in.png").symlink_to("a.png")
    (inside / "out.png").symlink_to(outside / "a.png")
    (inside / "folder").symlink_to(outside)
    assert PictureFile.find(inside / "in.png", inside).size() == (40, 20)
    for name in ("out.png", "folder/a.png", "../photos-private/a.png"):
        reason, message = refusal(PictureFile.find, inside / name, inside)
        assert reason == "outside"
        assert message == f"{name.split('/')[-1]} leads out of {inside}; it is not shown."


def test_a_folder_that_is_itself_a_link(tmp_path):
    (tmp_path / "real").mkdir()
    halves().save(tmp_path / "real" / "a.png")
    (tmp_path / "photos").symlink_to("real")
    file = PictureFile.find(tmp_path / "photos" / "a.png", tmp_path / "photos")
    assert file.size() == (40, 20)


@pytest.mark.parametrize("name", ["nowhere.png", "a\0b.png", "x" * 300 + ".png", "."])
def test_what_is_not_there(tmp_path, name):
    assert refusal(PictureFile.find, tmp_path / name, tmp_path)[0] == "gone"


def test_a_pipe_is_not_opened(tmp_path):
    os.mkfifo(tmp_path / "a.png")
    reason, message = refusal(find, tmp_path / "a.png")
    assert (reason, message) == ("gone", "a.png is not a file.")


@pytest.mark.parametrize("ending", ["jpg", "png", "gif", "bmp"])
def test_a_file_that_ends_early(tmp_path, ending):
    path = tmp_path / f"a.{ending}"
    generator = np.random.default_rng(0)
    noise = generator.integers(0, 256, (200, 200, 3), dtype=np.uint8)
    Image.fromarray(noise).save(path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    reason, message = refusal(find(path).read, 256)
    assert (reason, message) == ("unreadable", f"a.{ending} cannot be read (file ends early).")


@pytest.mark.parametrize(
    "content",
    [
        b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>',
        b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n",
        b"",
        b"text",
    ],
)
def test_what_is_not_made_of_pixels(tmp_path, content):
    (tmp_path / "a.png").write_bytes(content)
    for call in (find(tmp_path / "a.png").size, lambda: find(tmp_path / "a.png").read(256)):
        message = "a.png cannot be read (not a picture of a known kind)."
        assert refusal(call) == ("unreadable", message)


def bomb(width, height):
    """Write a PNG that is small as a file and huge as a picture."""

    def chunk(kind, content):
        body = kind + content
        return struct.pack(">I", len(content)) + body + struct.pack(">I", zlib.crc32(body))

    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    pixels = zlib.compress(b"\0" * 1000)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels)


@pytest.mark.parametrize(
    ("width", "height", "pixels"),
    [(20_000, 20_000, "400"), (10_001, 10_000, "100"), (60_000, 60_000, "3,600")],
)
def test_a_bomb_is_not_decoded(tmp_path, width, height, pixels):
    (tmp_path / "a.png").write_bytes(bomb(width, height))
    for call in (find(tmp_path / "a.png").size, lambda: find(tmp_path / "a.png").read(256)):
        reason, message = refusal(call)
        assert reason == "large"
        assert message == f"a.png has {pixels} megapixels, the limit is 100 (`--max-pixels`)."


def test_the_limit_of_pixels_is_an_argument(tmp_path):
    halves((100, 100)).save(tmp_path / "a.png")
    assert refusal(find(tmp_path / "a.png").read, 256, 9_999)[0] == "large"
    assert find(tmp_path / "a.png").read(256, 10_000).size == (100, 100)


def test_a_file_that_is_too_large(tmp_path):
    with (tmp_path / "a.jpg").open("wb") as file:
        file.truncate(MAX_BYTES + 2**20)
    message = "a.jpg has 65 MB, the limit is 64."
    assert refusal(find(tmp_path / "a.jpg").read, 256) == ("large", message)
    assert refusal(find(tmp_path / "a.jpg").size) == ("large", message)


def test_a_file_that_takes_too_long(tmp_path):
    halves().save(tmp_path / "a.jpg")
    reason, message = refusal(find(tmp_path / "a.jpg").read, 256, 10**6, -1.0)
    assert reason == "slow"
    assert message.startswith("a.jpg takes longer than")


def test_a_header_that_takes_too_long(tmp_path, monkeypatch):
    halves().save(tmp_path / "a.jpg")
    monkeypatch.setattr("balancemix.pictures.HEADER_SECONDS", -1.0)
    assert refusal(find(tmp_path / "a.jpg").size)[0] == "slow"


def test_a_jpeg_holds_pixels_and_nothing_else(tmp_path):
    exif = Image.Exif()
    exif[0x010E] = "secret place"
    halves().save(tmp_path / "a.jpg", exif=exif, comment=b"secret", icc_profile=b"secret" * 30)
    content = jpeg(find(tmp_path / "a.jpg").read(256), 85)
    assert b"secret" not in content
    with Image.open(io.BytesIO(content)) as image:
        assert image.format == "JPEG"
        assert set(image.info) <= {"jfif", "jfif_version", "jfif_unit", "jfif_density"}
