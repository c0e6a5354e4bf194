"""Findings that were looked at: which labels are shown, and how verdicts are counted."""

import pytest
import torch

from tests.conftest import ROOT


@pytest.fixture
def looked(load):
    return load("looked")


def test_the_first_labels_of_one_side_are_shown(looked, monkeypatch):
    monkeypatch.setattr(looked, "MOST", 2)
    ranking = torch.tensor([[0.9, 0.1], [0.8, 0.7]])
    side = torch.tensor([[False, True], [True, True]])
    assert looked.first(ranking, side) == [(1, 0), (1, 1)]


def test_the_table_counts_what_is_in_the_file(looked):
    lines = looked.read_seen()
    text = looked.table(lines)
    assert len(lines) == 160
    assert text in (ROOT / "docs" / "tables" / "looked.md").read_text(encoding="utf-8")
