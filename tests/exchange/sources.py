"""Data sets without files, for readers of answers."""

from pathlib import Path

import torch

from balancemix.data.source import Source


def source_of(names, classes, given=None) -> Source:
    """Make a source of these names; all labels absent unless given."""
    labels = torch.zeros(len(names), len(classes), dtype=torch.int8)
    if given is not None:
        labels = torch.tensor(given, dtype=torch.int8)
    images = [Path("/photos") / name for name in names]
    return Source(Path("photos"), list(classes), list(names), labels, images=images)
