"""A page made of every part: whole, escaped, and with figures that are drawn once."""

import re

from jinja2 import DictLoader

from balancemix.bench.table import Cell, Row, Table
from balancemix.report.cards import Card, Cards, Tag
from balancemix.report.figures import curves, style
from balancemix.report.page import Drawing, environment
from balancemix.report.page import Page as Made
from tests.conftest import ROOT
from tests.page import Page

TEMPLATES = {
    "bench.html", "demo.html", "gallery.css", "gallery.html", "gallery.js", "page.css",
    "page.html", "page.js", "parts.html", "run.html",
}  # fmt: skip
HOSTILE = "<b>\"x\" & 'y'</b>"
EVERY_PART = """
{% extends "page.html" %}
{% from "parts.html" import bench_table, commands, drawing, gallery, grid, label, select %}
{% block lead %}{{ hostile }}{% endblock %}
{% block sections %}
<h2>{{ hostile }}</h2>
{{ grid(records, sortable=true) }}
{{ bench_table(table) }}
{{ drawing(drawings.alone) }}
{{ select("column", hostile, {0: hostile, 1: "b"}) }}
{{ drawing(drawings.d0, {"column": hostile}) }}
{{ drawing(drawings.d1, {"column": 1}) }}
{{ commands([hostile]) }}
{{ gallery(cards, hostile, hostile) }}
{{ label(cards.cards[0].tags[0]) }}
{% endblock %}
"""


def hostile_page(draw=lambda: curves.learning({HOSTILE: [1.0, 2.0]})) -> Made:
    rows = (Row(HOSTILE, HOSTILE, (Cell((1.0, 2.0), HOSTILE),)), Row("", "", (Cell(),)))
    picture = "data:image/png;base64,AA"
    tags = [Tag(HOSTILE, "wrong", "97 %"), Tag(HOSTILE)]
    cards = [
        Card(HOSTILE, picture, "", tags, ["wrong:0"], HOSTILE),
        Card(HOSTILE, "", HOSTILE, tags, ["wrong:0"]),
    ]
    facts = {
        "hostile": HOSTILE,
        "records": [{HOSTILE: HOSTILE, "n": 1234}, {HOSTILE: None, "n": float("nan")}],
        "table": Table("t", HOSTILE, ((HOSTILE, HOSTILE),), rows),
        "cards": Cards(cards, 3, full=True, columns={0: HOSTILE}),
    }
    drawings = [Drawing(name, draw(), HOSTILE) for name in ("alone", "d0", "d1")]
    return Made("every_part", HOSTILE, drawings, facts)


def render(monkeypatch, page: Made) -> str:
    every = DictLoader({**read_templates(), "every_part.html": EVERY_PART})
    monkeypatch.setattr(environment(), "loader", every)
    return page.render()


def read_templates() -> dict[str, str]:
    folder = ROOT / "balancemix/report/templates"
    return {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()}


def test_every_template_is_known_and_every_part_is_tried_here():
    templates = read_templates()
    assert set(templates) == TEMPLATES
    parts = set(re.findall(r"macro (\w+)", templates["parts.html"]))
    assert parts == {part for part in parts if f"{{{{ {part}(" in EVERY_PART}


def test_every_part_escapes_what_it_is_given(monkeypatch):
    text = render(monkeypatch, hostile_page())
    page = Page(text)  # every tag is closed in order
    assert "b" not in page.tags
    assert page.headings == [HOSTILE]
    assert page.loaded == []
    assert HOSTILE not in text
    cells = page.tables[HOSTILE]
    assert [HOSTILE, "1,234"] in cells
    assert ["–", "–"] in cells
    assert [HOSTILE, f"best:1.5 ± 0.5 {HOSTILE}"] in cells
    assert page.tags.count("svg") == 3


def test_figures_are_drawn_once_and_stored_in_the_page_s_order(monkeypatch, tmp_path):
    drawn: list[int] = []

    def draw():
        drawn.append(len(drawn))
        return curves.learning({"bce": [1.0, 2.0]})

    page = hostile_page(draw)
    render(monkeypatch, page)
    page.save_figures(tmp_path)
    assert drawn == [0, 1, 2]
    assert [drawing.name for drawing in page.drawings] == ["alone", "d0", "d1"]
    names = {f"{name}.{kind}" for name in ("alone", "d0", "d1") for kind in ("svg", "png")}
    assert {path.name for path in tmp_path.iterdir()} - {".outputs.json"} == names


def test_the_colours_of_figures_are_set_in_light_and_dark():
    text = Made("page", "t", [], {}).render()
    for light, dark in style.DARK.items():
        assert f"{style.variable(light)}: {light};" in text
        assert f"{style.variable(light)}: {dark};" in text
