"""How imbalanced labels are, in numbers."""

from __future__ import annotations

from typing import Any

from balancemix.data.rows import Rows
from balancemix.labels.classes import class_counts, class_groups, imbalance


def describe(rows: Rows) -> dict[str, Any]:
    """Count rows, classes and positives, the commonest class first, and both imbalance ratios."""
    counts = class_counts(rows.given)
    order = counts.argsort(descending=True, stable=True).tolist()
    return {
        "rows": len(rows),
        "classes": len(rows.classes),
        "positives_per_row": float(rows.given.sum() / len(rows)),
        **imbalance(rows.given),
        "groups": {name: len(index) for name, index in class_groups(counts, "auto").items()},
        "positives": {rows.classes[k]: int(counts[k]) for k in order},
    }
