"""The report of one run: its plan, labels, curves, classes, mixtures and findings."""

from __future__ import annotations

import json

from balancemix.auditing.findings import score, table_clean
from balancemix.labels.classes import NAMES, imbalance
from balancemix.report.figures import classes, curves, mixtures
from balancemix.report.figures.frequency import by_frequency
from balancemix.report.page import (
    SCORES,
    Choice,
    Commands,
    Drawing,
    Folded,
    Grid,
    Page,
    Section,
    Select,
    scores,
)
from balancemix.report.summary import Record

SIDES = {1: "positive", 0: "negative"}

# What noise.json's rates are rates of.
RATES = {
    "wrong": "wrong labels, of all",
    "false_positives": "wrong ones of the given positives",
    "false_negatives": "wrong ones of the given negatives",
    "lost_positives": "true positives that are not given",
    "flipped_negatives": "true negatives that are given as positives",
}

QUALITY = {
    "clean_precision": "of labels called clean, are right",
    "clean_recall": "of right labels, are called clean",
    "relabel_proportion": "of all labels, are re-labelled",
    "relabel_accuracy": "of re-labelled ones, are right then",
    "flip_proportion": "of all labels, are flipped",
    "flip_accuracy": "of flipped ones, are right then",
    "ambiguous_proportion": "of all labels, stay in doubt",
    "target_accuracy": "of all targets, are right",
}


def make_page(record: Record) -> Page:
    """Make the page."""
    plan = record.plan
    rows, columns = record.given.shape
    lead = (
        f"{plan.data.path}: {rows:,} training rows, {columns} classes, noise {plan.noise}, "
        f"seed {plan.seed}, {record.metrics['epochs']} epochs."
    )
    sections = (
        _results(record),
        _plan(record),
        _imbalance(record),
        _noise(record),
        _learning(record),
        _classes(record),
        _mixtures(record),
        _selection(record),
        _findings(record),
        Section("Commands", Commands(record.commands())),
    )
    name = plan.data.path.rstrip("/").rsplit("/", 1)[-1]
    return Page(f"{record.method} on {name}", lead, sections)


def _results(record: Record) -> Section:
    last = record.metrics["last"]
    f1 = [key for key in ("CF1_mean", "OF1") if key in last]
    header = (*SCORES, *(key.replace("_mean", "") for key in f1), "an epoch")
    seconds = f"{record.metrics['seconds_per_epoch']:.1f} s"
    row = (*scores(record.metrics), *(last[key] for key in f1), seconds)
    best = record.metrics["best"]["epoch"]
    note = f"On the test rows, in percent; the best epoch was {best}."
    return Section("Results", Grid(header, [row], text=()), note)


def _plan(record: Record) -> Section:
    grids = []
    for name, content in record.plan.tree().items():
        lines = content.items() if isinstance(content, dict) else [(name, content)]
        rows = [(key, _setting(value)) for key, value in lines]
        grids.append(Grid(("setting", "value"), rows, text=(0, 1), title=name))
    changed = ", ".join(f"{key} {_setting(value)}" for key, value in record.changed().items())
    note = f"Other than the defaults: {changed}." if changed else "All as by default."
    return Section("Plan", note, Folded("all settings", grids))


def _imbalance(record: Record) -> Section:
    whose = "given" if record.truth is None else "true"
    figure = classes.distribution(record.counts.numpy(), record.members, record.classes)
    caption = f"How often each class occurs in training ({whose} labels), and the class groups."
    drawing = Drawing("distribution", figure, caption)
    ratios = imbalance(record.given if record.truth is None else record.truth)
    if not ratios:
        return Section("Imbalance", drawing)
    note = (
        f"The commonest class has {ratios['class_ratio']:.1f} times the positives of the "
        f"rarest; there are {ratios['positive_negative_ratio']:.1f} negatives a positive."
    )
    return Section("Imbalance", note, drawing)


def _noise(record: Record) -> Section:
    realised = record.noise.get("realised", {})
    rows = [(what, 100 * realised[key]) for key, what in RATES.items() if key in realised]
    if not rows:
        return Section("Noise", "None was added, and the truth is not known.")
    note = f"{record.noise['noise']} with seed {record.noise['seed']} came to these rates."
    return Section("Noise", note, Grid(("share", "%"), rows, digits=2))


def _learning(record: Record) -> Section:
    keys = {"all": "mAP", **{name: f"mAP_{name}" for name in NAMES}}
    lines = {
        name: [line.get(key, float("nan")) for line in record.log]
        for name, key in keys.items()
        if key in record.log[-1]
    }
    caption = "Test mAP after each epoch, of all classes and by class group: last (best)."
    learning = Drawing("learning", curves.learning(lines), caption)
    if not any(key.startswith("upsampling_") for line in record.log for key in line):
        return Section("Learning", learning)
    caption = (
        "How many times as often as at random the minority sampler draws the positives of "
        "each class group, and from how many rows it really draws."
    )
    upsampling = Drawing("upsampling", curves.upsampling(record.log), caption)
    return Section("Learning", learning, upsampling)


def _classes(record: Record) -> Section:
    ap, scored_on = record.ap
    present, absent = record.assurance
    group_of = {k: name for name, members in record.members.items() for k in members}
    header = ["class", "group", "given", "AP, %", "positives", "negatives", "findings"]
    if record.truth is not None:
        header.insert(3, "true")
    given, findings = record.given.sum(0).tolist(), record.findings_by_class
    rows = []
    for k in record.counts.argsort(descending=True, stable=True).tolist():
        row: list[object] = [record.classes[k], group_of.get(k, ""), given[k], float(ap[k])]
        if record.truth is not None:
            row.insert(3, int(record.counts[k]))
        rows.append([*row, 100 * float(present[k]), 100 * float(absent[k]), findings[k]])
    note = (
        f"AP is of {scored_on}; “positives” and “negatives” are the mean confidence in labels so "
        "given, in percent; findings are labels believed wrong. A click on a head sorts."
    )
    if scored_on != "test rows":
        note += " The run is older than classes.json; evaluate --per-class tells its test AP."
    figure = by_frequency(
        record.counts.numpy(),
        ap.numpy(),
        present.numpy(),
        absent.numpy(),
        record.members,
        scored_on,
    )
    caption = (
        "AP and confidence of each class against its frequency. The line joins the means of ten "
        "class groups; Pearson’s r is taken between these, as in the paper’s Fig. 3, here after "
        "the last epoch."
    )
    grid = Grid(header, rows, text=(0, 1), sortable=True)
    return Section("Classes", Drawing("frequency", figure, caption), note, grid)


def _mixtures(record: Record) -> Section:
    chosen = record.telling()
    drawings = [_losses(record, k, side) for k in chosen for side in SIDES]
    selects = (
        Select("column", "class", {k: record.classes[k] for k in chosen}),
        Select("side", "given as", SIDES),
    )
    note = (
        "Two Gaussians are fitted to the losses of each class and side (Eqs. 6–8), here after the "
        "last epoch; a label beyond the dotted line is more likely noisy than clean."
    )
    return Section("Mixtures", note + _use(record), Choice(selects, drawings))


def _losses(record: Record, k: int, side: int) -> Drawing:
    """Draw the losses of a class and side with their mixture."""
    rows = (record.given[:, k] > 0) == bool(side)
    wrong = None
    if record.truth is not None:
        wrong = (record.truth[rows, k] != record.given[rows, k]).numpy()
    losses = record.losses[rows, k].numpy()
    figure = mixtures.loss_histogram(losses, record.mixtures, k, side, wrong)
    caption = f"Losses of “{record.classes[k]}” where it is given as {SIDES[side]}."
    name = f"losses-{_file_names(record.classes)[k]}-{SIDES[side]}"
    return Drawing(name, figure, caption, {"column": k, "side": side})


def _file_names(names: list[str]) -> list[str]:
    """Write names as files have them, numbered where two would be the same.

    >>> _file_names(["red cup", "red/cup", "sky"])
    ['red-cup-0', 'red-cup-1', 'sky']
    """
    plain = ["".join(letter if letter.isalnum() else "-" for letter in name) for name in names]
    return [f"{name}-{k}" if plain.count(name) > 1 else name for k, name in enumerate(plain)]


def _use(record: Record) -> str:
    """Say where the mixtures had no say in training."""
    if table_clean(record.clean) is None:
        return f" They are drawn for comparison: {record.method} did not use any."
    if bool((record.clean[record.given > 0] == 1).all()):
        return " The given positives were trusted: their mixtures are drawn, but were not used."
    return ""


def _selection(record: Record) -> Section:
    quality = record.metrics.get("selection", {})
    parts = ("", "_positive", "_negative", *(f"_{name}" for name in NAMES))
    header = ("share, %", "all", "positive", "negative", *NAMES)
    rows = [
        (what, *(100 * quality[key + part] if key + part in quality else None for part in parts))
        for key, what in QUALITY.items()
        if key in quality
    ]
    if not rows:
        return Section("Selection")
    note = "Against the true labels, which no method sees: by given value and by class group."
    return Section("Selection", note, Grid(header, rows, digits=2))


def _findings(record: Record, most: int = 30) -> Section:
    worst = record.findings[:most]
    if not worst:
        return Section("Findings", "No label is believed wrong.")
    header = ["row", "class", "problem", "suspicion", "P(clean)", "confidence"]
    rows = []
    for f in worst:
        facts = (f.suspicion, f.clean, f.confidence)
        row: list[object] = [record.names[f.row], record.classes[f.column], f.kind, *facts]
        if record.truth is not None:
            row.append("an error" if int(record.truth[f.row, f.column]) != f.given else "right")
        rows.append(row)
    note = f"The {len(worst)} worst of {len(record.findings):,} labels believed wrong or missing."
    if record.truth is not None:
        header.append("truth: given is")
        quality = score(record.findings, record.given, record.truth)
        note += (
            f" Of all, {quality['precision']:.1%} are errors; of the {quality['errors']:,} errors, "
            f"{quality['recall']:.1%} were found."
        )
    return Section("Findings", note, Grid(header, rows, text=(0, 1, 2, 6), digits=3))


def _setting(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
