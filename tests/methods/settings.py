"""The settings at which each method of `METHODS` that is trained is put to the contract."""

from dataclasses import dataclass, field
from typing import Any

import torch

from balancemix.judge.opinion import Opinion
from balancemix.judge.penalty import Penalty
from balancemix.methods import METHODS, Method
from tests.toys import EPOCHS, Training, make_data


@dataclass(frozen=True)
class Settings:
    """`bce`: where the method is exactly BCE; `tiny`: where toy data sees all its parts at work."""

    bce: list[dict[str, Any]]
    tiny: dict[str, Any] = field(default_factory=dict)


SETTINGS = {
    "bce": Settings(bce=[{}]),
    "mixup": Settings(bce=[{"alpha": 0.0}]),
    "focal": Settings(bce=[{"gamma": 0.0, "alpha": 0.0}]),
    "asl": Settings(
        bce=[
            {"gamma_negative": 0.0, "gamma_positive": 0.0, "clip": 0.0, "alpha": 0.0} | detach
            for detach in ({}, {"detach": False})
        ]
    ),
    "hill": Settings(bce=[{"strength": 0.0, "alpha": 0.0}]),
    "splc": Settings(
        bce=[
            {"tau": 1.0, "margin": 0.0, "gamma": 0.0, "alpha": 0.0},
            {"warmup": EPOCHS, "margin": 0.0, "gamma": 0.0, "alpha": 0.0},
        ]
    ),
    "ll-r": Settings(bce=[{"delta": 0.0, "alpha": 0.0}], tiny={"delta": 5.0}),
    "ll-ct": Settings(bce=[{"delta": 0.0, "alpha": 0.0}], tiny={"delta": 5.0}),
    "ll-cp": Settings(bce=[{"delta": 0.0, "alpha": 0.0}], tiny={"delta": 5.0}),
    "an-ls": Settings(bce=[{"smoothing": 0.0, "alpha": 0.0}]),
    "epr": Settings(bce=[{"strength": 0.0, "alpha": 0.0}]),
    "role": Settings(bce=[{"strength": 0.0, "alpha": 0.0}]),
    "em-apl": Settings(bce=[{"strength": 0.0, "alpha": 0.0}]),
    "coteaching": Settings(
        bce=[{"select": False, "alpha": 0.0}, {"warmup": EPOCHS, "alpha": 0.0}],
        tiny={"warmup": 1},
    ),
    "t-estimator": Settings(
        bce=[{"reweight": False, "alpha": 0.0}, {"warmup": EPOCHS, "alpha": 0.0}],
        tiny={"warmup": 1, "min_labels": 4},
    ),
    "balancemix": Settings(
        bce=[
            {"mix": False, "minority": False, "select": False, "relabel": "off", "reweight": False},
            {"mix": False, "select": False},
            {"mix": False, "warmup": EPOCHS},
            {"warmup_mix": False, "minority": False, "warmup": EPOCHS},
        ],
        tiny={"warmup": 1, "min_labels": 4, "epsilon": 0.55},
    ),
    "second-opinion": Settings(
        bce=[{"share": 0.0, "modelled": False, "alpha": 0.0, "form": "trained"}]
    ),
}
SOLVED = ("ridge", "kernel-ridge")  # no epochs, no batches, no BCE: see test_closed_form.py


def draw_opinion(labels: torch.Tensor) -> Opinion:
    """An opinion of no judge, which doubts some labels."""
    generator = torch.Generator().manual_seed(7)
    n, k = (labels if labels.ndim == 2 else torch.zeros(1, 1)).shape
    confidence, posterior = torch.rand(2, n, k, generator=generator)
    rates = torch.full((k,), 0.1)
    judged = torch.ones(k, dtype=torch.bool)
    penalty = Penalty(1.0, [0.5, 1.0, 2.0], [2.0, 1.0, 2.0])
    return Opinion(confidence, confidence, posterior, rates, rates, judged, penalty)


def ready(method: Method, labels: torch.Tensor) -> Method:
    """The method with what it needs before it starts."""
    return method.informed_by(draw_opinion(labels), None) if method.needs_opinion else method


def make_method(name, labels, seed=0, **options):
    method = METHODS[name](**SETTINGS[name].tiny | options)
    return ready(method, labels).start(labels, EPOCHS, seed)


def trained(name, epochs=EPOCHS, views=False, seed=0, **options):
    x, labels = make_data()
    return Training(make_method(name, labels, seed, **options), x, views=views).run(epochs)
