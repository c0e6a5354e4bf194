"""A page made of every kind of part: whole, escaped, and with figures that are drawn once."""

from balancemix.bench.table import Cell, Row, Table
from balancemix.report.figures import curves, style
from balancemix.report.page import (
    BenchTable,
    Card,
    Choice,
    Code,
    Commands,
    Drawing,
    Folded,
    Gallery,
    Grid,
    Section,
    Select,
)
from balancemix.report.page import Page as Made
from tests.conftest import ROOT
from tests.page import Page

TEMPLATES = {
    "bench_table.html", "choice.html", "code.html", "commands.html", "drawing.html", "folded.html",
    "gallery.html", "grid.html", "page.css", "page.html", "page.js",
}  # fmt: skip
HOSTILE = "<b>\"x\" & 'y'</b>"


def hostile_page(draw=lambda: curves.learning({HOSTILE: [1.0, 2.0]})) -> Made:
    rows = (Row(HOSTILE, HOSTILE, (Cell((1.0, 2.0), HOSTILE),)), Row("", "", (Cell(),)))
    drawings = [Drawing(f"d{k}", draw(), HOSTILE, {"column": k}) for k in range(2)]
    cards = [Card(HOSTILE, "data:image/png;base64,AA", [(HOSTILE, "wrong")], HOSTILE)]
    parts = [
        HOSTILE,
        Grid([HOSTILE, "n"], [[HOSTILE, 1234], [None, float("nan")]], sortable=True, title=HOSTILE),
        BenchTable(Table("t", HOSTILE, ((HOSTILE, HOSTILE),), rows)),
        Drawing("alone", draw(), HOSTILE),
        Choice([Select("column", HOSTILE, {0: HOSTILE, 1: "b"})], drawings),
        Commands([HOSTILE]),
        Folded(HOSTILE, [Code(HOSTILE)]),
        Gallery(cards),
    ]
    return Made(HOSTILE, HOSTILE, [Section(HOSTILE, *parts), Section("Empty")])


def test_every_template_belongs_to_a_part_or_to_the_page():
    assert {path.name for path in (ROOT / "balancemix/report/templates").iterdir()} == TEMPLATES
    parts = (BenchTable, Choice, Code, Commands, Drawing, Folded, Gallery, Grid)
    assert {part.template for part in parts} == {n for n in TEMPLATES if not n.startswith("page.")}


def test_every_part_escapes_what_it_is_given():
    text = hostile_page().render()
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


def test_figures_are_drawn_once_and_stored_in_the_page_s_order(tmp_path):
    drawn = []

    def draw():
        drawn.append(len(drawn))
        return curves.learning({"bce": [1.0, 2.0]})

    page = hostile_page(draw)
    page.render()
    page.save_figures(tmp_path)
    assert drawn == [0, 1, 2]
    assert [drawing.name for drawing in page.drawings] == ["alone", "d0", "d1"]
    names = {f"{name}.{kind}" for name in ("alone", "d0", "d1") for kind in ("svg", "png")}
    assert {path.name for path in tmp_path.iterdir()} == names


def test_the_colours_of_figures_are_set_in_light_and_dark():
    text = Made("t", "", []).render()
    for light, dark in style.DARK.items():
        assert f"{style.variable(light)}: {light};" in text
        assert f"{style.variable(light)}: {dark};" in text
