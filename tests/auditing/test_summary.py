"""The summary of findings, against counts by hand."""

import torch

from balancemix.auditing import duplicates
from balancemix.auditing.duplicates import contradicting_pairs, nearest
from balancemix.auditing.findings import find
from balancemix.auditing.judged import weigh
from balancemix.auditing.summary import MODELLED, TOO_LITTLE

ABLE = torch.tensor([True, True, True])


def judged(given, posterior, **more):
    given, posterior = torch.tensor(given, dtype=torch.int8), torch.tensor(posterior)
    names = [f"{letter}.png" for letter in "abcdefghij"[: len(given)]]
    more = {"judged": ABLE, "names": names, "classes": ["cat", "dog", "cup"], **more}
    return weigh(given, posterior, posterior, posterior, **more)


def test_the_summary_is_a_count_by_hand():
    given = [[1, 0, 0], [1, 0, 0], [1, 0, 1], [0, 1, 0], [0, 0, -1]]
    posterior = [
        [0.01, 0.99, 0.01],  # cat looks like dog
        [0.02, 0.98, 0.01],  # and again
        [0.03, 0.01, 0.99],  # cat is wrong, cup stays
        [0.01, 0.02, 0.01],  # dog is wrong, nothing is left
        [0.01, 0.01, 0.97],  # an unknown cup
    ]
    facts = find(judged(given, posterior)).summary()
    assert (facts["wrong"], facts["missing"], facts["unknown"]) == (4, 2, 1)
    assert facts["findings"] == 7
    assert facts["classes"] == [
        {"class": "cat", "given": 3, "wrong": 3, "missing": 0, "unknown": 0},
        {"class": "dog", "given": 1, "wrong": 1, "missing": 2, "unknown": 0},
        {"class": "cup", "given": 1, "wrong": 0, "missing": 0, "unknown": 1},
    ]
    assert facts["confused"] == [{"given": "cat", "looks_like": "dog", "rows": 2}]
    assert facts["images"][:2] == [
        {"image": "a.png", "findings": 2},
        {"image": "b.png", "findings": 2},
    ]
    assert facts["left_unlabelled"] == 1
    assert facts["not_judged"] == []
    assert facts["near_duplicates"] is None
    assert facts["expected"] is None  # five positives say nothing
    assert facts["note"] == TOO_LITTLE
    assert "precision" not in facts


def test_images_with_as_many_findings_stand_in_the_order_of_their_names():
    given, q = torch.ones(4, 3, dtype=torch.int8), torch.full((4, 3), 0.1)
    names = ["c.png", "a.png", "d.png", "b.png"]
    listed = find(weigh(given, q, q, q, ABLE, names=names)).summary()["images"]
    assert [each["image"] for each in listed] == sorted(names)


def test_what_cannot_be_judged_is_named():
    able = torch.tensor([True, False, True])
    facts = find(judged([[1, 1, 0]], [[0.9, 0.1, 0.1]], judged=able), 0.0).summary()
    assert facts["not_judged"] == ["dog"]


def test_enough_data_has_modelled_totals_without_an_interval():
    given, q = torch.ones(200, 3, dtype=torch.int8), torch.full((200, 3), 0.9)
    facts = find(weigh(given, q, q, q, ABLE)).summary()
    assert facts["note"] == MODELLED
    assert abs(facts["expected"]["wrong"] - 60) < 1
    assert facts["expected"]["missing"] == 0
    assert set(facts["expected"]) == {"wrong", "missing"}


def test_near_duplicates_with_other_labels_are_listed():
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(10, 6, generator=generator)
    features[3] = features[8] + 0.001
    features[1] = features[5]
    given = [[0, 1, 0]] * 10
    given[8] = [1, 1, -1]  # cat differs, cup is unknown
    matrix = judged(given, [[0.1, 0.9, 0.1]] * 10, features=features)
    twins = contradicting_pairs(matrix)
    assert twins == {
        "compared": 10,
        "pairs": [{"images": ["d.png", "i.png"], "classes": ["cat"]}],
    }


def test_of_many_rows_some_are_compared(monkeypatch):
    monkeypatch.setattr(duplicates, "MOST", 6)
    features = torch.randn(10, 6, generator=torch.Generator().manual_seed(0))
    matrix = judged([[0, 1, 0]] * 10, [[0.1, 0.9, 0.1]] * 10, features=features)
    assert contradicting_pairs(matrix) == {"compared": 6, "pairs": []}


def test_the_nearest_rows_are_those_of_a_slow_search(monkeypatch):
    monkeypatch.setattr("balancemix.judge.blocks.BLOCK", 16)
    x = torch.randn(50, 4, generator=torch.Generator().manual_seed(1)).double()
    z = (x - x.mean(0)) / x.std(0)
    distance, place = nearest(x.float())
    for i in range(50):
        apart = [float((z[i] - z[j]).norm()) if j != i else float("inf") for j in range(50)]
        assert int(place[i]) == apart.index(min(apart))
        assert abs(float(distance[i]) - min(apart)) < 1e-3
