"""Published tables that are known by their columns: NIH's chest X-rays, CheXpert, OpenImages."""

from __future__ import annotations

import re
from dataclasses import replace

from balancemix.data.tables import columns, joined, openimages
from balancemix.data.tables.layout import Asked, Labels

NIH = {"Image Index", "Finding Labels"}
NO_FINDING = "No Finding"
CHEXPERT = (
    NO_FINDING, "Enlarged Cardiomediastinum", "Cardiomegaly", "Lung Opacity", "Lung Lesion",
    "Edema", "Consolidation", "Pneumonia", "Atelectasis", "Pneumothorax", "Pleural Effusion",
    "Pleural Other", "Fracture", "Support Devices",
)  # fmt: skip
PATIENT_ID = "Patient ID"  # of NIH
PATIENT = re.compile(r"(?:^|[/\\])(patient\d+)[/\\]")  # in the paths of CheXpert
LEAST = 5  # columns of CheXpert that make a table one of it


def read_known(asked: Asked) -> Labels | None:
    """Read a published table, or return None if it is another one."""
    header = asked.sheet.header
    if set(header) >= NIH and asked.options.label_column in (None, "Finding Labels"):
        return _nih(asked)
    if openimages.is_openimages(asked):
        return openimages.read(asked)
    found = [header.index(name) for name in CHEXPERT if name in header]
    if len(found) >= LEAST and asked.roles.label is None:
        labels = columns.read(asked, known=found, minus="unknown")
        note = "it is CheXpert's, by its columns: -1 and blank cells are unknown (--minus-one)"
        return _by_patients(replace(labels, notes=[note, *labels.notes]))
    return None


def _nih(asked: Asked) -> Labels:
    """Read NIH's table; the images of a patient are a group."""
    options = replace(asked.options, separator=asked.options.separator or "|")
    notes = [f"it is NIH's, by its columns: {NO_FINDING!r} is no label"]
    roles = asked.roles
    if roles.group is None and PATIENT_ID in asked.sheet.header:
        roles = replace(roles, group=asked.sheet.header.index(PATIENT_ID))
        notes.append(f"images of one patient are a group, by the column {PATIENT_ID!r}")
    labels = joined.read(replace(asked, roles=roles, options=options), nothing=NO_FINDING)
    return replace(labels, notes=[*notes, *labels.notes])


def _by_patients(labels: Labels) -> Labels:
    """Group the images of a patient by their paths, unless the table names groups."""
    patients = [PATIENT.search(name) for name in labels.names]
    if labels.groups is not None or not any(patients):
        return labels
    groups = [found[1] if found else "" for found in patients]
    note = "images of one patient are a group, by their paths (patient00001/…)"
    return replace(labels, groups=groups, notes=[*labels.notes, note])
