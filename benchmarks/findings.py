"""Which labels are wrong? Ours against cleanlab on the same features: docs/tables/findings.md.

    python benchmarks/findings.py                  # goes on where it was stopped
    python benchmarks/findings.py again NAME …     # rank again by what has changed
    python benchmarks/findings.py --table          # write the tables of what has ended
    python benchmarks/findings.py time             # from features to findings, as a ratio

The training rows of each set are ranked with planted errors (three seeds) or with real ones,
present and absent labels apart, and the ranking is scored by the truth. cleanlab gets the
confidence that its manual asks for, by five-fold cross-validation (BCE, the head and recipe of our
other tables), and also the judge's. Needs cleanlab: `pip install --group benchmark`. What has ended
is kept in benchmarks/findings.jsonl, a line for each ranking.
"""

from __future__ import annotations

import dataclasses
import sys
import time
import warnings
from collections import defaultdict
from statistics import mean

import rankings
import torch
from folds import cross_validate, cross_validated
from label_sets import HEADINGS, REAL, Case, cases, factored, judged, load_case
from photos import report
from records import Record, Records
from results import put

from balancemix.data import FeatureRows
from balancemix.judge import judge
from balancemix.judge.ridge import Ridge
from balancemix.options import HIDDEN
from balancemix.training.features import features_of

SEEDS = (0, 1, 2)
OURS = "balancemix"
CONTROLS = {"score": "ridge score", "confidence": "confidence", "posterior": "posterior"}
HEADS, JUDGE = ("logistic", "bce"), "judge"  # where cleanlab's confidence is from
DEFAULT = "self_confidence"  # cleanlab's ranker, if none is asked for
SIDES = ("wrong", "missing")
SCORES = {"ap": "average precision", "at": "precision at the number of errors"}


def main(words: list[str]) -> None:
    """Measure what is missing, and write the tables."""
    if words == ["time"]:
        take_time(("COCO, Lite0", "mislabel:0.4", 0))
        return
    records = Records("findings", ("set", "noise", "seed", "by"))
    if words[:1] == ["again"]:
        records.keep(lambda record: record["by"] not in words[1:])
    heads = list(HEADS) if "bce" in words else ["logistic"]
    for case in cases(SEEDS[:1] if "bce" in words else SEEDS) if "--table" not in words else ():
        known = {record["by"] for record in records.all if case_of(record) == case}
        for record in measure(case, known, heads):
            records.add(record)
        print(*case, flush=True)
    put("findings", tables(records.all))


def case_of(record: Record) -> Case:
    """Say which case a line is of."""
    return record["set"], record["noise"], record["seed"]


def measure(case: Case, known: set[str], heads: list[str]) -> list[Record]:
    """Rank the labels of a case in every way that is not known yet."""
    rows = load_case(case).train
    assert rows.truth is not None
    theirs = {source: {by(name, source) for name in names()} for source in (*heads, JUDGE)}
    ranked: dict[str, torch.Tensor] = {}
    if not known >= {OURS, *CONTROLS, *theirs[JUDGE]}:
        opinion = judged(case)
        ranked |= rankings.of_judge(rows.given, opinion, factored(case[0]))
    for source, expected in theirs.items():
        if not known >= expected:
            confidence = opinion.confidence if source == JUDGE else cross_validated(case, source)
            found = rankings.of_cleanlab(rows.given, confidence)
            ranked |= {by(name, source): ranking for name, ranking in found.items()}
    facts = dict(zip(("set", "noise", "seed"), case, strict=True))
    return [
        {**facts, "by": name, **rankings.score(rows.given, rows.truth, ranking)}
        for name, ranking in ranked.items()
        if name not in known
    ]


def names() -> list[str]:
    """List cleanlab's rankers and filters."""
    return [*rankings.RANKERS, *(f"filter {name}" for name in rankings.FILTERS)]


def by(name: str, source: str) -> str:
    """Name a ranking of cleanlab's by where its confidence is from."""
    return f"cleanlab {name} ({source})"


def take_time(case: Case) -> None:
    """Report how many times longer cleanlab takes from features to a ranking."""
    experiment = load_case(case)
    rows, plan = experiment.train, experiment.plan
    assert isinstance(rows, FeatureRows)
    start, work = time.perf_counter(), time.process_time()
    ridge = Ridge.of(features_of(rows, plan))
    rankings.of_judge(rows.given, judge(rows.given, ridge), ridge)
    ours, our_work = time.perf_counter() - start, time.process_time() - work
    default = dataclasses.replace(plan, model=dataclasses.replace(plan.model, hidden=HIDDEN))
    heads = [(head, head, plan) for head in HEADS]
    for name, head, its_plan in [*heads, (f"bce with {HIDDEN:,} hidden units", "bce", default)]:
        start, work = time.perf_counter(), time.process_time()
        confidence = cross_validate(rows, its_plan, head)
        trained, their_work = time.perf_counter() - start, time.process_time() - work
        rankings.quality(rows.given, confidence)
        theirs = time.perf_counter() - start
        report("findings", f"cleanlab, five folds of {name}, against ours: features to findings",
               theirs / ours, ">= 10", seconds=ours, folds_seconds=trained,
               ranker_seconds=theirs - trained, processor_seconds=our_work,
               processor_ratio=their_work / our_work)  # fmt: skip


def tables(kept: list[Record]) -> str:
    """Write a table of each score, what is ahead, and the mean of every ranking."""
    means = over_seeds(kept)
    text = "".join(f"\n{title[0].upper()}{title[1:]}\n\n{cells(means, key)}"
                   for key, title in SCORES.items())  # fmt: skip
    return f"{text}\n{every(means)}"


Means = dict[tuple[str, str], dict[str, Record]]  # by set and noise, then by ranking


def over_seeds(kept: list[Record]) -> Means:
    """Average the scores of a ranking over the seeds, with the number of seeds."""
    found: dict[tuple[str, str], dict[str, list[Record]]] = defaultdict(lambda: defaultdict(list))
    for record in kept:
        found[record["set"], record["noise"]][record["by"]].append(record)
    means: Means = {}
    for place, rankings_here in found.items():
        means[place] = {}
        for name, lines in rankings_here.items():
            numbers = [key for key, value in lines[0].items() if key.startswith(SIDES)]
            average = {key: mean(line[key] for line in lines) for key in numbers}
            means[place][name] = {**average, "seeds": len(lines)}
    return means


def cells(means: Means, score: str) -> str:
    """Write a table of one score: a line for each set, noise and side."""
    sources = (*HEADS, JUDGE)
    head = ("set", "noise", "list", "errors", "at random", *CONTROLS.values(),
            *(f"cleanlab, {source}" for source in sources), "ours")  # fmt: skip
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    ahead: dict[str, list[bool]] = {source: [] for source in sources}
    plain, default = [], by(DEFAULT, HEADS[0])
    for (name, noise), ranked in means.items():
        for side in SIDES:
            key = f"{side}_{score}"
            if key not in ranked.get(OURS, {}):
                continue
            errors, labels = (ranked[OURS][f"{side}_{what}"] for what in ("errors", "labels"))
            others = [ranked[control][key] for control in CONTROLS]
            best = {source: best_of(ranked, source, key) for source in sources}
            ours = ranked[OURS][key]
            for source, theirs in best.items():
                if theirs is not None:
                    ahead[source].append(ours > theirs)
            if default in ranked:
                plain.append(ours > ranked[default][key])
            numbers = [100 * errors / labels, *others, *best.values()]
            row = [name, HEADINGS[noise], side, f"{errors:,.0f}"]
            row += ["–" if number is None else f"{number:.1f}" for number in numbers]
            row.append(
                f"**{ours:.1f}**" if ours > max(filter(None, best.values())) else f"{ours:.1f}"
            )
            lines.append(f"| {' | '.join(row)} |")
    counts = [f"{sum(each)} of {len(each)} lines ({source})" for source, each in ahead.items()]
    text = f"Ahead of cleanlab's best in {', '.join(counts)}; of its default ranker in "
    return "\n".join(lines) + f"\n\n{text}{sum(plain)} of {len(plain)} (logistic).\n"


def best_of(ranked: dict[str, Record], source: str, key: str) -> float | None:
    """Return the best score of cleanlab's rankings of a source, chosen by the truth."""
    scores = [each[key] for name, each in ranked.items() if name.endswith(f"({source})")]
    return max(scores, default=None)


def every(means: Means) -> str:
    """Write the mean average precision of every ranking that was made of all sets."""
    lines = ["Mean average precision of every ranking, of sets with planted and with real errors\n",
             "| ranking | planted, wrong | planted, missing | real, wrong | real, missing |",
             "|---|---|---|---|---|"]  # fmt: skip
    for name in (OURS, *CONTROLS, *(by(each, s) for s in (*HEADS, JUDGE) for each in names())):
        if not all(name in ranked for ranked in means.values()):
            continue
        row = [CONTROLS.get(name, name)]
        for real in (False, True):
            here = [each[name] for place, each in means.items() if (place[0] in REAL) == real]
            for side in SIDES:
                scores = [each[f"{side}_ap"] for each in here if f"{side}_ap" in each]
                row.append(f"{mean(scores):.1f}" if scores else "–")
        lines.append(f"| {' | '.join(row)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    warnings.simplefilter("ignore", UserWarning)
    torch.set_num_threads(2 if sys.argv[1:] == ["time"] else 1)
    try:
        import cleanlab  # noqa: F401
    except ImportError:
        print("findings: skipped, cleanlab is not installed; `pip install --group benchmark`")
    else:
        main(sys.argv[1:])
