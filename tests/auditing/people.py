"""Data with planted errors, and a person who answers by the truth."""

from pathlib import Path

import numpy as np

from balancemix.data.decisions.answers import Decision, Settled
from balancemix.data.decisions.store import Store

CLASSES = ["ant", "bee", "cat", "dog", "emu", "fox"]


def noisy_arrays(rows: int = 800, wrong: float = 0.15, missing: float = 0.05, seed: int = 0):
    """Make features of six classes, the truth, and given labels with errors of both kinds."""
    generator = np.random.default_rng(seed)
    truth = (generator.random((rows, 6)) < np.linspace(0.4, 0.2, 6)).astype(np.int8)
    features = truth @ generator.normal(size=(6, 16)) + 0.5 * generator.normal(size=(rows, 16))
    draw = generator.random(truth.shape)
    given = truth.copy()
    given[(truth == 0) & (draw < wrong / 2)] = 1
    given[(truth == 1) & (draw < missing)] = 0
    split = np.array(["train"] * (rows * 3 // 4) + ["test"] * (rows - rows * 3 // 4))
    return features.astype(np.float32), truth, given, split


def write_npz(path: Path, **options) -> tuple[np.ndarray, np.ndarray]:
    """Write such data with the names of images; returns its truth and given labels."""
    features, truth, given, split = noisy_arrays(**options)
    images = np.array([f"{i:04}.jpg" for i in range(len(given))])
    np.savez(
        path, features=features, labels=given, classes=np.array(CLASSES), split=split, images=images
    )
    return truth, given


def present(truth: np.ndarray, image: str) -> list[str]:
    """List what is in an image, by its name."""
    return [CLASSES[k] for k in np.flatnonzero(truth[int(image[:4])] == 1)]


def settle(store: Store, images, truth, reviewer="Ana", unsure=(), sample=None) -> None:
    """Answer whole images by the truth."""
    store.settle(
        Settled(
            image, reviewer, [c for c in present(truth, image) if c not in unsure], CLASSES,
            unsure=unsure, sample=sample,
        )
        for image in images
    )  # fmt: skip


def answer(store: Store, units, truth, reviewer="Ana") -> None:
    """Answer single labels by the truth."""
    store.record(
        Decision(
            unit.image,
            unit.class_,
            "present" if unit.class_ in present(truth, unit.image) else "absent",
            reviewer,
        )
        for unit in units
    )
