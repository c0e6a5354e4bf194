"""The methods by name. A new one is a file beside these and a line here."""

from __future__ import annotations

from balancemix.methods.auto import Auto
from balancemix.methods.balancemix import BalanceMix
from balancemix.methods.base import Method
from balancemix.methods.closed_form import KernelRidge, RidgeRegression
from balancemix.methods.coteaching import CoTeaching
from balancemix.methods.em_apl import EMAPL
from balancemix.methods.large_loss import LLR, LLCp, LLCt
from balancemix.methods.mixup import BCE, Mixup
from balancemix.methods.pointwise import ASL, SPLC, Focal, Hill
from balancemix.methods.second_opinion import SecondOpinion
from balancemix.methods.single_positive import ANLS, EPR, ROLE
from balancemix.methods.t_estimator import TEstimator

METHODS: dict[str, type[Method]] = {
    "bce": BCE,
    "mixup": Mixup,
    "focal": Focal,
    "asl": ASL,
    "hill": Hill,
    "splc": SPLC,
    "ll-r": LLR,
    "ll-ct": LLCt,
    "ll-cp": LLCp,
    "an-ls": ANLS,
    "epr": EPR,
    "role": ROLE,
    "em-apl": EMAPL,
    "coteaching": CoTeaching,
    "t-estimator": TEstimator,
    "balancemix": BalanceMix,
    "ridge": RidgeRegression,
    "kernel-ridge": KernelRidge,
    "second-opinion": SecondOpinion,
    "auto": Auto,
}

__all__ = [
    "ANLS",
    "ASL",
    "BCE",
    "EMAPL",
    "EPR",
    "LLR",
    "METHODS",
    "ROLE",
    "SPLC",
    "Auto",
    "BalanceMix",
    "CoTeaching",
    "Focal",
    "Hill",
    "KernelRidge",
    "LLCp",
    "LLCt",
    "Method",
    "Mixup",
    "RidgeRegression",
    "SecondOpinion",
    "TEstimator",
]
