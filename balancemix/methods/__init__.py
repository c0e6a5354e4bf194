"""The methods by name. A new one is a file beside these and a line here."""

from __future__ import annotations

from balancemix.methods.balancemix import BalanceMix
from balancemix.methods.base import BCE, Method
from balancemix.methods.mixup import Mixup

METHODS: dict[str, type[Method]] = {
    "bce": BCE,
    "mixup": Mixup,
    "balancemix": BalanceMix,
}

__all__ = ["BCE", "METHODS", "BalanceMix", "Method", "Mixup"]
