"""Findings to a file for people or for another tool."""

from __future__ import annotations

from pathlib import Path

from balancemix.auditing.findings import Findings
from balancemix.errors import InputError
from balancemix.exchange import cleanlab, fiftyone, label_studio, spreadsheet

ENDINGS = {"label-studio": ".json", "fiftyone": ".json", "cleanlab": ".npz"}


def default_name(tool: str | None) -> str:
    """Name the file that is written if none is asked for.

    >>> default_name(None), default_name("fiftyone")
    ('findings.csv', 'findings.fiftyone.json')
    """
    return "findings.csv" if tool is None else f"findings.{tool}{ENDINGS[tool]}"


def outputs_of(out: Path, tool: str | None) -> list[Path]:
    """List the files that are written; refuses a name with another ending than the tool reads."""
    if tool is not None and out.suffix.lower() != ENDINGS[tool]:
        raise InputError(f"--out {out}: must end in {ENDINGS[tool]} with --for {tool}")
    return label_studio.outputs(out) if tool == "label-studio" else [out]


def write(
    findings: Findings, out: Path, tool: str | None = None, url: str | None = None
) -> list[str]:
    """Write the findings for a tool, or as a table; returns what to do with the file."""
    if tool == "label-studio":
        return label_studio.write(findings, out, url)
    if tool == "fiftyone":
        return fiftyone.write(findings, out)
    if tool == "cleanlab":
        return cleanlab.write(findings, out)
    if out.suffix.lower() == ".xlsx":
        spreadsheet.write(findings, out)
    else:
        findings.write(out)
    return []
