"""Which labels are answered, and how long answers took."""

import pytest

from balancemix.data.decisions.states import LabelState
from balancemix.review.answered import active_seconds, answers_of
from balancemix.review.order import Pace
from balancemix.review.pace import fixes_a_minute, pace_of, seconds_each
from tests.review import listed


def at(seconds):
    minutes, rest = divmod(seconds, 60)
    return f"2026-11-18T10:{int(minutes):02}:{rest:09.6f}Z"


def entry(seq, seconds=0.0, **more):
    return listed.entry(seq, at=at(seconds), **more)


def test_settled_pictures_and_what_the_data_lacks_are_not_answers_about_a_label():
    whole = entry(1, column=None, verdict="settled", mode="settle")
    assert answers_of([whole, entry(2, row=-1), entry(3, column=-1)], {}, lambda *_: 0) == []


def test_pauses_are_capped_and_people_are_timed_apart():
    log = [
        entry(1, 0, ms=2500),
        entry(2, 4, who="Ben"),
        entry(3, 5),
        entry(4, 100),
        entry(5, 101, who="Ben", ms=9),
    ]
    assert active_seconds(log) == pytest.approx([2.5, 0, 5, 30, 30])


def test_a_page_shares_its_time():
    page = [entry(i, 64, row=i, batch="b", mode="sweep") for i in range(2, 34)]
    assert sum(active_seconds([entry(1), *page])) == pytest.approx(64)


def test_a_label_is_answered_once_and_its_state_says_what_holds():
    log = [entry(1, 0), entry(2, 3, who="Ben", verdict="absent"), entry(3, 9, column=2)]
    states = {(0, 0): LabelState("disputed", None, False, 2),
              (0, 2): LabelState("decided", "present", True, 3)}  # fmt: skip
    answers = answers_of(log, states, lambda row, column: 0)
    assert [(each.column, each.verdict, each.is_first) for each in answers] == [
        (0, None, True),
        (2, "present", False),
    ]
    assert [each.is_fix for each in answers] == [False, True]


def test_an_unknown_label_is_fixed_by_being_present():
    for verdict, fix in (("present", True), ("absent", False)):
        states = {(0, 0): LabelState("decided", verdict, True, 1)}
        (answer,) = answers_of([entry(1, verdict=verdict)], states, lambda *_: -1)
        assert answer.is_fix == fix


def test_the_pace_is_the_usual_one_until_ten_answers_and_then_the_median():
    log = [entry(2 * i + j, 10 * i + 7 + 3 * j, row=i, column=j) for i in range(20) for j in (0, 1)]
    states = {(each.row, each.column): LabelState("decided", "present", True, 1) for each in log}
    answers = answers_of(log, states, lambda *_: 0)
    assert pace_of(answers[:4]) == Pace()
    assert pace_of(answers) == pytest.approx(Pace(4.0, 3.0))
    assert fixes_a_minute(answers[-20:]) == pytest.approx(60 * 20 / 100)
    assert fixes_a_minute([]) is None


def test_neither_hurried_answers_nor_a_sweep_change_the_time_of_an_answer():
    findings = listed.listed(300)
    calm = [listed.said(findings, i, True, seconds=5.0) for i in range(100)]
    hurried = [listed.said(findings, i, True, seconds=0.4) for i in range(100, 150)]
    swept = [listed.said(findings, i, True, seconds=0.5, mode="sweep") for i in range(150, 300)]
    assert seconds_each([*calm, *hurried, *swept], Pace()) == 5.0
    assert seconds_each(calm[:9], Pace()) == Pace().picture + Pace().question
