"""The models of plans and runs: built for their rows, with the weights that a run stored."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from balancemix.data import FeatureRows, Rows
from balancemix.data.features import channel_statistics
from balancemix.errors import InputError
from balancemix.labels.classes import class_counts
from balancemix.models.classifier import UNPOOLED, build_model, start_at_frequencies
from balancemix.plan.plan import Plan
from balancemix.run import Run
from balancemix.training.devices import best_device


def make_model(plan: Plan, rows: Rows, *, pretrained: bool) -> nn.Module:
    """Build the plan's model for these rows, ready to train or to load weights."""
    shape: dict[str, Any] = {"image_size": plan.data.size}
    if isinstance(rows, FeatureRows):
        shape = {"features": rows.features.shape[1], "standardise": _statistics(plan, rows)}
    model = build_model(
        classes=len(rows.classes),
        backbone=plan.model.backbone,
        head=plan.model.head,
        pretrained=pretrained,
        hidden=plan.model.hidden,
        dropout=plan.model.dropout,
        **shape,
    )
    if pretrained and not isinstance(rows, FeatureRows):
        start_at_frequencies(model, (class_counts(rows.given) + 1) / (len(rows) + 2))
    return model


def _statistics(plan: Plan, rows: FeatureRows) -> tuple[Tensor, Tensor]:
    """Compute the mean and standard deviation of each feature that the plan's head reads."""
    if rows.features.ndim == 4:
        return channel_statistics(rows.features, pooled=plan.model.head not in UNPOOLED)
    features = rows.features.float()
    return features.mean(0), features.std(0)


def trained_model(run: Run, rows: Rows) -> nn.Module:
    """Build a run's model, load its weights, and put it on the best device."""
    model = make_model(run.plan, rows, pretrained=False)
    try:
        model.load_state_dict(run.load_model())
    except RuntimeError as error:
        reason = str(error).splitlines()[-1].strip()
        raise InputError(f"{run.path}: its model does not fit these rows ({reason})") from error
    return model.to(best_device())
