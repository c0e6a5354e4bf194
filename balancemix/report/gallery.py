"""The demo's page: curves of two methods, and the rows whose labels were found wrong."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Mapping, Sequence
from typing import Any

from balancemix.auditing.findings import Finding
from balancemix.data.rows import Rows
from balancemix.report.figures.curves import learning
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


def render(
    results: Mapping[str, Mapping[str, Any]],
    logs: Mapping[str, Sequence[Mapping[str, Any]]],
    rows: Rows,
    findings: Sequence[Finding],
    quality: Mapping[str, float],
    commands: Sequence[str],
    noise: str,
) -> str:
    """Write the page: metrics and logs by method, the findings on the training rows."""
    best = max(results, key=lambda name: results[name]["last"]["mAP"])
    found = (
        f"{quality['findings']:,} labels were called wrong; {quality['precision']:.1%} of these "
        f"calls are right, and {quality['recall']:.1%} of the {quality['errors']:,} wrong labels "
        "were found. The worst, each on its row:"
    )
    shown = "".join(_row(rows, row, marks) for row, marks in _by_row(findings, 24).items())
    learned = learning({name: [line["mAP"] for line in lines] for name, lines in logs.items()})
    why = (
        "Plain training learns the right labels first and the wrong ones after: its score falls. "
        "BalanceMix doubts labels whose loss stays high, and keeps what it has learned."
    )
    return document(
        "BalanceMix on noisy digits",
        f"{len(rows):,} strips of handwritten digits with wrong labels ({html.escape(noise)}), "
        "scored on clean labels of other digits.",
        table(
            ("method", *SCORES),
            [(name, *scores(metrics)) for name, metrics in results.items()],
            best=[list(results).index(best)],
        )
        + section("Learning", picture(learned, "learning", why))
        + section("Labels found wrong", paragraph(found), f'<div class="rows">{shown}</div>')
        + section("Do it again", listed(commands)),
    )


def _by_row(findings: Sequence[Finding], most: int) -> dict[int, list[Finding]]:
    """Gather the findings of the worst rows, in order."""
    rows: dict[int, list[Finding]] = {}
    for finding in findings:
        if finding.row in rows or len(rows) < most:
            rows.setdefault(finding.row, []).append(finding)
    return rows


def _row(rows: Rows, row: int, marks: Sequence[Finding]) -> str:
    image, shown = rows.picture(row), ""
    if image is not None:
        data = io.BytesIO()
        image.save(data, format="PNG")
        source = base64.b64encode(data.getvalue()).decode()
        shown = f'<img alt="{html.escape(rows.names[row])}" src="data:image/png;base64,{source}">'
    problems = {mark.column: mark.kind for mark in marks}
    tags = "".join(
        f'<span class="tag {problems.get(k, "")}">{html.escape(name)}</span>'
        for k, name in enumerate(rows.classes)
        if rows.labels[row, k] or k in problems
    )
    verdict = ""
    if rows.truth is not None:
        true = [name for k, name in enumerate(rows.classes) if rows.truth[row, k]]
        verdict = f'<div class="verdict">truth: {html.escape(", ".join(true))}</div>'
    return f'<div class="row">{shown}{tags}{verdict}</div>'
