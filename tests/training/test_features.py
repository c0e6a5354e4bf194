"""features_of(): features as they are, and those of images, kept beside the folder."""

import json
import os
import shutil
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pytest
import torch
from PIL import Image

from balancemix.data import FeatureRows, ImageRows, load
from balancemix.data.formats.builtin import RandomImages
from balancemix.errors import InputError
from balancemix.files import locked
from balancemix.models.backbones import normalisation
from balancemix.models.classifier import build_embedder
from balancemix.plan.plan import Plan
from balancemix.progress import Silent
from balancemix.training import embed, feature_file, features, known_features
from balancemix.training.experiment import load_rows
from balancemix.training.features import features_of
from balancemix.training.known_features import Known
from balancemix.training.partial import PartialArray
from tests.conftest import ROOT

SIZE, BACKBONE = 32, "test_resnet"
NAME = f"features-{BACKBONE}-random-{SIZE}.npz"


def plan_of(path="photos", **model):
    model = {"backbone": BACKBONE, "pretrained": False, **model}
    data = {"path": str(path), "size": SIZE, "workers": 0}
    return Plan.from_tree({"data": data, "model": model, "train": {"device": "cpu"}})


def rows_of(photos, split="train"):
    rows = load_rows(plan_of(photos), photos).splits[split]
    assert isinstance(rows, ImageRows)
    return rows


def stored(photos):
    return photos.with_name("photos.balancemix") / NAME


def arrays(file):
    with np.load(file, allow_pickle=False) as found:
        return dict(found)


@pytest.fixture
def made(photos):
    """Features of the training rows, which are in the file now."""
    return features_of(rows_of(photos), plan_of(photos))


@pytest.fixture
def seen(monkeypatch):
    """The numbers of the rows that a backbone looks at, without padding."""
    numbers: list[int] = []
    original = features._made_in_batches

    def counted(body, rows, index, plan):
        numbers.extend(index.tolist())
        return original(body, rows, index, plan)

    monkeypatch.setattr(features, "_made_in_batches", counted)
    return numbers


def paint(path, seed):
    """Save an image of random pixels; all of them have the same number of bytes."""
    pixels = np.random.default_rng(seed).integers(0, 256, (24, 24, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(path, format="BMP")


def test_a_matrix_stays_as_it_is_and_maps_are_averaged(tmp_path):
    given = torch.eye(3, dtype=torch.uint8)
    matrix, maps = torch.randn(3, 4), torch.randn(3, 5, 2, 2).half()
    names = ["a", "b", "c"]
    assert torch.equal(features_of(FeatureRows(matrix, given, names), plan_of()), matrix)
    rows = FeatureRows(maps, given, names)
    assert torch.equal(features_of(rows, plan_of()), maps.float().mean((2, 3)))


def test_images_are_seen_by_the_frozen_backbone_without_augmentation(photos, made):
    torch.default_generator.manual_seed(0)
    body = build_embedder(BACKBONE, pretrained=False, image_size=SIZE).eval()
    rows = rows_of(photos)
    with torch.no_grad():
        plain = body(rows.plain.__getitems__(list(range(len(rows))))[0])
    assert made.dtype == torch.float32
    torch.testing.assert_close(made, plain, atol=1e-3, rtol=1e-3)
    augmented = features_of(rows.with_views(1, seed=3), plan_of(photos))
    assert torch.equal(made, augmented)


def test_the_pixels_are_normalised_for_the_backbone_whatever_the_rows_say(photos, made):
    rows = rows_of(photos)
    rows.mean, rows.std = torch.zeros(3), torch.ones(3)
    shutil.rmtree(stored(photos).parent)
    assert torch.equal(features_of(rows, plan_of(photos)), made)
    assert torch.tensor(normalisation(BACKBONE)[0]).ne(rows.mean).any()


def test_what_is_in_the_file(photos, made):
    found = arrays(stored(photos))
    assert list(found) == ["balancemix_features", "images", "facts", "checksums", "features"]
    assert found["images"].tolist() == [f"images/{i}.png".encode() for i in range(28)]
    assert found["features"].dtype == np.float16
    assert torch.equal(torch.from_numpy(found["features"]).float(), made)
    about = json.loads(str(found["balancemix_features"]))
    assert about == {"backbone": BACKBONE, "pretrained": False, "size": SIZE, "weights": "random"}
    assert [file.name for file in stored(photos).parent.iterdir()] == [NAME]


def test_the_second_time_nothing_is_computed(photos, made, monkeypatch):
    monkeypatch.setattr(features, "_backbone", None)
    before = stored(photos).stat().st_mtime_ns
    again = features_of(rows_of(photos).subset(torch.tensor([5, 2])), plan_of(photos))
    assert torch.equal(again, made[[5, 2]])
    assert stored(photos).stat().st_mtime_ns == before


def test_it_leaves_random_numbers_alone(photos):
    state = torch.get_rng_state()
    features_of(rows_of(photos), plan_of(photos))
    assert torch.equal(torch.get_rng_state(), state)


def test_rows_of_another_split_are_added_and_do_not_depend_on_the_others(photos, made, seen):
    test = features_of(rows_of(photos, "test"), plan_of(photos))
    assert seen == list(range(12))
    assert len(arrays(stored(photos))["features"]) == 40
    shutil.rmtree(stored(photos).parent)
    order = torch.randperm(12, generator=torch.Generator().manual_seed(0))
    shuffled = features_of(rows_of(photos, "test").subset(order), plan_of(photos))
    assert torch.equal(shuffled, test[order])


def test_names_that_are_swapped_are_seen_even_if_sizes_and_dates_are_the_same(photos, seen):
    first, second = photos / "images" / "0.png", photos / "images" / "1.png"
    for seed, path in enumerate((first, second)):
        paint(path, seed)
        os.utime(path, ns=(10**18, 10**18))
    before = features_of(rows_of(photos), plan_of(photos))
    first.rename(photos / "x")
    second.rename(first)
    (photos / "x").rename(second)
    assert first.stat().st_size == second.stat().st_size
    del seen[:]
    after = features_of(rows_of(photos), plan_of(photos))
    assert seen == [0, 1]
    assert torch.equal(after[[1, 0]], before[[0, 1]])
    assert torch.equal(after[2:], before[2:])


@pytest.mark.parametrize("dated_back", [False, True])
def test_changed_content_is_seen(photos, seen, dated_back):
    path = photos / "images" / "3.png"
    paint(path, 0)
    facts = path.stat()
    before = features_of(rows_of(photos), plan_of(photos))
    paint(path, 1)
    if dated_back:
        os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    assert path.stat().st_size == facts.st_size
    del seen[:]
    after = features_of(rows_of(photos), plan_of(photos))
    assert seen == [3]
    assert (after != before).any(1).tolist() == [i == 3 for i in range(28)]


def test_another_date_alone_changes_nothing_and_is_remembered(photos, made, monkeypatch):
    for path in (photos / "images").iterdir():
        path.touch()
    monkeypatch.setattr(features, "_backbone", None)
    assert torch.equal(features_of(rows_of(photos), plan_of(photos)), made)
    monkeypatch.setattr(known_features, "checksum", None)
    assert torch.equal(features_of(rows_of(photos), plan_of(photos)), made)


def test_an_image_that_changes_while_it_is_seen_is_seen_again(photos, monkeypatch, seen):
    original = embed.forward

    def changing(body, rows, images, device):
        for block in original(body, rows, images, device):
            paint(photos / "images" / "3.png", 7)
            yield block

    monkeypatch.setattr(features, "forward", changing)
    features_of(rows_of(photos), plan_of(photos))
    assert arrays(stored(photos))["checksums"][3] == 0
    monkeypatch.setattr(features, "forward", original)
    del seen[:]
    again = features_of(rows_of(photos), plan_of(photos))
    assert seen == [3]
    shutil.rmtree(stored(photos).parent)
    assert torch.equal(features_of(rows_of(photos), plan_of(photos)), again)


def test_an_old_cache_of_images_is_not_believed(photos, made, tmp_path):
    rows = rows_of(photos).cached("memory")
    rows.image(3)
    paint(photos / "images" / "3.png", 7)
    assert (features_of(rows, plan_of(photos)) != made).any(1).tolist() == [
        i == 3 for i in range(28)
    ]


def test_a_moved_folder_brings_its_features_along(photos, made, monkeypatch):
    moved = photos.with_name("elsewhere")
    shutil.copytree(photos, moved)
    shutil.copytree(stored(photos).parent, photos.with_name("elsewhere.balancemix"))
    monkeypatch.setattr(features, "_backbone", None)
    assert torch.equal(features_of(rows_of(moved), plan_of(moved)), made)


def test_images_that_are_gone_are_forgotten(photos, made):
    test = rows_of(photos, "test")
    (photos / "images" / "0.png").unlink()
    features_of(test, plan_of(photos))
    names = arrays(stored(photos))["images"].tolist()
    assert len(names) == 39
    assert b"images/0.png" not in names


def test_size_backbone_and_weights_have_files_of_their_own(photos, made):
    lite0 = {"pretrained": True, "backbone": "tf_efficientnet_lite0"}
    for model in (lite0, {"backbone": "test_vit"}):
        features_of(rows_of(photos, "test"), plan_of(photos, **model))
    plan = plan_of(photos)
    plan.data.size = 24
    rows = load_rows(plan, photos).test
    features_of(rows, plan)
    assert sorted(file.name for file in stored(photos).parent.iterdir()) == [
        "features-test_resnet-random-24.npz",
        NAME,
        "features-test_vit-random-32.npz",
        "features-tf_efficientnet_lite0-32.npz",
    ]


def test_other_weights_under_the_same_name_make_new_features(photos, made, monkeypatch, seen):
    about = json.loads(str(arrays(stored(photos))["balancemix_features"]))
    known = Known.of(arrays(stored(photos)))
    feature_file.FeatureFile(photos, {**about, "weights": "of last year"}).write(known)
    assert torch.equal(features_of(rows_of(photos), plan_of(photos)), made)
    assert len(seen) == 28


def test_features_of_another_width_are_made_again(photos, made):
    about = json.loads(str(arrays(stored(photos))["balancemix_features"]))
    found = arrays(stored(photos))
    found["features"] = found["features"][:, :5]
    found["facts"][0] = 0
    found["checksums"][0] = 0
    feature_file.FeatureFile(photos, about).write(Known.of(found))
    assert torch.equal(features_of(rows_of(photos), plan_of(photos)), made)


@pytest.mark.parametrize("damage", ["cut", "flip", "directory", "empty", "head", "nan", "other"])
def test_a_damaged_file_is_told_and_made_again(photos, made, damage):
    file = stored(photos)
    content = bytearray(file.read_bytes())
    if damage == "cut":
        content = content[: len(content) // 2]
    elif damage == "flip":
        content[content.index(b"features.npy", 100) + 500] ^= 1
    elif damage == "directory":
        content[-40:] = bytes(40)
    elif damage == "empty":
        content = bytearray()
    elif damage == "head":
        content = content[:10]
    file.write_bytes(content)
    if damage in ("nan", "other"):
        about = json.loads(str(arrays(file)["balancemix_features"]))
        found = arrays(file)
        if damage == "nan":
            found["features"][3, 2] = np.nan
        else:
            found["facts"] = found["facts"][:-1]
        feature_file.FeatureFile(photos, about).write(Known.of(found))
    with pytest.warns(UserWarning, match=r"features-.*\.npz: is damaged \(.*\); made again"):
        again = features_of(rows_of(photos), plan_of(photos))
    assert torch.equal(again, made)
    assert torch.equal(features_of(rows_of(photos), plan_of(photos)), made)


def test_no_damage_ends_in_a_traceback(photos, made):
    file, whole = stored(photos), stored(photos).read_bytes()
    generator = np.random.default_rng(0)
    rows, plan = rows_of(photos), plan_of(photos)
    for _ in range(30):
        content = bytearray(whole)
        for place in generator.integers(0, len(content), 3):
            content[place] = generator.integers(256)
        file.write_bytes(content[: generator.integers(1, len(content) + 1)])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                again = features_of(rows, plan)
            except InputError:  # the first bytes, by which it is known as ours
                file.unlink()
            else:
                assert torch.equal(again, made)


def test_a_file_of_somebody_else_is_refused_and_left_alone(photos):
    file = stored(photos)
    file.parent.mkdir()
    np.savez(file, features=np.zeros((2, 3)))
    before = file.read_bytes()
    with pytest.raises(InputError, match="was not written by balancemix; rename or move it"):
        features_of(rows_of(photos), plan_of(photos))
    assert file.read_bytes() == before
    file.unlink()
    file.mkdir()
    with pytest.raises(InputError, match="was not written by balancemix; rename or move it"):
        features_of(rows_of(photos), plan_of(photos))


def test_other_files_of_the_folder_are_left_alone(photos):
    other = stored(photos).parent / "notes.txt"
    other.parent.mkdir()
    other.write_text("mine")
    features_of(rows_of(photos), plan_of(photos))
    assert other.read_text() == "mine"
    assert stored(photos).exists()


NOT_KEPT = r"cannot be kept \(.*\); the features are made without it"


def test_where_nothing_can_be_stored_it_computes(photos, made):
    folder = stored(photos).parent
    shutil.rmtree(folder)
    folder.write_text("a file in the place of the folder")
    with pytest.warns(UserWarning, match=NOT_KEPT):
        assert torch.equal(features_of(rows_of(photos), plan_of(photos)), made)
    assert folder.read_text() == "a file in the place of the folder"


def test_a_folder_with_a_name_that_is_too_long_for_two(photos, made):
    long = photos.rename(photos.with_name("p" * 250))
    with pytest.warns(UserWarning, match=NOT_KEPT):
        assert torch.equal(features_of(rows_of(long), plan_of(long)), made)


@pytest.mark.parametrize("after", [0, 12])
def test_a_full_disk_stops_nothing_and_leaves_nothing(photos, made, monkeypatch, after):
    shutil.rmtree(stored(photos).parent)
    append = PartialArray.append

    def full(self, rows):
        if self.done >= after:
            raise OSError(28, "No space left on device")
        append(self, rows)

    monkeypatch.setattr(PartialArray, "append", full)
    with pytest.warns(UserWarning, match="No space left on device"):
        assert torch.equal(features_of(rows_of(photos), plan_of(photos)), made)
    assert not stored(photos).parent.exists()


LIMITED = """
import resource, sys, warnings
from pathlib import Path
import torch
from balancemix.training.features import features_of
from tests.training.test_features import plan_of, rows_of

photos = Path(sys.argv[1])
rows = rows_of(photos)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    found = features_of(rows, plan_of(photos))
print(len(told), [str(each.message).split(":")[1] for each in told], float(found.double().sum()))
"""


@pytest.mark.parametrize("limit", [0, 300, 4000])
def test_where_the_system_itself_refuses_to_write(photos, made, limit):
    pytest.importorskip("resource")
    shutil.rmtree(stored(photos).parent)
    call = [sys.executable, "-c", LIMITED, str(photos), str(limit)]
    done = subprocess.run(call, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("1 [' cannot be kept (File too large); the features are made")
    assert float(done.stdout.split()[-1]) == float(made.double().sum())
    assert not stored(photos).parent.exists()


def test_a_disk_that_is_full_at_the_end_stops_nothing(photos, made, monkeypatch):
    shutil.rmtree(stored(photos).parent)

    def full(path, arrays):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(feature_file, "write_stored", full)
    with pytest.warns(UserWarning, match="No space left on device"):
        assert torch.equal(features_of(rows_of(photos), plan_of(photos)), made)
    assert not stored(photos).parent.exists()


def test_a_file_that_may_not_be_read_is_left_alone(photos, made, monkeypatch):
    before = stored(photos).read_bytes()

    def refused(path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(feature_file, "check_ours", refused)
    with pytest.warns(UserWarning, match=NOT_KEPT):
        assert torch.equal(features_of(rows_of(photos), plan_of(photos)), made)
    assert stored(photos).read_bytes() == before


def test_rows_of_no_folder_are_not_stored(photos, made):
    known = rows_of(photos)
    rows = ImageRows(known.paths, known.given, known.classes, view=known.view)
    shutil.rmtree(stored(photos).parent)
    before = set(photos.parent.iterdir())
    assert torch.equal(features_of(rows, plan_of(photos)), made)
    assert set(photos.parent.iterdir()) == before


def test_interrupted_it_goes_on_and_ends_with_the_same_features(photos, made, monkeypatch, seen):
    whole = stored(photos).read_bytes()
    shutil.rmtree(stored(photos).parent)
    append = PartialArray.append

    def stopped(self, rows):
        if self.done:
            raise KeyboardInterrupt
        append(self, rows)

    monkeypatch.setattr(PartialArray, "append", stopped)
    with pytest.raises(KeyboardInterrupt):
        features_of(rows_of(photos), plan_of(photos))
    monkeypatch.setattr(PartialArray, "append", append)
    assert not stored(photos).exists()
    paint(photos / "images" / "3.png", 7)
    del seen[:]
    again = features_of(rows_of(photos), plan_of(photos))
    assert seen == [3, *range(12, 28)]  # the first batch was done, but one image of it is new
    assert torch.equal(again[[0, 1, 2]], made[[0, 1, 2]])
    assert torch.equal(again[4:], made[4:])
    assert [file.name for file in stored(photos).parent.iterdir()] == [NAME]
    assert len(stored(photos).read_bytes()) == len(whole)


@pytest.mark.parametrize("damage", ["note", "rows", "other"])
def test_a_damaged_partial_array_is_left_out(photos, made, damage, seen):
    folder = stored(photos).parent
    shutil.rmtree(folder)
    folder.mkdir()
    rows, note = folder / f".{NAME}.npy", folder / f".{NAME}.json"
    partial = PartialArray(rows, {"made": features._made_with(plan_of(), SIZE)}, (9,), np.float16)
    partial.append(np.ones(5, np.float16))
    partial.note()
    if damage == "note":
        note.write_text("{")
    elif damage == "rows":
        rows.write_bytes(rows.read_bytes()[:70])
    assert torch.equal(features_of(rows_of(photos), plan_of(photos)), made)
    assert len(seen) == 28
    assert [file.name for file in folder.iterdir()] == [NAME]


KILLED = """
import os, signal, sys
from balancemix.training import features, partial
from tests.training.test_features import plan_of, rows_of
from pathlib import Path

partial.NOTE_EVERY = 0.0
append = partial.PartialArray.append
def killed(self, rows):
    append(self, rows)
    if self.done >= 24:
        os.kill(os.getpid(), signal.SIGKILL)
partial.PartialArray.append = killed
photos = Path(sys.argv[1])
features.features_of(rows_of(photos), plan_of(photos))
"""


def test_killed_it_goes_on(photos, made, seen):
    shutil.rmtree(stored(photos).parent)
    call = [sys.executable, "-c", KILLED, str(photos)]
    assert subprocess.run(call, cwd=ROOT, check=False, capture_output=True).returncode == -9
    assert torch.equal(features_of(rows_of(photos), plan_of(photos)), made)
    assert seen == list(range(24, 28))


def test_two_at_once_make_them_once(photos, made, monkeypatch, seen):
    pytest.importorskip("fcntl")
    whole = stored(photos)
    kept = whole.rename(photos.parent / "kept.npz")
    monkeypatch.setattr(feature_file, "LOOK", 0.01)
    waiting = threading.Event()

    def other():
        with locked(whole.parent, "making features"):
            held.set()
            waiting.wait(60)
            kept.rename(whole)

    held = threading.Event()
    thread = threading.Thread(target=other)
    thread.start()
    held.wait(60)
    monkeypatch.setattr(time, "sleep", lambda _: waiting.set())
    with pytest.warns(UserWarning, match="waits for the process that makes it"):
        assert torch.equal(features_of(rows_of(photos), plan_of(photos)), made)
    thread.join()
    assert seen == []


def test_progress_counts_all_rows(photos, made):
    class Counted(Silent):
        done = 0

        def advance(self, steps: int = 1) -> None:
            self.done += steps

    for split, count in (("train", 28), ("test", 12), ("test", 12)):
        show = Counted()
        features_of(rows_of(photos, split), plan_of(photos), show)
        assert show.done == count
    paint(photos / "images" / "3.png", 7)
    show = Counted()
    features_of(rows_of(photos), plan_of(photos), show)
    assert show.done == 28


def test_an_unreadable_image_gets_a_sentence(photos):
    rows = rows_of(photos)
    (photos / "images" / "3.png").write_bytes(b"x")
    with pytest.raises(InputError, match=r"3\.png: cannot be read as an image"):
        features_of(rows, plan_of(photos))
    (photos / "images" / "3.png").unlink()
    with pytest.raises(InputError, match=r"3\.png: cannot be read as an image"):
        features_of(rows, plan_of(photos))
    assert not stored(photos).parent.exists()


def test_names_that_are_not_utf_8(tmp_path):
    folder = tmp_path / "photos"
    folder.mkdir()
    name = os.fsdecode(b"caf\xe9.png")
    try:
        paint(folder / name, 0)
    except OSError:
        pytest.skip("this file system has no such names")
    rows = ImageRows([folder / name], torch.tensor([[1, 0]]), ["a", "b"], folder=folder)
    first = features_of(rows, plan_of(folder))
    assert torch.equal(features_of(rows, plan_of(folder)), first)
    file = folder.with_name("photos.balancemix") / f"features-{BACKBONE}-random-224.npz"
    assert arrays(file)["images"].tolist() == [b"caf\xe9.png"]


def test_rows_of_random_images_and_features_of_digits():
    plan = plan_of()
    assert features_of(RandomImages(14, 3, SIZE), plan).shape[0] == 14
    digits = load("digits").test
    assert isinstance(digits, FeatureRows)
    assert torch.equal(features_of(digits, plan), digits.features)


def test_loading_processes_give_the_same(photos, made):
    shutil.rmtree(stored(photos).parent)
    plan = plan_of(photos)
    plan.data.workers = 1
    assert torch.equal(features_of(rows_of(photos), plan), made)


def test_the_views_of_no_row_are_needed(photos):
    assert embed.ImageViews(rows_of(photos), 0, 0)[2].shape == (1, 3, SIZE, SIZE)
