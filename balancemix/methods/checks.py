"""What methods refuse: settings outside their range, and batches that do not fit the labels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, get_args, get_origin, get_type_hints

import torch
from torch import Tensor

from balancemix.errors import InputError, suggest


def require(low: float, high: float, **settings: float) -> None:
    """Refuse settings outside a range that includes both ends, and infinite ones.

    >>> require(0, 1, share=1.5)
    Traceback (most recent call last):
    ValueError: share must be between 0 and 1, it is 1.5
    """
    allowed = f"between {low:g} and {high:g}" if high < math.inf else f"at least {low:g}"
    for name, value in settings.items():
        if not (low <= value <= high and math.isfinite(value)):
            raise ValueError(f"{name} must be {allowed}, it is {value}")


def check_choices(settings: object) -> None:
    """Refuse the values of a dataclass that its `Literal` fields do not list."""
    for name, hint in get_type_hints(type(settings)).items():
        options = (hint,) if get_origin(hint) is Literal else get_args(hint)  # of a union
        choices = [word for o in options if get_origin(o) is Literal for word in get_args(o)]
        if not choices:
            continue
        value = getattr(settings, name)
        others = len(options) > 1 and not isinstance(value, str)  # a number, True or None
        if value not in choices and not others:
            raise ValueError(f"{name}={value!r}: {suggest(str(value), choices)}")


def check_informed(opinion: object, method: str) -> None:
    """Refuse to start without the judge's opinion."""
    if opinion is None:
        raise InputError(
            f"{method} has no opinion yet: call informed_by(judge(given, features), None) "
            "before start"
        )


def check_batch(views: Sequence[Tensor], index: Tensor, rows: int) -> None:
    """Refuse row numbers that are not those of the views' rows, out of `rows`."""
    if index.dtype == torch.bool or index.dtype.is_floating_point:
        raise ValueError(f"index must be whole numbers, not {index.dtype}")
    if index.ndim != 1:
        shape = tuple(index.shape)
        raise ValueError(f"index must be one row number for each row, not of shape {shape}")
    count = f"{len(index)} row number{'' if len(index) == 1 else 's'}"
    for view in views:
        if len(view) != len(index):
            raise ValueError(f"{len(view)} rows of x and {count}: give one for each")
    if len(index):
        low, high = (int(end) for end in index.cpu().aminmax())
        if low < 0 or high >= rows:
            raise ValueError(
                f"row numbers must be between 0 and {rows - 1}, they are {low} to {high}"
            )
