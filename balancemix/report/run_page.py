"""The report of one run: its plan, labels, curves, classes, mixtures and findings."""

from __future__ import annotations

import html
import json

from balancemix.auditing.findings import score, table_clean
from balancemix.labels.classes import NAMES, imbalance
from balancemix.report.figures import run as drawn
from balancemix.report.page import (
    SCORES,
    document,
    listed,
    paragraph,
    picture,
    scores,
    section,
    table,
)
from balancemix.report.summary import Record

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


def render(record: Record) -> str:
    """Write the page."""
    plan = record.plan
    rows, columns = record.given.shape
    lead = (
        f"{html.escape(plan.data.path)}: {rows:,} training rows, {columns} classes, noise "
        f"{html.escape(plan.noise)}, seed {plan.seed}, {record.metrics['epochs']} epochs."
    )
    body = (
        _results(record)
        + _plan(record)
        + _imbalance(record)
        + _noise(record)
        + _learning(record)
        + _classes(record)
        + _mixtures(record)
        + _selection(record)
        + _findings(record)
        + section("Commands", listed(record.commands()))
    )
    return document(f"{record.method} on {_short(plan.data.path)}", lead, body)


def _results(record: Record) -> str:
    last = record.metrics["last"]
    f1 = [key for key in ("CF1_mean", "OF1") if key in last]
    header = (*SCORES, *(key.replace("_mean", "") for key in f1), "an epoch")
    seconds = f"{record.metrics['seconds_per_epoch']:.1f} s"
    row = (*scores(record.metrics), *(last[key] for key in f1), seconds)
    said = f"On the test rows, in percent; the best epoch was {record.metrics['best']['epoch']}."
    return section("Results", table(header, [row], text=()), paragraph(said))


def _plan(record: Record) -> str:
    parts = []
    for name, content in record.plan.tree().items():
        lines = content.items() if isinstance(content, dict) else [(name, content)]
        shown = [(key, _shown(value)) for key, value in lines]
        parts.append(f"<h3>{name}</h3>" + table(("setting", "value"), shown, text=(0, 1)))
    inside = "\n".join(parts)
    changed = ", ".join(f"{key} {_shown(value)}" for key, value in record.changed().items())
    said = paragraph(f"Other than the defaults: {changed}." if changed else "All as by default.")
    return section("Plan", said, f"<details><summary>all settings</summary>{inside}</details>")


def _imbalance(record: Record) -> str:
    ratios = imbalance(record.given if record.truth is None else record.truth)
    said = ""
    if ratios:
        said = paragraph(
            f"The commonest class has {ratios['class_ratio']:.1f} times the positives of the "
            f"rarest; there are {ratios['positive_negative_ratio']:.1f} negatives a positive."
        )
    whose = "given" if record.truth is None else "true"
    caption = f"How often each class occurs in training ({whose} labels), and the class groups."
    return section("Imbalance", said, picture(drawn.distribution(record), "distribution", caption))


def _noise(record: Record) -> str:
    realised = record.noise.get("realised", {})
    rows = [(said, 100 * realised[key]) for key, said in RATES.items() if key in realised]
    if not rows:
        return section("Noise", paragraph("None was added, and the truth is not known."))
    said = f"{record.noise['noise']} with seed {record.noise['seed']} came to these rates."
    return section("Noise", paragraph(said), table(("share", "%"), rows, digits=2))


def _learning(record: Record) -> str:
    caption = "Test mAP after each epoch, of all classes and by class group: last (best)."
    parts = [picture(drawn.learning(record), "learning", caption)]
    sampled = drawn.upsampling(record)
    if sampled is not None:
        caption = (
            "How many times as often as at random the minority sampler draws the positives of "
            "each class group, and from how many rows it really draws."
        )
        parts.append(picture(sampled, "upsampling", caption))
    return section("Learning", *parts)


def _classes(record: Record) -> str:
    ap, scored_on = record.ap
    present, absent = record.assurance
    group_of = {k: name for name, index in record.groups.items() for k in index.tolist()}
    found = [0] * len(record.classes)
    for finding in record.findings:
        found[finding.column] += 1
    given = record.given.sum(0).tolist()
    header = ["class", "group", "given", "AP, %", "positives", "negatives", "findings"]
    if record.truth is not None:
        header.insert(3, "true")
    rows = []
    for k in record.counts.argsort(descending=True, stable=True).tolist():
        row: list[object] = [record.classes[k], group_of.get(k, ""), given[k], float(ap[k])]
        if record.truth is not None:
            row.insert(3, int(record.counts[k]))
        sure = (100 * float(present[k]), 100 * float(absent[k]))
        rows.append([*row, *sure, found[k]])
    said = (
        f"AP is of {scored_on}; “positives” and “negatives” are the mean confidence in labels so "
        "given, in percent; findings are labels believed wrong. A click on a head sorts."
    )
    if scored_on != "test rows":
        said += " The run is older than classes.json; evaluate --per-class tells its test AP."
    caption = (
        "AP and confidence of each class against its frequency. The line joins the means of ten "
        "class groups; Pearson’s r is taken between these, as in the paper’s Fig. 3, here after "
        "the last epoch."
    )
    return section(
        "Classes",
        picture(drawn.frequency(record), "frequency", caption),
        paragraph(said),
        table(header, rows, text=(0, 1), sortable=True),
    )


def _mixtures(record: Record) -> str:
    chosen = record.telling()
    options = "".join(
        f'<option value="{k}">{html.escape(record.classes[k])}</option>' for k in chosen
    )
    sides = "".join(f'<option value="{side}">{drawn.SIDES[side]}</option>' for side in (1, 0))
    parts = [
        f'<div class="choose"><label>class <select name="column">{options}</select></label> '
        f'<label>given as <select name="side">{sides}</select></label></div>'
    ]
    for k in chosen:
        for side in (1, 0):
            caption = f"Losses of “{record.classes[k]}” where it is given as {drawn.SIDES[side]}."
            marks = f' class="choice" data-column="{k}" data-side="{side}"'
            parts.append(
                picture(drawn.losses(record, k, side), f"losses-{k}-{side}", caption, marks)
            )
    said = (
        "Two Gaussians are fitted to the losses of each class and side (Eqs. 6–8), here after the "
        "last epoch; a label beyond the dotted line is more likely noisy than clean."
    )
    return section("Mixtures", paragraph(said + _use(record)), *parts)


def _use(record: Record) -> str:
    """Say where the mixtures had no say in training."""
    if table_clean(record.clean) is None:
        return f" They are drawn for comparison: {record.method} did not use any."
    if bool((record.clean[record.given > 0] == 1).all()):
        return " The given positives were trusted: their mixtures are drawn, but were not used."
    return ""


def _selection(record: Record) -> str:
    quality = record.metrics.get("selection", {})
    parts = ("", "_positive", "_negative", *(f"_{name}" for name in NAMES))
    header = ("share, %", "all", "positive", "negative", *NAMES)
    rows = [
        (said, *(100 * quality[key + part] if key + part in quality else None for part in parts))
        for key, said in QUALITY.items()
        if key in quality
    ]
    if not rows:
        return ""
    said = "Against the true labels, which no method sees: by given value and by class group."
    return section("Selection", paragraph(said), table(header, rows, digits=2))


def _findings(record: Record, most: int = 30) -> str:
    worst = record.findings[:most]
    if not worst:
        return section("Findings", paragraph("No label is believed wrong."))
    header = ["row", "class", "problem", "suspicion", "P(clean)", "confidence"]
    rows = []
    for f in worst:
        facts = (f.suspicion, f.clean, f.confidence)
        row: list[object] = [record.names[f.row], record.classes[f.column], f.kind, *facts]
        if record.truth is not None:
            row.append("an error" if int(record.truth[f.row, f.column]) != f.given else "right")
        rows.append(row)
    said = f"The {len(worst)} worst of {len(record.findings):,} labels believed wrong or missing."
    if record.truth is not None:
        header.append("truth: given is")
        quality = score(record.findings, record.given, record.truth)
        said += (
            f" Of all, {quality['precision']:.1%} are errors; of the {quality['errors']:,} errors, "
            f"{quality['recall']:.1%} were found."
        )
    return section("Findings", paragraph(said), table(header, rows, text=(0, 1, 2, 6), digits=3))


def _shown(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _short(path: str) -> str:
    return path.rstrip("/").rsplit("/", 1)[-1]
