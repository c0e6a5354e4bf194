"""The models of plans and runs: built for their rows, with the weights that a run stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from balancemix.data import FeatureRows, Rows
from balancemix.data.features import channel_statistics
from balancemix.errors import InputError
from balancemix.labels.classes import class_counts
from balancemix.models.backbones import build_backbone
from balancemix.models.classifier import (
    UNPOOLED,
    Classifier,
    build_model,
    start_at_frequencies,
)
from balancemix.models.kernel import KernelMachine, MeanOfLogOdds
from balancemix.plan.plan import Plan
from balancemix.plan.sections import SEED
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
        known = (rows.given >= 0).sum(0)
        start_at_frequencies(model, (class_counts(rows.given) + 1) / (known + 2))
    return model


def _statistics(plan: Plan, rows: FeatureRows) -> tuple[Tensor, Tensor]:
    """Compute the mean and standard deviation of each feature that the plan's head reads."""
    if rows.features.ndim == 4:
        return channel_statistics(rows.features, pooled=plan.model.head not in UNPOOLED)
    features = rows.features.float()
    return features.mean(0), features.std(0)


def on_rows(machine: KernelMachine, plan: Plan, rows: Rows, *, pretrained: bool) -> nn.Module:
    """Let a machine of features read the plan's rows: of images, behind the frozen backbone."""
    if isinstance(rows, FeatureRows):
        return machine
    name, size = plan.model.backbone, plan.data.size
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(SEED)  # random weights are those of `features_of`
        backbone, _ = build_backbone(name, True, pretrained, size)
    return Classifier(backbone, machine)


def trained_model(run: Run, rows: Rows) -> nn.Module:
    """Build a run's model, load its weights, and put it on the best device.

    The names of the weights tell whether it was trained, solved or both, whatever the method.
    """
    weights = run.load_model()
    try:
        model = _model_like(weights, run.plan, rows)
        model.load_state_dict(weights)
    except RuntimeError as error:
        reason = str(error).splitlines()[-1].strip()
        raise InputError(f"{run.path}: its model does not fit these rows ({reason})") from error
    return model.to(best_device())


def _model_like(weights: Mapping[str, Tensor], plan: Plan, rows: Rows) -> nn.Module:
    """Build a model of the kind that has such weights; a machine takes any size when it loads."""
    machine, width = KernelMachine.empty(), None
    if "machine.landmarks" in weights:
        return MeanOfLogOdds(make_model(plan, rows, pretrained=False), machine)
    if "landmarks" in weights:
        width = len(weights["mean"])
        actual = rows.features.shape[1] if isinstance(rows, FeatureRows) else "images"
        if actual != width:
            raise RuntimeError(f"solved for {width} features, they have {actual}")
    if width or "head.landmarks" in weights:
        return on_rows(machine, plan, rows, pretrained=False)
    return make_model(plan, rows, pretrained=False)
