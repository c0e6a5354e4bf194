"""A label table survives its file, with unknown and verified labels."""

import io
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from balancemix.labels.stored import read_stored, stored_labels
from balancemix.labels.table import LabelTable, Status


def arrays_of(table: LabelTable) -> dict[str, np.ndarray]:
    """What a run writes, read again."""
    rows, classes = table.shape
    whole: dict[str, Any] = {
        name: matrix.numpy() for name, matrix in table.whole()._asdict().items()
    }
    named: dict[str, Any] = {
        "confidence": np.full((rows, classes), 0.5, np.float32),
        "names": np.array([f"row {i}" for i in range(rows)]),
        "classes": np.array([f"c{k}" for k in range(classes)]),
        "version": np.array(2),
    }
    file = io.BytesIO()
    np.savez(file, **whole, **named)
    file.seek(0)
    with np.load(file) as kept:
        return dict(kept)


@given(st.integers(0, 2**31), st.integers(1, 6), st.integers(1, 4))
def test_every_given_label_and_status_survives(seed, rows, classes):
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(-1, 2, (rows, classes), generator=generator)
    verified = (torch.rand(rows, classes, generator=generator) < 0.3) & (labels >= 0)
    table = LabelTable.from_given(labels, verified)
    status = torch.randint(len(Status) - 1, (rows, classes), generator=generator)
    table.write(slice(None), status, torch.rand(rows, classes, generator=generator))
    kept = read_stored(arrays_of(table)).labels
    assert all(torch.equal(a, b) for a, b in zip(kept, table.whole(), strict=True))
    assert torch.equal(kept.given, labels.char())
    assert torch.equal(kept.status == Status.VERIFIED, verified)


def test_labels_are_signed_in_a_file_only_if_any_is_unknown():
    known = torch.tensor([[1, 0]], dtype=torch.int8)
    assert stored_labels(known).dtype == np.uint8
    assert stored_labels(-known).dtype == np.int8
    for array in (stored_labels(known), stored_labels(-known)):
        assert np.abs(array).tolist() == [[1, 0]]


@pytest.mark.parametrize("value", [2, -2, 255])
def test_other_labels_are_refused(value):
    arrays = arrays_of(LabelTable.from_given(torch.tensor([[1, -1]])))
    kind = np.uint8 if value > 127 else np.int8
    with pytest.raises(ValueError, match="0, 1 or −1"):
        read_stored(arrays | {"given": np.array([[1, value]], kind)})
