from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

from balancemix.data import images
from balancemix.data.features import FeatureRows
from balancemix.data.images import ImageRows
from balancemix.data.loading import Loader
from balancemix.data.rows import Rows, batch_seed
from balancemix.errors import InputError
from balancemix.options import IMAGENET_MEAN, IMAGENET_STD, Augment, View
from tests.toys import single

CLASSES = ["cat", "dog", "owl"]


def labels(count: int) -> Tensor:
    return (torch.arange(count * 3).view(count, 3) % 2).to(torch.uint8)


@pytest.fixture
def features() -> FeatureRows:
    x = torch.randn(20, 300, generator=torch.Generator().manual_seed(0)) * 3
    pictures = torch.arange(20, dtype=torch.uint8).view(20, 1, 1).expand(20, 4, 6)
    return FeatureRows(x.half(), labels(20), CLASSES, truth=1 - labels(20), pictures=pictures)


@pytest.fixture
def photos(tmp_path) -> ImageRows:
    generator = np.random.default_rng(0)
    paths = [tmp_path / f"{i}.jpg" for i in range(6)]
    for path in paths:
        noise = generator.integers(0, 256, (5, 9, 3), dtype=np.uint8)
        Image.fromarray(noise).resize((60, 40)).save(path)
    return ImageRows(paths, labels(6), CLASSES, view=View(size=16))


@pytest.fixture(params=["features", "photos"])
def rows(request) -> Rows:
    found: Rows = request.getfixturevalue(request.param)
    return found


def same(a, b) -> bool:
    a, b = ([x] if isinstance(x, Tensor) else x for x in (a, b))
    return len(a) == len(b) and all(torch.equal(x, y) for x, y in zip(a, b, strict=True))


def test_shapes_and_kinds_of_batches(rows):
    x, index = rows.__getitems__([3, 1, 3])
    assert torch.equal(index, torch.tensor([3, 1, 3]))
    assert (x.dtype, len(x)) == (torch.float32, 3)
    one = rows.with_views(1, 0).__getitems__([3, 1])[0]
    assert isinstance(one, Tensor)
    two = rows.with_views(2, 0).__getitems__([3, 1])[0]
    assert isinstance(two, list)
    assert len(two) == 2
    assert all(view.shape == one.shape for view in two)
    assert not same(two[0], two[1])
    assert same(two[0], one)


@pytest.mark.parametrize("views", [0, 1, 2])
def test_one_row_is_a_batch_of_one(rows, views):
    rows = rows.with_views(views, 5)
    x, i = rows[2]
    batch, index = rows.__getitems__([2])
    assert i == 2 == index.item()
    assert same(x, batch[0] if views < 2 else [view[0] for view in batch])


def test_plain_has_no_randomness(rows):
    plain = rows.with_views(2, 7).plain
    assert same(plain.__getitems__([0, 4])[0], rows.__getitems__([0, 4])[0])
    assert same(plain.__getitems__([4])[0], rows.__getitems__([0, 4])[0][1:])


def test_views_depend_on_seed_and_batch_alone(rows):
    augmented = rows.with_views(2, 7)
    first = augmented.__getitems__([0, 4])[0]
    torch.manual_seed(123)
    state = torch.get_rng_state()
    assert same(augmented.__getitems__([0, 4])[0], first)
    assert torch.equal(torch.get_rng_state(), state)
    assert not same(augmented.__getitems__([4, 0])[0], [view.flip(0) for view in first])
    assert not same(rows.with_views(2, 8).__getitems__([0, 4])[0], first)


@pytest.mark.filterwarnings("ignore:This DataLoader will create")
def test_views_do_not_depend_on_workers(rows):
    augmented = rows.with_views(2, 7)
    batches = [[0, 4], [5, 1], [2, 2], [3]]
    expected = [augmented.__getitems__(index) for index in batches]
    for workers in (0, 1, 2):
        found = list(Loader(augmented, batches, workers))
        assert all(same(x, y) for (x, _), (y, _) in zip(found, expected, strict=True))
        assert [index.tolist() for _, index in found] == batches


def test_rows_are_immutable(rows):
    before = rows.given.clone()
    other = rows.with_given(1 - rows.given, rows.given).with_views(2, 3)
    assert (rows.views, other.views) == (0, 2)
    assert torch.equal(rows.given, before)
    assert torch.equal(other.given, 1 - before)
    assert torch.equal(other.truth, before)
    assert other.with_given(before, None).views == 2
    with pytest.raises(InputError, match="given must be"):
        rows.with_given(before[:-1], None)
    with pytest.raises(InputError, match="truth must be"):
        rows.with_given(before, before[:, :-1])
    with pytest.raises(InputError, match=r"truth: .*must be 0, 1 or −1"):
        rows.with_given(before, before / 2)
    with pytest.raises(InputError, match="views"):
        rows.with_views(-1, 0)


def test_subset_counts_its_own_rows(rows):
    part = rows.subset(torch.tensor([5, 2]))
    assert len(part) == 2
    assert part.names == [rows.names[5], rows.names[2]]
    assert torch.equal(part.given, rows.given[[5, 2]])
    assert same(part.__getitems__([1, 0])[0], rows.__getitems__([2, 5])[0])
    assert np.array_equal(np.asarray(part.picture(0)), np.asarray(rows.picture(5)))
    if rows.truth is not None:
        assert torch.equal(part.truth, rows.truth[[5, 2]])


def test_iteration_ends(rows):
    assert [i for _, i in rows] == list(range(len(rows)))


def test_feature_views_drop_and_add_noise():
    x = torch.linspace(1, 9, 4).repeat_interleave(5000).view(4, 5000)
    x[1] *= 2
    rows = FeatureRows(x, labels(4), CLASSES, view=View(dropout=0.3, noise=0.0)).with_views(1, 0)
    view = rows.__getitems__([0, 1, 2, 3])[0]
    kept = view != 0
    assert abs(kept.float().mean().item() - 0.7) < 0.02
    torch.testing.assert_close(view[kept], (x / 0.7)[kept])
    noisy = FeatureRows(x, labels(4), CLASSES, view=View(dropout=0.0, noise=0.5)).with_views(1, 0)
    added = single(noisy.__getitems__([0, 1, 2, 3])[0]) - x
    assert abs(added.std().item() / (0.5 * x.std(0, correction=0)[0].item()) - 1) < 0.03


def test_noise_is_measured_on_the_rows_there_are(features):
    part = features.subset(torch.arange(8))
    torch.testing.assert_close(part.feature_std, features.features[:8].float().std(0, correction=0))


def test_feature_rows_refuse():
    x = torch.zeros(4, 2)
    refused: list[dict[str, Any]] = [
        {"dropout": 1.0},
        {"dropout": -0.1},
        {"noise": -1.0},
        {"noise": float("nan")},
    ]
    for wrong in refused:
        with pytest.raises(InputError, match=next(iter(wrong))):
            FeatureRows(x, labels(4), CLASSES, view=View(**wrong))
    with pytest.raises(InputError, match="features must be 5×D or 5×D×H×W, not 4×2"):
        FeatureRows(x, labels(5), CLASSES)


def test_pictures_of_features(features, tmp_path):
    shown = features.picture(7)
    assert shown.size == (6, 4)
    assert shown.getpixel((0, 0)) == 7
    Image.new("RGB", (3, 2), (9, 9, 9)).save(tmp_path / "a.png")
    paths = [tmp_path / "a.png", tmp_path / "gone.png"]
    rows = FeatureRows(torch.zeros(2, 2), labels(2), CLASSES, pictures=paths)
    assert rows.picture(0).size == (3, 2)
    assert rows.picture(1) is None
    assert rows.subset(torch.tensor([1])).picture(0) is None
    assert FeatureRows(torch.zeros(2, 2), labels(2), CLASSES).picture(0) is None


def test_images_are_resized_and_normalised(tmp_path):
    for name, size in (("wide", (64, 16)), ("tall", (16, 64))):
        image = Image.new("RGB", size, (255, 0, 51))
        image.save(tmp_path / f"{name}.png")
    paths = [tmp_path / "wide.png", tmp_path / "tall.png"]
    view = View(size=8, mean=(0.5, 0.5, 0.2), std=(0.5, 0.25, 1.0))
    rows = ImageRows(paths, labels(2), CLASSES, view=view)
    x = single(rows.__getitems__([0, 1])[0])
    assert x.shape == (2, 3, 8, 8)
    torch.testing.assert_close(x[:, :, 0, 0], torch.tensor([[1.0, -2.0, 0.0]] * 2))
    assert rows.names == ["wide.png", "tall.png"]
    assert rows.picture(0).size == (64, 16)


@pytest.mark.parametrize("shape", [(2, 3, 5, 4), (1, 3, 1, 1), (3, 3, 1, 6), (0, 3, 4, 4)])
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_pixels_are_normalised_channel_by_channel(shape, layout):
    generator = torch.Generator().manual_seed(0)
    x = torch.randint(256, shape, dtype=torch.uint8, generator=generator)
    mean, std = torch.tensor(IMAGENET_MEAN), torch.tensor(IMAGENET_STD)
    want = (x.float() / 255 - mean.view(3, 1, 1)) / std.view(3, 1, 1)
    found = images.normalise(x.contiguous(memory_format=layout), mean, std)
    assert torch.equal(found, want)


def test_grey_and_transparent_images_become_rgb(tmp_path):
    for mode in ("L", "RGBA", "P", "1"):
        Image.new(mode, (4, 4)).save(tmp_path / f"{mode}.png")
    paths = [tmp_path / f"{mode}.png" for mode in ("L", "RGBA", "P", "1")]
    rows = ImageRows(paths, labels(4), CLASSES, view=View(size=4))
    assert rows.__getitems__([0, 1, 2, 3])[0].shape[1] == 3


@pytest.mark.parametrize("kind", ["png", "tif"])
def test_sixteen_bits_are_scaled_to_eight(tmp_path, kind):
    values = np.array([[0, 255, 256, 32768, 65535]], dtype=np.uint16)
    Image.fromarray(values).save(tmp_path / f"x.{kind}")
    assert images.problem(tmp_path / f"x.{kind}") is None
    assert np.asarray(images.decode(tmp_path / f"x.{kind}"))[0, :, 0].tolist() == [
        0,
        1,
        1,
        128,
        255,
    ]


@pytest.mark.parametrize("dtype", [np.int32, np.float32])
def test_pixels_without_a_known_range_are_refused(tmp_path, dtype):
    Image.fromarray(np.array([[0, 1, 200]], dtype=dtype)).save(tmp_path / "x.tif")
    assert images.problem(tmp_path / "x.tif") == "32-bit pixels"
    with pytest.raises(InputError, match=r"x\.tif: has 32-bit pixels.*; save it with 8 or 16 bits"):
        images.decode(tmp_path / "x.tif")


@pytest.mark.parametrize("views", [0, 1, 3])
def test_an_image_is_decoded_once(photos, views, monkeypatch):
    opened, original = [], Image.open

    def open_one(path):
        opened.append(path)
        return original(path)

    monkeypatch.setattr(Image, "open", open_one)
    photos.with_views(views, 0).__getitems__([1, 4])
    assert opened == [photos.paths[1], photos.paths[4]]


def test_augmentations(photos):
    augments: dict[Augment, bool] = {"randaugment": True, "uda": True, "none": False}
    for name, changes in augments.items():
        rows = ImageRows(photos.paths, photos.given, CLASSES, view=View(size=16, augment=name))
        index = list(range(6))
        view = rows.with_views(1, 3).__getitems__(index)[0]
        assert same(view, rows.plain.__getitems__(index)[0]) != changes
    with pytest.raises(InputError, match="augment: unknown 'randaug'; did you mean 'randaugment'"):
        View(augment="randaug")  # type: ignore[arg-type]


def test_rows_of_plain_arrays():
    given, truth = np.array([[1, 0], [0, 1]]), np.array([[True, False], [True, True]])
    rows = FeatureRows(np.eye(2), given, ["cat", "dog"], ["a", "b"], truth)
    assert (rows.given.dtype, rows.truth.dtype) == (torch.int8, torch.int8)
    assert (rows.given.tolist(), rows.truth.tolist()) == (given.tolist(), truth.tolist())
    assert rows.__getitems__([1])[0].tolist() == [[0.0, 1.0]]
    for wrong in (2 * given, given - 2, given / 2, (255 * given).astype(np.uint8)):
        with pytest.raises(InputError, match="given: given labels must be 0, 1 or −1"):
            FeatureRows(np.eye(2), wrong, ["cat", "dog"])


@pytest.mark.parametrize("unknown", [-1, np.nan])
def test_unknown_and_verified_labels_stay_with_their_rows(unknown):
    given = np.array([[1, unknown], [0, 1], [unknown, 0]])
    rows = FeatureRows(np.eye(3), given, ["cat", "dog"])
    assert rows.verified is None
    assert rows.given.tolist() == [[1, -1], [0, 1], [-1, 0]]
    rows = rows.with_verified(np.array([[1, 1], [0, 0], [1, 1]]))
    assert rows.verified.tolist() == [[True, False], [False, False], [False, True]]
    part = rows.with_views(2, 0).subset(torch.tensor([2, 0]))
    assert part.given.tolist() == [[-1, 0], [1, -1]]
    assert part.verified.tolist() == [[False, True], [True, False]]
    other = rows.with_given(torch.full((3, 2), -1), None)
    assert not other.verified.any()  # nobody knows them
    assert rows.with_given(1 - rows.given.abs(), None).verified.equal(rows.verified)
    assert rows.for_workers().verified is None
    assert rows.with_verified(None).verified is None
    for wrong, message in (
        (given[:2], r"the shape of given, \(3, 2\), not \(2, 2\)"),
        (2 * np.eye(3, 2), "0 or 1"),
    ):
        with pytest.raises(InputError, match=f"verified.*{message}"):
            rows.with_verified(wrong)


def test_image_rows_refuse(photos, tmp_path):
    with pytest.raises(InputError, match="size"):
        View(size=0)
    with pytest.raises(InputError, match="paths must be 6"):
        ImageRows(photos.paths[:2], photos.given, CLASSES, names=photos.names)
    whole = photos.paths[0].read_bytes()
    photos.paths[0].write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match=r"0\.jpg: cannot be read as an image"):
        photos[0]


def test_batch_seed_is_stable():
    assert batch_seed(0, [1, 2, 3]) == batch_seed(0, (1, 2, 3))
    assert len({batch_seed(s, i) for s in range(5) for i in ([0], [1], [0, 1], [1, 0])}) == 20
