"""What a method keeps in a checkpoint besides its table, without pickled code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from balancemix.judge.noise_rates import NoiseRates
from balancemix.labels.mixtures import Mixtures

# Classes that a method may keep besides tensors and plain values; a checkpoint names the class.
_KINDS = {kind.__name__: kind for kind in (Mixtures, NoiseRates)}


def as_plain(value: Any) -> Any:
    """Write a kept attribute so that it is stored without pickled code."""
    if type(value).__name__ in _KINDS:
        return {"kind": type(value).__name__, **vars(value)}
    return value


def as_kept(value: Any) -> Any:
    """Read what `as_plain` wrote."""
    if isinstance(value, Mapping) and "kind" in value:
        return _KINDS[value["kind"]](**{key: value[key] for key in value if key != "kind"})
    return value
