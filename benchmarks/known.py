"""Labels with known truth and what the judge thinks of them: what estimates are measured on.

Training rows only. Two sets with labels that people really got wrong, and four with simulated
errors of COCO's labels. A set is judged once, and kept in the folder for temporary files.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from results import ROOT
from torch import Tensor

from balancemix.auditing.judged import smoothed
from balancemix.auditing.ranking import SMOOTHER, doubt
from balancemix.judge import judge
from balancemix.judge.ridge import Ridge
from balancemix.labels import noise

DATA = ROOT.parent / "shared" / "data"
COCO = "coco160-features.npz"
SIMULATED = {
    "mislabel 20 %": (COCO, "mislabel:0.2"),
    "mislabel 40 %": (COCO, "mislabel:0.4"),
    "flip 10 %": (COCO, "flip:0.1"),
    "single positive": (COCO, "single"),
}
REAL = {
    "captions": ("real-noise/coco-captions.npz", "none"),
    "birds": ("real-noise/birds.npz", "none"),
}
SETS = {**SIMULATED, **REAL}
CLEAN = {"clean": (COCO, "none")}  # where every finding is a false alarm
OPINION = ("score", "confidence", "posterior")
SMOOTH = ("smooth_score", "smooth_posterior")
SIDES = ("wrong", "missing")

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Known:
    """N×K given labels, their truth, and the judge's opinion."""

    given: Bools
    truth: Bools
    score: Floats
    confidence: Floats
    posterior: Floats
    smooth_score: Floats  # by these two wrong labels are ranked
    smooth_posterior: Floats

    def side(self, side: str) -> Bools:
        """Mark the labels that can be wrong, the given ones, or missing, the others."""
        return self.given if side == "wrong" else ~self.given

    @cached_property
    def error(self) -> Bools:
        """Mark the labels that are not as given."""
        return self.given != self.truth

    @cached_property
    def modelled(self) -> Floats:
        """Compute the judge's probability that a label is not as given."""
        return np.where(self.given, 1 - self.posterior, self.posterior)

    @cached_property
    def doubt(self) -> Floats:
        """Compute the order in which the audit would show the labels."""
        given = torch.from_numpy(self.given.astype(np.int8))
        score, confidence, smooth, posterior = (
            torch.from_numpy(each.astype(np.float32))
            for each in (self.score, self.confidence, self.smooth_score, self.smooth_posterior)
        )
        return doubt(given, score, confidence, posterior, smooth=smooth).double().numpy()

    def errors(self, side: str) -> Floats:
        """Count the errors of each row."""
        return (self.error & self.side(side)).sum(1).astype(np.float64)

    def sums(self, side: str) -> Floats:
        """Sum what the judge expects of each row: modelled errors, and disagreements: N×2."""
        apart = np.abs(self.given - np.clip(self.score, 0, 1))
        here = self.side(side)
        return np.stack([(each * here).sum(1) for each in (self.modelled, apart)], 1)


def load(name: str) -> Known:
    """Judge a set, or read what was judged before."""
    folder = Path(tempfile.gettempdir()) / f"balancemix-known-{SMOOTHER:g}"
    kept = folder / f"{name.replace(' ', '-')}.npz"
    if not kept.exists():
        folder.mkdir(exist_ok=True)
        np.savez(kept, **_judged(*{**SETS, **CLEAN}[name]))
    with np.load(kept) as stored:
        labels = {key: stored[key].astype(bool) for key in ("given", "truth")}
        opinion = {key: stored[key].astype(np.float64) for key in (*OPINION, *SMOOTH)}
        return Known(**labels, **opinion)


def _judged(file: str, kind: str) -> dict[str, npt.NDArray[np.generic]]:
    ridge, labels, truth = _factored(file)
    given = noise.parse(kind).apply(labels, 0).given
    opinion = judge(given, ridge)
    smooth = smoothed(given, ridge, SMOOTHER * opinion.penalty.best)
    return {
        "given": given.numpy(),
        "truth": truth,
        **{key: getattr(opinion, key).numpy() for key in OPINION},
        **{key: each.numpy() for key, each in zip(SMOOTH, smooth, strict=True)},
    }


@cache
def _factored(file: str) -> tuple[Ridge, Tensor, npt.NDArray[np.generic]]:
    """Factor the training rows of a file once; also returns their labels and their truth."""
    with np.load(DATA / file) as stored:
        train = stored["split"] == "train"
        features = torch.from_numpy(stored["features"][train].astype(np.float32))
        labels = torch.from_numpy(stored["labels"][train]).to(torch.int8)
        truth = stored["truth"][train] if "truth" in stored else labels.numpy()
    return Ridge.of(features), labels, truth
