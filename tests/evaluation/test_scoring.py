"""An epoch's scores and groups rest on the truth, where it is known, and never on noisy labels."""

import pytest
import torch

from balancemix.labels.classes import class_counts, class_groups
from balancemix.plan.plan import Plan
from balancemix.training import fit as loop
from balancemix.training.fit import fit
from tests import together


def train(rows, valid):
    tree = {"method": {"name": "bce"}, "train": {"epochs": 2, "device": "cpu"}}
    return fit(lambda: together.make_model(""), rows, valid, Plan.from_tree(tree))


def test_scores_are_against_the_truth_and_not_against_what_is_given():
    rows, valid = together.make_rows(80), together.make_rows(60, seed=1)
    wrong = valid.with_given(1 - valid.truth, valid.truth)
    right = valid.with_given(valid.truth, None)
    torch.manual_seed(0)
    expected = train(rows, right).metrics["last"]
    torch.manual_seed(0)
    assert train(rows, wrong).metrics["last"] == pytest.approx(expected)


def test_class_groups_are_those_of_the_truth(monkeypatch):
    rows = together.make_rows(80)
    rows = rows.with_given(1 - rows.truth, rows.truth)  # the rarest class looks the most frequent
    seen = []

    def remember(counts, rule):
        seen.append(counts)
        return class_groups(counts, rule)

    monkeypatch.setattr(loop, "class_groups", remember)
    train(rows, together.make_rows(60, seed=1))
    assert torch.equal(seen[0], class_counts(rows.truth))
    assert not torch.equal(seen[0], class_counts(rows.given))
