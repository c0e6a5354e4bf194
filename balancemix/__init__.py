"""Train multi-label classifiers on wrong, missing and imbalanced labels, and learn which to fix.

The names below are the whole public surface; docs/api.md has an example of each. They are imported
on first use, so that the command line answers before torch is loaded.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the same names, for type checkers
    from balancemix.auditing.findings import Findings as Findings
    from balancemix.auditing.findings import audit as audit
    from balancemix.data import load as load
    from balancemix.data.features import FeatureRows as FeatureRows
    from balancemix.data.images import ImageRows as ImageRows
    from balancemix.data.rows import Rows as Rows
    from balancemix.data.source import View as View
    from balancemix.errors import InputError as InputError
    from balancemix.evaluation.metrics import average_precision as average_precision
    from balancemix.judge.noise_rates import estimate_noise_rates as estimate_noise_rates
    from balancemix.judge.opinion import Opinion as Opinion
    from balancemix.judge.ridge import Ridge as Ridge
    from balancemix.labels import noise as noise
    from balancemix.labels.mixtures import clean_probability as clean_probability
    from balancemix.labels.table import LabelTable as LabelTable
    from balancemix.labels.table import Status as Status
    from balancemix.labels.table import manage as manage
    from balancemix.methods import METHODS as METHODS
    from balancemix.methods import losses as losses
    from balancemix.methods.balancemix import BalanceMix as BalanceMix
    from balancemix.methods.base import Batch as Batch
    from balancemix.methods.base import Method as Method
    from balancemix.methods.base import Request as Request
    from balancemix.methods.closed_form import KernelRidge as KernelRidge
    from balancemix.methods.mixing import draw_lambda as draw_lambda
    from balancemix.methods.mixing import mix as mix
    from balancemix.methods.mixup import BCE as BCE
    from balancemix.methods.mixup import Mixup as Mixup
    from balancemix.methods.sampling import minority_odds as minority_odds
    from balancemix.methods.second_opinion import SecondOpinion as SecondOpinion
    from balancemix.plan.plan import Plan as Plan
    from balancemix.run import Run as Run
    from balancemix.training.fit import fit as fit
    from balancemix.training.predict import predict as predict

__version__ = "0.1.0"

# Each public name, and the module that holds it.
_HOME = {
    "BCE": "methods.mixup",
    "METHODS": "methods",
    "BalanceMix": "methods.balancemix",
    "Batch": "methods.base",
    "FeatureRows": "data.features",
    "Findings": "auditing.findings",
    "ImageRows": "data.images",
    "InputError": "errors",
    "KernelRidge": "methods.closed_form",
    "LabelTable": "labels.table",
    "Method": "methods.base",
    "Mixup": "methods.mixup",
    "Opinion": "judge.opinion",
    "Plan": "plan.plan",
    "Request": "methods.base",
    "Ridge": "judge.ridge",
    "Rows": "data.rows",
    "Run": "run",
    "SecondOpinion": "methods.second_opinion",
    "Status": "labels.table",
    "View": "data.source",
    "audit": "auditing.findings",
    "average_precision": "evaluation.metrics",
    "clean_probability": "labels.mixtures",
    "draw_lambda": "methods.mixing",
    "estimate_noise_rates": "judge.noise_rates",
    "fit": "training.fit",
    "load": "data",
    "losses": "methods.losses",
    "manage": "labels.table",
    "minority_odds": "methods.sampling",
    "mix": "methods.mixing",
    "noise": "labels.noise",
    "predict": "training.predict",
}
__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'balancemix' has no attribute {name!r}")
    module = importlib.import_module(f"balancemix.{_HOME[name]}")
    return getattr(module, name, module)  # `losses` and `noise` are modules themselves


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
