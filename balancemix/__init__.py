"""Train multi-label classifiers on wrong, missing and imbalanced labels, and learn which to fix.

The names below are the whole public surface. They are imported on first use, so that the command
line answers before torch is loaded.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from balancemix.auditing.findings import audit
    from balancemix.errors import InputError
    from balancemix.evaluation.metrics import average_precision
    from balancemix.judge.noise_rates import estimate_noise_rates
    from balancemix.labels import noise
    from balancemix.labels.mixtures import clean_probability
    from balancemix.labels.table import LabelTable, Status, manage
    from balancemix.methods import BCE, METHODS, BalanceMix, Method, Mixup, losses
    from balancemix.methods.base import Batch, Request
    from balancemix.methods.mixing import draw_lambda, mix
    from balancemix.methods.sampling import minority_odds
    from balancemix.plan.plan import Plan
    from balancemix.training.fit import fit
    from balancemix.training.predict import predict

__version__ = "0.1.0"

__all__ = [
    "BCE",
    "METHODS",
    "BalanceMix",
    "Batch",
    "InputError",
    "LabelTable",
    "Method",
    "Mixup",
    "Plan",
    "Request",
    "Status",
    "audit",
    "average_precision",
    "clean_probability",
    "draw_lambda",
    "estimate_noise_rates",
    "fit",
    "losses",
    "manage",
    "minority_odds",
    "mix",
    "noise",
    "predict",
]

_HOME = {
    "audit": "auditing.findings",
    "predict": "training.predict",
    "InputError": "errors",
    "clean_probability": "labels.mixtures",
    "LabelTable": "labels.table",
    "Status": "labels.table",
    "manage": "labels.table",
    "Batch": "methods.base",
    "Request": "methods.base",
    "BCE": "methods",
    "METHODS": "methods",
    "BalanceMix": "methods",
    "Method": "methods",
    "Mixup": "methods",
    "average_precision": "evaluation.metrics",
    "draw_lambda": "methods.mixing",
    "mix": "methods.mixing",
    "estimate_noise_rates": "judge.noise_rates",
    "Plan": "plan.plan",
    "minority_odds": "methods.sampling",
    "fit": "training.fit",
}
_MODULES = {
    "losses": "methods.losses",
    "noise": "labels.noise",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"balancemix.{_MODULES[name]}")
    if name in _HOME:
        return getattr(importlib.import_module(f"balancemix.{_HOME[name]}"), name)
    raise AttributeError(f"module 'balancemix' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
