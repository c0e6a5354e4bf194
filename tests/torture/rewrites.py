"""What was read is written with other labels, and read literally: those labels alone differ."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from balancemix import data
from balancemix.data.formats import coco, find_writer
from tests.torture import literal, literal_table
from tests.torture.draw import Draw
from tests.torture.outcome import READ, WRONG, Outcome, UnsureError, attempt

Rewrite = Callable[[Path, Draw], Outcome]


def rewrite_table(folder: Path, draw: Draw) -> Outcome:
    """Change one label, write labels.csv, read it again: that label alone must differ."""
    source = data.read(folder)
    given = source.given.clone()
    i, k = draw.below(given.shape[0]), draw.below(given.shape[1])
    given[i, k] = 1 - given[i, k].clamp(min=0)
    again = folder / "again"
    again.mkdir()
    out = again / "labels.csv"
    _, outcome = attempt(lambda: find_writer(out, source.path).write(source, given, out))
    if outcome.kind != READ:
        return outcome
    (again / "classes.txt").write_text("\n".join(source.classes), encoding="utf-8")
    try:
        found = literal_table.records_of(literal_table.decoded(out))
    except UnsureError:
        return outcome
    except Exception as error:
        return Outcome(WRONG, f"what was written cannot be read: {error}")
    header = [name.strip() for name in found[0]]
    if {"image", "labels"} - set(header):
        return outcome  # other names, which the property tests write
    image, labels = header.index("image"), header.index("labels")
    rows = {
        row[image].strip(): {part.strip() for part in row[labels].split("|")} - {""}
        for row in found[1:]
        if "".join(row).strip()
    }
    expected = {
        name: {c for c, v in zip(source.classes, given[i].tolist(), strict=True) if v == 1}
        for i, name in enumerate(source.names)
    }
    return outcome if rows == expected else Outcome(WRONG, "labels differ when written and read")


def rewrite_coco(folder: Path, draw: Draw) -> Outcome:
    """Change some labels and write COCO's JSON: annotations go, or labels without a box come."""
    source = data.read(folder)
    given = source.given.clone()
    for _ in range(draw.below(4)):
        i, k = draw.below(given.shape[0]), draw.below(given.shape[1])
        given[i, k] = 1 - given[i, k]
    out = folder / "again" / "out.json"
    out.parent.mkdir()
    _, outcome = attempt(lambda: coco.write(source, given, out))
    if outcome.kind != READ:
        return outcome
    for part, file in (("train", out), ("val", out.with_suffix(".val.json"))):
        rows = source.rows_in(part)
        now = {
            source.names[i]: {c for c, v in zip(source.classes, given[i], strict=True) if v == 1}
            for i in rows
        }
        changed = part == "train" or not given[rows].equal(source.given[rows])
        if file.exists() != changed:
            return Outcome(WRONG, f"the {part} file: is it written?")
        if changed:
            before = literal.json_of(folder / "annotations" / f"instances_{part}2017.json")
            expected = _expected(folder / f"{part}2017", folder, before, now)
            if _found(file) != expected:
                return Outcome(WRONG, f"another {part} file than it should be")
    return outcome


def _expected(
    images: Path, folder: Path, content: dict[str, Any], now: dict[str, set[str]]
) -> tuple[str, list[tuple[str, str]]]:
    """Say what a JSON file and the labels without a box should be."""
    names = {entry["id"]: entry["file_name"] for entry in content["images"]}
    classes = {entry["id"]: entry["name"] for entry in content["categories"]}
    key = {i: (images / name).relative_to(folder).as_posix() for i, name in names.items()}
    kept, boxed = [], set()
    for entry in content["annotations"]:
        image, name = entry["image_id"], classes[entry["category_id"]]
        boxed.add((image, name))
        if key[image] not in now or name in now[key[image]]:
            kept.append(entry)
    added = [
        (names[i], name) for i in names for name in now.get(key[i], ()) if (i, name) not in boxed
    ]
    return json.dumps({**content, "annotations": kept}), sorted(map(_plain, added))


def _found(file: Path) -> tuple[str, list[tuple[str, str]]]:
    """Read what was written; labels without a box are beside it."""
    added, place = [], file.with_suffix(".added.csv")
    if place.exists():
        with place.open(encoding="utf-8", newline="", errors="surrogateescape") as stream:
            added = [(row["image"], row["class"]) for row in csv.DictReader(stream)]
    return json.dumps(literal.json_of(file)), sorted(map(_plain, added))


def _plain(label: tuple[str, str]) -> tuple[str, str]:
    """Leave out the apostrophe before what a spreadsheet would compute."""
    return label[0].lstrip("'"), label[1].lstrip("'")
