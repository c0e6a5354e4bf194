"""Score predictions against the truth: average precision in three conventions, F1 in two."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Literal, get_args

import torch
from torch import Tensor

from balancemix.errors import listing

Convention = Literal["sklearn", "raw", "voc"]
Absent = Literal["skip", "zero", "nan"]


def average_precision(truth: Tensor, scores: Tensor, convention: Convention = "sklearn") -> Tensor:
    """Rank the rows of each class and return its average precision in 0..1, shape (K,).

    Any N×K ranking score will do; best are float32 logits, as float16 confidence ties at 0 and 1.
    A truth of −1 is unknown, and that entry is left out of its class; a class without positives is
    NaN. "sklearn" treats equal scores as one rank; "raw" (ASL, ML-Decoder) ranks them in row order;
    "voc" (Q2L) groups them and takes, for each recall, the best precision there or beyond.

    >>> scores = torch.tensor([[3.0], [2.0], [1.0]])
    >>> average_precision(torch.tensor([[1], [0], [1]]), scores)
    tensor([0.8333], dtype=torch.float64)
    """
    _require("convention", convention, get_args(Convention))
    positive, known = _entries(truth, scores, "scores")
    ranked, order = scores.T.contiguous().sort(dim=1, descending=True, stable=True)  # (K, N)
    hit = positive.T.gather(1, order)
    hits = hit.cumsum(1)
    ranks = known.T.gather(1, order).cumsum(1)
    precision = hits.double() / ranks.clamp(min=1)
    if convention != "raw":
        precision = precision.gather(1, _tie_ends(ranked))
    if convention == "voc":
        precision = precision.flip(1).cummax(1).values.flip(1)
    return (precision * hit).sum(1) / hit.sum(1)


def mean_average_precision(
    ap: Tensor, absent: Absent = "skip", classes: Sequence[str] | None = None
) -> float:
    """Average over the classes, in percent.

    A class whose precision is NaN has no positives: "skip" leaves it out with a warning, "zero"
    counts it as 0 (as ASL and scikit-learn do), "nan" makes the mean NaN.

    >>> mean_average_precision(torch.tensor([0.5, 1.0]))
    75.0
    """
    _require("absent", absent, get_args(Absent))
    missing = ap.isnan().nonzero().flatten().tolist()
    if absent == "skip" and missing:
        names = listing([str(k) if classes is None else classes[k] for k in missing], most=5)
        warnings.warn(f"mAP leaves out classes without positives: {names}", stacklevel=2)
    return _percent(ap, absent)


def f1_scores(truth: Tensor, confidence: Tensor, threshold: float = 0.5) -> dict[str, float]:
    """Return precision, recall and F1 per class (C…) and over all entries (O…), in percent.

    Present means confidence ≥ threshold. `CF1_mean` is the mean of the classes' F1 (ASL),
    `CF1_harmonic` the harmonic mean of `CP` and `CR` (ML-GCN, T-estimator). A class without
    predicted, or without true, positives counts 0. A truth of −1 is left out.

    >>> confidence = torch.tensor([[0.9, 0.2], [0.8, 0.6]])
    >>> f1_scores(torch.tensor([[1, 0], [0, 1]]), confidence)["CP"]
    75.0
    """
    positive, known = _entries(truth, confidence, "confidence")
    if ((confidence < 0) | (confidence > 1)).any():
        raise ValueError("confidence must lie in 0..1; these look like logits")
    predicted = (confidence >= threshold) & known
    hits = (predicted & positive).sum(0).double()  # (K,)
    claims, positives = predicted.sum(0), positive.sum(0)
    precision, recall = hits / claims.clamp(min=1), hits / positives.clamp(min=1)
    cp, cr = precision.mean(), recall.mean()
    op, or_ = hits.sum() / claims.sum().clamp(min=1), hits.sum() / positives.sum().clamp(min=1)
    shares = {
        "CF1_mean": _harmonic(precision, recall).mean(),
        "CF1_harmonic": _harmonic(cp, cr),
        "OF1": _harmonic(op, or_),
        "CP": cp,
        "CR": cr,
        "OP": op,
        "OR": or_,
    }
    return {name: 100 * share.item() for name, share in shares.items()}


def evaluate(
    truth: Tensor,
    logits: Tensor,
    groups: Mapping[str, Tensor] | None = None,
    convention: Convention = "sklearn",
    threshold: float = 0.5,
    absent: Absent = "skip",
    classes: Sequence[str] | None = None,
) -> dict[str, float]:
    """Return every score of a prediction by name, in percent.

    `mAP`, then `mAP_<group>` for each group of class indices with a class to count, then the F1s.
    The threshold is one of confidence, 0.5 being a logit of 0.

    >>> truth, logits = torch.tensor([[1], [0]]), torch.tensor([[2.0], [-1.0]])
    >>> list(evaluate(truth, logits, {"few": torch.tensor([0])}))[:4]
    ['mAP', 'mAP_few', 'CF1_mean', 'CF1_harmonic']
    """
    ap = average_precision(truth, logits, convention)
    scores = {"mAP": mean_average_precision(ap, absent, classes)}
    for name, index in (groups or {}).items():
        part = ap[index]
        if len(part) and not (absent == "skip" and part.isnan().all()):
            scores[f"mAP_{name}"] = _percent(part, absent)
    # Float64, since in float32 a logit just below 0 already has a confidence of 0.5.
    return scores | f1_scores(truth, logits.double().sigmoid(), threshold)


def _entries(truth: Tensor, scores: Tensor, name: str) -> tuple[Tensor, Tensor]:
    """Return which entries are positive and which are known, after checking both matrices."""
    if scores.shape != truth.shape or scores.ndim != 2:
        got = f"{tuple(truth.shape)} and {tuple(scores.shape)}"
        raise ValueError(f"truth and {name} must be N×K matrices of one shape, not {got}")
    if scores.isnan().any():
        row, k = scores.isnan().nonzero()[0].tolist()
        raise ValueError(f"{name} is NaN in row {row}, class {k}")
    positive = truth == 1
    known = positive | (truth == 0)
    if not (known | ((truth == -1) & (truth < 0))).all():  # as uint8, 255 equals −1
        raise ValueError(f"truth must be 0, 1 or −1 (unknown); give it first, then the {name}")
    return positive, known


def _tie_ends(ranked: Tensor) -> Tensor:
    """Return for each position of sorted rows the last position with the same score."""
    last = torch.ones_like(ranked, dtype=torch.bool)
    last[:, :-1] = ranked[:, :-1] != ranked[:, 1:]
    n = ranked.shape[1]
    position = torch.arange(n, device=ranked.device)
    return position.where(last, n).flip(1).cummin(1).values.flip(1)


def _harmonic(precision: Tensor, recall: Tensor) -> Tensor:
    """Return F1, 0 where both are 0."""
    return 2 * precision * recall / (precision + recall).clamp(min=torch.finfo(torch.float64).tiny)


def _percent(ap: Tensor, absent: Absent) -> float:
    """Average without a warning."""
    if absent == "zero":
        ap = ap.nan_to_num(0.0)
    return 100 * (ap.nanmean() if absent == "skip" else ap.mean()).item()


def _require(name: str, value: str, allowed: tuple[str, ...]) -> None:
    """Refuse a value that is not allowed."""
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(allowed)}, not {value!r}")
