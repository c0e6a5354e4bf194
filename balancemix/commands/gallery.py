"""`balancemix audit --gallery`: the findings as pictures, on a page that needs no server."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from balancemix.commands.arguments import read_options
from balancemix.errors import counted

if TYPE_CHECKING:
    from balancemix.auditing.findings import Findings
    from balancemix.auditing.measured import Measured
    from balancemix.commands.target import Target
    from balancemix.report.cards import Pictured
    from balancemix.run import Run


def add_argument(parser: argparse.ArgumentParser) -> None:
    """Declare --gallery."""
    parser.add_argument(
        "--gallery", type=Path, metavar="HTML", help="also write a page with the pictures"
    )


def check(arguments: argparse.Namespace, target: Target) -> None:
    """Refuse, before anything is computed, a page that must not be written."""
    from balancemix.errors import InputError

    if arguments.gallery is None:
        return
    if arguments.sample is not None:
        raise InputError("--gallery is about findings; leave it out with --sample")
    target.check(arguments.gallery)


def write(
    arguments: argparse.Namespace,
    target: Target,
    findings: Findings,
    measured: Measured | None,
    out: Path,
) -> str:
    """Write the page, and say in a line what it shows; `out` is the file of all findings."""
    from balancemix.files import write_text
    from balancemix.report import gallery
    from balancemix.report.cards import make_cards

    cards = make_cards(findings, pictured(arguments, target.run, findings))
    page = gallery.make_page(findings, cards, arguments.data, out, measured)
    write_text(arguments.gallery, page.render())
    target.remember(arguments.gallery)
    whole = counted(cards.rows, cards.noun) + " with findings"
    if len(cards) < cards.rows:
        whole = f"the {len(cards):,} surest of {whole}"
    elif cards.rows > 1:
        whole = f"all {whole}"
    return f"pictures: {arguments.gallery} ({whole})"


def pictured(arguments: argparse.Namespace, run_: Run | None, findings: Findings) -> Pictured:
    """Find the pictures of the rows that were audited, if they have any."""
    from balancemix.report.pictures import PicturedRows

    source = findings.judged.source
    if source is None:
        return PicturedRows(findings.judged.names, None)
    options = read_options(arguments) if run_ is None else run_.plan.data.reading()
    return PicturedRows.of(source, options)
