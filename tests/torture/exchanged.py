"""Answers in the files of other tools, each with a second, literal reader."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from balancemix.data.source import Source
from balancemix.exchange.reading import read_answers
from tests.torture import decided
from tests.torture.draw import Draw
from tests.torture.mutate import mutate_bytes, mutate_tree, write_json
from tests.torture.outcome import RefusedError, UnsureError
from tests.torture.seeds import Files

IMAGES, CLASSES = list(decided.GIVEN), decided.CLASSES
GIVEN = [[int(c in labels.split("|")) for c in CLASSES] for labels in decided.GIVEN.values()]
ANSWERS = ("present", "absent", "unsure")
SOURCE = Source(
    Path("photos"),
    CLASSES,
    IMAGES,
    torch.tensor(GIVEN, dtype=torch.int8),
    images=[Path("/photos") / name for name in IMAGES],
)
Answers = dict[str, Any]


def read(name: str) -> Callable[[Path], Answers]:
    """Make a reader of a file of a folder."""

    def reading(folder: Path) -> Answers:
        file = next(path for path in folder.iterdir() if path.stem == name)
        found = read_answers(file, SOURCE)
        assert not found.images
        return answers([(x.image, x.class_, x.verdict) for x in found.labels], found.blank)

    return reading


def answers(labels: list[tuple[str, str, str]], blank: int) -> Answers:
    """Put answers into an order that does not depend on the file."""
    return {"labels": sorted(labels), "blank": blank}


def export(draw: Draw) -> Any:
    """Draw an export of Label Studio."""
    tasks = []
    for number, name in enumerate(draw.shuffled(IMAGES)[: 1 + draw.below(4)], start=1):
        data = {"image": "/x", "name": name, "given": draw.some(CLASSES), "asked": CLASSES[:1]}
        annotations = [
            {
                "id": k,
                "completed_by": draw.pick([1, 2, {"id": 3, "email": "a@b.c"}, None]),
                "was_cancelled": draw.chance(0.1),
                "updated_at": f"2026-01-0{k + 1}T10:00:00.5Z",
                "result": [
                    _region(tag, chosen)
                    for tag in ("labels", "unsure")
                    if (chosen := draw.some(CLASSES))
                ],
            }
            for k in range(draw.below(3))
        ]
        tasks.append({"id": number, "data": data, "annotations": annotations, "predictions": [1]})
    return tasks


def _region(tag: str, chosen: list[str]) -> dict[str, Any]:
    value = {"choices": chosen}
    return {"from_name": tag, "to_name": "image", "type": "choices", "value": value}


def damage(name: str) -> Callable[[Any, Draw], Files]:
    """Make what damages a tree and writes it as JSON."""

    def damaging(tree: Any, draw: Draw) -> Files:
        damaged = mutate_tree(tree, draw) if draw.chance(0.7) else tree
        return {name: write_json(damaged, draw)}

    return damaging


def literal(name: str, walk: Callable[[Any], Answers]) -> Callable[[Path], Answers]:
    """Make a literal reader of a tree of JSON; what has another shape may be read or refused."""

    def reading(folder: Path) -> Answers:
        try:
            tree = json.loads((folder / name).read_bytes().decode(), object_pairs_hook=_once)
            return walk(tree)
        except (ValueError, RecursionError, TypeError, KeyError, AttributeError, IndexError):
            raise UnsureError("another shape") from None

    return reading


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a key twice")
    return dict(pairs)


def walk_export(tasks: Any) -> Answers:
    """Answer for what each annotation of Label Studio shows."""
    labels, blank = list[tuple[str, str, str]](), 0
    for task in tasks:
        count = len(labels)
        for annotation in task["annotations"]:
            if annotation.get("was_cancelled"):
                continue
            chosen: dict[str, set[str]] = {"labels": set(), "unsure": set()}
            for region in annotation["result"]:
                if region["type"] == "choices":
                    chosen[region["from_name"]] |= set(region["value"]["choices"])
            shown = set(task["data"]["given"]) | set(task["data"]["asked"])
            said = shown | chosen["labels"] | chosen["unsure"]
            name = task["data"]["name"]
            if name not in IMAGES or not said <= set(CLASSES):
                raise RefusedError("an unknown name")
            for class_ in said:
                sure = "present" if class_ in chosen["labels"] else "absent"
                labels.append((name, class_, "unsure" if class_ in chosen["unsure"] else sure))
        blank += len(labels) == count
    return answers(labels, blank)


def samples(draw: Draw) -> Any:
    """Draw samples of FiftyOne."""
    found = []
    for name in draw.shuffled(IMAGES)[: 1 + draw.below(4)]:
        labels = [
            {"_cls": "Classification", "label": c, "confidence": 0.5, "tags": _tags(draw)}
            | ({"image": name} if draw.chance(0.5) else {})
            for c in draw.some(CLASSES)
        ]
        field = {"_cls": "Classifications", "classifications": labels}
        found.append({"filepath": f"/photos/{name}", "tags": [], "labels": field})
    return {"samples": found}


def _tags(draw: Draw) -> list[str]:
    first = draw.pick(["wrong", "missing", "given", "unknown"])
    return [first, *([draw.pick(ANSWERS)] if draw.chance(0.6) else [])]


def walk_samples(tree: Any) -> Answers:
    """Answer for each label with a tag of a person."""
    labels, blank = [], 0
    for sample in tree["samples"]:
        for field in sample.values():
            if not isinstance(field, dict) or field.get("_cls") != "Classifications":
                if isinstance(field, dict):
                    raise UnsureError("another field")
                continue
            for label in field["classifications"]:
                if "verdict" in label:
                    raise UnsureError("an attribute")
                tags = {word.strip().casefold() for word in label["tags"]}
                said = [word for word in ANSWERS if word in tags]
                if len(said) > 1:
                    raise RefusedError("two answers")
                blank += not said and bool({"wrong", "missing", "unknown"} & tags)
                if not said:
                    continue
                path = sample["filepath"].removeprefix("/photos/")
                name = path if label.get("image") is None else label["image"]
                if name not in IMAGES or label["label"] not in CLASSES:
                    raise RefusedError("an unknown name")
                labels.append((name, label["label"], said[0]))
    return answers(labels, blank)


def corrected(draw: Draw) -> Any:
    """Draw labels that somebody corrected."""
    return [[draw.pick([0, 1, 1, -1]) for _ in CLASSES] for _ in IMAGES]


def damage_corrected(labels: Any, draw: Draw) -> Files:
    """Damage labels as lists of classes, or as the bytes of an array."""
    if draw.chance(0.4):
        lists = [[k for k, value in enumerate(row) if value == 1] for row in labels]
        return {"fixed.json": write_json(mutate_tree(lists, draw), draw)}
    out = io.BytesIO()
    if draw.chance(0.5):
        np.save(out, np.array(labels, dtype=draw.pick([np.int8, np.int64, np.float32, bool])))
        ending = "npy"
    else:
        np.savez(out, labels=np.array(labels), given=np.array(GIVEN), names=IMAGES, classes=CLASSES)
        ending = "npz"
    content = out.getvalue()
    return {f"fixed.{ending}": mutate_bytes(content, draw) if draw.chance(0.7) else content}


def literal_corrected(folder: Path) -> Answers:
    """Compare corrected labels with the given ones, one by one."""
    file = next(path for path in folder.iterdir() if path.stem == "fixed")
    try:
        if file.suffix == ".json":
            lists = json.loads(file.read_bytes().decode())
            if any(type(k) is not int for row in lists for k in row):
                raise RefusedError("not a number")
            if any(not 0 <= k < len(CLASSES) for row in lists for k in row):
                raise RefusedError("not a class")
            labels = [[int(k in row) for k in range(len(CLASSES))] for row in lists]
        else:
            found: Any = np.load(io.BytesIO(file.read_bytes()), allow_pickle=False)
            found = found if file.suffix == ".npy" else dict(found)
            if file.suffix == ".npz":
                if [found["names"].tolist(), found["classes"].tolist()] != [IMAGES, CLASSES]:
                    raise UnsureError("other names")
                if found["given"].tolist() != GIVEN:
                    raise UnsureError("other labels before")
                found = found["labels"]
            if found.dtype == bool:
                raise RefusedError("flags, not labels")
            labels = found.tolist()
        if [len(row) for row in labels] != [len(CLASSES)] * len(IMAGES):
            raise RefusedError("another shape")
    except (RefusedError, UnsureError):
        raise
    except Exception:
        raise UnsureError("another shape") from None
    if any(value not in (-1, 0, 1) for row in labels for value in row):
        raise RefusedError("not a label") if not np.isnan(labels).any() else UnsureError("NaN")
    said = [
        (IMAGES[i], CLASSES[k], "present" if value else "absent")
        for i, row in enumerate(labels)
        for k, value in enumerate(row)
        if value >= 0 and value != GIVEN[i][k]
    ]
    return answers(said, 0)
