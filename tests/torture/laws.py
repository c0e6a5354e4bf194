"""Two versions of one data set that must give the same labels by name."""

import csv as csv_
import io
from typing import Any

import numpy as np

from tests.torture import seeds
from tests.torture.draw import Draw
from tests.torture.seeds import Files

NEW = ["zebra", "ant", "Moth", "mole rat", "é", "owl|"[:3], "x1", "x2", "x3", "x4"]
Law = tuple[Files, Files, dict[str, str]]


def _names(classes: list[str], draw: Draw) -> dict[str, str]:
    """Give each class another name, so that sorted order changes too; or leave all as they are."""
    if draw.chance(0.5):
        return {name: name for name in classes}
    return dict(zip(classes, draw.shuffled(NEW), strict=False))


def csv(draw: Draw) -> Law:
    """Shuffle rows and columns, rename classes, reorder labels in a cell."""
    files = seeds.csv(draw)
    header, *rows = csv_.reader(io.StringIO(files["labels.csv"].decode(), newline=""))
    at = header.index("labels")
    classes = sorted({name for row in rows for name in row[at].split("|")} - {""})
    names = _names(classes, draw)
    for row in rows:
        row[at] = "|".join(names[name] for name in draw.shuffled(row[at].split("|")) if name)
    order = draw.rng.permutation(len(header))
    lines = [[row[i] for i in order] for row in [header, *draw.shuffled(rows)]]
    after = {
        "labels.csv": "".join(",".join(map(seeds.cell, row)) + "\r\n" for row in lines).encode()
    }
    if "classes.txt" in files:
        after["classes.txt"] = "\n".join(draw.shuffled(list(names.values()))).encode()
    return files, after, names


def coco(draw: Draw) -> Law:
    """Reorder categories (of one file alone, too), images and annotations; rename; renumber."""
    before = seeds.coco(draw)
    first = next(iter(before.values()))
    classes = [entry["name"] for entry in first["categories"]]
    names = _names(classes, draw)
    shift = draw.below(100)
    after: dict[str, Any] = {}
    for file, tree in before.items():
        after[file] = {key: draw.shuffled(entries) for key, entries in tree.items()}
        after[file]["images"] = [
            entry | {"id": entry["id"] + shift} for entry in after[file]["images"]
        ]
        after[file]["annotations"] = [
            entry | {"image_id": entry["image_id"] + shift} for entry in after[file]["annotations"]
        ]
        after[file]["categories"] = [
            entry | {"name": names[entry["name"]]} for entry in after[file]["categories"]
        ]
        after[file] = {key: after[file][key] for key in draw.shuffled(list(after[file]))}
    return _written(before), _written(after), names


def _written(trees: dict[str, Any]) -> Files:
    return {file: seeds.to_json(tree) for file, tree in trees.items()}


def voc(draw: Draw) -> Law:
    """Shuffle the lines of a set of images, alike in all its files; rename classes."""
    before = seeds.voc(draw)
    classes = sorted({_class_of(path) for path in before})
    names = _names(classes, draw)
    orders: dict[str, Any] = {}
    after = {}
    for path, content in before.items():
        lines = content.decode().splitlines()
        images = path.rpartition("_")[2]
        order = orders.setdefault(images, draw.rng.permutation(len(lines)))
        new = path.replace(f"/{_class_of(path)}_", f"/{names[_class_of(path)]}_")
        after[new] = "\r\n".join(lines[i] for i in order).encode()
    return before, after, names


def _class_of(path: str) -> str:
    return path.rpartition("/")[2].rpartition("_")[0]


def deepfashion(draw: Draw) -> Law:
    """Shuffle the rows of each part, alike in both files, and the columns; rename classes."""
    before = seeds.deepfashion(draw)
    count, header, *lines = before["Anno_fine/list_attr_cloth.txt"].decode().splitlines()
    pairs = [line.rsplit(maxsplit=1) for line in lines]
    names = _names([name.strip() for name, _ in pairs], draw)
    columns = draw.rng.permutation(len(pairs))
    listed = [f"{names[pairs[k][0].strip()]} {pairs[k][1]}" for k in columns]
    after = {"Anno_fine/list_attr_cloth.txt": "\n".join([count, header, *listed]).encode()}
    for part in ("train", "val", "test"):
        images = before[f"Anno_fine/{part}.txt"].decode().splitlines()
        marks = [
            line.split() for line in before[f"Anno_fine/{part}_attr.txt"].decode().splitlines()
        ]
        order = draw.rng.permutation(len(images))
        after[f"Anno_fine/{part}.txt"] = "\n".join(images[i] for i in order).encode()
        rows = (" ".join(marks[i][k] for k in columns) for i in order)
        after[f"Anno_fine/{part}_attr.txt"] = "\n".join(rows).encode()
    return before, after, names


def npz(draw: Draw) -> Law:
    """Shuffle rows and classes of all arrays alike; rename classes."""
    before = seeds.arrays(draw)
    rows, width = before["labels"].shape
    before["images"] = np.array(draw.shuffled(seeds.IMAGES)[:rows])
    before.setdefault("classes", np.array(seeds.CLASSES[:width]))
    before["truth"] = before["labels"]  # whose order of classes is compared as it stands
    names = _names(before["classes"].tolist(), draw)
    order = draw.rng.permutation(rows)
    whole = ("classes", "minus_one")
    after = {key: array if key in whole else array[order] for key, array in before.items()}
    after["classes"] = np.array([names[name] for name in before["classes"].tolist()])
    return {"x.npz": seeds.write_npz(before)}, {"x.npz": seeds.write_npz(after, True)}, names
