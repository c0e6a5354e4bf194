"""A plan made real: its data loaded, its noise added, its model ready to be built."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from balancemix import noise
from balancemix.data import FeatureRows, Rows, Splits, load
from balancemix.errors import InputError
from balancemix.model import build_model, normalisation
from balancemix.plan import Plan
from balancemix.run import Run


@dataclass(frozen=True)
class Experiment:
    """The rows of a plan; `train` carries the noisy labels, and the truth beside them."""

    plan: Plan
    splits: Splits
    train: Rows
    realised: dict[str, float]

    @property
    def test(self) -> Rows:
        """The rows to score on."""
        return self.splits.test

    def make_model(self) -> nn.Module:
        """Build a new model for these rows."""
        return make_model(self.plan, self.train, pretrained=self.plan.model.pretrained)

    def record_noise(self, run: Run) -> None:
        """Store the noise, its realised rates and the labels before it."""
        if self.train.truth is None:
            return
        facts = {"noise": self.plan.noise, "seed": self.plan.seed, "realised": self.realised}
        run.write_json("noise.json", facts)
        run.write_arrays("truth.npz", {"truth": self.train.truth.numpy()})


def prepare(plan: Plan) -> Experiment:
    """Load the plan's data and add its noise to the training labels."""
    splits = load_rows(plan, plan.data.path)
    train = splits.train
    wanted = noise.parse(plan.noise)
    realised: dict[str, float] = {}
    if wanted.kind != "none":
        truth = train.labels if train.truth is None else train.truth
        given = wanted.apply(truth, plan.seed)
        train = train.with_labels(given, truth)
    if train.truth is not None:
        realised = noise.realised(train.truth, train.labels)
    if plan.train.batch_size > len(train):
        raise InputError(
            f"--batch-size {plan.train.batch_size} is larger than the {len(train)} training rows"
        )
    return Experiment(plan, splits, train, realised)


def load_rows(plan: Plan, path: str | Path) -> Splits:
    """Load data as the plan's model wants to see it."""
    data = plan.data
    return load(
        path,
        skip_bad=data.skip_bad,
        holdout=data.holdout,
        seed=plan.seed,
        **viewing(plan, path),
    )


def viewing(plan: Plan, path: str | Path) -> dict[str, Any]:
    """Say how rows are to be shown to the plan's model."""
    if not Path(path).is_dir():
        return {"dropout": plan.data.feature_dropout, "noise": plan.data.feature_noise}
    mean, std = normalisation(plan.model.backbone)
    return {"size": plan.data.size, "augment": plan.data.augment, "mean": mean, "std": std}


def make_model(plan: Plan, rows: Rows, *, pretrained: bool) -> nn.Module:
    """Build the plan's model for such rows, its weights to be trained or loaded."""
    shape: dict[str, Any] = {"image_size": plan.data.size}
    if isinstance(rows, FeatureRows):
        features = rows.features.float()
        statistics = features.mean(0), features.std(0)
        shape = {"features": features.shape[1], "standardise": statistics}
    return build_model(
        classes=len(rows.classes),
        backbone=plan.model.backbone,
        head=plan.model.head,
        pretrained=pretrained,
        hidden=plan.model.hidden,
        dropout=plan.model.dropout,
        **shape,
    )


def trained_model(run: Run, rows: Rows) -> nn.Module:
    """Build a run's model and load its weights."""
    model = make_model(run.plan, rows, pretrained=False)
    try:
        model.load_state_dict(run.load_model())
    except RuntimeError as error:
        shown = str(error).splitlines()[-1].strip()
        raise InputError(f"{run.path}: its model does not fit these rows ({shown})") from error
    return model
