"""Groups of classes by frequency, and the imbalance ratios."""

from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from balancemix.labels.classes import class_groups, describe, imbalance


def listed(counts, rule="paper"):
    return {
        name: index.tolist() for name, index in class_groups(torch.tensor(counts), rule).items()
    }


def test_paper_intervals_are_half_open():
    counts = [10_001, 10_000, 9_999, 1_000, 999, 0]
    assert listed(counts) == {"many": [0, 1], "medium": [2, 3], "few": [4, 5]}


def test_auto_makes_thirds_with_the_frequent_first():
    assert listed([1, 9, 5, 7, 3, 2], "auto") == {"many": [1, 3], "medium": [2, 4], "few": [0, 5]}


def test_auto_breaks_ties_by_class_index_and_gives_the_remainder_to_the_frequent():
    assert listed([4] * 8, "auto") == {"many": [0, 1, 2], "medium": [3, 4, 5], "few": [6, 7]}
    assert listed([4], "auto") == {"many": [0], "medium": [], "few": []}


@settings(deadline=None)
@given(
    st.lists(st.integers(0, 20_000), max_size=40),
    st.sampled_from(["paper", "auto"]),
)
def test_each_class_is_in_one_group_and_groups_are_in_order(counts, rule):
    groups = listed(counts, rule)
    assert sorted(k for index in groups.values() for k in index) == list(range(len(counts)))
    assert list(groups) == ["many", "medium", "few"]
    filled = [[counts[k] for k in index] for index in groups.values() if index]
    assert all(min(a) >= max(b) for a, b in pairwise(filled))


@pytest.mark.parametrize("rule", ["half", (5, 2), ""])
def test_bad_rules_are_named(rule):
    with pytest.raises(ValueError, match="rule must be"):
        class_groups(torch.tensor([1, 2]), rule)


def test_counts_must_be_a_vector():
    with pytest.raises(ValueError, match=r"\(K,\)"):
        class_groups(torch.zeros(2, 2))


def test_imbalance_follows_appendix_c():
    labels = torch.tensor([[1, 1, 0], [1, 0, 0], [1, 0, 0], [1, 0, -1]], dtype=torch.int8)
    ratios = imbalance(labels)  # positives 4, 1, 0; negatives 0, 3, 3
    assert ratios == {"class_ratio": 4.0, "positive_negative_ratio": 6 / 5}


def test_unknown_labels_are_counted_apart():
    given = torch.tensor([[1, 1, 0], [1, -1, -1]], dtype=torch.int8)
    facts = describe(given, ["a", "b", "c"], given != 0)
    assert (facts["unknown"], facts["verified"], facts["positives_per_row"]) == (2, 3, 1.5)
    assert facts["positives"] == {"a": 2, "b": 1, "c": 0}
    assert describe(given, ["a", "b", "c"])["verified"] == 0


def test_imbalance_without_positives_is_empty():
    assert imbalance(torch.zeros(3, 2)) == {}
    assert imbalance(torch.zeros(0, 2)) == {}
