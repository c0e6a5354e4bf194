"""How fast people are: seconds a picture and a question take, and fixes a minute."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from balancemix.review.answered import Answer, answers_of
from balancemix.review.log import Log
from balancemix.review.order import USUAL, Pace

LAST = 200  # answers in Focus that say how fast people are: some hurried ones hardly count
RECENT = 400  # entries of the log that say how fast people are
FEWEST = 10  # of either kind, below which the usual pace is assumed


def pace_of(answers: Sequence[Answer]) -> Pace:
    """Measure the median seconds that a picture and a question take, by the last 200 answers.

    The first question about a picture includes looking at it.
    """
    last = [each for each in answers if each.mode == "focus"][-LAST:]
    first = [each.seconds for each in last if each.is_first]
    other = [each.seconds for each in last if not each.is_first]
    question = median(other) if len(other) >= FEWEST else USUAL.question
    if len(first) < FEWEST:
        return Pace(USUAL.picture, max(question, 0.1))
    return Pace(max(median(first) - question, 0.1), max(question, 0.1))


def recent_pace(log: Log) -> Pace:
    """Measure the pace by the last entries of a log, which may be long."""
    recent = [each for each in log.entries[-RECENT:] if log.is_live(each)]
    return pace_of(answers_of(recent, {}, lambda row, column: 0))


def fixes_a_minute(answers: Sequence[Answer]) -> float | None:
    """Count the labels fixed a minute of active time; None without any."""
    seconds = sum(each.seconds for each in answers)
    return 60 * sum(each.is_fix for each in answers) / seconds if seconds > 0 else None


def seconds_each(answers: Sequence[Answer], pace: Pace) -> float:
    """Say how long an answer in Focus takes: their median; before ten, as the pace has it."""
    last = [each.seconds for each in answers if each.mode == "focus" and each.seconds > 0][-LAST:]
    return median(last) if len(last) >= FEWEST else pace.picture + pace.question
