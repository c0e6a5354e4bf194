"""Valid inputs of every format, small and varied, from which damaged ones are made."""

import io
import json
import zipfile
from typing import Any

import numpy as np

from tests.torture.draw import Draw

Files = dict[str, bytes]

CLASSES = [
    "cat", "dog", "cup", "Cat", "tree house", "é", "e\u0301", "=1+1", "[/x]", "$_$", "a,b",
    'say "x"',    "\x1b[0m", "<i>", "none", "nan", "1", "-1",
]  # fmt: skip
IMAGES = ["a.png", "b.png", "c.png", "d.png", "e.png", "sub/f.png", "ä.png", "g h.png"]
NAMES = [f"00000{i}" for i in range(8)]


def classes_of(draw: Draw, count: int | None = None) -> list[str]:
    """Choose some class names, mostly plain ones."""
    names = CLASSES if draw.chance(0.3) else CLASSES[:5]
    return draw.shuffled(names)[: count or 2 + draw.below(3)]


def labels_of(draw: Draw, rows: int, classes: list[str]) -> list[list[str]]:
    """Draw the labels of each row; every class occurs."""
    found = [draw.some(classes) for _ in range(rows)]
    for name in classes:
        row = found[draw.below(rows)]
        if name not in row:
            row.append(name)
    return found


def cell(text: str) -> str:
    """Quote a cell of CSV where it needs it."""
    quoted = '"' + text.replace('"', '""') + '"'
    return quoted if set(text) & set(',"\r\n') else text


def csv(draw: Draw) -> Files:
    """Write labels.csv, perhaps with splits, other columns and classes.txt."""
    names = draw.shuffled(IMAGES)[: 3 + draw.below(4)]
    classes = classes_of(draw)
    labels = labels_of(draw, len(names), classes)
    if any(set(name) & set(",;") for name in classes):
        labels[0] = list(classes)  # the bar shows that a comma is part of a name
    columns = {"image": names, "labels": ["|".join(row) for row in labels]}
    if draw.chance(0.6):
        splits = ["train", draw.pick(["test", "val", "valid"])]
        columns["split"] = [*splits, *(draw.pick(splits) for _ in names[2:])]
    if draw.chance(0.3):
        columns["note"] = [draw.pick(["", "x, y", 'a "b"', "two\nlines"]) for _ in names]
    order = draw.shuffled(list(columns))
    records = [order, *zip(*(columns[name] for name in order), strict=True)]
    files = {"labels.csv": "".join(",".join(map(cell, r)) + "\n" for r in records).encode()}
    if draw.chance(0.5):
        files["classes.txt"] = "".join(f"{name}\n" for name in draw.shuffled(classes)).encode()
    return files


def coco(draw: Draw) -> dict[str, Any]:
    """Make the trees of both JSON files."""
    classes = classes_of(draw)
    numbers = [int(i) for i in draw.rng.permutation(90)[: len(classes)]]
    trees: dict[str, Any] = {}
    for part in ("train", "val"):
        names = draw.shuffled(NAMES)[: 2 + draw.below(3)]
        ids = [int(i) for i in draw.rng.permutation(999)[: len(names)]]
        pairs = list(zip(ids, labels_of(draw, len(names), classes), strict=True))
        trees[f"annotations/instances_{part}2017.json"] = {
            "images": [
                {"id": i, "file_name": f"{name}.jpg"} for i, name in zip(ids, names, strict=True)
            ],
            "annotations": [
                {"image_id": i, "category_id": numbers[classes.index(name)], "iscrowd": 0}
                for i, labels in pairs
                for name in labels
            ],
            "categories": [
                {"id": i, "name": name} for i, name in zip(numbers, classes, strict=True)
            ],
        }
    return trees


def voc(draw: Draw) -> Files:
    """Write the files of each class and set of images of VOC2007."""
    classes = draw.shuffled(["cat", "dog", "cup", "tree_house"])[: 2 + draw.below(3)]
    order, files = draw.shuffled(NAMES), {}
    parts = {"trainval": order[: 2 + draw.below(3)], "test": order[5 : 6 + draw.below(3)]}
    for images, names in parts.items():
        for name in classes:
            marks = [draw.pick(["1", "-1", "0"]) for _ in names]
            lines = [f"{image} {mark:>2}" for image, mark in zip(names, marks, strict=True)]
            path = f"VOC2007/ImageSets/Main/{name}_{images}.txt"
            files[path] = "".join(f"{line}\n" for line in lines).encode()
    return files


def deepfashion(draw: Draw) -> Files:
    """Write the fine annotations."""
    classes = draw.shuffled(["floral", "lattice", "no dress", "v_neckline"])[: 2 + draw.below(3)]
    lines = [str(len(classes)), "attribute_name attribute_type"]
    lines += [f"{name:<12} {draw.below(6)}" for name in classes]
    files = {"Anno_fine/list_attr_cloth.txt": "\n".join(lines).encode()}
    names = draw.shuffled([f"img/x/{name}.jpg" for name in NAMES])
    for part, some in {"train": names[:3], "val": names[3:5], "test": names[5:]}.items():
        marks = [" ".join(draw.pick(["0", "1"]) for _ in classes) for _ in some]
        files[f"Anno_fine/{part}.txt"] = "\n".join(some).encode()
        files[f"Anno_fine/{part}_attr.txt"] = ("\n".join(marks) + "\n").encode()
    return files


def arrays(draw: Draw) -> dict[str, Any]:
    """Make the arrays of an .npz."""
    rows, classes = 3 + draw.below(4), classes_of(draw)
    shape = (2, 2, 1) if draw.chance(0.2) else (3,)
    kind = draw.pick([np.float32, np.float16, np.float64])
    labels = (draw.rng.random((rows, len(classes))) < 0.5).astype(draw.pick([np.uint8, bool, int]))
    found: dict[str, Any] = {
        "features": draw.rng.normal(size=(rows, *shape)).astype(kind),
        "labels": labels,
    }
    if draw.chance(0.7):
        found["classes"] = np.array(classes)
    if draw.chance(0.7):
        found["images"] = np.array(draw.shuffled(IMAGES)[:rows])
    if draw.chance(0.6):
        names = ["train", draw.pick(["test", "val", "valid"])]
        found["split"] = np.array([*names, *(draw.pick(names) for _ in range(rows - 2))])
    if draw.chance(0.3):
        found["truth"] = 1 - labels.astype(np.int8)
    if draw.chance(0.3):
        found["verified"] = draw.rng.random(labels.shape) < 0.5
    if draw.chance(0.3):
        unknown, floats = draw.rng.random(labels.shape) < 0.3, draw.chance(0.5)
        found["labels"] = labels.astype(np.float32 if floats else np.int8)
        found["labels"][unknown] = np.nan if floats else -1
        if not floats:
            found["minus_one"] = np.array(draw.pick(["absent", "unknown"]))
    if draw.chance(0.3):
        found["views"] = draw.rng.normal(size=(rows, 2, *shape)).astype(np.float32)
    return found


def write_npz(
    members: dict[str, Any], compress: bool = False, more: dict[str, Any] | None = None
) -> bytes:
    """Write arrays as np.savez does, then `more`; objects too, which no reader may open."""
    out = io.BytesIO()
    kind = zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED
    with zipfile.ZipFile(out, "w", kind) as archive:
        for name, array in (*members.items(), *(more or {}).items()):
            content = io.BytesIO()
            np.lib.format.write_array(content, np.asanyarray(array), allow_pickle=True)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), content.getvalue(), kind)
    return out.getvalue()


def plan(draw: Draw) -> dict[str, Any]:
    """Make a plan: some sections, some settings of each."""
    settings: dict[str, dict[str, list[Any]]] = {
        "method": {
            "name": ["bce", "balancemix", "balancemix", "asl", "mixup", "tests.torture.people:Mine",
                     "tests.torture.people:nothing", "nowhere:X", ":"],
            "alpha": [0, 0.5, 4.0], "reduction": ["sum"],
        },
        "data": {"path": ["digits", "x.npz"], "size": [8, 224], "holdout": [0.1, 0.25],
                 "skip_bad": [True, False], "workers": [None, 0, 2]},
        "model": {"head": ["mlp", None], "hidden": [8, 16], "dropout": [0, 0.1]},
        "train": {"epochs": [1, 2], "batch_size": [4, 64], "lr": [0.01, 1], "ema": [0.0, 0.9],
                  "optimizer": ["sgd", "adamw"], "clip": [0, 1.5], "track": [None]},
    }  # fmt: skip
    tree: dict[str, Any] = {
        section: {key: draw.pick(values) for key, values in keys.items() if draw.chance(0.5)}
        for section, keys in settings.items()
        if draw.chance(0.7)
    }
    if draw.chance(0.5):
        tree["noise"] = draw.pick(["none", "flip:0.2", "mislabel:0.4", "single"])
    if draw.chance(0.5):
        tree["seed"] = draw.below(9)
    method = tree.get("method", {})
    if method.get("name") == "asl":
        method.pop("alpha", None)
    if method.get("name") == "balancemix":
        method |= {key: draw.pick(values) for key, values in BALANCEMIX.items() if draw.chance(0.2)}
    return tree


# Settings of BalanceMix, also as older versions called them.
BALANCEMIX: dict[str, list[Any]] = {
    "epsilon": ["auto", 0.9, 1, 0.4, "x"], "warmup": [None, 0, 3, "none"], "min_labels": [0, 5],
    "trust_positives": [True, False, "auto", "x"],
    "relabel": ["epoch", "off", "paper", True, False], "mode": ["online", "paper"],
    "fewest": [3, 8], "relabel_weight": ["one", 2],
}  # fmt: skip


# What a bench plan refuses, or reads although it is rare.
ODD_ROWS: list[dict[str, Any]] = [
    {"noises": ["drop:0.5"]}, {"on": {"single": {"alpha": 1}}}, {"over": "bce"}, {"over": "nobody"},
    {"label": "---"}, {"set": ["data.path=x"]}, {"set": ["seed=1"]},
    {"name": "tests.torture.people:Mine"},
]  # fmt: skip
ODD_PLANS: list[dict[str, Any]] = [
    {"beside": {"none": "none"}}, {"tables": ["beside"]}, {"settings": {"noise": "none"}},
    {"settings": {"data": {"path": "x"}}}, {"settings": {"train": 3}}, {"methods": []},
    {"paper": "coco"}, {"data": ["digits", "x.npz"]}, {"data": ["a/x.npz", "b/x.npz"]},
]  # fmt: skip


def bench(draw: Draw, odd: bool = True) -> dict[str, Any]:
    """Make a bench plan, now and then an `odd` one."""
    noises = draw.shuffled(["none", "flip:0.2", "mislabel:0.4"])[: 1 + draw.below(2)]
    methods = []
    for name in draw.shuffled(["bce", "balancemix", "mixup"])[: 1 + draw.below(3)]:
        variant: dict[str, Any] = {"name": name}
        if draw.chance(0.3):
            variant["label"] = f"Our {name}"
        if draw.chance(0.4):
            known = ["train.lr=0.5", "model.hidden=8", "train.clip=2"]
            variant["set"] = draw.some([*known, "method.reduction=mean"])
        if name != "bce" and draw.chance(0.4):
            variant["settings"] = {"alpha": draw.pick([0.5, 1, 2])}
        if name != "bce" and draw.chance(0.3):
            variant["on"] = {noises[0]: {"alpha": 3}}
        if draw.chance(0.2):
            variant["noises"] = noises[:1]
        if odd and draw.chance(0.1):
            variant |= draw.pick(ODD_ROWS)
        methods.append(variant)
    tree: dict[str, Any] = {"methods": methods, "noises": noises, "data": ["digits"]}
    if draw.chance(0.5):
        tree["seeds"] = [0, 1][: 1 + draw.below(2)]
    if draw.chance(0.5):
        tree["settings"] = {"train": {"epochs": 2, "lr": 0.2}, "model": {"hidden": 16}}
    if draw.chance(0.3):
        tree["tables"] = ["paper", "ranking"]
    if odd and draw.chance(0.1):
        tree |= draw.pick(ODD_PLANS)
    return tree


def to_json(tree: Any) -> bytes:
    """Write a tree as JSON."""
    return json.dumps(tree).encode()
