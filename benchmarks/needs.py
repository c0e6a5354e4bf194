"""Should rare classes be asked about first? mAP by answers and order: docs/review-numbers.md.

    python benchmarks/needs.py             # goes on where it was stopped
    python benchmarks/needs.py --table     # write the table of what has ended

A person with the truth at hand answers findings of an audit (probability of at least 0.1), in one
of five orders; then kernel ridge is trained on the result, with the answers verified:

random   findings in a random order
p        the surest findings first
γ        pictures by the score of the review page, need = ((n̄ + 10)/(n + 10))^γ: γ of 0, ½ and 1

The page's orders are computed again every fifty answers, with what was answered. What has ended is
kept in benchmarks/needs.jsonl, a line for each training.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from statistics import mean
from typing import NamedTuple

import numpy as np
import torch
from paired import over_seeds
from records import Record, Records
from results import put
from worth import prepared, probabilities, train, true_labels

from balancemix.review.order import EVERY, Floats, Ints, picture_order

SETS: dict[str, tuple[str, str]] = {
    "mislabel 20 %": ("COCO, Lite0", "mislabel:0.2"),
    "mislabel 40 %": ("COCO, Lite0", "mislabel:0.4"),
    "birds": ("birds", "real"),
    "captions": ("captions", "real"),
    "single": ("COCO, Lite0", "single"),
}
ANSWERS = (2000, 500)  # of captions, 2,000 are all findings
ABOVE = 0.1  # a long list, on which an order matters
ORDERS: dict[str, float | None] = {"random": None, "p": None, "γ 0": 0.0, "γ ½": 0.5, "γ 1": 1.0}
STUDENT = "kernel-ridge"
SEEDS = (0, 1)
KEY = ("set", "seed", "order", "answers")


class Listed(NamedTuple):
    """Findings as arrays."""

    row: Ints
    column: Ints
    given: Ints
    p: Floats


def main(words: list[str]) -> None:
    """Measure what is missing, and write the table."""
    records = Records("needs", KEY)
    for key in records.missing(keys()) if "--table" not in words else ():
        record = records.add(measure(*key))
        print(*key, f"mAP {record['mAP']:.2f}", flush=True)
    put("needs", table(records.all))


def keys() -> Iterator[tuple[str, int, str, int]]:
    """List the trainings; real noise has no seeds of its own, only the random order has."""
    for seed in SEEDS:
        for answers in ANSWERS:
            for name in SETS:
                for order in ORDERS:
                    if seed == SEEDS[0] or SETS[name][1] != "real" or order == "random":
                        yield name, seed, order, answers


def measure(name: str, seed: int, order: str, answers: int) -> Record:
    """Answer so many findings in an order, and train on the result."""
    case = (*SETS[name], 0 if SETS[name][1] == "real" else seed)
    rows, truth = prepared(case).train, true_labels(case)
    asked = choose(case, order, answers, seed)
    verified = torch.zeros(rows.given.shape, dtype=torch.bool)
    verified[asked] = True
    given = torch.where(verified, truth, rows.given)
    scores = train(case, STUDENT, rows.with_given(given, truth).with_verified(verified))
    facts = {
        "asked": int(verified.sum()),
        "fixed": int((given != rows.given).sum()),
        "mAP": scores["mAP"],
        "mAP_few": scores["mAP_few"],
    }
    return {**dict(zip(KEY, (name, seed, order, answers), strict=True)), **facts}


def choose(case: tuple[str, str, int], order: str, answers: int, seed: int) -> tuple[Ints, Ints]:
    """Say which labels are answered: rows and columns."""
    given, truth = prepared(case).train.given.numpy(), true_labels(case).numpy()
    p = probabilities(case).double().numpy()
    row, column = np.nonzero((p >= ABOVE) & (given >= 0))
    findings = Listed(row, column, given[row, column].astype(np.int64), p[row, column])
    gamma = ORDERS[order]
    if order == "random":
        chosen = np.random.default_rng(seed).permutation(len(row))[:answers]
    elif gamma is None:
        chosen = np.argsort(-findings.p, kind="stable")[:answers]
    else:
        error = (given != truth)[row, column].astype(np.int64)
        chosen = by_pictures(findings, error, (given > 0).sum(0), gamma, answers)
    return row[chosen], column[chosen]


def by_pictures(findings: Listed, error: Ints, counts: Ints, gamma: float, answers: int) -> Ints:
    """Answer findings in the order of the review page, computed again every fifty answers."""
    said, asked = np.full(len(error), -1, dtype=np.int64), list[int]()
    while len(asked) < answers and (said < 0).any():
        limit = len(asked) + EVERY
        for row in picture_order(findings, said < 0, said, counts, gamma=gamma):
            inside = np.flatnonzero((findings.row == row) & (said < 0))
            asked += inside.tolist()
            said[inside] = error[inside]
            if len(asked) >= limit:
                break
    return np.array(asked[:answers], dtype=np.int64)


def table(kept: list[Record]) -> str:
    """Write mAP after equal numbers of answers by order, and γ ½ less γ 0 of the same seeds."""
    few = " | ".join(f"few, {order}" for order in ORDERS)
    lines = [
        f"| labels | answers | {' | '.join(ORDERS)} | γ ½ less γ 0 | {few} |",
        "|---|--:" + "|--:" * (2 * len(ORDERS) + 1) + "|",
    ]
    found: dict[tuple[str, int], dict[str, dict[int, Record]]] = {}
    for record in kept:
        cell = found.setdefault((record["set"], record["answers"]), {})
        cell.setdefault(record["order"], {})[record["seed"]] = record
    for name, answers in sorted(found, key=lambda cell: ([*SETS].index(cell[0]), cell[1])):
        here = found[name, answers]
        scores = {
            key: [f"{mean(r[key] for r in here[o].values()):.2f}" if o in here else "–"
                  for o in ORDERS]
            for key in ("mAP", "mAP_few")
        }  # fmt: skip
        gap = "–"
        if both := sorted(here.get("γ ½", {}).keys() & here.get("γ 0", {}).keys()):
            change = over_seeds(*([here[o][s]["mAP"] for s in both] for o in ("γ ½", "γ 0")))
            error = f" ± {change.error:.2f}" if len(both) > 1 else ""
            gap = f"{change.mean:+.2f}{error}"
        cells = [name, f"{answers:,}", *scores["mAP"], gap, *scores["mAP_few"]]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    warnings.simplefilter("ignore", UserWarning)
    torch.set_num_threads(1)
    main(sys.argv[1:])
