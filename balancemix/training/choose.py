"""Choose a method by the given labels of held-out training rows; see methods/auto.py."""

from __future__ import annotations

import copy
import dataclasses
import json
import math
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial

import torch
from torch import Tensor, nn

from balancemix import processes
from balancemix.data import FeatureRows, Rows, View
from balancemix.data.splits import draw_rows
from balancemix.errors import DamagedFile, InputError
from balancemix.evaluation.metrics import average_precision
from balancemix.judge.opinion import Opinion, judge
from balancemix.judge.ridge import Ridge
from balancemix.methods.auto import MEANS, PREFERRED, Auto, Choice
from balancemix.plan.plan import Plan
from balancemix.plan.sections import ModelPlan, TrainPlan
from balancemix.progress import Progress, Show, silence
from balancemix.run import Run
from balancemix.training import pilot
from balancemix.training.features import features_of
from balancemix.training.fit import fit
from balancemix.training.models import make_model
from balancemix.training.opinion import make_ridge
from balancemix.training.predict import predict_logits
from balancemix.training.solve import solve


def choose_once(train: Rows, plan: Plan, run: Run | None, bar: Show = silence) -> Choice:
    """Read the choice that a run has stored, or choose and store it; the same in all processes."""
    stored = None
    if run is not None and processes.rank() == 0:
        with suppress(DamagedFile):  # chosen again, it comes out the same
            stored = run.choice
    choice = _broadcast(stored)
    if choice is None:
        choice = _broadcast(choose(train, plan, bar))
        assert choice is not None
        if run is not None and processes.rank() == 0:
            run.write_json("auto", vars(choice))
    return choice


def choose(train: Rows, plan: Plan, bar: Show = silence) -> Choice:
    """Train every candidate on a part of the rows, and score it on the given labels of the others.

    The real training depends on it only through the choice: it shares no random number and no
    weight with it.
    """
    auto = _auto(plan)
    names = auto.among(features=isinstance(train, FeatureRows))
    seen, kept = split(_on_features(train, plan), auto.holdout, plan.seed)
    if not bool((kept.given > 0).any()):
        raise InputError(
            f"auto cannot choose: none of the {len(kept)} held-out training rows has a given "
            "positive; name a --method"
        )
    with warnings.catch_warnings():  # classes without positives are expected in few rows
        warnings.simplefilter("ignore", UserWarning)
        each = Comparison(seen, kept, _plan_on_features(train, plan)).class_scores(names, bar)
    chosen, errors = take(each)
    scores = {name: float(ap.nanmean()) for name, ap in each.items()}
    settings = _with(plan, chosen).tree()["method"]
    return Choice(chosen, scores, errors, settings, len(seen), len(kept))


def take(each: Mapping[str, Tensor]) -> tuple[str, dict[str, float]]:
    """Take the candidate of the highest mean of K scores, unless second opinion is as good.

    As good is: behind by no more than the standard error of the difference over the classes. Also
    returns that error for each candidate, against second opinion or, without it, against the best.
    """
    best = max(each, key=lambda name: float(each[name].nanmean()))  # of equal ones the first
    default = next((name for name in PREFERRED if name in each), best)
    errors = {}
    for name, scores in each.items():
        gap = (scores - each[default])[~scores.isnan()]
        errors[name] = float(gap.std()) / len(gap) ** 0.5 if len(gap) > 1 else 0.0
    ahead = float((each[best] - each[default]).nanmean())
    return (default if ahead <= errors[best] else best), errors


def split(rows: FeatureRows, share: float, seed: int) -> tuple[FeatureRows, FeatureRows]:
    """Draw a share of the rows to hold out, in whole groups; return the others and them."""
    kept, seen = draw_rows(len(rows), max(int(share * len(rows)), 1), seed, rows.groups)
    if not len(kept):
        raise InputError("auto cannot choose: all training rows are of one group; name a --method")
    return rows.subset(seen.sort().values), rows.subset(kept.sort().values)


class Comparison:
    """Candidates that learn from the rows `seen`, and are scored on the given labels of `kept`."""

    def __init__(self, seen: FeatureRows, kept: FeatureRows, plan: Plan) -> None:
        self.seen, self.kept, self.plan = seen, kept, plan

    @cached_property
    def ridge(self) -> Ridge:
        """The factored rows, for every closed form and for the judge."""
        return make_ridge(self.plan, self.seen)

    @cached_property
    def opinion(self) -> Opinion:
        """What the judge says of their labels."""
        seen = self.seen
        verified, before, seed = seen.verified, seen.before, self.plan.seed
        return judge(seen.given, self.ridge, verified=verified, before=before, seed=seed)

    def scores(self, names: Sequence[str], bar: Show = silence) -> dict[str, float]:
        """Compute mAP over the classes with given positives, in percent, by candidate."""
        each = self.class_scores(names, bar)
        return {name: float(ap.nanmean()) for name, ap in each.items()}

    def class_scores(self, names: Sequence[str], bar: Show = silence) -> dict[str, Tensor]:
        """Compute the AP of each class in percent, NaN without given positives, by candidate."""
        parts = dict.fromkeys(part for name in names for part in MEANS.get(name, (name,)))
        plans = {part: self._informed(_with(self.plan, part)) for part in parts}
        solved = {part: plan for part, plan in plans.items() if plan.method.closed}
        trained = {part: plan for part, plan in plans.items() if not plan.method.closed}
        logits = {part: self._solve(plan) for part, plan in solved.items()}
        with bar("comparing methods", sum(map(self._steps, trained.values()))) as show:
            logits |= {part: self._train(plan, show) for part, plan in trained.items()}
        means = {
            name: torch.stack([logits[p] for p in parts]).mean(0)
            for name, parts in MEANS.items()
            if name in names
        }
        given, convention = self.kept.given, self.plan.train.ap
        return {
            name: 100 * average_precision(given, (logits | means)[name], convention)
            for name in names
        }

    def _informed(self, plan: Plan) -> Plan:
        if not plan.method.needs_opinion:
            return plan
        method = plan.method.informed_by(self.opinion, self.ridge)
        return dataclasses.replace(plan, method=method)

    def _solve(self, plan: Plan) -> Tensor:
        return self._logits(solve(self.seen, self.kept, plan, ridge=self.ridge).model)

    def _train(self, plan: Plan, show: Progress) -> Tensor:
        make = partial(make_model, plan, self.seen, pretrained=False)
        if plan.method.undecided:
            errors = pilot.explore(make, self.seen, plan, show)
            plan = dataclasses.replace(plan, method=plan.method.decided_by(errors))
        return self._logits(fit(make, self.seen, self.kept, plan, progress=show).model)

    def _steps(self, plan: Plan) -> int:
        """Count the batches of a training, and of a pilot before it."""
        batches = plan.train.epochs * math.ceil(len(self.seen) / plan.train.batch_size)
        return batches + pilot.steps(self.seen, plan)

    def _logits(self, model: nn.Module) -> Tensor:
        return predict_logits(model, self.kept.plain, self.plan.train.batch_size)


def _auto(plan: Plan) -> Auto:
    assert isinstance(plan.method, Auto)
    return plan.method


def _with(plan: Plan, name: str) -> Plan:
    return dataclasses.replace(plan, method=_auto(plan).candidate(name))


def _on_features(train: Rows, plan: Plan) -> FeatureRows:
    """Return the rows without their truth; images as features of the frozen backbone."""
    if isinstance(train, FeatureRows):
        return train.with_given(train.given, None)
    view = View(dropout=plan.data.feature_dropout, noise=plan.data.feature_noise)
    features = features_of(train, plan)
    rows = FeatureRows(features, train.given, train.classes, train.names, view=view)
    return rows.with_groups(train.groups).with_verified(train.verified, train.before)


def _plan_on_features(train: Rows, plan: Plan) -> Plan:
    """Return the plan of the comparison: for images, the default head and training of features."""
    plan = copy.deepcopy(plan)
    if not isinstance(train, FeatureRows):
        plan.model = ModelPlan()
        plan.train = TrainPlan(device=plan.train.device, ap=plan.train.ap)
    plan.train.track = None
    return plan


def _broadcast(choice: Choice | None) -> Choice | None:
    """Return the first process's choice in all of them."""
    content = None if choice is None else json.dumps(vars(choice)).encode()
    content = processes.broadcast(content)
    return None if content is None else Choice.of(json.loads(content))
