"""Check scores that were read from a file: a ValueError says what is wrong with them."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_COUNTERS = ("epoch", "epochs")  # shown as they are, never computed with
_LARGEST = 2**63  # a whole number that arrays hold


def check_log(lines: Iterable[Mapping[str, Any]]) -> None:
    """Check the lines of a log: numbers by name, the mAP among them."""
    for line in lines:
        _check_numbers(line)
        if not _is_number(line.get("mAP")):
            raise ValueError("a line has no mAP")
        if not _is_number(line.get("penalty", 0)) or not _are_penalties(line.get("leave_one_out")):
            raise ValueError("its penalty is not a number")


def check_metrics(metrics: Mapping[str, Any]) -> None:
    """Check last and best scores, and whatever stands beside them."""
    _check_numbers(metrics)
    for name in ("last", "best"):
        scores = metrics.get(name)
        if not isinstance(scores, Mapping) or not _is_number(scores.get("mAP")):
            raise ValueError(f"it has no {name} scores")
    if not isinstance(metrics.get("selection", {}), Mapping):
        raise ValueError("its selection is not a table")
    if not _is_number(metrics.get("seconds_per_epoch", 0)):
        raise ValueError("its seconds_per_epoch is not a number")


def check_rates(facts: Mapping[str, Any]) -> None:
    """Check the measured rates of noise, which older runs call realised."""
    for name in ("measured", "realised"):
        rates = facts.get(name, {})
        if not isinstance(rates, Mapping) or not all(map(_is_number, rates.values())):
            raise ValueError(f"its {name} rates are not numbers")


def class_scores(facts: Mapping[str, Any], count: int) -> list[float]:
    """Pick the AP of each of `count` classes, NaN where there is none."""
    listed = facts.get("classes")
    if not isinstance(listed, Sequence) or len(listed) != count:
        raise ValueError(f"it does not list the {count} classes")
    scores = []
    for fact in listed:
        if not isinstance(fact, Mapping) or "AP" not in fact:
            raise ValueError("a class has no AP")
        score = math.nan if fact["AP"] is None else fact["AP"]
        if not _is_number(score) or score < 0 or score > 100:
            raise ValueError("the AP of a class is not from 0 to 100")
        scores.append(float(score))
    return scores


def _check_numbers(content: Mapping[str, Any]) -> None:
    for name, value in content.items():
        inner = value if isinstance(value, Mapping) else {name: value}
        numbers = (each for key, each in inner.items() if key not in _COUNTERS)
        if not all(map(_is_number, numbers)):
            raise ValueError(f"its {name} is not a number")


def _are_penalties(errors: object) -> bool:
    """Tell whether errors are listed by penalty, or not at all."""
    if not isinstance(errors, Mapping):
        return errors is None
    try:
        return all(0 < float(penalty) < math.inf for penalty in errors)
    except ValueError:
        return False


def _is_number(value: object) -> bool:
    if isinstance(value, int):
        return not isinstance(value, bool) and abs(value) < _LARGEST
    return isinstance(value, float)
