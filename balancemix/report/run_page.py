"""The report of one run: its plan, labels, curves, classes, mixtures and findings."""

import json

from balancemix.auditing.findings import table_clean
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
from balancemix.report.summary import Summary

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


def make_page(summary: Summary) -> Page:
    """Make the page."""
    plan = summary.plan
    rows, columns = summary.given.shape
    lead = (
        f"{plan.data.path}: {rows:,} training rows, {columns} classes, noise {plan.noise}, "
        f"seed {plan.seed}, {summary.metrics['epochs']} epochs."
    )
    sections = (
        _results(summary),
        _plan(summary),
        _imbalance(summary),
        _noise(summary),
        _learning(summary),
        _classes(summary),
        _mixtures(summary),
        _selection(summary),
        _findings(summary),
        Section("Commands", Commands(summary.commands())),
    )
    name = plan.data.path.rstrip("/").rsplit("/", 1)[-1]
    return Page(f"{summary.method} on {name}", lead, sections)


def _results(summary: Summary) -> Section:
    last = summary.metrics["last"]
    f1 = [key for key in ("CF1_mean", "OF1") if key in last]
    header = (*SCORES, *(key.replace("_mean", "") for key in f1), "an epoch")
    seconds = f"{summary.metrics['seconds_per_epoch']:.1f} s"
    row = (*scores(summary.metrics), *(last[key] for key in f1), seconds)
    best = summary.metrics["best"]["epoch"]
    note = f"On the test rows, in percent; the best epoch was {best}."
    return Section("Results", Grid(header, [row], text=()), note)


def _plan(summary: Summary) -> Section:
    grids = []
    for name, content in summary.plan.tree().items():
        lines = content.items() if isinstance(content, dict) else [(name, content)]
        rows = [(key, _setting(value)) for key, value in lines]
        grids.append(Grid(("setting", "value"), rows, text=(0, 1), title=name))
    changed = ", ".join(f"{key} {_setting(value)}" for key, value in summary.changed().items())
    note = f"Other than the defaults: {changed}." if changed else "All as by default."
    return Section("Plan", note, Folded("all settings", grids))


def _imbalance(summary: Summary) -> Section:
    whose = "given" if summary.truth is None else "true"
    figure = classes.distribution(summary.counts.numpy(), summary.groups, summary.classes)
    caption = f"How often each class occurs in training ({whose} labels), and the class groups."
    drawing = Drawing("distribution", figure, caption)
    ratios = imbalance(summary.given if summary.truth is None else summary.truth)
    if not ratios:
        return Section("Imbalance", drawing)
    note = (
        f"The commonest class has {ratios['class_ratio']:.1f} times the positives of the "
        f"rarest; there are {ratios['positive_negative_ratio']:.1f} negatives a positive."
    )
    return Section("Imbalance", note, drawing)


def _noise(summary: Summary) -> Section:
    measured = summary.noise.get("measured") or summary.noise.get("realised", {})  # older runs
    rows = [(what, 100 * measured[key]) for key, what in RATES.items() if key in measured]
    if not rows:
        return Section("Noise", "None was added, and the truth is not known.")
    note = f"{summary.noise['noise']} with seed {summary.noise['seed']} came to these rates."
    return Section("Noise", note, Grid(("share", "%"), rows, digits=2))


def _learning(summary: Summary) -> Section:
    keys = {"all": "mAP", **{name: f"mAP_{name}" for name in NAMES}}
    lines = {
        name: [line.get(key, float("nan")) for line in summary.log]
        for name, key in keys.items()
        if key in summary.log[-1]
    }
    caption = "Test mAP after each epoch, of all classes and by class group: last (best)."
    learning = Drawing("learning", curves.learning(lines), caption)
    if not any(key.startswith("upsampling_") for line in summary.log for key in line):
        return Section("Learning", learning)
    caption = (
        "How many times as often as at random the minority sampler draws the positives of "
        "each class group, and from how many rows it really draws."
    )
    upsampling = Drawing("upsampling", curves.upsampling(summary.log), caption)
    return Section("Learning", learning, upsampling)


def _classes(summary: Summary) -> Section:
    ap, scored_on = summary.ap
    present, absent = summary.class_confidence
    group_of = {k: name for name, members in summary.groups.items() for k in members}
    header = ["class", "group", "given", "AP, %", "positives", "negatives", "findings"]
    if summary.truth is not None:
        header.insert(3, "true")
    given, findings = summary.given.sum(0).tolist(), summary.findings_by_class
    rows = []
    for k in summary.counts.argsort(descending=True, stable=True).tolist():
        row: list[object] = [summary.classes[k], group_of.get(k, ""), given[k], float(ap[k])]
        if summary.truth is not None:
            row.insert(3, int(summary.counts[k]))
        rows.append([*row, 100 * float(present[k]), 100 * float(absent[k]), findings[k]])
    note = (
        f"AP is of {scored_on}; “positives” and “negatives” are the mean confidence in labels so "
        "given, in percent; findings are labels believed wrong. A click on a head sorts."
    )
    if scored_on != "test rows":
        note += " The run is older than classes.json; evaluate --per-class tells its test AP."
    figure = by_frequency(
        summary.counts.numpy(),
        ap.numpy(),
        present.numpy(),
        absent.numpy(),
        summary.groups,
        scored_on,
    )
    caption = (
        "AP and confidence of each class against its frequency. The line joins the means of ten "
        "class groups; Pearson’s r is taken between these, as in the paper’s Fig. 3, here after "
        "the last epoch."
    )
    grid = Grid(header, rows, text=(0, 1), sortable=True)
    return Section("Classes", Drawing("frequency", figure, caption), note, grid)


def _mixtures(summary: Summary) -> Section:
    chosen = summary.notable_classes()
    drawings = [_losses(summary, k, side) for k in chosen for side in SIDES]
    selects = (
        Select("column", "class", {k: summary.classes[k] for k in chosen}),
        Select("side", "given as", SIDES),
    )
    note = (
        "Two Gaussians are fitted to the losses of each class and side (Eqs. 6–8), here after the "
        "last epoch; a label beyond the dotted line is more likely noisy than clean."
    )
    return Section("Mixtures", note + _use(summary), Choice(selects, drawings))


def _losses(summary: Summary, k: int, side: int) -> Drawing:
    """Draw the losses of a class and side with their mixture."""
    rows = (summary.given[:, k] > 0) == bool(side)
    wrong = None
    if summary.truth is not None:
        wrong = (summary.truth[rows, k] != summary.given[rows, k]).numpy()
    losses = summary.losses[rows, k].numpy()
    figure = mixtures.loss_histogram(losses, summary.mixtures, k, side, wrong)
    caption = f"Losses of “{summary.classes[k]}” where it is given as {SIDES[side]}."
    name = f"losses-{_file_names(summary.classes)[k]}-{SIDES[side]}"
    return Drawing(name, figure, caption, {"column": k, "side": side})


def _file_names(names: list[str]) -> list[str]:
    """Write names as files have them, numbered where two would be the same.

    >>> _file_names(["red cup", "red/cup", "sky"])
    ['red-cup-0', 'red-cup-1', 'sky']
    """
    plain = ["".join(letter if letter.isalnum() else "-" for letter in name) for name in names]
    return [f"{name}-{k}" if plain.count(name) > 1 else name for k, name in enumerate(plain)]


def _use(summary: Summary) -> str:
    """Explain where the mixtures had no part in training."""
    if table_clean(summary.clean) is None:
        return f" They are drawn for comparison: {summary.method} did not use any."
    if bool((summary.clean[summary.given > 0] == 1).all()):
        return " The given positives were trusted: their mixtures are drawn, but were not used."
    return ""


def _selection(summary: Summary) -> Section:
    quality = summary.metrics.get("selection", {})
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


def _findings(summary: Summary, most: int = 30) -> Section:
    worst = summary.findings[:most]
    if not worst:
        return Section("Findings", "No label is believed wrong.")
    header = ["row", "class", "problem", "suspicion", "P(clean)", "confidence"]
    rows = []
    for f in worst:
        facts = (f.suspicion, f.clean, f.confidence)
        row: list[object] = [summary.names[f.row], summary.classes[f.column], f.kind, *facts]
        if summary.truth is not None:
            row.append("an error" if int(summary.truth[f.row, f.column]) != f.given else "right")
        rows.append(row)
    note = f"The {len(worst)} worst of {len(summary.findings):,} labels believed wrong or missing."
    if summary.truth is not None:
        header.append("truth: given is")
        quality = summary.quality
        note += (
            f" Of all, {quality['precision']:.1%} are errors; of the {quality['errors']:,} errors, "
            f"{quality['recall']:.1%} were found."
        )
    return Section("Findings", note, Grid(header, rows, text=(0, 1, 2, 6), digits=3))


def _setting(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
