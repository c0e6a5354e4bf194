"""Is it harm, or the noise of training again? The control of docs/tables/harm.md.

    python benchmarks/harm_control.py            # goes on where it was stopped
    python benchmarks/harm_control.py right      # only this control
    python benchmarks/harm_control.py --table    # write the table of what has ended

BCE is trained once more with each seed of `harm.py` where the rarest classes seemed to lose: on
single positives with a person who is right, and on captions with one who errs in a tenth of the
answers. The person settles the same pictures:

right       the answers, and as many labels as the audit changed, drawn from the true errors
nothing     the labels as they are, with another initialisation and order of batches
answers     the person's answers, and nothing of the audit's
audit       the answers and the audit's changes, with another initialisation and order of batches
where       as `right`, drawn from the errors of the classes in which the audit changed labels

What `right` and `where` change is right by construction: an interval below 0 there is no harm that
a rule could prevent. The same holds for `answers`, which are the person's own. What has ended is
kept in benchmarks/harm_control.jsonl.
"""

from __future__ import annotations

import dataclasses
import sys
import warnings
from statistics import mean

import harm
import torch
from label_sets import load_case, train_last
from paired import over_seeds
from records import Record, Records
from results import put
from torch import Tensor

from balancemix.training.fit import true_groups

CONTROLS = ("right", "nothing", "answers", "audit", "where")
ANEW = ("nothing", "audit")  # trained with another seed
SINGLE, CAPTIONS = (harm.LITE0, "single", 0.0), ("captions", "real", 0.1)  # set, noise, errs
# Of each place, the controls with as many seeds as `harm.py` has there, and those with the usual.
PLACES = {SINGLE: (CONTROLS[:1], CONTROLS[1:]), CAPTIONS: (("answers",), ())}
COLUMNS = ("mAP", "mAP_few")
KEY = ("set", "noise", "errs", "control", "seed")


def main(words: list[str]) -> None:
    """Measure what is missing, and write the table."""
    records = Records("harm_control", KEY)
    cells = [
        (*place, control, seed)
        for place, (many, usual) in PLACES.items()
        for control in (*many, *usual)
        for seed in (harm.MANY if control in many else harm.USUAL)
        if not words or control in words
    ]
    for cell in records.missing(cells) if "--table" not in words else ():
        print(*cell, f"mAP {records.add(measure(*cell))['mAP']:.2f}", flush=True)
    put("harm-control", table(records.all, Records("harm", harm.KEY).all))


def measure(name: str, kind: str, errs: float, control: str, seed: int) -> Record:
    """Change labels as a control says, and train on the result."""
    case = name, kind, seed
    experiment = load_case(case)
    rows, plan = experiment.train, experiment.plan
    truth = rows.truth
    assert truth is not None
    drawn, said = harm.settle(rows, seed, errs)
    decided = rows.given.clone()
    decided[drawn] = said
    after = harm.correct(case, rows.given, drawn, said)[0]
    by_audit = after != decided
    few = torch.zeros(by_audit.shape[1], dtype=torch.bool)
    few[true_groups(rows, plan)["few"]] = True
    facts: Record = dict(zip(KEY, (name, kind, errs, control, seed), strict=True))
    for part, classes in (("few", few), ("others", ~few)):
        changed = by_audit[:, classes]
        facts[f"{part}_changed"] = int(changed.sum())
        facts[f"{part}_right"] = int((changed & (after == truth)[:, classes]).sum())
    generator = torch.Generator().manual_seed(3000 + seed)
    labels = {"nothing": rows.given, "answers": decided, "audit": after}.get(control)
    if labels is None:
        by_class = by_audit.sum(0) if control == "where" else None
        labels = corrected(decided, truth, int(by_audit.sum()), generator, by_class)
    if control in ANEW:
        plan = dataclasses.replace(plan, seed=100 + seed)
    scores = train_last(plan, rows.with_given(labels, truth), experiment.test)
    return {**facts, **{column: scores[column] for column in COLUMNS}}


def corrected(
    given: Tensor,
    truth: Tensor,
    count: int,
    generator: torch.Generator,
    by_class: Tensor | None = None,
) -> Tensor:
    """Correct as many errors of N×K labels, drawn at random; or as many of each class.

    >>> generator = torch.Generator().manual_seed(0)
    >>> given, truth = torch.zeros(9, 2).int(), torch.ones(9, 2).int()
    >>> corrected(given, truth, 3, generator, torch.tensor([0, 3])).sum(0)
    tensor([0, 3])
    """
    labels, rows, columns = given.clone(), *(given != truth).nonzero(as_tuple=True)
    order = torch.randperm(len(rows), generator=generator)
    rows, columns = rows[order], columns[order]
    if by_class is None:
        chosen = torch.arange(min(count, len(rows)))
    else:
        counts = enumerate(by_class.tolist())
        chosen = torch.cat([(columns == k).nonzero()[:, 0][:n] for k, n in counts])
    rows, columns = rows[chosen], columns[chosen]
    labels[rows, columns] = truth[rows, columns]
    return labels


def table(kept: list[Record], main_lines: list[Record]) -> str:
    """Write the change of each control from the labels as they are, by seed; and where it was."""
    lines = [
        "| set | errs | labels | seeds | mAP: change, 95 % | few-shot: change, 95 % | by seed |",
        "|---" * 7 + "|",
    ]
    said = []
    for name, kind, errs in PLACES:
        here = [r for r in kept if (r["set"], r["noise"], r["errs"]) == (name, kind, errs)]
        place = harm.heading(name, kind)
        base = by_seed(main_lines, name, kind, None)
        shown = {"audit (the table above)": by_seed(main_lines, name, kind, errs)}
        for control in CONTROLS:
            title = f"{control}, another seed" if control in ANEW else control
            shown[title] = {r["seed"]: r for r in here if r["control"] == control}
        for title, scores in shown.items():
            if seeds := sorted(scores.keys() & base.keys()):
                pairs = [[(scores[s][c], base[s][c]) for s in seeds] for c in COLUMNS]
                gaps = [over_seeds(*zip(*pair, strict=True)) for pair in pairs]
                ranges = [f"{g.mean:+.2f} ({g.low:+.2f} to {g.high:+.2f})" for g in gaps]
                each = ", ".join(f"{a - b:+.1f}" for a, b in pairs[1])
                row = (place, f"{100 * errs:g} %", title, str(len(seeds)), *ranges, each)
                lines.append(f"| {' | '.join(row)} |")
        said.append(f"On {place} the audit changed {where_changed(here)}.")
    return "\n".join([*lines, "", *said]) + "\n"


def where_changed(kept: list[Record]) -> str:
    """Say how many labels a seed changed in rare and in other classes, and how many rightly."""
    facts = {r["seed"]: r for r in kept}.values()
    return "; ".join(
        f"{mean(r[f'{part}_changed'] for r in facts):.0f} labels a seed in {what}, "
        f"{sum(r[f'{part}_right'] for r in facts)} right in all"
        for part, what in (("few", "the rarest third"), ("others", "the other classes"))
    )


def by_seed(
    main_lines: list[Record], name: str, kind: str, errs: float | None
) -> dict[int, Record]:
    """Find the lines of harm.py that are of some labels and of one person."""
    of = (name, kind, errs)
    return {r["seed"]: r for r in main_lines if (r["set"], r["noise"], r["errs"]) == of}


if __name__ == "__main__":
    warnings.simplefilter("ignore", UserWarning)
    torch.set_num_threads(1)
    main(sys.argv[1:])
