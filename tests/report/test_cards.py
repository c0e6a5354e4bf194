"""Cards of findings: surest first, as many as a page holds, with every label of the row."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from balancemix.auditing.findings import Findings, find
from balancemix.auditing.judged import judge_confidence
from balancemix.data.values import written
from balancemix.report.cards import make_cards
from balancemix.report.gallery import basis, make_page
from balancemix.report.pictures import PicturedRows

CLASSES = ["cat", "dog", "eel"]


def findings_of(given, probability, truth=None) -> Findings:
    """List labels with these probabilities, as if an audit had said so."""
    labels = torch.tensor(given, dtype=torch.int8)
    names = [f"{i}.jpg" for i in range(len(labels))]
    judged = judge_confidence(
        labels,
        torch.full(labels.shape, 0.5),
        names=names,
        classes=CLASSES,
        truth=None if truth is None else torch.tensor(truth, dtype=torch.int8),
    )
    chances = torch.tensor(probability)
    row, column = (chances > 0).nonzero(as_tuple=True)
    found = find(judged, above=1.0)
    rank = (-chances[row, column]).argsort().argsort() + 1
    return Findings(judged, row, column, chances[row, column], rank, found.measured)


class Shots:
    """Rows with pictures, except some."""

    def __init__(self, without=(), side=200):
        self.without, self.side = without, side

    def picture(self, i):
        noise = np.random.default_rng(i).integers(0, 256, (self.side, self.side, 3), dtype=np.uint8)
        return None if i in self.without else Image.fromarray(noise)

    def values(self, i):
        return f"values of {i}"


GIVEN = [[1, 0, 0], [1, 1, 0], [0, 0, -1], [1, 0, 1]]
CHANCES = [[0.0, 0.6, 0.0], [0.98, 0.7, 0.999], [0.0, 0.0, 0.8], [0.0, 0.0, 0.0]]


def test_the_surest_rows_come_first_and_the_surest_findings_in_them():
    cards = make_cards(findings_of(GIVEN, CHANCES), Shots())
    assert [card.name for card in cards.cards] == ["1.jpg", "2.jpg", "0.jpg"]
    tags = [[(t.sign, t.name, t.problem, t.chance) for t in card.tags] for card in cards.cards]
    assert tags[0] == [
        ("+", "eel", "missing", "over 99 %"),
        ("−", "cat", "wrong", "98 %"),
        ("−", "dog", "wrong", "70 %"),
    ]
    assert tags[1] == [("?", "eel", "unknown", "80 %")]
    assert tags[2] == [("+", "dog", "missing", "60 %"), ("", "cat", "", "")]
    assert cards.problems == {"wrong": 1, "missing": 2, "unknown": 1}
    assert cards.cards[0].keys == ["missing:2", "wrong:0", "wrong:1"]
    assert cards.columns == {0: "cat", 1: "dog", 2: "eel"}
    assert (cards.rows, cards.pictured, cards.noun) == (3, 3, "picture")


def test_at_most_so_many():
    cards = make_cards(findings_of(GIVEN, CHANCES), Shots(), most=2)
    assert (len(cards), cards.rows, cards.full) == (2, 3, False)


def test_at_most_so_large():
    one = len(make_cards(findings_of(GIVEN, CHANCES), Shots(), most=1).cards[0].picture)
    cards = make_cards(findings_of(GIVEN, CHANCES), Shots(), budget=2 * one + one // 2)
    assert (len(cards), cards.rows, cards.full) == (2, 3, True)
    assert cards.columns == {0: "cat", 1: "dog", 2: "eel"}


def test_the_truth_is_shown_where_it_is_known():
    truth = [[0, 1, 0], [0, 0, 0], [-1, -1, -1], [1, 0, 1]]
    cards = make_cards(findings_of(GIVEN, CHANCES, truth), Shots())
    assert [card.truth for card in cards.cards] == ["none", "", "dog"]


def test_rows_without_pictures_show_their_values():
    cards = make_cards(findings_of(GIVEN, CHANCES), Shots(without=(0, 1, 2)))
    assert [card.values for card in cards.cards] == ["values of 1", "values of 2", "values of 0"]
    assert (cards.pictured, cards.noun) == (0, "row")


@pytest.mark.parametrize(
    ("measured", "text"),
    [
        ((), "modelled"),
        (("wrong", "missing", "unknown"), "measured"),
        (("wrong",), "measured where a label looks wrong, and modelled elsewhere"),
    ],
)
def test_what_the_percentages_rest_on(measured, text):
    findings = replace(findings_of(GIVEN, CHANCES), measured=frozenset(measured))
    cards = make_cards(findings, Shots())
    assert basis(cards, findings) == text
    assert f"The percentages are {text}.</p>" in make_page(findings, cards).render()


def test_nothing_found():
    cards = make_cards(findings_of(GIVEN, np.zeros((4, 3)).tolist()), Shots())
    assert (len(cards), cards.rows, cards.problems, cards.columns) == (0, 0, {}, {})
    page = make_page(findings_of(GIVEN, np.zeros((4, 3)).tolist()), cards).render()
    assert "No label is listed." in page


@pytest.mark.parametrize(
    ("features", "text"),
    [
        (torch.tensor([[0.5, -2.0, 1e-9]]), "0.5, -2, 1e-09"),
        (torch.full((1, 300), 0.125), "0.125, 0.125 … (300 values)"),
        (torch.zeros(1, 64, 7, 7), "64×7×7 values"),
        (None, ""),
    ],
)
def test_values_in_a_line(features, text):
    assert written(features, 0, most=3 if text.startswith("0.5") else 2) == text


def test_a_picture_is_not_read_from_elsewhere(tmp_path):
    Image.new("RGB", (9, 9)).save(tmp_path / "a.png")
    (tmp_path / "photos").mkdir()
    rows = PicturedRows(["a"], tmp_path / "photos", [tmp_path / "a.png"])
    assert rows.picture(0) is None
    assert PicturedRows(["a"], tmp_path, [tmp_path / "a.png"]).picture(0) is not None
