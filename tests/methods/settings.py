"""The settings at which each method of `METHODS` is put to the contract."""

from dataclasses import dataclass, field
from typing import Any

from balancemix.methods import METHODS
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
}


def make_method(name, labels, seed=0, **options):
    return METHODS[name](**SETTINGS[name].tiny | options).start(labels, EPOCHS, seed)


def trained(name, epochs=EPOCHS, views=False, seed=0, **options):
    x, labels = make_data()
    return Training(make_method(name, labels, seed, **options), x, views=views).run(epochs)
