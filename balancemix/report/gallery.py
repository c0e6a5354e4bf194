"""The demo's page: curves of two methods, and rows with labels that are wrong."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from PIL.Image import Image

from balancemix.auditing.findings import Findings
from balancemix.auditing.judged import Judged
from balancemix.data.rows import Rows
from balancemix.evaluation.scoring import headline
from balancemix.report.figures.curves import learning
from balancemix.report.page import Drawing, Page
from balancemix.report.pictures import data_uri
from balancemix.report.summary import Summary


class Pictured(Protocol):
    """Rows that may have pictures."""

    def picture(self, i: int) -> Image | None:
        """Return a picture of row i, if there is one."""


def make_page(summaries: Mapping[str, Summary], rows: Rows, commands: Sequence[str]) -> Page:
    """Compare methods by their runs, and show the last one's findings among all rows."""
    last = list(summaries.values())[-1]
    curves = {name: [line["mAP"] for line in each.log] for name, each in summaries.items()}
    why = (
        "Plain training learns the right labels first and then the wrong ones: its score falls. "
        "BalanceMix doubts labels with a loss that stays high, and keeps what it has learned."
    )
    last_map = [summary.metrics["last"]["mAP"] for summary in summaries.values()]
    facts = {
        "rows": len(last.given),
        "noise": last.plan.noise,
        "results": [{"method": name, **headline(each.metrics)} for name, each in summaries.items()],
        "best": last_map.index(max(last_map)),
        "quality": last.quality,
        "cards": cards(rows, last.findings),
        "calls": commands,
    }
    drawings = [Drawing("learning", learning(curves), why)]
    return Page("demo", "BalanceMix on noisy digits", drawings, facts)


def cards(rows: Pictured, findings: Findings, most: int = 24) -> list[dict[str, Any]]:
    """Describe the rows with the worst findings: picture, labels, and what is wrong with them.

    `rows` are those that were audited. The problems take turns.
    """
    problems: dict[int, dict[int, str]] = {}
    for finding in findings[findings.rank.argsort(stable=True)]:
        if finding.row in problems or len(problems) < most:
            problems.setdefault(finding.row, {})[finding.column] = finding.problem
    return [_card(rows, findings.judged, row, columns) for row, columns in problems.items()]


def _card(rows: Pictured, judged: Judged, row: int, problems: Mapping[int, str]) -> dict[str, Any]:
    labels = [
        (name, problems.get(k, ""))
        for k, name in enumerate(judged.classes)
        if judged.given[row, k] == 1 or k in problems
    ]
    truth = ""
    if judged.truth is not None and bool((judged.truth[row] >= 0).any()):
        present = [name for k, name in enumerate(judged.classes) if judged.truth[row, k] == 1]
        truth = f"truth: {', '.join(present)}"
    name, picture = judged.names[row], data_uri(rows.picture(row))
    return {"name": name, "picture": picture, "labels": labels, "truth": truth}
