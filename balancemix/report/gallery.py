"""The demo's page: curves of two methods, and the rows whose labels were found wrong."""

import base64
import io
from collections.abc import Mapping, Sequence

from balancemix.auditing.findings import Findings
from balancemix.data.rows import Rows
from balancemix.report.figures.curves import learning
from balancemix.report.page import (
    SCORES,
    Card,
    Commands,
    Drawing,
    Gallery,
    Grid,
    Page,
    Section,
    scores,
)
from balancemix.report.summary import Summary


def make_page(summaries: Mapping[str, Summary], rows: Rows, commands: Sequence[str]) -> Page:
    """Compare methods by their runs, and show the last one's findings on its training rows."""
    last = list(summaries.values())[-1]
    lead = (
        f"{len(rows):,} strips of handwritten digits with wrong labels ({last.plan.noise}), scored "
        "on clean labels of other digits."
    )
    lines = [(name, *scores(summary.metrics)) for name, summary in summaries.items()]
    best = max(summaries, key=lambda name: summaries[name].metrics["last"]["mAP"])
    why = (
        "Plain training learns the right labels first and the wrong ones after: its score falls. "
        "BalanceMix doubts labels whose loss stays high, and keeps what it has learned."
    )
    curves = {name: [line["mAP"] for line in each.log] for name, each in summaries.items()}
    quality = last.quality
    found = (
        f"{quality['findings']:,} labels were called wrong; {quality['precision']:.1%} of these "
        f"calls are right, and {quality['recall']:.1%} of the {quality['errors']:,} wrong labels "
        "were found. The worst, each on its row:"
    )
    sections = (
        Section("", Grid(("method", *SCORES), lines, best=[list(summaries).index(best)])),
        Section("Learning", Drawing("learning", learning(curves), why)),
        Section("Labels found wrong", found, gallery(rows, last.findings)),
        Section("Do it again", Commands(commands)),
    )
    return Page("BalanceMix on noisy digits", lead, sections)


def gallery(rows: Rows, findings: Findings, most: int = 24) -> Gallery:
    """Show the rows with the worst findings, each with its labels and what is wrong with them."""
    problems: dict[int, dict[int, str]] = {}
    for finding in findings:
        if finding.row in problems or len(problems) < most:
            problems.setdefault(finding.row, {})[finding.column] = finding.kind
    return Gallery([_card(rows, row, columns) for row, columns in problems.items()])


def _card(rows: Rows, row: int, problems: Mapping[int, str]) -> Card:
    labels = [
        (name, problems.get(k, ""))
        for k, name in enumerate(rows.classes)
        if rows.given[row, k] or k in problems
    ]
    truth = ""
    if rows.truth is not None:
        present = [name for k, name in enumerate(rows.classes) if rows.truth[row, k]]
        truth = f"truth: {', '.join(present)}"
    return Card(rows.names[row], _data_uri(rows, row), labels, truth)


def _data_uri(rows: Rows, row: int) -> str:
    """Return a row's picture as a data URI, or nothing where it has none."""
    image, data = rows.picture(row), io.BytesIO()
    if image is None:
        return ""
    image.save(data, format="PNG")
    return f"data:image/png;base64,{base64.b64encode(data.getvalue()).decode()}"
