"""What people decided about labels, with a second, literal reader."""

import warnings
from pathlib import Path
from typing import Any

from balancemix import data
from tests.torture import literal_table, seeds
from tests.torture.draw import Draw
from tests.torture.outcome import RefusedError, UnsureError
from tests.torture.seeds import Files

TABLE = "image,labels\na.png,cat|dog\nb.png,dog\nc.png,\nä.png,cat|dog\n"
CLASSES = ["cat", "dog"]
GIVEN = {"a.png": "cat|dog", "b.png": "dog", "c.png": "", "ä.png": "cat|dog"}


def decisions(draw: Draw) -> Files:
    """Draw decisions about some labels."""
    names = [*GIVEN, "gone.png"]
    lines = [
        [draw.pick(names), draw.pick(CLASSES), draw.pick(["present", "absent", "unsure"]), "x"]
        for _ in range(draw.below(6))
    ]
    records = [["image", "class", "verdict", "who"], *lines]
    text = "".join(",".join(map(seeds.cell, record)) + "\n" for record in records)
    return {"photos.balancemix/decisions.csv": text.encode()}


def read_decided(folder: Path) -> dict[str, Any]:
    """Read data with decisions."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*does not have.*")
        source = data.read(folder / "photos")
    verified = source.verified if source.verified is not None else source.given < -1
    return {"given": source.given.tolist(), "verified": verified.tolist()}


def literal_decided(folder: Path) -> dict[str, Any]:
    """Apply decisions one by one."""
    given = [[int(c in labels.split("|")) for c in CLASSES] for labels in GIVEN.values()]
    before, verified = [list(row) for row in given], [[False, False] for _ in given]
    file = folder / "photos.balancemix" / "decisions.csv"
    if not file.exists():
        return {"given": given, "verified": verified}
    try:
        text = file.read_bytes().decode()
    except UnicodeDecodeError:
        raise UnsureError("not UTF-8") from None
    if "'" in text or "\r" in text or "\0" in text:
        raise UnsureError("an apostrophe, which may be ours, or other line ends")
    records = literal_table.parse_csv(text.removeprefix("\ufeff"))
    header = [name.strip() for name in records[0]] if records else []
    if any(header.count(name) != 1 for name in ("image", "class", "verdict")):
        raise RefusedError("no column image, class or verdict")
    for cells in records[1:]:
        if cells in ([], [""]):
            continue
        if len(cells) != len(header):
            raise RefusedError("too few or too many cells")
        if not "".join(cells).strip():
            continue
        line = dict(zip(header, cells, strict=True))
        verdict = line["verdict"].strip()
        if verdict not in ("present", "absent", "unsure") or line["class"] not in CLASSES:
            raise RefusedError("an unknown verdict or class")
        if line["image"] in GIVEN:
            i, k = list(GIVEN).index(line["image"]), CLASSES.index(line["class"])
            sure = verdict != "unsure"
            given[i][k] = int(verdict == "present") if sure else before[i][k]
            verified[i][k] = sure
    return {"given": given, "verified": verified}
