"""The page of an audit: the pictures of its findings, to look through without a server."""

from __future__ import annotations

import shlex
from pathlib import Path

from balancemix.auditing.findings import Findings
from balancemix.auditing.measured import Measured
from balancemix.auditing.wording import sentences
from balancemix.report.cards import LOOKS, Cards
from balancemix.report.page import Page


def make_page(
    findings: Findings,
    cards: Cards,
    data: str | None = None,
    file: Path | None = None,
    measured: Measured | None = None,
) -> Page:
    """Show the surest findings of an audit, which `file` lists in full.

    `data` is what was audited, as `balancemix review` takes it; None if it is only arrays.
    """
    summary = findings.summary()
    facts = {
        "summary": summary,
        "cards": cards,
        "data": None if data is None else Path(data).name,
        "file": None if file is None else file.name,
        "measured": [] if measured is None else [line.strip() for line in sentences(measured)],
        "basis": basis(cards, findings),
        "review": None if data is None else f"balancemix review {shlex.quote(data)}",
    }
    return Page("gallery", "Labels that look wrong or missing", [], facts)


def basis(cards: Cards, findings: Findings) -> str:
    """Say what the percentages on the cards rest on."""
    measured = [LOOKS[each] for each in cards.problems if each in findings.measured]
    if not measured:
        return "modelled"
    if len(measured) == len(cards.problems):
        return "measured"
    return f"measured where a label looks {' or '.join(measured)}, and modelled elsewhere"
