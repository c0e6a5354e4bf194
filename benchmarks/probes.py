"""Do the probes know what is left? Reviews played through on known truth: docs/review-numbers.md.

    python benchmarks/probes.py            # goes on where it was stopped
    python benchmarks/probes.py --table    # write the table of what has ended

A person with the truth at hand answers the findings of an audit (probability of at least 0.5, or
of at least 0.1: a longer list) in the order of the review page, one question in ten a probe. After
some answers, the errors left among the findings are estimated by the probes, and compared with the
truth. 200 reviews of each cell, with other probes each time. Four ways to go through the list:

focus   picture by picture, as the page orders them
sweep   as focus, but every third hundred answers are pages of 32 labels, the surest missing ones of
        the class that has most of them
skip    as focus, but one picture in five is skipped for good
hard    as skip, but of those with an error one in four is skipped, of the others one in ten: what
        nobody answers, no estimate can know

The control is the sum of the modelled probabilities of what is left. What has ended is kept in
benchmarks/probes.jsonl, a line for each set and way.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import Any, NamedTuple

import known
import numpy as np
import torch
from known import CLEAN, Floats
from records import Record, Records
from results import put

from balancemix.auditing.judged import weigh
from balancemix.estimates.estimate import Estimate
from balancemix.judge.opinion import is_judged
from balancemix.review.order import EVERY, Bools, Ints, picture_order, worth_of
from balancemix.review.probes import probe_order, turns, weigh_probes, what_is_left

NAMES = ("captions", "birds", "mislabel 20 %", "mislabel 40 %", "single positive", *CLEAN)
REVIEWS = 200
AFTER = (250, 500, 1000, 2000)  # answers
WAYS = ("focus", "sweep", "skip", "hard")
PAGE = 32
ABOVE = (0.5, 0.1)  # lists: the usual one, and a longer one
KEY = ("set", "above", "way")


class Listed(NamedTuple):
    """The findings of a set, whether each is an error, and the given labels of each class."""

    row: Ints
    column: Ints
    given: Ints
    p: Floats
    error: Ints
    counts: Ints


class Look(NamedTuple):
    """What the page would say after so many answers, and how it is."""

    left: int
    truth: int
    modelled: float
    estimate: Estimate | None


def main(words: list[str]) -> None:
    """Measure what is missing, and write the table."""
    records = Records("probes", KEY)
    cells = product(NAMES, ABOVE, WAYS)
    for cell in records.missing(cells) if "--table" not in words else ():
        record = records.add(dict(zip(KEY, cell, strict=True)) | measure(*cell))
        print(*cell, [look.get("covers") for look in record["looks"]], flush=True)
    put("probes", table(records.all))


def measure(name: str, above: float, way: str, reviews: int = REVIEWS) -> Record:
    """Play through many reviews, and compare what the page says with the truth."""
    findings = listed(name, above)
    all_looks = [list(review(findings, way, seed)) for seed in range(reviews)]
    looks = [
        {"answers": count, **summary([looks[i] for looks in all_looks])}
        for i, count in enumerate(AFTER)
        if i < min(map(len, all_looks))
    ]
    return {"findings": len(findings.p), "errors": int(findings.error.sum()), "looks": looks}


@cache
def listed(name: str, above: float) -> Listed:
    """List the findings of a set."""
    data = known.load(name)
    given = torch.from_numpy(data.given.astype(np.int8))
    score, confidence, posterior = (
        torch.from_numpy(each.astype(np.float32))
        for each in (data.score, data.confidence, data.posterior)
    )
    judged = weigh(given, score, confidence, posterior, is_judged(given, score))
    p = judged.probability.double().numpy()
    row, column = np.nonzero(p >= above)
    return Listed(
        row,
        column,
        data.given[row, column].astype(np.int64),
        p[row, column],
        data.error[row, column].astype(np.int64),
        data.given.sum(0).astype(np.int64),
    )


def review(findings: Listed, way: str, seed: int) -> Iterator[Look]:
    """Answer findings in the page's order, and look at what is left now and then."""
    size = len(findings.p)
    open_, said = np.ones(size, dtype=bool), np.full(size, -1, dtype=np.int64)
    probed, swept = np.zeros((2, size), dtype=bool)
    order, since, answers = probe_order(size, seed), 0, 0
    skipped = skip(findings, way, seed)
    while answers < AFTER[-1] and open_.any():
        if way == "sweep" and answers // 100 % 3 == 2:
            page = next_page(findings, open_)
            swept[page] = True
        else:
            asks = open_ & ~skipped
            if not asks.any():
                return
            page, probe, since = next_pictures(findings, asks, said, order, since)
            probed[probe] = True
        before = answers
        answers += len(page)
        open_[page], said[page] = False, findings.error[page]
        if any(before < count <= answers for count in AFTER):
            worth = worth_of(findings, said, findings.counts)
            weight = weigh_probes(findings, worth, open_, probed, swept)
            left = what_is_left(findings, open_, probed, weight, said)
            truth = int(findings.error[open_].sum())
            yield Look(left.left, truth, float(findings.p[open_].sum()), left.estimate)


def skip(findings: Listed, way: str, seed: int) -> Bools:
    """Choose the findings of pictures that a person skips."""
    chance = np.random.default_rng([seed, 1]).random(int(findings.row.max()) + 1)
    errors = np.bincount(findings.row, findings.error, minlength=len(chance)) > 0
    share = {"skip": np.full(len(chance), 0.2), "hard": np.where(errors, 0.25, 0.1)}
    skipped: Bools = (chance < share.get(way, np.zeros(len(chance))))[findings.row]
    return skipped


def next_pictures(
    findings: Listed, open_: Bools, said: Ints, order: Ints, since: int
) -> tuple[Ints, list[int], int]:
    """Show pictures until fifty questions are answered: these, the probes, and since when."""
    rows = picture_order(findings, open_, said, findings.counts)
    asked: list[int] = []
    probes: list[int] = []
    by_row = np.argsort(findings.row, kind="stable")
    edges = np.searchsorted(findings.row[by_row], np.arange(int(findings.row.max()) + 2))
    for turn in turns(rows, findings, open_, order, since):
        inside = by_row[edges[turn.row] : edges[turn.row + 1]]
        inside = inside[open_[inside]]
        asked += inside.tolist()
        if turn.probe is None:
            since += len(inside)
        else:
            probes.append(turn.probe)
            since = len(inside) - 1
        if len(asked) >= EVERY:
            break
    else:
        since = 0  # nothing is left but what was shown
    return np.array(asked, dtype=np.int64), probes, since


def next_page(findings: Listed, open_: Bools) -> Ints:
    """Choose a page of missing labels of the class with most of them, the surest first."""
    here = np.flatnonzero(open_ & (findings.given == 0))
    if not len(here):
        here = np.flatnonzero(open_)
    most = np.bincount(findings.column[here]).argmax()
    of_class = here[findings.column[here] == most]
    surest: Ints = of_class[np.argsort(-findings.p[of_class], kind="stable")]
    return surest[:PAGE]


def summary(looks: list[Look]) -> dict[str, Any]:
    """Summarise what the page said: how often it held the truth, how wide, how far off."""
    pairs = [(look, look.estimate) for look in looks if look.estimate is not None]
    facts = {
        "left": float(np.median([look.left for look in looks])),
        "truth": float(np.median([look.truth for look in looks])),
        "modelled": round(float(np.median([look.modelled for look in looks])), 1),
        "silent": round(1 - len(pairs) / len(looks), 4),
    }
    if len(pairs) < len(looks) / 2:
        return facts
    truth = np.array([look.truth for look, _ in pairs], dtype=np.float64)
    value, low, high = np.array([(e.value, e.low, e.high) for _, e in pairs]).T
    unit = max(float(np.median(truth)), 1.0)
    return facts | {
        "covers": round(float(((low <= truth) & (truth <= high)).mean()), 4),
        "too_low": round(float((high < truth).mean()), 4),
        "ratio": round(float(value.mean()) / max(float(truth.mean()), 1.0), 4),
        "half": round(float(np.median(high - low)) / 2 / unit, 4),
        "most": round(float(np.median(high)), 1),
    }


def table(kept: list[Record]) -> str:
    """Write a line for each set, way and number of answers."""
    head = ("labels", "list", "way", "answers", "findings left", "errors left", "covers", "ratio",
            "±", "modelled")  # fmt: skip
    lines = [f"| {' | '.join(head)} |", "|---|---|---" + "|--:" * 7 + "|"]
    place = {cell: i for i, cell in enumerate(product(NAMES, ABOVE, WAYS))}
    for record in sorted(kept, key=lambda record: place[tuple(record[k] for k in KEY)]):
        for look in record["looks"]:
            cells = [
                record["set"],
                f"≥ {record['above']}",
                record["way"],
                f"{look['answers']:,}",
                f"{look['left']:,.0f}",
            ]
            cells += [f"{look['truth']:,.0f}", *said(look)]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def said(look: dict[str, Any]) -> list[str]:
    """Write what the page says, or that it says nothing yet."""
    truth = look["truth"]
    modelled = f"{look['modelled'] / truth:.2f}" if truth >= 1 else f"{look['modelled']:,.0f}"
    if "covers" not in look:
        return ["–", "–", "–", modelled]
    if truth < 1:
        return [f"{look['covers']:.3f}", "–", f"at most {look['most']:,.0f}", modelled]
    return [f"{look['covers']:.3f}", f"{look['ratio']:.2f}", f"{look['half']:.0%}", modelled]


if __name__ == "__main__":
    main(sys.argv[1:])
