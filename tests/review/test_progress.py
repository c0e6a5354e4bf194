"""What the Progress page says, of made-up reviews."""

import json

import numpy as np
import pytest

from balancemix.estimates.estimate import Estimate
from balancemix.review.progress import future, past, progress
from tests.review.listed import listed, said, states_of

COUNTS = [50] * 6


def reviewed(count, seed=0, probes=0, size=400):
    """Answer the surest findings, which are errors as often as promised, and some at random."""
    findings = listed(size, rows=200, seed=seed)
    generator = np.random.default_rng(seed)
    error = generator.random(size) < findings.p
    drawn = generator.permutation(np.arange(count, size))[:probes]
    answers = [said(findings, i, bool(error[i])) for i in range(count)]
    answers += [said(findings, i, bool(error[i]), probe=True) for i in drawn]
    return findings, answers, error


def page(findings, answers):
    found = progress(findings, states_of(answers), answers, COUNTS)
    return json.loads(json.dumps(found, allow_nan=False))


def test_before_anything_is_answered_there_are_counts_only():
    found = page(listed(), [])
    assert (found["answered"], found["fixed"], found["open"]) == (0, 0, 200)
    assert found["left"] is None
    assert found["advice"]["kind"] == "early"
    assert found["minute"]["last"] is None
    assert "value" not in found["precision"]["all"]
    assert found["curve"]["past"] == [[0, 0]]


def test_without_findings_the_page_still_speaks():
    found = page(listed(0), [])
    assert found["advice"]["kind"] == "over"
    assert found["left"] == {"value": 0, "low": 0, "high": 0}


def test_counts_and_precision_are_those_of_the_answers():
    findings, answers, error = reviewed(120)
    answers.append(said(findings, 300, None))
    found = page(findings, answers)
    assert found["answered"] == 121
    assert found["fixed"] == error[:120].sum()
    assert found["unsure"] == 1
    every = found["precision"]["all"]
    assert (every["right"], every["of"], every["unsure"]) == (error[:120].sum(), 120, 1)
    assert every["low"] < every["value"] < every["high"]
    assert every["promised"] == pytest.approx(findings.p[:120].mean(), abs=1e-3)
    sides = [found["precision"][side]["of"] for side in ("wrong", "missing", "unknown")]
    assert sum(sides) == 120


def test_under_fifty_answers_precision_is_a_count():
    findings, answers, _ = reviewed(49)
    assert "value" not in page(findings, answers)["precision"]["all"]


def test_what_is_left_needs_twenty_probes_and_then_has_an_interval():
    findings, answers, _ = reviewed(100, probes=15)
    assert page(findings, answers)["left"] is None
    held = 0
    for seed in range(20):
        findings, answers, error = reviewed(100, seed, probes=60)
        found = page(findings, answers)
        seen = {(each.row, each.column) for each in answers}
        left = sum(
            error[i] and (findings.row[i], findings.column[i]) not in seen for i in range(400)
        )
        held += found["left"]["low"] <= left <= found["left"]["high"]
    assert held >= 18


def test_the_curve_ends_now_and_goes_on_from_there():
    findings, answers, error = reviewed(250)
    found = page(findings, answers)["curve"]
    assert len(found["past"]) <= 100
    assert found["past"][-1] == [250, error[:250].sum()]
    assert found["ahead"][0][:2] == [250, error[:250].sum()]
    assert found["ahead"][-1][0] == 400
    assert found["stops"] is None or found["stops"] > 250


def test_the_forecast_holds_both_the_model_and_the_probes():
    ahead = np.full(100, 0.5)
    for ends in ((20.0, 40.0), (60.0, 90.0), (40.0, 60.0)):
        *_, (n, middle, low, high) = future(50, 10, ahead, Estimate(30.0, *ends, False))
        assert (n, middle) == (150, 60)
        assert low <= min(60, 10 + ends[0])
        assert high >= max(60, 10 + ends[1])
    assert future(50, 10, ahead, None)[-1] == (150, 60, None, None)


def test_classes_add_up():
    findings, answers, _ = reviewed(150, probes=30)
    found = page(findings, answers)
    assert sum(each["fixed"] for each in found["classes"]) == found["fixed"]
    assert sum(each["open"] for each in found["classes"]) == found["open"]
    left = [each["left"] for each in found["classes"]]
    assert left == sorted(left, reverse=True)


def test_a_poor_list_says_stop_after_two_looks():
    findings = listed(1000, rows=900)._replace(p=np.full(1000, 0.6))
    answers = [said(findings, i, False) for i in range(300)]
    assert page(findings, answers)["advice"]["kind"] == "stop"


def test_the_past_has_at_most_a_hundred_points():
    _, answers, _ = reviewed(300)
    assert past([]) == [(0, 0)]
    assert past(answers)[0] == (0, 0)
    assert len(past(answers)) == 100
