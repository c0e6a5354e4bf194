"""summarise(): what a person can do about the findings, in figures."""

from __future__ import annotations

from collections import Counter
from heapq import nsmallest
from typing import TYPE_CHECKING, Any

import torch

from balancemix.auditing.duplicates import contradicting_pairs
from balancemix.auditing.probability import SIDES

if TYPE_CHECKING:
    from balancemix.auditing.findings import Findings

MODELLED = (
    "modelled, assuming that mistakes do not depend on the image; on real data this was too low by "
    "up to 20 times. Settle 50 images to know."
)
TOO_LITTLE = "There is too little data to say how many labels are wrong."
FEWEST = 100  # given positives of judged classes; of fewer, no total is stated


def summarise(findings: Findings) -> dict[str, Any]:
    """Count the findings, and name classes, pairs of classes and images to look at.

    findings         listed labels, in all and by problem
    expected         modelled errors among all labels, or None where there is too little data
    note             what the probabilities are
    classes          those with findings, most first
    confused         pairs: a given class that looks wrong where another one looks missing
    images           those with most findings
    near_duplicates  images that look alike and have contradicting labels
    not_judged       classes of which the other images say nothing
    left_unlabelled  rows that would have no label left if all findings were applied
    """
    judged = findings.judged
    counts = {problem: len(findings.of(problem)) for problem in SIDES}
    positives = int((judged.given[:, judged.judged] > 0).sum())
    known = positives >= FEWEST
    wrong, missing = judged.expected.double().sum(0).tolist()
    facts: dict[str, Any] = {
        "rows": len(judged),
        "labels": judged.given.numel(),
        "findings": len(findings),
        **counts,
        "expected": {"wrong": wrong, "missing": missing} if known else None,
        "note": MODELLED if known else TOO_LITTLE,
        "classes": _classes(findings),
        "confused": _confused(findings),
        "images": _images(findings),
        "near_duplicates": contradicting_pairs(judged),
        "not_judged": [
            name
            for name, able in zip(judged.classes, judged.judged.tolist(), strict=True)
            if not able
        ],
        "left_unlabelled": _left_unlabelled(findings),
    }
    if judged.truth is not None:
        facts |= findings.score(judged.truth)
    return facts


def _classes(findings: Findings) -> list[dict[str, Any]]:
    """Count the findings of each class, most first."""
    names, width = findings.judged.classes, findings.labels.shape[1]
    given = (findings.labels > 0).sum(0).tolist()
    columns = {
        problem: torch.bincount(findings.of(problem).column, minlength=width).tolist()
        for problem in SIDES
    }
    records = [
        {"class": names[k], "given": given[k], **{p: columns[p][k] for p in SIDES}}
        for k in range(width)
    ]
    records = [record for record in records if any(record[problem] for problem in SIDES)]
    return sorted(records, key=lambda record: -sum(record[problem] for problem in SIDES))


def _confused(findings: Findings) -> list[dict[str, Any]]:
    """Count the rows in which class i is given and looks wrong, and class j looks missing."""
    absent: dict[int, list[int]] = {}
    for finding in findings.of("missing"):
        absent.setdefault(finding.row, []).append(finding.column)
    pairs = Counter(
        (finding.column, other)
        for finding in findings.of("wrong")
        for other in absent.get(finding.row, ())
    )
    names = findings.judged.classes
    return [
        {"given": names[i], "looks_like": names[j], "rows": count}
        for (i, j), count in pairs.most_common()
    ]


def _images(findings: Findings, most: int = 20) -> list[dict[str, Any]]:
    """Name the rows with most findings, by name where they have as many, whatever their order."""
    rows, counts = torch.unique(findings.row, return_counts=True)
    names = findings.judged.names
    listed = [
        (-count, names[row]) for row, count in zip(rows.tolist(), counts.tolist(), strict=True)
    ]
    return [{"image": name, "findings": -count} for count, name in nsmallest(most, listed)]


def _left_unlabelled(findings: Findings) -> int:
    """Count the rows that have a label now, and would have none."""
    before = (findings.labels > 0).sum(1)
    listed = findings.given
    change = torch.where(listed > 0, -1, 1)
    after = before.index_add(0, findings.row, change)
    return int(((before > 0) & (after == 0)).sum())
