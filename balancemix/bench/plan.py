"""A bench plan: methods × noises × data × seeds, each a run with a plan and a directory.

A bench plan becomes a list of jobs: plans of `balancemix train`, each with the name of its
directory. Two variants that need the same training share one run.
"""

import copy
import dataclasses
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any, Literal

from balancemix.errors import InputError, suggest
from balancemix.labels import noise
from balancemix.methods import METHODS, Method
from balancemix.plan.plan import Plan, current_settings, read_tree
from balancemix.plan.settings import parse_assignment, put, read_into
from balancemix.plan.shipped import bench_plans

Layout = Literal["paper", "ranking", "versus_paper", "ablation", "selection", "search"]

# Time of a run relative to BCE's on 5,000 rows of features, to estimate the time left.
COST = {
    "coteaching": 2.0,
    "balancemix": 2.2,
    "ridge": 0.2,
    "kernel-ridge": 1.1,
    "second-opinion": 2.4,
    "auto": 7.0,
}

# Parts of a train plan that the bench fills in.
FILLED = ("method", "noise", "seed")


@dataclass(kw_only=True)
class Variant:
    """A row of the tables: a method and what is set for it.

    name: of the method, or package.module:Class. label: its name in tables. category: rows of one
    category are listed together. settings: of the method. on: method settings for a single noise.
    set: settings as `train --set` takes them. noises: those to run under, if not all of the plan's.
    over: label of the row that an ablation compares it with; by default the row above.
    """

    name: str = ""
    label: str = ""
    category: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    on: dict[str, dict[str, Any]] = field(default_factory=dict)
    set: list[str] = field(default_factory=list)
    noises: list[str] = field(default_factory=list)
    over: str = ""

    def __post_init__(self) -> None:
        if not self.name:
            raise ValueError("name the method, e.g. name = 'bce'")
        self.label = self.label or self.name
        if not self.slug:
            raise ValueError(f"label {self.label!r} needs a letter or a digit, to name directories")
        kind = METHODS.get(self.name, Method)
        self.settings = current_settings(kind, self.settings)
        self.on = {text: current_settings(kind, settings) for text, settings in self.on.items()}

    @property
    def slug(self) -> str:
        """The label as directories are named."""
        return slug(self.label)


@dataclass(kw_only=True)
class BenchPlan:
    """What to compare.

    data: as `train` takes it, one or several. settings: sections of a train plan, shared by all
    runs. tables: which layouts to write. paper: the table of paper_numbers.toml to compare with.
    versus_paper: for a noise of ours, the paper's noise to compare with.
    """

    methods: list[Variant] = field(default_factory=list)
    data: list[str] = field(default_factory=list)
    noises: list[str] = field(default_factory=lambda: ["none"])
    seeds: list[int] = field(default_factory=lambda: [0])
    settings: dict[str, Any] = field(default_factory=dict)
    tables: list[Layout] = field(default_factory=lambda: list[Layout](["paper"]))
    paper: str = ""
    versus_paper: dict[str, str] = field(default_factory=dict)
    source: str = field(default="bench", init=False, compare=False)  # its file, for messages

    def __post_init__(self) -> None:
        if not self.methods:
            raise ValueError("no [[methods]] to compare; give at least one, e.g. name = 'bce'")
        for text in self.noises:
            noise.parse(text)
        for name in ("noises", "seeds", "data"):
            _check_distinct(name, getattr(self, name))
        _check_distinct("labels of methods", [variant.slug for variant in self.methods])
        _check_distinct("names of data", [data_slug(path) for path in self.data])
        labels = [variant.label for variant in self.methods]
        for variant in self.methods:
            for text in (*variant.noises, *variant.on):
                if text not in self.noises:
                    known = suggest(text, self.noises)
                    raise ValueError(f"{variant.label}: noise {text!r} is not planned; {known}")
            if variant.over and variant.over not in labels:
                known = suggest(variant.over, labels)
                raise ValueError(f"{variant.label}: over = {variant.over!r}; {known}")
        for name in FILLED:
            if name in self.settings:
                raise ValueError(f"settings.{name} is filled in for each run; use the lists above")
        for name, section in self.settings.items():
            if not isinstance(section, Mapping):
                raise ValueError(f"settings.{name} is a section, not the value {section!r}")
        if "path" in self.settings.get("data", {}):
            raise ValueError("settings.data.path is filled in for each run; use data = [...]")

    def noises_of(self, variant: Variant) -> list[str]:
        """List the noises that a variant is run under, in the plan's order."""
        return [text for text in self.noises if text in (variant.noises or self.noises)]

    def tree(self) -> dict[str, Any]:
        """Return the plan as nested sections."""
        sections = dataclasses.asdict(self)
        del sections["source"]
        return sections


@dataclass(frozen=True)
class Job:
    """One run: what it trains, the name of its directory, and the sections of its plan."""

    variant: Variant
    noise: str
    data: str
    seed: int
    name: str
    sections: dict[str, Any]

    @cached_property
    def plan(self) -> Plan:
        """The plan to train, which imports its method if that is not one of ours."""
        try:
            return Plan.from_tree(self.sections)
        except InputError as error:  # the settings of others' methods are checked here first
            raise InputError(f"[[methods]] {self.variant.label}: {error}") from error

    @property
    def cost(self) -> float:
        """Its expected time, in epochs of BCE."""
        return self.plan.train.epochs * COST.get(self.variant.name, 1.0)


def read_bench(name: str, changes: Mapping[str, Any] | None = None) -> BenchPlan:
    """Read a bench plan: a shipped one by its name, a TOML file, or the JSON of a bench.

    `changes` replace fields of the plan.
    """
    shipped = bench_plans()
    path = shipped.get(name, Path(name))
    if name not in shipped and not path.is_file():
        raise InputError(f"bench plan {name!r}: not found; {suggest(name, list(shipped))}")
    tree = read_tree(path)
    try:
        plan = read_into(BenchPlan, _renamed(tree))
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    try:
        plan = dataclasses.replace(plan, **(changes or {}))
    except ValueError as error:
        raise InputError(f"{name}: {error}") from error
    plan.source = str(path)
    return plan


def jobs(plan: BenchPlan, only: Iterable[str] = ()) -> list[Job]:
    """List the runs of a plan, those of the first seed first.

    `only` keeps some variants, by name or label. A run's name leaves out the first data, so that a
    plan can grow by more data.
    """
    chosen, taken, listed = _chosen(plan, list(only)), dict[str, str](), []
    for seed, data, text, variant in product(plan.seeds, plan.data, plan.noises, plan.methods):
        if text not in plan.noises_of(variant):
            continue
        sections = _sections(plan, variant, text, data, seed)
        tail = [data_slug(data)] if data != plan.data[0] else []
        name = "-".join([variant.slug, slug(text), str(seed), *tail])
        # A training that another variant needs too is shared with it.
        name = taken.setdefault(json.dumps(sections, sort_keys=True), name)
        if variant in chosen:
            listed.append(Job(variant, text, data, seed, name, sections))
    return listed


def distinct(listed: Iterable[Job]) -> list[Job]:
    """Keep one job for each directory: the runs to train."""
    return list({job.name: job for job in reversed(list(listed))}.values())[::-1]


def slug(text: str) -> str:
    """Write a name as directories are named.

    >>> slug("BalanceMix w/o Min."), slug("flip:0.2")
    ('balancemix-w-o-min', 'flip-0.2')
    """
    return re.sub(r"[^\w.]+", "-", text.lower()).strip("-.")


def data_slug(path: str) -> str:
    """Name data by its file.

    >>> data_slug("sets/Features.npz"), data_slug("digits:pixels")
    ('features', 'digits-pixels')
    """
    return slug(Path(path).stem)


def _renamed(tree: Mapping[str, Any]) -> dict[str, Any]:
    """Read the `beside` of older plans as `versus_paper`."""
    new = {"versus_paper" if key == "beside" else key: value for key, value in tree.items()}
    if isinstance(tables := new.get("tables"), list):
        new["tables"] = ["versus_paper" if name == "beside" else name for name in tables]
    return new


def _sections(plan: BenchPlan, variant: Variant, text: str, data: str, seed: int) -> dict[str, Any]:
    """Write out the plan of one run; nothing is imported for it.

    The settings of a method that is not one of ours stay as they are, and are checked in training.
    """
    tree = copy.deepcopy(plan.settings)
    tree["method"] = {"name": variant.name, **variant.settings}
    # With a run on every core there is none left for loading processes.
    tree["data"] = {"workers": 0, **tree.get("data", {})}
    try:
        for assignment in variant.set:
            path, value = parse_assignment(assignment)
            if path[0] in FILLED[1:] or path in (["method"], ["method", "name"], ["data", "path"]):
                raise InputError(f"set {'.'.join(path)} is filled in for each run; remove it")
            put(tree, path, value)
        put(tree, ["data", "path"], data)
        method = tree["method"] | variant.on.get(text, {})
        ours = ":" not in variant.name
        tree |= {"method": method if ours else {}, "noise": text, "seed": seed}
        sections = Plan.from_tree(tree).tree()
    except InputError as error:
        raise InputError(f"{plan.source}, {variant.label}: {error}") from error
    return sections if ours else sections | {"method": method}


def _chosen(plan: BenchPlan, only: list[str]) -> list[Variant]:
    """Find the variants that `--only` names."""
    for word in only:
        names = [v.name for v in plan.methods]
        labels = [v.label for v in plan.methods if v.label not in names]
        known = list(dict.fromkeys([*names, *labels]))
        if word not in known and word not in [v.slug for v in plan.methods]:
            raise InputError(f"--only {word}: no such method in the plan; {suggest(word, known)}")
    return [v for v in plan.methods if not only or {v.name, v.label, v.slug} & set(only)]


def _check_distinct(name: str, items: list[Any]) -> None:
    repeated = [str(item) for item in dict.fromkeys(items) if items.count(item) > 1]
    if repeated:
        raise ValueError(f"{name} must differ: {', '.join(repeated)} is listed twice")
