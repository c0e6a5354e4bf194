"""Published tables that are known by their columns: NIH's chest X-rays and CheXpert."""

from __future__ import annotations

from dataclasses import replace

from balancemix.data.tables import columns, joined
from balancemix.data.tables.layout import Asked, Labels

NIH = {"Image Index", "Finding Labels"}
NO_FINDING = "No Finding"
CHEXPERT = (
    NO_FINDING, "Enlarged Cardiomediastinum", "Cardiomegaly", "Lung Opacity", "Lung Lesion",
    "Edema", "Consolidation", "Pneumonia", "Atelectasis", "Pneumothorax", "Pleural Effusion",
    "Pleural Other", "Fracture", "Support Devices",
)  # fmt: skip
LEAST = 5  # columns of CheXpert that make a table one of it


def read_known(asked: Asked) -> Labels | None:
    """Read a published table, or return None if it is another one."""
    header = asked.sheet.header
    if set(header) >= NIH and asked.options.label_column in (None, "Finding Labels"):
        options = replace(asked.options, separator=asked.options.separator or "|")
        labels = joined.read(replace(asked, options=options), nothing=NO_FINDING)
        said = f"it is NIH's, by its columns: {NO_FINDING!r} is no label"
        return replace(labels, said=[said, *labels.said])
    found = [header.index(name) for name in CHEXPERT if name in header]
    if len(found) >= LEAST and asked.roles.label is None:
        labels = columns.read(asked, known=found, minus="unknown")
        said = "it is CheXpert's, by its columns: -1 and blank cells are unknown (--minus-one)"
        return replace(labels, said=[said, *labels.said])
    return None
