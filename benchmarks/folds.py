"""Confidence by five-fold cross-validation: what cleanlab's manual asks for.

Two models of the features: `logistic`, a linear head with an L2 penalty, which is chosen among
`PENALTIES` by the log loss of the given labels of the first fold; and `bce`, the head and recipe of
our other tables. What was made is kept in bench/folds, since it takes minutes.
"""

from __future__ import annotations

import numpy as np
import torch
from label_sets import Case, load_case
from results import ROOT
from torch import Tensor
from torch.nn import functional as F

from balancemix.data import FeatureRows
from balancemix.files import write_arrays
from balancemix.plan.plan import Plan
from balancemix.training.features import features_of
from balancemix.training.fit import fit
from balancemix.training.models import make_model
from balancemix.training.predict import predict

KEPT = ROOT / "bench" / "folds"
FOLDS = 5
PENALTIES = (
    10_000.0,
    3000.0,
    1000.0,
    300.0,
    100.0,
)  # ½·penalty·‖weights‖², beside the sum of the rows' losses
STEPS = 60  # of L-BFGS at most, each from where the penalty before ended


def cross_validated(case: Case, head: str = "logistic") -> Tensor:
    """Return the N×K confidence in rows that were not trained on, made once."""
    name, noise, seed = case
    slug = f"{head}-{name}-{noise}-{seed}".replace(", ", "-").replace(":", "-")
    file = KEPT / f"{slug}.npz"
    if not file.exists():
        experiment = load_case(case)
        confidence = cross_validate(experiment.train, experiment.plan, head)
        file.parent.mkdir(parents=True, exist_ok=True)
        write_arrays(file, {"confidence": confidence.numpy()})
    with np.load(file) as arrays:
        return torch.from_numpy(arrays["confidence"])


def cross_validate(rows: FeatureRows, plan: Plan, head: str) -> Tensor:
    """Train on four fifths of the rows at a time, and predict the rest."""
    order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(plan.seed))
    parts = order.tensor_split(FOLDS)
    return (_logistic if head == "logistic" else _trained)(rows, plan, parts)


def _trained(rows: FeatureRows, plan: Plan, parts: tuple[Tensor, ...]) -> Tensor:
    """Train the plan's model and method on each fold."""
    confidence = torch.empty(rows.given.shape)
    for held in parts:
        train, rest = rows.subset(_others(held, len(rows))), rows.subset(held)
        few = rest.subset(torch.arange(2))  # scored in each epoch, which is not what we measure

        def build(train: FeatureRows = train) -> torch.nn.Module:
            return make_model(plan, train, pretrained=False)

        confidence[held] = predict(fit(build, train, few, plan).model, rest.plain)
    return confidence


def _logistic(rows: FeatureRows, plan: Plan, parts: tuple[Tensor, ...]) -> Tensor:
    """Fit a linear head to each fold, with the penalty that suits the first one."""
    x, given = features_of(rows, plan), rows.given.float()
    confidence = torch.empty(given.shape)
    best = PENALTIES[0]
    for fold, held in enumerate(parts):
        seen = _others(held, len(rows))
        mean, scale = x[seen].mean(0), x[seen].std(0).clamp(min=1e-6)
        known, rest = (x[seen] - mean) / scale, (x[held] - mean) / scale
        weight, least = start(given[seen], x.shape[1]), float("inf")
        for penalty in (best,) if fold else PENALTIES:
            weight = solve(known, given[seen], penalty, weight)
            logits = rest @ weight[:-1] + weight[-1]
            loss = float(F.binary_cross_entropy_with_logits(logits, given[held]))
            if loss < least:
                best, least, confidence[held] = penalty, loss, logits.sigmoid()
    return confidence


def start(given: Tensor, features: int) -> Tensor:
    """Start with each class's frequency: weights of 0, and an intercept in the last row."""
    frequency = given.mean(0).clamp(1e-4, 1 - 1e-4)
    return torch.cat([torch.zeros(features, given.shape[1]), frequency.logit()[None]])


def solve(x: Tensor, given: Tensor, penalty: float, weight: Tensor) -> Tensor:
    """Fit logistic regression of all classes at once, by L-BFGS from given weights.

    >>> x = torch.tensor([[-1.0], [1.0]])
    >>> given = torch.tensor([[0.0], [1.0]])
    >>> weight = solve(x, given, 1.0, start(given, 1))
    >>> slope = float(weight[0])  # where 2·(1 − σ(slope)) = slope
    >>> round(2 / (1 + 2.718281828**slope) - slope, 3)
    0.0
    """
    weight = weight.clone().requires_grad_()
    optimiser = torch.optim.LBFGS([weight], max_iter=STEPS, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimiser.zero_grad()
        logits = x @ weight[:-1] + weight[-1]
        loss = F.binary_cross_entropy_with_logits(logits, given, reduction="sum")
        loss = (loss + penalty / 2 * weight[:-1].square().sum()) / len(x)
        loss.backward()  # type: ignore[no-untyped-call]
        return loss

    optimiser.step(closure)  # type: ignore[arg-type]
    return weight.detach()


def _others(held: Tensor, rows: int) -> Tensor:
    return torch.ones(rows, dtype=torch.bool).index_fill_(0, held, False).nonzero()[:, 0]
