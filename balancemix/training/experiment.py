"""Carry out a plan: load its data, add its noise, train its model."""

from __future__ import annotations

import dataclasses
import math
import time
import warnings
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from torch import nn

from balancemix import processes
from balancemix.data import ReadOptions, Rows, Splits, View, load
from balancemix.data.fingerprint import by_split, fingerprint, matched
from balancemix.data.formats import is_label_file
from balancemix.data.formats.builtin import RandomImages
from balancemix.data.splits import with_noise
from balancemix.errors import InputError
from balancemix.evaluation.scoring import Metrics
from balancemix.labels import noise
from balancemix.labels.stored import stored_labels
from balancemix.methods import Auto, Mixup
from balancemix.models.backbones import normalisation
from balancemix.plan.plan import Plan, make_method
from balancemix.progress import Progress, Show, silence
from balancemix.run import Run
from balancemix.training import pilot
from balancemix.training.choose import choose_once
from balancemix.training.fit import Trained, fit
from balancemix.training.models import make_model
from balancemix.training.opinion import informed
from balancemix.training.solve import solve


@dataclass(frozen=True)
class Experiment:
    """The rows of a plan; `train` carries the noisy labels, and the truth beside them."""

    plan: Plan
    splits: Splits
    train: Rows
    measured: dict[str, float]

    @property
    def test(self) -> Rows:
        """The rows to score on."""
        return self.splits.test

    @property
    def steps(self) -> int:
        """The number of batches of the whole training."""
        train = self.plan.train
        batches = train.epochs * math.ceil(len(self.train) / train.batch_size)
        return batches + pilot.steps(self.train, self.plan)

    def make_model(self) -> nn.Module:
        """Build a new model for these rows."""
        return make_model(self.plan, self.train, pretrained=self.plan.model.pretrained)

    def fit(self, run: Run | None = None, bar: Show = silence) -> Trained:
        """Carry out the plan: ask the judge if the method needs to, then train or solve."""
        if isinstance(self.plan.method, Auto):
            return self._fit_chosen(run, bar)
        plan = informed(self.plan, self.train, run)
        if plan.method.closed:
            return solve(self.train, self.test, plan, run)
        with bar(plan.tree()["method"]["name"], self.steps) as show:
            plan = self._decided(plan, run, show)
            return fit(self.make_model, self.train, self.test, plan, run, show)

    def _fit_chosen(self, run: Run | None, bar: Show) -> Trained:
        """Let the given labels choose the method, and carry out the plan with it."""
        choice = choose_once(self.train, self.plan, run, bar)
        method = make_method(choice.settings, imports=False)
        chosen = dataclasses.replace(self, plan=dataclasses.replace(self.plan, method=method))
        trained = chosen.fit(run, bar)
        metrics = {**trained.metrics, "auto": choice.scores}
        if run is not None and processes.rank() == 0:
            run.write_json("metrics", metrics)
        return trained._replace(metrics=metrics)

    def _decided(self, plan: Plan, run: Run | None, show: Progress) -> Plan:
        """Run the pilot if the method leaves settings to the labels; a resumed run knows them."""
        if run is not None and run.is_started():
            show.advance(pilot.steps(self.train, plan))
            return plan
        if not plan.method.undecided:
            return plan
        errors = pilot.explore(self.make_model, self.train, plan, show)
        if run is not None and processes.rank() == 0:
            run.write_json("pilot", vars(errors))
        return dataclasses.replace(plan, method=plan.method.decided_by(errors))

    def record_data(self, run: Run) -> None:
        """Store the fingerprint of the rows and, of noise, its rates and the labels before it."""
        arrays = {
            f"{split}_{name}": array
            for split, rows in (("train", self.splits.train), ("test", self.test))
            for name, array in fingerprint(rows).items()
        }
        run.write_arrays("data", arrays)
        if self.train.truth is None:
            return
        facts = {"noise": self.plan.noise, "seed": self.plan.seed, "measured": self.measured}
        run.write_json("noise", facts)
        run.write_arrays("truth", {"truth": stored_labels(self.train.truth)})


def load_experiment(plan: Plan, known: bytes | None = None) -> Experiment:
    """Load the plan's data and add its noise to the training labels.

    `known` is the fingerprint of the rows that a run to be resumed was started with, as its file.
    """
    splits = load_rows(plan, plan.data.path, cached=True)
    if known is not None:
        splits = _matched(splits, known, plan.data.path)
    train = splits.train
    added = noise.parse(plan.noise)
    measured: dict[str, float] = {}
    if added.kind != "none":
        train = with_noise(train, added, plan.seed)
    if train.truth is not None:
        measured = noise.measured_rates(train.truth, train.given, train.verified)
    size = plan.train.batch_size
    if size > len(train) and processes.rank() == 0 and not plan.method.closed:
        warnings.warn(
            f"--batch-size {size} is more than the {len(train)} training rows: "
            "an epoch is one batch",
            stacklevel=2,
        )
    return Experiment(plan, splits, train, measured)


def _matched(splits: Splits, known: bytes, path: str) -> Splits:
    """Put the rows into the order that a run knows, or refuse what changed."""
    kept = by_split(known)
    train = matched(splits.train, kept["train"], path)
    return dataclasses.replace(splits, train=train, test=matched(splits.test, kept["test"], path))


def train_plan(
    plan: Plan, out: Path, bar: Show, *, resume: bool = False, force: bool = False
) -> tuple[Run, Experiment, Metrics]:
    """Train as planned in a run directory, or resume the run in it."""
    first = processes.rank() == 0  # of several processes, the one that reads and writes
    # After a failure torchrun repeats the same command, even --force: resume what it had started.
    again = first and processes.was_started(str(out.resolve()))
    how = {"resume": resume or again, "force": force and not again}
    if first:
        Run.check(out, plan, **how)
    resumes = first and how["resume"] and not how["force"]
    known = processes.broadcast(Run(out).known_rows() if resumes else None)
    experiment = load_experiment(plan, known)
    experiment.make_model()  # a wrong backbone must fail before anything is written
    processes.barrier()
    run = Run(out)
    with run.held() if first else nullcontext():
        if first:
            run = Run.create(out, plan, **how)
        started = run.is_started()
        if first:
            processes.mark_started(str(out.resolve()))
        if first and not started:
            experiment.record_data(run)
        trained = experiment.fit(run, bar)
        if first and started:
            experiment.record_data(run)  # again, in case somebody deleted it or it was damaged
    return run, experiment, trained.metrics


def load_rows(
    plan: Plan, path: str | Path, *, cached: bool = False, options: ReadOptions | None = None
) -> Splits:
    """Load data in the view of the plan's model, read as it says unless `options` say it.

    A cache pays off if the images are read more than once.
    """
    data = plan.data
    options = options or data.reading()
    options = dataclasses.replace(options, cache=data.cache if cached else "off", seed=plan.seed)
    splits = load(path, view_of(plan, path), options)
    if data.score == "held-out" and str(path) == data.path:
        return splits.held_out(data.holdout, plan.seed)
    return splits


def view_of(plan: Plan, path: str | Path) -> View:
    """Return how rows are shown to the plan's model."""
    data = plan.data
    if not Path(path).is_dir() and not is_label_file(Path(path)):
        return View(
            dropout=data.feature_dropout, noise=data.feature_noise, vary_stored=data.vary_stored
        )
    mean, std = normalisation(plan.model.backbone)
    return View(size=data.size, augment=data.augment, mean=mean, std=std)


def dry_run(plan: Plan, classes: int = 80) -> str:
    """Train the plan's model for two epochs of two steps on random images; return a summary.

    Weights are random, so that no network is needed.
    """
    if plan.method.closed:
        raise InputError("--dry-run tries a training, and this method is solved: leave it out")
    short = Plan.from_tree(plan.tree())
    if isinstance(short.method, Auto):
        short.method = short.method.candidate("balancemix")  # the one that needs most memory
    if short.method.needs_opinion:  # random images are nothing to judge
        short.method = Mixup(alpha=short.method.alpha, reduction=short.method.reduction)
    short.train.epochs, short.train.batch_size = 2, 2
    if hasattr(short.method, "warmup"):
        short.method.warmup = 1
    rows = RandomImages(4, classes, plan.data.size)
    start = time.perf_counter()
    model, _, metrics = fit(lambda: make_model(plan, rows, pretrained=False), rows, rows, short)
    weights = sum(parameter.numel() for parameter in model.parameters())
    seconds = time.perf_counter() - start
    name = plan.tree()["method"]["name"]
    return (
        f"{name} on {plan.model.backbone} at {plan.data.size} pixels, {weights / 1e6:.1f} million "
        f"weights: {metrics['epochs']} short epochs on random images in {seconds:.1f} s"
    )
