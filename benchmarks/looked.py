"""Real errors of COCO's own labels: our top findings and cleanlab's, looked at blind.

    python benchmarks/looked.py draw FOLDER    # pages of pictures with numbers, and who listed them
    python benchmarks/looked.py count          # docs/tables/looked.md, from benchmarks/looked.csv

Nothing is planted: all rows of ../shared/data/coco160 with the labels that COCO has. Each of four
lists (ours and cleanlab's, wrong and missing) gives its first forty. A label that is in two lists
is shown once. The pages are in a random order and do not say who listed a label; `key.csv` in the
folder does. What a person saw is in benchmarks/looked.csv: *error*, *arguable* or *right*, and what
was seen `earlier`, where the label was in a list before our ranking changed. The pictures have 160
pixels, so some small things cannot be seen on them. Needs cleanlab, as benchmarks/findings.py does.
"""

from __future__ import annotations

import csv
import sys
from collections import Counter, defaultdict
from operator import eq
from pathlib import Path

import numpy as np
import rankings
import torch
from folds import cross_validate
from label_sets import SHARED, load_case
from PIL import Image, ImageDraw
from results import ROOT, put
from sklearn.metrics import cohen_kappa_score
from torch import Tensor

from balancemix.auditing.judged import judge_features
from balancemix.data import FeatureRows
from balancemix.files import write_sheet

PICTURES = SHARED / "coco160" / "images"
SEEN = ROOT / "benchmarks" / "looked.csv"
MOST = 40
VERDICTS = ("error", "arguable", "right")
ACROSS, DOWN, EDGE, LINE = 4, 3, 300, 40  # of a page, in pictures and pixels

Label = tuple[int, int]  # row and class


def main(words: list[str]) -> None:
    """Draw pages, or count what was seen."""
    if words[:1] == ["draw"] and len(words) == 2:
        draw(Path(words[1]))
    elif words == ["count"]:
        put("looked", table(read_seen()))
    else:
        sys.exit(__doc__)


def draw(folder: Path) -> None:
    """Rank all labels, and draw the first of each list on pages."""
    rows = all_rows()
    given = rows.given
    ours = judge_features(given, rows.features.float()).doubt
    plan = load_case(("COCO, Lite0", "none", 0)).plan
    theirs = -rankings.quality(given, cross_validate(rows, plan, "logistic"))
    listed: dict[Label, list[tuple[str, str, int]]] = defaultdict(list)
    for by, ranking in (("balancemix", ours), ("cleanlab", theirs)):
        for problem, side in (("wrong", 1), ("missing", 0)):
            for rank, label in enumerate(first(ranking, given == side), start=1):
                listed[label].append((by, problem, rank))
    labels = sorted(listed)
    np.random.default_rng(0).shuffle(labels)
    folder.mkdir(parents=True, exist_ok=True)
    names, classes = rows.names, rows.classes
    size = ACROSS * DOWN
    for page in range(0, len(labels), size):
        tiles = [
            (page + i, names[n], classes[k], bool(given[n, k]))
            for i, (n, k) in enumerate(labels[page : page + size])
        ]
        sheet(tiles).save(folder / f"page-{page // size + 1:02}.png")
    key = [
        (number, names[n], classes[k], by, problem, rank)
        for number, (n, k) in enumerate(labels)
        for by, problem, rank in listed[n, k]
    ]
    write_sheet(folder / "key.csv", ("number", "image", "class", "by", "problem", "rank"), key)
    print(f"{len(labels)} labels on {-(-len(labels) // size)} pages: {folder}")


def all_rows() -> FeatureRows:
    """Read training and test rows together."""
    with np.load(SHARED / "coco160-features.npz") as arrays:
        features, labels = (torch.from_numpy(arrays[name]) for name in ("features", "labels"))
        classes, images = (arrays[name].astype(str).tolist() for name in ("classes", "images"))
    rows = FeatureRows(features, labels.to(torch.uint8), classes)
    rows.names = images
    return rows


def first(ranking: Tensor, side: Tensor) -> list[Label]:
    """List the labels of a side that are to be looked at first."""
    order = ranking.masked_fill(~side, -torch.inf).flatten().argsort(descending=True, stable=True)
    return [divmod(int(place), ranking.shape[1]) for place in order[:MOST]]


def sheet(tiles: list[tuple[int, str, str, bool]]) -> Image.Image:
    """Draw pictures with the question of each above it."""
    page = Image.new("RGB", (ACROSS * EDGE, DOWN * (EDGE + LINE)), "white")
    pen = ImageDraw.Draw(page)
    for place, (number, name, class_, given) in enumerate(tiles):
        x, y = place % ACROSS * EDGE, place // ACROSS * (EDGE + LINE)
        what = "labelled" if given else "not labelled"
        pen.text((x + 6, y + 4), f"{number}. {class_}?", "black", font_size=18)
        pen.text((x + 6, y + 24), what, "black", font_size=13)
        with Image.open(PICTURES / name) as picture:
            page.paste(picture.convert("RGB").resize((EDGE - 6, EDGE - 6)), (x + 3, y + LINE))
    return page


Line = dict[str, str]  # of benchmarks/looked.csv


def read_seen() -> list[Line]:
    """Read what was listed, by whom, and what a person saw."""
    with SEEN.open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    for number, line in enumerate(lines, start=2):
        if line["verdict"] not in VERDICTS:
            sys.exit(f"{SEEN.name}, line {number}: {line['verdict']!r} is not {VERDICTS}")
    return lines


def table(lines: list[Line]) -> str:
    """Count the verdicts of each list."""
    head = ("list", "by", "looked at", "really an error", "arguable", "the label is right")
    rows = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for problem in ("wrong", "missing"):
        for by in ("balancemix", "cleanlab"):
            here = [x for x in lines if (x["by"], x["problem"]) == (by, problem)]
            seen = Counter(x["verdict"] for x in here)
            counts = (str(seen[verdict]) for verdict in VERDICTS)
            rows.append(f"| {' | '.join((problem, by, str(len(here)), *counts))} |")
    return "\n".join([*rows, "", looked_at_twice(lines)]) + "\n"


def looked_at_twice(lines: list[Line]) -> str:
    """Say how often the second look agreed with the first."""
    both = {(x["image"], x["class"]): (x["earlier"], x["verdict"]) for x in lines if x["earlier"]}
    first, second = zip(*both.values(), strict=True)
    same = sum(map(eq, first, second))
    kappa = cohen_kappa_score(first, second)
    return f"{len(both)} labels were looked at twice: {same} verdicts are the same (κ {kappa:.2f})."


if __name__ == "__main__":
    main(sys.argv[1:])
