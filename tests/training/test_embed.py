"""`balancemix embed`: what is stored, that it resumes after a kill, and that training uses it."""

import json
import shutil

import numpy as np
import pytest
import torch
from PIL import Image

from balancemix.cli import main
from balancemix.data import View, load, read_images
from balancemix.data.features import FeatureRows, channel_statistics
from balancemix.errors import InputError
from balancemix.files import locked
from balancemix.models.backbones import normalisation
from balancemix.models.classifier import build_embedder, build_model
from balancemix.plan.plan import Plan
from balancemix.training import embed
from balancemix.training.experiment import load_experiment
from balancemix.training.models import make_model
from balancemix.training.partial import PartialArray
from tests.toys import single

BACKBONE = "test_resnet"
COUNT, SIZE, VIEWS = 11, 32, 3
TRY = ("--backbone", BACKBONE, "--no-pretrained", "--image-size", str(SIZE), "--workers", "0",
       "--device", "cpu", "--views", str(VIEWS), "--batch-size", "3", "--seed", "5")  # fmt: skip


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    folder = tmp_path_factory.mktemp("photos")
    generator = np.random.default_rng(0)
    lines = ["image,labels,split"]
    for i in reversed(range(COUNT)):  # an order that no sorting would give
        Image.fromarray(generator.integers(0, 256, (40, 50, 3), dtype=np.uint8)).save(
            folder / f"{i}.png"
        )
        labels = "cat|dog" if i % 3 == 0 else ("cat", "dog")[i % 2]
        lines.append(f"{i}.png,{labels},{'train' if i > 3 else 'test'}")
    (folder / "labels.csv").write_text("\n".join(lines))
    return folder


@pytest.fixture(scope="module")
def embedded(photos, tmp_path_factory):
    out = tmp_path_factory.mktemp("embedded") / "x.npz"
    assert main(["embed", str(photos), "--out", str(out), *TRY]) == 0
    return out


def arrays(file):
    with np.load(file, allow_pickle=False) as found:
        return dict(found)


def body(**how):
    torch.manual_seed(5)
    return build_embedder(BACKBONE, pretrained=False, image_size=SIZE, **how).eval()


def pixel_rows(photos):
    mean, std = normalisation(BACKBONE)
    return read_images(photos, View(size=SIZE, mean=mean, std=std))[0]


def test_what_is_stored(photos, embedded):
    found = arrays(embedded)
    rows = pixel_rows(photos)
    assert found["images"].tolist() == rows.names == [f"{i}.png" for i in reversed(range(COUNT))]
    assert found["labels"].tolist() == rows.given.tolist()
    assert found["classes"].tolist() == ["cat", "dog"]
    assert found["split"].tolist() == ["train"] * 7 + ["test"] * 4
    assert "truth" not in found
    assert found["features"].dtype == found["views"].dtype == np.float16
    assert found["views"].shape == (COUNT, VIEWS, found["features"].shape[1])
    made = json.loads(str(found["made"]))
    assert (made["backbone"], made["size"], made["seed"]) == (BACKBONE, SIZE, 5)
    with torch.no_grad():
        plain = body()(rows.plain.__getitems__(list(range(COUNT)))[0])
    torch.testing.assert_close(
        torch.from_numpy(found["features"]).float(), plain, atol=1e-3, rtol=1e-3
    )
    assert [file.name for file in embedded.parent.iterdir()] == [embedded.name]


def test_a_view_is_the_seed_s_the_row_s_and_its_own(photos, embedded):
    rows = pixel_rows(photos)
    state = torch.get_rng_state()
    views = embed.ImageViews(rows, VIEWS, 5)[7]
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(embed.ImageViews(rows, 1, 5)[7], views[:2])  # however many there are
    assert not torch.equal(embed.ImageViews(rows, 1, 6)[7][1], views[1])
    x = (views.float() / 255 - rows.mean.view(3, 1, 1)) / rows.std.view(3, 1, 1)
    with torch.no_grad():
        said = body()(x)
    stored = torch.from_numpy(arrays(embedded)["views"][7]).float()
    torch.testing.assert_close(stored, said[1:], atol=1e-3, rtol=1e-3)


def test_two_at_once_do_not_write_to_one_file(photos, embedded, tmp_path, monkeypatch, capsys):
    out = tmp_path / "x.npz"
    command = ["embed", str(photos), "--out", str(out), *TRY]
    append = PartialArray.append
    refused: list[int] = []

    def twice(self, rows):
        monkeypatch.setattr(PartialArray, "append", append)
        append(self, rows)
        refused.extend([main(command), main([*command, "--force"])])

    monkeypatch.setattr(PartialArray, "append", twice)
    assert main(command) == 0
    assert refused == [2, 2]
    assert "another process is writing to it; wait for it" in capsys.readouterr().err
    assert out.read_bytes() == embedded.read_bytes()


def test_of_two_first_starts_the_second_leaves_the_rows_of_the_first(photos, tmp_path, capsys):
    pytest.importorskip("fcntl")
    rows = tmp_path / ".x.npz.npy"
    rows.write_bytes(b"being written, and without a note so far")
    with locked(rows, "writing to it"):
        assert main(["embed", str(photos), "--out", str(tmp_path / "x.npz"), *TRY]) == 2
    assert "another process is writing to it; wait for it" in capsys.readouterr().err
    assert rows.read_bytes() == b"being written, and without a note so far"
    assert list(tmp_path.iterdir()) == [rows]


@pytest.mark.filterwarnings("ignore:This DataLoader will create")
def test_killed_and_started_again_it_ends_with_the_same_bytes(
    photos, embedded, tmp_path, monkeypatch, capsys
):
    out = tmp_path / "x.npz"
    command = ["embed", str(photos), "--out", str(out), *TRY]
    append = PartialArray.append

    def killed(self, rows):
        if self.done >= 6:
            with self.path.open("r+b") as stream:  # half a batch, and half a row
                stream.seek(self.offset + self.done * self.row_bytes)
                stream.write(rows.tobytes()[: self.row_bytes * 3 // 2])
            raise KeyboardInterrupt
        append(self, rows)

    monkeypatch.setattr(PartialArray, "append", killed)
    assert main(command) == 130
    assert "the same command continues" in capsys.readouterr().err
    assert not out.exists()
    assert main([*command[:-1], "6"]) == 2
    assert (
        "was started with other settings (seed 5, now 6); use the same ones, or pass --force to "
        "start over" in capsys.readouterr().err
    )
    monkeypatch.setattr(PartialArray, "append", append)
    assert main([*command, "--workers", "2"]) == 0
    assert "resumes at row 6 of 11" in capsys.readouterr().err
    assert out.read_bytes() == embedded.read_bytes()
    assert main(command) == 2
    assert "already exists; pass --force" in capsys.readouterr().err


@pytest.mark.parametrize("workers", [0, 1])
def test_an_unreadable_image_is_one_line(photos, tmp_path, capsys, workers):
    rows = pixel_rows(photos)
    bad = tmp_path / "bad.png"
    bad.write_bytes(b"no image")
    rows.store.paths[2] = str(bad)
    with pytest.raises(InputError, match=r"^[^ ]*bad\.png: cannot be read as an image") as caught:
        embed.embed(rows, body(), tmp_path / "x.npz", views=0, workers=workers)
    assert "\n" not in str(caught.value)
    assert main(["embed", str(bad), *TRY]) == 2
    assert "is not a folder" in capsys.readouterr().err


def test_some_rows_and_no_views(photos, tmp_path):
    out = tmp_path / "x.npz"
    options = [*TRY, "--limit", "4", "--views", "0"]
    assert main(["embed", str(photos), "--out", str(out), *options]) == 0
    found = arrays(out)
    assert "views" not in found
    assert found["images"].tolist() == ["10.png", "9.png", "8.png", "7.png"]
    assert found["split"].tolist() == ["train"] * 4


def test_maps(photos, embedded, tmp_path):
    out = tmp_path / "maps.npz"
    assert main(["embed", str(photos), "--out", str(out), "--map", *TRY]) == 0
    pooled, maps = arrays(embedded), arrays(out)
    assert maps["features"].ndim == 4
    means = maps["features"].astype(np.float32).mean((2, 3))
    np.testing.assert_allclose(means, pooled["features"], atol=2e-3, rtol=2e-3)
    for head in ("linear", "mlp", "ml-decoder", "query2label"):
        plan = Plan.from_tree(
            {
                "data": {"path": str(out)},
                "model": {"head": head, "hidden": 16},
                "train": {"batch_size": 4},
            }
        )
        train = load_experiment(plan).train
        model = make_model(plan, train, pretrained=True)
        views, _ = train.with_views(2, 0).__getitems__([0, 3, 5])
        assert model(views[1]).shape == (3, 2)
        seen = model.get_submodule("backbone")(train.plain.__getitems__(list(range(7)))[0])
        assert seen.ndim == (4 if head in ("ml-decoder", "query2label") else 2)
        kept = [0] if seen.ndim == 2 else [0, 2, 3]
        torch.testing.assert_close(seen.mean(kept), torch.zeros(seen.shape[1]), atol=1e-3, rtol=0)
    with pytest.raises(InputError, match="has tokens, not a map"):
        embed.embed(pixel_rows(photos), Tokens(), tmp_path / "tokens.npz")


class Tokens(torch.nn.Module):
    def forward(self, x):
        return x.flatten(2)


def test_training_sees_the_stored_views_and_nothing_else(embedded):
    found = arrays(embedded)
    train = load(embedded).train
    index = [6, 0, 3, 0]
    one, two = train.with_views(2, 9).__getitems__(index)[0]
    again = train.with_views(2, 9).__getitems__(index)[0]
    assert torch.equal(one, again[0])
    for first, second, i in zip(one, two, index, strict=True):
        stored = [torch.from_numpy(view).float() for view in found["views"][i]]
        at = [next(v for v, s in enumerate(stored) if torch.equal(s, x)) for x in (first, second)]
        assert at[0] != at[1]
    assert torch.equal(single(train.with_views(1, 9).__getitems__(index)[0]), one)
    seeds = {train.with_views(1, seed)[0][0].sum().item() for seed in range(20)}
    assert len(seeds) == VIEWS
    plain = single(train.plain.__getitems__(index)[0])
    assert torch.equal(plain, torch.from_numpy(found["features"][index]).float())
    # A subset in any order keeps every row's own views.
    part = single(train.subset(torch.tensor([5, 2])).with_views(1, 0)[1][0])
    assert any(torch.equal(part, torch.from_numpy(view).float()) for view in found["views"][2])


def test_stored_views_are_varied_only_if_asked_for(embedded):
    train = load(embedded, View(vary_stored=True, dropout=0.5, noise=0.0)).train
    view = train.with_views(1, 0)[0][0]
    assert 0.2 < (view == 0).float().mean() < 0.9
    assert not Plan().data.vary_stored
    few = FeatureRows(torch.zeros(2, 3), torch.zeros(2, 2, dtype=torch.uint8), ["a", "b"],
                      stored=torch.ones(2, 1, 3))  # fmt: skip
    assert [view.tolist() for view in few.with_views(3, 0)[1][0]] == [[1, 1, 1]] * 3
    with pytest.raises(InputError, match="stored views must be 2×V×3, not 2×3"):
        FeatureRows(few.features, few.given, few.classes, stored=torch.zeros(2, 3))


def test_a_whole_training(embedded, tmp_path):
    how = ["--epochs", "2", "--warmup", "1", "--batch-size", "4", "--device", "cpu", "--json"]
    assert main(["train", str(embedded), "--out", str(tmp_path / "run"), *how]) == 0
    assert main(["evaluate", str(tmp_path / "run")]) == 0


def test_statistics_of_maps():
    maps = torch.randn(600, 3, 2, 2, generator=torch.Generator().manual_seed(0)) * 2 + 1
    mean, std = channel_statistics(maps)
    torch.testing.assert_close(mean, maps.mean((0, 2, 3)))
    torch.testing.assert_close(std, maps.std((0, 2, 3), correction=0))
    mean, std = channel_statistics(maps.half(), pooled=True)
    torch.testing.assert_close(std, maps.mean((2, 3)).std(0, correction=0), atol=1e-3, rtol=1e-3)


def test_maps_without_stored_views_are_varied():
    maps = torch.ones(4, 3, 2, 2)
    rows = FeatureRows(
        maps, torch.ones(4, 2, dtype=torch.uint8), ["a", "b"], view=View(dropout=0.5)
    )
    view = rows.with_views(1, 0).__getitems__([0, 1])[0]
    assert sorted(set(view.flatten().tolist())) == [0, 2]
    assert build_model(classes=2, features=3, head="linear")(maps).shape == (4, 2)


def test_unknown_truth_is_kept(tmp_path):
    truth = np.array([[1, 0], [0, 1], [-1, 1], [1, 0]], dtype=np.int8)
    np.savez(
        tmp_path / "x.npz",
        features=np.eye(4),
        labels=truth.clip(0),
        truth=truth,
        split=np.array(["train", "train", "test", "test"]),
    )
    data = load(tmp_path / "x.npz")
    assert data.train.truth is None
    assert data.test.truth.tolist() == [[-1, 1], [1, 0]]


def test_a_file_of_the_images_folder_is_never_replaced(photos, tmp_path, capsys):
    folder = tmp_path / "photos"
    shutil.copytree(photos, folder)
    (folder / "kept.npz").write_bytes(b"mine")
    call = ["embed", str(folder), "--out", str(folder / "kept.npz"), "--force", *TRY]
    assert main(call) == 2
    assert "is part of what this command reads" in capsys.readouterr().err
    assert (folder / "kept.npz").read_bytes() == b"mine"


def test_the_pictures_are_found_again(photos, embedded):
    root = str(arrays(embedded)["root"])
    assert not root.startswith("/")
    assert (embedded.parent / root).resolve() == photos.resolve()
    train = load(embedded).train
    assert train.picture(0).size == (50, 40)
