"""Each figure from generated numbers: what is drawn, what is said, and the same bytes again."""

import math
import re

import numpy as np
import pytest
import torch

from balancemix.bench.ranking import area, rank, rank_perspectives
from balancemix.labels.mixtures import fit_losses
from balancemix.report.figures import (
    classes,
    curves,
    frequency,
    mixtures,
    pentagon,
    reliability,
    style,
)

PLACES = ("Clean", "Mislabel", "Rand. Flip", "Missing", "Imbal.")
RANKS = {
    "balancemix": dict.fromkeys(PLACES, 1),
    "asl": dict(zip(PLACES, (2, 3, 3, 2, 2), strict=True)),
    "bce": dict(zip(PLACES, (3, 2, 2, 3, 3), strict=True)),
}
GROUPS = {"many": [0, 1], "medium": [2, 3], "few": [4, 5]}
COUNTS = [900, 400, 100, 80, 10, 0]
NAMES = [f"class {k}" for k in range(6)]


def said(figure) -> str:
    """Collect every text of a figure."""
    from matplotlib.text import Text

    return "\n".join(text.get_text() for text in figure.findobj(Text))


def losses_of(rows=300):
    generator = torch.Generator().manual_seed(0)
    given = (torch.rand(rows, 2, generator=generator) < 0.4).to(torch.uint8)
    wrong = torch.rand(rows, 2, generator=generator) < 0.3
    noise = torch.rand(rows, 2, generator=generator)
    return torch.where(wrong, 2 + noise, 0.05 + 0.1 * noise), given, wrong


def drawn():
    losses, given, wrong = losses_of()
    own = given[:, 0] == 1
    fitted = fit_losses(given, losses)
    lines = [
        {"epoch": i, "effective_rows": 0.9, **{f"upsampling_{n}": 1 + 0.1 / i for n in GROUPS}}
        for i in range(1, 6)
    ]
    number = np.array(COUNTS, dtype=float)
    return {
        "pentagons": lambda: pentagon.pentagons(RANKS),
        "groups": lambda: frequency.by_frequency(
            COUNTS, 50 + number / 20, number / 1000, 1 - number / 2000, GROUPS
        ),
        "classes": lambda: classes.distribution(COUNTS, GROUPS, NAMES),
        "learning": lambda: curves.learning({"bce": [1.0, 3.0, 2.0], "asl": [1.0, 2.0, 2.5]}),
        "upsampling": lambda: curves.upsampling(lines),
        "reliability": lambda: reliability.reliability(
            {"a": {"wrong": (number / 2000, number / 1500)}, "b": {"missing": (number, number)}}
        ),
        "losses": lambda: mixtures.loss_histogram(losses[own, 0], fitted, 0, 1, wrong[own, 0]),
    }


AXES = {"reliability": 2, "pentagons": 4, "groups": 2, "upsampling": 2}


@pytest.mark.parametrize("name", list(drawn()))
def test_the_same_numbers_give_the_same_bytes(name, tmp_path):
    draw = drawn()[name]
    assert len(draw().axes) == AXES.get(name, 1)
    style.save(draw(), tmp_path / "once" / "figure-0.4")
    written = style.save(draw(), tmp_path / "again" / "figure-0.4")
    assert [file.name for file in written] == ["figure-0.4.svg", "figure-0.4.png"]
    for file in written:
        assert file.read_bytes() == (tmp_path / "once" / file.name).read_bytes()
        assert sorted(path.name for path in file.parent.iterdir()) == sorted(
            path.name for path in written
        )  # no drafts
    text = written[0].read_text(encoding="utf-8")
    assert "<text" in text
    assert "<dc:date>" not in text


def test_a_figure_in_a_page_keeps_its_numbers_and_takes_the_page_s_colours():
    from matplotlib.figure import Figure

    figure = Figure()
    figure.text(0.5, 0.5, "1.23456", color=style.INK)
    text = style.inline(figure, "a", 'a "quoted" name')
    assert "1.23456" in text
    assert f"var(--c1b1f24, {style.INK})" in text
    assert "&quot;quoted&quot;" in text
    assert not re.search(r'http|<style|<g id=|width="', text)
    one = style.inline(curves.learning({"bce": [1.0, 2.0]}), "a", "")
    other = style.inline(curves.learning({"bce": [1.0, 2.0]}), "b", "")
    assert not set(re.findall(r' id="(\w+)"', one)) & set(re.findall(r' id="(\w+)"', other))


def test_areas_by_hand():
    by_hand = (2 * 1 + 1 * 1 + 1 * 2 + 2 * 2 + 2 * 2) / (5 * 3 * 3)
    assert area(list(RANKS["asl"].values()), len(RANKS)) == pytest.approx(by_hand)
    assert f"asl  {by_hand:.0%}" in said(pentagon.pentagons(RANKS))


def test_methods_are_ranked_where_all_of_them_have_run():
    assert rank({"a": 2.0, "b": 2.0, "c": 1.0}) == {"a": 1, "b": 1, "c": 3}
    noises = ["none", "mislabel:0.2", "mislabel:0.4"]
    values = {"a": (1.0, 3.0, 2.0), "b": (2.0, 2.0, 6.0), "c": (3.0, 1.0, 4.0)}
    scored = {
        name: {(text, group): score for text, score in zip(noises, own, strict=True)
               for group in ("All", "Few")}
        for name, own in values.items()
    }  # fmt: skip
    scored["d"] = {("none", "All"): 9.0}
    assert rank_perspectives([scored], noises) == {
        "a": {"Clean": 3, "Mislabel": 2, "Imbal.": 3},
        "b": {"Clean": 2, "Mislabel": 1, "Imbal.": 2},
        "c": {"Clean": 1, "Mislabel": 2, "Imbal.": 1},
    }
    assert rank_perspectives([], []) == {}


def test_pentagons_name_methods_areas_perspectives_and_ranks():
    text = said(pentagon.pentagons(RANKS))
    for name, ranks in RANKS.items():
        assert f"{name}  {area(list(ranks.values()), len(RANKS)):.0%}" in text
    assert "Rand. Flip\n#3" in text


def test_pearson_is_taken_between_the_tenths():
    counts = np.arange(20, 0, -1.0)
    assert [len(part) for part in frequency.tenths(counts)] == [2] * 10
    ap, sure = np.linspace(90, 10, 20), np.linspace(0.9, 0.1, 20)
    figure = frequency.by_frequency(counts, ap, sure, 1 - sure, {"many": range(20)})
    assert "positives: r = 1.00" in said(figure)
    assert "negatives: r = -1.00" in said(figure)
    assert frequency.pearson([1, 2, math.nan], [2, 1, 5]) == pytest.approx(-1)


def test_learning_says_last_and_best():
    text = said(curves.learning({"bce": [1.0, 3.0, 2.0], "asl": [1.0, 2.0, 2.5]}))
    assert "bce 2.0 (3.0)" in text
    assert "asl 2.5 (2.5)" in text
    assert "mAP, %" in text
    curves.learning({"bce": [1.0]})  # a single epoch is a curve too


def test_curves_without_a_colour_are_others_and_have_no_name():
    some = {"bce": [1.0, 3.0], "asl": [1.0, 2.0], "hill": [1.0, 1.5]}
    figure = curves.learning(some, {"asl": (style.BLUE, "-")})
    text = said(figure)
    assert "asl 2.0 (2.0)" in text
    assert "others" in text
    assert "bce" not in text
    colours = [line.get_color() for line in figure.axes[0].lines if np.size(line.get_xdata()) == 2]
    assert sorted(colours) == sorted([style.THIN, style.THIN, style.BLUE])
    assert "others" not in said(curves.learning(some))


def test_labels_that_would_overlap_are_moved_apart():
    moved = style.spread_labels([1.0, 1.1, 1.2, 9.0], 1.0)
    assert np.diff(moved) == pytest.approx([1.0, 1.0, 6.9])
    assert sum(moved) == pytest.approx(12.3)  # no more than it takes


def test_classes_are_named_or_counted():
    assert "class 3" in said(classes.distribution(COUNTS, GROUPS, NAMES))
    many = {"many": range(30), "medium": range(30, 60), "few": range(60, 80)}
    text = said(classes.distribution(np.arange(80, 0, -1), many, [f"c{k}" for k in range(80)]))
    assert {"c0", "c30", "c60", "c79", "many-shot: 30"} <= set(text.split("\n"))
    assert "c1" not in text.split("\n")


def test_names_are_drawn_as_they_are_not_as_formulas(tmp_path):
    names = [f"$_$ cost {k}" for k in range(6)]
    figure = classes.distribution(COUNTS, GROUPS, names)
    assert set(names) <= set(said(figure).split("\n"))
    written = style.save(figure, tmp_path / "figure")[0].read_text(encoding="utf-8")
    assert "$_$ cost 3" in written
    assert "$_$ 2.0 (2.0)" in style.inline(curves.learning({"$_$": [1.0, 2.0]}), "a", "")


def test_histograms_show_all_labels_and_where_doubt_begins():
    from matplotlib.patches import StepPatch

    losses, given, wrong = losses_of()
    fitted = fit_losses(given, losses)
    own = given[:, 1] == 0
    figure = mixtures.loss_histogram(losses[own, 1], fitted, 1, 0, wrong[own, 1])
    counted = [patch.get_data()[0].sum() for patch in figure.findobj(StepPatch)]
    assert counted[:2] == [int((own & ~wrong[:, 1]).sum()), int((own & wrong[:, 1]).sum())]
    assert "P(clean) = ½" in said(figure)
    turn = mixtures.boundary(fitted, 1, 0, np.geomspace(0.01, 5, 10))
    assert 0.15 < turn < 2
    few = fit_losses(given[:5], losses[:5])
    figure = mixtures.loss_histogram(losses[:5][given[:5, 0] == 1, 0], few, 0, 1)
    assert "too few labels to judge" in said(figure)
    mixtures.loss_histogram([], few, 0, 1)  # a class without positives
