"""A summary of a finished run: its files, read once, and what a report derives from them."""

import shlex
import warnings
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from balancemix.auditing.data import judge_run
from balancemix.auditing.findings import Findings, find
from balancemix.auditing.judged import judge_confidence
from balancemix.errors import InputError
from balancemix.evaluation.metrics import average_precision
from balancemix.labels.classes import class_counts, class_groups
from balancemix.labels.mixtures import Mixtures, fit_mixtures, label_loss
from balancemix.labels.table import Status
from balancemix.plan.plan import Plan
from balancemix.plan.settings import flat
from balancemix.run import Run


class Summary:
    """A run's files as tensors, and what is derived from them on first use.

    Without added noise, `truth` is None and `noise` is empty.
    """

    def __init__(self, run: Run) -> None:
        self.run, self.plan, self.log, self.metrics = run, run.plan, run.log, run.metrics
        if not self.log:
            raise run.damaged("log", "holds no epochs")
        self.noise = run.noise
        self.classes, self.names = run.classes, run.names
        self.given, self.truth = run.table.given, run.truth
        self.known = self.given if self.truth is None else self.truth  # the best that is known
        self.verified = run.table.status == Status.VERIFIED
        self.confidence, self.clean = run.confidence.float(), run.table.clean.float()

    @property
    def method(self) -> str:
        """The name of the method."""
        return str(self.plan.tree()["method"]["name"])

    @property
    def penalty(self) -> float | None:
        """The penalty of a model that was solved, not trained; None of others."""
        return self.log[-1].get("penalty")

    @cached_property
    def counts(self) -> Tensor:
        """Positives of each class in training: true ones if they are known."""
        return class_counts(self.known)

    @cached_property
    def groups(self) -> dict[str, list[int]]:
        """The columns of each class group that the run was scored by."""
        groups = class_groups(self.counts, self.plan.data.groups)
        return {name: index.tolist() for name, index in groups.items()}

    @cached_property
    def ap(self) -> tuple[Tensor, str]:
        """AP of each class in percent, and which rows it was measured on.

        Older runs without a per-class file only have their confidence on the training rows.
        """
        each = self.run.class_ap
        if each is not None:
            return torch.tensor(each, dtype=torch.float64), "test rows"
        return 100 * average_precision(self.known, self.confidence), "training rows"

    @cached_property
    def class_confidence(self) -> tuple[Tensor, Tensor]:
        """Mean confidence in each class's given positives and negatives (Eq. 2)."""
        positive, negative = ((self.given == value).double() for value in (1, 0))
        present = (self.confidence * positive).sum(0) / positive.sum(0)
        absent = ((1 - self.confidence) * negative).sum(0) / negative.sum(0)
        return present, absent

    @cached_property
    def labels(self) -> dict[str, int]:
        """How many labels of the training rows are given, unknown and verified."""
        unknown = int((self.given < 0).sum())
        known = self.given.numel() - unknown
        return {"given": known, "unknown": unknown, "verified": int(self.verified.sum())}

    @cached_property
    def losses(self) -> Tensor:
        """The loss of every given label."""
        return label_loss(self.given, self.confidence)

    @cached_property
    def mixtures(self) -> Mixtures:
        """The two mixtures of each class, fitted by the method's settings if it has any."""
        method = self.plan.method
        return fit_mixtures(
            self.given,
            self.confidence,
            fit=getattr(method, "mixture", "raw"),
            min_labels=getattr(method, "min_labels", 10),
            separation=getattr(method, "separation", 0.0),
        )

    @cached_property
    def findings(self) -> Findings:
        """The labels to look at; where the data is gone, by the model's confidence in its rows."""
        try:
            judged = judge_run(self.run)
        except InputError as error:
            warnings.warn(f"{error}; findings are by the model's own confidence", stacklevel=2)
            judged = judge_confidence(
                self.given,
                self.confidence,
                verified=self.verified,
                names=self.names,
                classes=self.classes,
                truth=self.truth,
            )
        return find(judged)

    @cached_property
    def quality(self) -> dict[str, float]:
        """How good the findings are by the truth; empty if it is not known."""
        truth = self.findings.judged.truth
        return {} if truth is None else self.findings.score(truth)

    @cached_property
    def findings_by_class(self) -> list[int]:
        """How many findings each class has."""
        columns = self.findings.column
        counts: list[int] = torch.bincount(columns, minlength=len(self.classes)).tolist()
        return counts

    def notable_classes(self, most: int = 6) -> list[int]:
        """Choose classes to look at, among those with enough labels to judge.

        First the commonest, the rarest, the best and the worst, then those with most findings.
        """
        enough = int(getattr(self.plan.method, "min_labels", 10))
        given = class_counts(self.given)
        able = [k for k in range(len(self.classes)) if int(given[k]) >= enough]
        able = able or list(range(len(self.classes)))
        ap = self.ap[0].nan_to_num(50.0).tolist()
        count = self.counts.tolist()
        ends = [
            max(able, key=lambda k: count[k]),
            min(able, key=lambda k: count[k]),
            max(able, key=lambda k: ap[k]),
            min(able, key=lambda k: ap[k]),
        ]
        rest = sorted(able, key=lambda k: -self.findings_by_class[k])
        return list(dict.fromkeys([*ends, *rest]))[:most]

    def changed(self) -> dict[str, Any]:
        """List the settings that differ from their defaults."""
        default = flat(Plan.from_tree({"method": {"name": self.method}}, imports=False).tree())
        settings = flat(self.plan.tree())
        return {key: value for key, value in settings.items() if value != default.get(key)}

    def commands(self) -> list[str]:
        """List the command that repeats the run, and those that read it."""
        folder = str(self.run.path)
        call = ["balancemix", "train", self.plan.data.path, "--method", self.method]
        for key, value in self.changed().items():
            flag = {"noise": "--noise", "seed": "--seed", "train.epochs": "--epochs"}.get(key)
            word = str(value).lower() if isinstance(value, bool) or value is None else str(value)
            if key != "data.path":
                call += [flag, word] if flag else ["--set", f"{key}={word}"]
        verbs = ("evaluate", "audit", "export", "report")
        more = [["balancemix", verb, folder] for verb in verbs]
        return [shlex.join(words) for words in ([*call, "--out", folder], *more)]
