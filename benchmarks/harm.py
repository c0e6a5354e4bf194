"""Does correcting labels make them worse? docs/tables/harm.md.

    python benchmarks/harm.py             # goes on where it was stopped
    python benchmarks/harm.py right       # only with a person who is right
    python benchmarks/harm.py before      # only on the labels as they are
    python benchmarks/harm.py --table     # write the table of what has ended

A person settles 50 random training images: every label. The probabilities are calibrated on these
answers, and what `export --above 0.9` would change is changed: labels that are wrong with a
probability of 0.9 and more by the lower end of what was measured, never more on a side than the
upper end. BCE is trained on the labels before and after, with the same seed. `errs` is the share of
the answers that are not the truth: see `answers`.

What has ended is kept in benchmarks/harm.jsonl, a line for each set, seed and person.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Mapping
from itertools import product
from statistics import mean

import numpy as np
import torch
from label_sets import HEADINGS, Case, factored, in_ledger, judged, load_case, train_last
from paired import over_seeds
from records import Record, Records
from results import put
from torch import Tensor

from balancemix.auditing.export import acceptable
from balancemix.auditing.figures import Figures, Settled, measure_pictures
from balancemix.auditing.judged import weigh_opinion
from balancemix.auditing.measured import Measured
from balancemix.data import Rows
from balancemix.judge import judge

LITE0 = "COCO, Lite0"
CASES = (
    (LITE0, "mislabel:0.4"), ("captions", "real"), (LITE0, "none"), ("birds", "real"),
    (LITE0, "flip:0.1"), (LITE0, "mislabel:0.2"), (LITE0, "single"),
)  # fmt: skip
ERRS = (0.0, 0.1)
USUAL, MANY = range(5), range(20)
# What five seeds left open: of these sets and persons there are twenty. See harm_control.py.
OPEN = {
    (LITE0, "single"): ERRS, (LITE0, "mislabel:0.4"): ERRS[1:], ("captions", "real"): ERRS[1:],
    (LITE0, "flip:0.1"): ERRS[1:],
}  # fmt: skip
PEOPLE = {"before": (None,), "right": (None, ERRS[0]), "errs": (None, *ERRS)}
SAMPLE, ABOVE = 50, 0.9
KEY = ("set", "noise", "seed", "errs")
SIDES = {"wrong": 1, "missing": 0}

Key = tuple[str, str, int, float | None]


def main(words: list[str]) -> None:
    """Measure what is missing, and write the table."""
    records = Records("harm", KEY)
    for key in records.missing(keys(*words)) if "--table" not in words else ():
        record = records.add(measure(*key))
        print(*key, f"mAP {record['mAP']:.2f}", flush=True)
    put("harm", table(records.all))


def keys(until: str = "errs") -> Iterator[Key]:
    """List the trainings, of all sets with one seed after another; None is before any change."""
    for seed, case, errs in product(MANY, CASES, PEOPLE[until]):
        people = OPEN.get(case, ())
        if seed in USUAL or errs in people or (people and errs is None):
            yield *case, seed, errs


def measure(name: str, kind: str, seed: int, errs: float | None) -> Record:
    """Settle images, change labels and train on the result; or on the labels as they are."""
    case = name, kind, seed
    rows = load_case(case).train
    facts: Record = dict(zip(KEY, (name, kind, seed, errs), strict=True))
    if errs is None:
        return {**facts, **train(case, rows)}
    truth = rows.given if rows.truth is None else rows.truth
    drawn, said = settle(rows, seed, errs)
    after, figures = correct(case, rows.given, drawn, said)
    by_audit = after != rows.given
    by_audit[drawn] = False
    for side, value in SIDES.items():
        part = by_audit & (rows.given == value)
        facts[f"{side}_changed"] = int(part.sum())
        facts[f"{side}_right"] = int((part & (truth != rows.given)).sum())
        facts[f"{side}_errors"] = int(((truth != rows.given) & (rows.given == value)).sum())
        total = figures[side].total
        facts |= {f"{side}_low": float(total.low), f"{side}_high": float(total.high)}
    facts["settled_changed"] = int((said != rows.given[drawn]).sum())
    facts["errors_before"] = int((rows.given != truth).sum())
    facts["errors_after"] = int((after != truth).sum())
    return {**facts, **train(case, rows.with_given(after, truth))}


def settle(rows: Rows, seed: int, errs: float) -> tuple[Tensor, Tensor]:
    """Draw images, and settle them: their numbers, and all their labels."""
    truth = rows.given if rows.truth is None else rows.truth
    generator = torch.Generator().manual_seed(2000 + seed)
    drawn = torch.randperm(len(rows), generator=generator)[:SAMPLE]
    return drawn, answers(truth[drawn], rows.given[drawn], errs, generator)


def answers(truth: Tensor, given: Tensor, errs: float, generator: torch.Generator) -> Tensor:
    """Answer n×K labels, a share of them wrongly.

    Labels that are present or given are what a person thinks about: of these the share `errs` is
    answered wrongly. As many labels that are neither are ticked by mistake.

    >>> answers(torch.tensor([[1, 0]]), torch.tensor([[0, 0]]), 0.0, torch.Generator())
    tensor([[1, 0]])
    """
    considered = (truth > 0) | (given > 0)
    ratio = float(considered.sum()) / max(float((~considered).sum()), 1.0)
    rate = torch.where(considered, errs, errs * ratio)
    slip = torch.rand(truth.shape, generator=generator) < rate
    return torch.where(slip, 1 - truth, truth)


def correct(
    case: Case, given: Tensor, drawn: Tensor, said: Tensor
) -> tuple[Tensor, Mapping[str, Figures]]:
    """Correct labels as `export --above` does; also returns what was measured of each side.

    The labels are judged as they are to measure them, and once more with the answers verified.
    """
    ridge = factored(case[0])
    before = weigh_opinion(given, judged(case), ridge)
    settled = Settled(drawn.numpy(), said.numpy())
    figures = measure_pictures(before, np.arange(len(given)), settled)
    verified = torch.zeros(given.shape, dtype=torch.bool).index_fill_(0, drawn, True)
    decided = given.clone()
    decided[drawn] = said
    opinion = judge(decided, ridge, verified=verified, before=given)
    after = weigh_opinion(decided, opinion, ridge, verified, given)
    findings, _ = acceptable(after, ABOVE, Measured(len(given), "train", figures=figures))
    return findings.applied(decided), figures


def train(case: Case, rows: Rows) -> dict[str, float]:
    """Train BCE, and score it on the test rows: all classes, and the rarest third."""
    experiment = load_case(case)
    unchanged = torch.equal(rows.given, experiment.train.given)
    last = in_ledger(case, "bce") if unchanged else None
    if last is None:
        last = train_last(experiment.plan, rows, experiment.test)
    return {"mAP": last["mAP"], "mAP_few": last["mAP_few"]}


def table(kept: list[Record]) -> str:
    """Write, for each set and person, what changed and what it did to the model."""
    head = ("set", "errs", "seeds", "wrong: changed, right", "missing: changed, right",
            "errors before", "after", "mAP before", "change, 95 %", "few-shot, 95 %",
            "shown")  # fmt: skip
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for errs, (name, kind) in product(ERRS, CASES):
        here, base = (
            {r["seed"]: r for r in kept if (r["set"], r["noise"], r["errs"]) == (name, kind, who)}
            for who in (errs, None)
        )
        seeds = sorted(here.keys() & base.keys())
        if not seeds:
            continue
        here, before = [here[seed] for seed in seeds], [base[seed] for seed in seeds]
        changes = [f"{summed(here, f'{side}_changed'):,}, {share(here, side)}" for side in SIDES]
        gaps = [
            over_seeds([r[key] for r in here], [r[key] for r in before])
            for key in ("mAP", "mAP_few")
        ]
        ranges = [f"{gap.mean:+.2f} ({gap.low:+.2f} to {gap.high:+.2f})" for gap in gaps]
        row = (heading(name, kind), f"{100 * errs:g} %", str(len(here)),
               *changes, *(f"{mean(r[f'errors_{when}'] for r in here):,.0f}"
                           for when in ("before", "after")),
               f"{mean(r['mAP'] for r in before):.1f}", *ranges,
               verdict(here, [gap.low for gap in gaps]))  # fmt: skip
        lines.append(f"| {' | '.join(row)} |")
    return "\n".join(lines) + "\n"


def heading(name: str, kind: str) -> str:
    """Name a set by its noise, or by itself if its errors are real."""
    return name if kind == "real" else HEADINGS[kind]


def summed(lines: list[Record], key: str) -> int:
    """Sum a count over seeds."""
    return sum(int(line[key]) for line in lines)


def share(lines: list[Record], side: str) -> str:
    """Write the share of a side's changes that are right."""
    changed = summed(lines, f"{side}_changed")
    return f"{100 * summed(lines, f'{side}_right') / changed:.1f} %" if changed else "–"


def verdict(lines: list[Record], lows: list[float]) -> str:
    """Say whether nine in ten changes are right and no score may have fallen by over 0.3."""
    changed = sum(summed(lines, f"{side}_changed") for side in SIDES)
    right = sum(summed(lines, f"{side}_right") for side in SIDES)
    if not changed:
        return "nothing changed"
    return "yes" if right >= 0.9 * changed and all(low >= -0.3 for low in lows) else "**no**"


if __name__ == "__main__":
    warnings.simplefilter("ignore", UserWarning)
    torch.set_num_threads(1)
    main(sys.argv[1:])
