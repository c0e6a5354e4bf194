"""judge(): what the other rows say of each label, and how far the given label can be believed.

    score       kernel ridge regression on the given labels, leave-one-out (judge/ridge.py)
    confidence  η = P(present | score)                                      (judge/noise_model.py)
    posterior   q = P(present | given label, score), by modelled rates of errors

Nothing here has learned the label that it judges. What it cannot know: how many labels are wrong.
The rates are right where errors do not depend on the row, and bound nothing where they do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from balancemix.errors import InputError
from balancemix.judge.blocks import blocks
from balancemix.judge.noise_model import fit_noise_model
from balancemix.judge.penalty import Penalty
from balancemix.judge.ridge import Ridge
from balancemix.judge.stages import Stages, fingerprint
from balancemix.labels.table import LabelMatrix, as_given, as_verified

_SCORES = "refined"  # how stored scores were found: others are ignored


@dataclass(frozen=True)
class Opinion:
    """What the judge thinks of N×K labels; matrices are float32."""

    score: Tensor
    confidence: Tensor  # η
    posterior: Tensor  # q
    rho0: Tensor  # K: modelled P(given 1 | absent)
    rho1: Tensor  # K: modelled P(given 0 | present)
    judged: Tensor  # K: whether the other rows say anything at all of the class
    penalty: Penalty

    def targets(self, given: Tensor, share: float = 0.4, *, modelled: bool = True) -> Tensor:
        """Mix the posterior, or the given label if not `modelled`, with the confidence: N×K.

        Classes that are not judged are mixed too: there the confidence is nearly the same for all
        rows, and given labels that no feature explains count less.
        """
        given_or_not = torch.where(given < 0, self.confidence, (given > 0).float())
        base = self.posterior if modelled else given_or_not
        return ((1 - share) * base + share * self.confidence).clamp_(0, 1)

    def arrays(self) -> dict[str, Any]:
        """Return arrays to be stored."""
        matrices = ("score", "confidence", "posterior")
        return {
            **{name: getattr(self, name).half().numpy() for name in matrices},
            **{name: getattr(self, name).numpy() for name in ("rho0", "rho1", "judged")},
            "penalty": np.float64(self.penalty.best),
            "grid": np.array(self.penalty.grid),
            "errors": np.array(self.penalty.errors),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any]) -> Opinion:
        """Read what `arrays` returned; an InputError says what is wrong with it."""
        matrices, vectors = ("score", "confidence", "posterior"), ("rho0", "rho1", "judged")
        read = {name: _numbers(arrays, name) for name in (*matrices, *vectors)}
        penalty, grid, errors = (_numbers(arrays, name) for name in ("penalty", "grid", "errors"))
        shape = read["score"].shape
        fits = all(read[name].shape == shape for name in matrices)
        fits &= all(read[name].shape == shape[1:] for name in vectors)
        if len(shape) != 2 or not fits or penalty.numel() != 1 or grid.shape != errors.shape:
            raise InputError("its arrays do not fit each other")
        for name in ("confidence", "posterior"):
            if not bool(((read[name] >= 0) & (read[name] <= 1)).all()):  # nor NaN
                raise InputError(f"its {name} is not between 0 and 1")
        read |= {name: read[name].float() for name in matrices}
        read["judged"] = read["judged"].bool()
        return cls(**read, penalty=Penalty(float(penalty), grid.tolist(), errors.tolist()))


def _numbers(arrays: Mapping[str, Any], name: str) -> Tensor:
    if name not in arrays:
        raise InputError(f"it holds no {name}")
    array = np.asarray(arrays[name])
    if array.dtype.kind not in "fb" or array.dtype.itemsize > 8 or not array.dtype.isnative:
        raise InputError(f"its {name} holds no numbers")
    return torch.as_tensor(array)


def judge(
    given: LabelMatrix,
    features: Tensor | Ridge,
    *,
    verified: LabelMatrix | None = None,
    before: LabelMatrix | None = None,
    groups: Tensor | None = None,
    landmarks: int | None = None,
    seed: int = 0,
    device: torch.device | str = "cpu",
    folder: Path | None = None,
) -> Opinion:
    """Judge N×K given labels (1, 0, or −1 for unknown) by N×D features, or by rows factored before.

    `verified` labels (N×K booleans) are known to be right, and are believed. If people chose what
    to verify, as from a list of findings, also give the labels as they were `before` that (N×K, −1
    where it is not known): see `rated`. Rows of one of the `groups` (N numbers) do not judge each
    other; give near duplicates one group. `landmarks`, `seed` and `device` are those of `Ridge.of`.
    What takes minutes keeps its finished parts in `folder`, so that the same call resumes after an
    interruption, and deletes them at its end.

    >>> generator = torch.Generator().manual_seed(0)
    >>> features = torch.randn(300, 4, generator=generator)
    >>> truth = (features[:, :2] > 0.5).int()
    >>> given = truth.clone()
    >>> given[7, 0] = 1 - given[7, 0]
    >>> opinion = judge(given, features)
    >>> doubt = (opinion.posterior - given).abs()
    >>> int(doubt[:, 0].argmax())
    7
    """
    given = as_given(given)
    if isinstance(features, Tensor):
        if len(features) != len(given):
            raise InputError(f"{len(given)} rows of labels, but {len(features)} rows of features")
        features = Ridge.of(
            features,
            landmarks=landmarks,
            groups=groups,
            seed=seed,
            device=device,
            stages=Stages(folder),
        )
    target = (given > 0).float()
    doubtful, sure = given, None if verified is None else as_verified(verified, given)
    if sure is not None:
        doubtful = given.masked_fill(sure, -1)
    penalty, score = _scored(features, given, target, doubtful)
    judged = is_judged(given, score)
    model = fit_noise_model(rated(given, sure, before), score)
    confidence, posterior = torch.empty_like(score), torch.empty_like(score)
    for rows in blocks(len(given)):
        confidence[rows] = model.confidence(score[rows])
        posterior[rows] = model.posterior(given[rows], confidence[rows])
    if sure is not None:
        posterior = torch.where(sure & (given >= 0), target, posterior)
    if folder is not None:
        Stages(folder).remove()
    return Opinion(score, confidence, posterior, model.rho0, model.rho1, judged, penalty)


def rated(given: Tensor, verified: Tensor | None, before: LabelMatrix | None) -> Tensor:
    """Return the N×K labels that tell how labels go wrong, −1 where one tells nothing.

    A verified label tells nothing as it is. But people verify what looks wrong, and without such
    labels errors would seem rare among the others; so each counts as it was `before`, if known.

    >>> given, verified = torch.tensor([[0, 1]]), torch.tensor([[True, False]])
    >>> rated(given, verified, None), rated(given, verified, torch.tensor([[1, 1]]))
    (tensor([[-1,  1]]), tensor([[1, 1]], dtype=torch.int8))
    """
    if before is None:
        return given if verified is None else given.masked_fill(verified, -1)
    labels = as_given(before)
    if labels.shape != given.shape:
        shapes = f"{tuple(labels.shape)}, not {tuple(given.shape)}"
        raise InputError(f"before: is of shape {shapes}: give the labels of the same rows")
    return labels


def _scored(
    ridge: Ridge, given: Tensor, target: Tensor, doubtful: Tensor
) -> tuple[Penalty, Tensor]:
    """Score the given labels, or read the scores that an interrupted judgement stored.

    The penalty is chosen by the labels that are judged. Verified ones alone would choose a smaller
    one, at which the others are judged worse than if nothing had been verified.
    """
    stages, key = Stages(None), b""
    if ridge.stages is not None and ridge.basis.key is not None:
        parts = (ridge.basis.key, given, doubtful, ridge.groups)
        stages, key = ridge.stages, fingerprint(_SCORES, *parts)
    if stored := stages.load("scores", key):
        grid, errors = stored["grid"].tolist(), stored["errors"].tolist()
        return Penalty(float(stored["best"]), grid, errors), stored["score"]
    known = given >= 0
    counted = doubtful >= 0
    penalty = ridge.choose(target, known, counted if bool(counted.any()) else None)
    score = ridge.leave_one_out(target, penalty.best, known)
    chosen = {
        name: torch.tensor(value, dtype=torch.float64) for name, value in vars(penalty).items()
    }
    stages.save("scores", key, {"score": score, **chosen})
    return penalty, score


def is_judged(given: Tensor, score: Tensor) -> Tensor:
    """Mark the classes whose given positives score above chance, by two standard errors of AUC."""
    judged = torch.zeros(given.shape[1], dtype=torch.bool)
    for k, (labels, scores) in enumerate(zip(given.T, score.T, strict=True)):
        positive, negative = scores[labels > 0], scores[labels == 0].sort().values
        m, n = len(positive), len(negative)
        if m and n:
            below = torch.searchsorted(negative, positive).double()
            tied = torch.searchsorted(negative, positive, right=True).double()
            auc = float((below + tied).mean()) / (2 * n)
            judged[k] = auc - 0.5 > 2 * ((m + n + 1) / (12 * m * n)) ** 0.5
    return judged
