"""Findings by image, for tools that show pictures."""

from __future__ import annotations

from pathlib import Path

from balancemix.auditing.findings import Finding, Findings
from balancemix.data.source import Source
from balancemix.errors import InputError


def pictures_of(findings: Findings, tool: str) -> tuple[Source, list[Path]]:
    """Return the data and its image files; refuses data without."""
    source = findings.judged.source
    if source is None or not isinstance(source.images, list):
        where = "" if source is None else f"{source.path}: "
        raise InputError(
            f"{where}{tool} shows pictures, and this data has no image files; leave out --for"
        )
    return source, source.images


def by_image(findings: Findings) -> list[tuple[int, list[Finding]]]:
    """Collect the findings of each row; rows and findings have the surest first."""
    found: dict[int, list[Finding]] = {}
    for finding in findings:
        found.setdefault(finding.row, []).append(finding)
    for each in found.values():
        each.sort(key=lambda finding: -finding.probability)
    return sorted(found.items(), key=lambda item: -item[1][0].probability)
