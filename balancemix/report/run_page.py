"""The page of one run: its plan, labels, curves, classes, mixtures and findings."""

import json
import shlex
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from balancemix.auditing.probability import SIDES as PROBLEMS
from balancemix.data import BUILT_IN
from balancemix.evaluation.scoring import headline
from balancemix.labels.classes import NAMES, class_counts, imbalance
from balancemix.report.cards import Cards, make_cards
from balancemix.report.figures import classes, curves, mixtures
from balancemix.report.figures.frequency import by_frequency
from balancemix.report.page import Drawing, Page
from balancemix.report.pictures import PicturedRows, find_folder
from balancemix.report.summary import Summary

SIDES = {1: "positive", 0: "negative"}

RATES = {  # of noise.json, and what they are rates of
    "wrong": "wrong labels, of all",
    "false_positives": "wrong labels, of the given positives",
    "false_negatives": "wrong labels, of the given negatives",
    "lost_positives": "true positives that are not given",
    "flipped_negatives": "true negatives that are given as positives",
    "unknown": "unknown labels, of all",
    "verified": "verified labels, of all",
}

QUALITY = {
    "clean_precision": "labels called clean that are right",
    "clean_recall": "right labels that are called clean",
    "relabel_proportion": "labels that are re-labelled",
    "relabel_accuracy": "re-labelled labels that are then right",
    "fill_proportion": "unknown labels that are filled in",
    "fill_accuracy": "unknown labels that are filled in rightly",
    "flip_proportion": "labels that are flipped",
    "flip_accuracy": "flipped labels that are then right",
    "ambiguous_proportion": "labels that stay in doubt",
    "target_accuracy": "targets that are right",
}

Record = dict[str, Any]  # a row of a table by its header


def make_page(summary: Summary, images: Path | None = None) -> Page:
    """Draw the figures and collect the tables; the text around them is in run.html.

    `images` is the folder of the rows' pictures, if they are not where the data says.
    """
    notable = {k: summary.classes[k] for k in summary.notable_classes()}
    losses = {(k, side): _losses(summary, k, side) for k in notable for side in SIDES}
    rates = summary.noise.get("measured") or summary.noise.get("realised", {})  # older runs
    facts = {
        "summary": summary,
        "results": _results(summary.metrics, solved=summary.penalty is not None),
        "choice": summary.run.choice,
        "plan": _plan(summary),
        "changed": [f"{key} {_setting(value)}" for key, value in summary.changed().items()],
        "ratios": imbalance(summary.known),
        "rates": [
            {"share": what, "%": 100 * rates[key]} for key, what in RATES.items() if key in rates
        ],
        "classes": _classes(summary),
        "notable": notable,
        "sides": SIDES,
        "losses": {chosen: drawing.name for chosen, drawing in losses.items()},
        "mixtures_used": _mixtures_used(summary),
        "selection": _selection(summary.metrics.get("selection", {})),
        "findings": _findings(summary),
        "cards": _pictured(summary, images),
        "review": _review(summary),
    }
    name = summary.plan.data.path.rstrip("/").rsplit("/", 1)[-1]
    drawings = [*_drawings(summary), *losses.values()]
    return Page("run", f"{summary.method} on {name}", drawings, facts)


def _drawings(summary: Summary) -> Iterator[Drawing]:
    kind = "given" if summary.truth is None else "true"
    yield Drawing(
        "distribution",
        classes.distribution(summary.counts.numpy(), summary.groups, summary.classes),
        f"How often each class occurs in training ({kind} labels), and the class groups.",
    )
    keys = {"all": "mAP", **{name: f"mAP_{name}" for name in NAMES}}
    lines = {
        name: [line.get(key, float("nan")) for line in summary.log]
        for name, key in keys.items()
        if key in summary.log[-1]
    }
    if summary.penalty is None:
        yield Drawing(
            "learning",
            curves.learning(lines),
            "Test mAP after each epoch, of all classes and by class group: last (best).",
        )
    elif errors := summary.log[-1].get("leave_one_out"):
        yield Drawing(
            "penalty",
            curves.penalties(errors, summary.penalty),
            "Squared error of each given label by the other rows, summed over the classes, each "
            "divided by its positives; the ring is the penalty that was chosen.",
        )
    if any(key.startswith("upsampling_") for line in summary.log for key in line):
        yield Drawing(
            "upsampling",
            curves.upsampling(summary.log),
            "How many times as often as at random the minority sampler draws the positives of "
            "each class group, and how many rows it effectively draws from.",
        )
    ap, scored_on = summary.ap
    present, absent = (each.numpy() for each in summary.class_confidence)
    counts, groups = summary.counts.numpy(), summary.groups
    yield Drawing(
        "frequency",
        by_frequency(counts, ap.numpy(), present, absent, groups, scored_on),
        "AP and confidence of each class against its frequency. The line joins the means of ten "
        "class groups; Pearson’s r is taken between these, as in the paper’s Fig. 3, here after "
        "the last epoch.",
    )


def _losses(summary: Summary, k: int, side: int) -> Drawing:
    """Draw the losses of a class and side with their mixture."""
    rows = summary.given[:, k] == side
    wrong = None
    if summary.truth is not None:
        truth = summary.truth[rows, k]
        wrong = ((truth >= 0) & (truth != side)).numpy()
    losses = summary.losses[rows, k].numpy()
    figure = mixtures.loss_histogram(losses, summary.mixtures, k, side, wrong)
    caption = f"Losses of “{summary.classes[k]}” where it is given as {SIDES[side]}."
    name = f"losses-{_file_names(summary.classes)[k]}-{SIDES[side]}"
    return Drawing(name, figure, caption)


def _results(metrics: dict[str, Any], *, solved: bool) -> Record:
    last, f1 = metrics["last"], {"CF1": "CF1_mean", "OF1": "OF1"}
    more = {name: last[key] for name, key in f1.items() if key in last}
    seconds = {"solved in" if solved else "an epoch": f"{metrics['seconds_per_epoch']:.1f} s"}
    return {**headline(metrics), **more, **seconds}


def _plan(summary: Summary) -> dict[str, list[Record]]:
    """List the settings of each section; one outside all sections is listed under its name."""
    sections = {}
    for name, content in summary.plan.tree().items():
        settings = content if isinstance(content, dict) else {name: content}
        sections[name] = [{"setting": k, "value": _setting(v)} for k, v in settings.items()]
    return sections


def _classes(summary: Summary) -> list[Record]:
    """List the classes, the commonest first."""
    present, absent = summary.class_confidence
    group_of = {k: name for name, members in summary.groups.items() for k in members}
    given = class_counts(summary.given).tolist()
    return [
        {
            "class": summary.classes[k],
            "group": group_of.get(k, ""),
            "given": given[k],
            **({} if summary.truth is None else {"true": int(summary.counts[k])}),
            "AP, %": float(summary.ap[0][k]),
            "positives": 100 * float(present[k]),
            "negatives": 100 * float(absent[k]),
            "findings": summary.findings_by_class[k],
        }
        for k in summary.counts.argsort(descending=True, stable=True).tolist()
    ]


def _mixtures_used(summary: Summary) -> str:
    """Explain that training did not use the mixtures, or not all of them."""
    if bool((summary.clean == 1).all()):
        return f"They are drawn for comparison only: {summary.method} does not use mixtures."
    if bool((summary.clean[summary.given > 0] == 1).all()):
        return "The given positives were trusted: their mixtures are drawn but were not used."
    return ""


def _selection(quality: dict[str, float]) -> list[Record]:
    def percent(key: str) -> float | None:
        return 100 * quality[key] if key in quality else None

    parts = {"all": "", **{name: f"_{name}" for name in ("positive", "negative", *NAMES)}}
    return [
        {"share, %": what, **{name: percent(key + part) for name, part in parts.items()}}
        for key, what in QUALITY.items()
        if key in quality
    ]


def _findings(summary: Summary, most: int = 20) -> list[Record]:
    """List the first findings of each problem."""
    judged, records = summary.findings.judged, []
    for f in (f for problem in PROBLEMS for f in summary.findings.of(problem)[:most]):
        record = {
            "row": judged.names[f.row],
            "class": judged.classes[f.column],
            "problem": f.problem,
            "probability": f.probability,
            "rank": f.rank,
        }
        if judged.truth is not None:
            truth = int(judged.truth[f.row, f.column])
            words = {f.given: "right", -1: "unknown"}
            record["truth: given is"] = words.get(truth, "an error")
        records.append(record)
    return records


def _pictured(summary: Summary, images: Path | None) -> Cards:
    """Show the rows with the surest findings, and say how many of their pictures are not found."""
    findings, run = summary.findings, summary.run
    folder, source = find_folder(run, images), findings.judged.source
    if images is None and source is not None:
        rows = PicturedRows.of(source, run.plan.data.reading())
    else:
        rows = PicturedRows(findings.judged.names, folder)
    cards = make_cards(findings, rows)
    missing = len(cards) - cards.pictured
    if missing and folder is not None:
        warnings.warn(
            f"{folder}: pictures of rows are not there ({missing} of {len(cards)}); pass --images "
            "and their folder",
            stacklevel=2,
        )
    return cards


def _review(summary: Summary) -> str | None:
    """Name the command that opens the review; None for labels that are in no file."""
    if summary.plan.data.path in BUILT_IN or summary.plan.noise != "none":
        return None
    return shlex.join(["balancemix", "review", str(summary.run.path)])


def _file_names(names: list[str]) -> list[str]:
    """Write names as file names, numbered if two would be the same.

    >>> _file_names(["red cup", "red/cup", "sky"])
    ['red-cup-0', 'red-cup-1', 'sky']
    """
    plain = ["".join(letter if letter.isalnum() else "-" for letter in name) for name in names]
    return [f"{name}-{k}" if plain.count(name) > 1 else name for k, name in enumerate(plain)]


def _setting(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
