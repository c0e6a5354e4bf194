"""Plan: all that a run depends on, as nested dataclasses.

A plan is read from TOML or JSON, changed by `--set section.key=value`, and stored as `plan.json`.
The section `method` holds the name of a method and its hyper-parameters.
"""

from __future__ import annotations

import dataclasses
import importlib
import os
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from balancemix.errors import InputError, suggest
from balancemix.files import from_json
from balancemix.labels import noise
from balancemix.labels.table import LabelMatrix
from balancemix.methods import METHODS, BalanceMix, Method
from balancemix.plan.sections import METHOD, NOISE, SEED, DataPlan, ModelPlan, TrainPlan
from balancemix.plan.settings import flat, is_deep, read_into

# Settings that are gone, at the value that is now the only one: plans of old runs hold them.
RETIRED = {"relabel_weight": "one"}
RENAMED = {"fewest": "min_labels"}


@dataclass(kw_only=True)
class Plan:
    """What to run. noise: added to the training labels (`mislabel:0.4`, `flip:0.2`, …). seed: of
    everything random, the noise included.
    """

    method: Method = field(default_factory=METHODS[METHOD])
    data: DataPlan = field(default_factory=DataPlan)
    noise: str = NOISE
    model: ModelPlan = field(default_factory=ModelPlan)
    train: TrainPlan = field(default_factory=TrainPlan)
    seed: int = SEED

    def __post_init__(self) -> None:
        noise.parse(self.noise)
        if not 0 <= self.seed < 2**31:
            raise ValueError(f"seed must be between 0 and 2³¹, it is {self.seed}")

    @classmethod
    def from_tree(cls, tree: Mapping[str, Any], *, imports: bool = True) -> Self:
        """Build a plan from nested sections; refuse unknown settings.

        Without `imports`, a class that is not part of balancemix is only named: a plan that was
        found in a run may come from anybody.
        """
        method = make_method(tree.get("method", {}), imports=imports)
        return read_into(cls, {**tree, "method": method})

    def tree(self) -> dict[str, Any]:
        """Return the plan as nested sections, with every default written out."""
        sections = dataclasses.asdict(self)
        if isinstance(self.method, Foreign):
            return {**sections, "method": {"name": self.method.name, **self.method.settings}}
        name = next((n for n, kind in METHODS.items() if kind is type(self.method)), None)
        name = name or f"{type(self.method).__module__}:{type(self.method).__qualname__}"
        return {**sections, "method": {"name": name, **sections["method"]}}

    def changes(self, new: Plan) -> list[str]:
        """List the settings that differ in another plan."""
        old, other = flat(self.tree()), flat(new.tree())
        return [
            f"{key} was {old.get(key)!r}, is {other.get(key)!r}"
            for key in dict.fromkeys([*old, *other])
            if old.get(key) != other.get(key)
        ]


@dataclass(kw_only=True)
class Foreign(Method):
    """Stands for a class that only the command line may import: it cannot train."""

    name: str
    settings: dict[str, Any]

    def start(
        self, given: LabelMatrix, epochs: int, seed: int = 0, verified: LabelMatrix | None = None
    ) -> Self:
        """Refuse to train."""
        raise InputError(
            f"the method {self.name} is not part of balancemix; if you trust it, pass "
            f"--method {self.name}"
        )


def make_method(section: Mapping[str, Any], *, imports: bool = True) -> Method:
    """Build a method from its name and settings; without `imports` no class is imported.

    >>> make_method({"name": "mixup", "alpha": 1})
    Mixup(reduction='sum', alpha=1.0)
    """
    if not isinstance(section, Mapping):
        raise InputError(f"method must be a section with a name, it is {section!r}")
    name = str(section.get("name", METHOD))
    settings = {key: value for key, value in section.items() if key != "name"}
    if ":" in name and not imports:
        return Foreign(name=name, settings=settings)
    kind = find_method(name)
    return read_into(kind, current_settings(kind, settings), "method.")


def current_settings(kind: type[Method], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Translate a method's settings from plans of older versions.

    BalanceMix had a switch `relabel` and a `mode` (where to re-label), which are one setting now.

    >>> current_settings(BalanceMix, {"relabel": True, "mode": "paper", "power": 10})
    {'relabel': 'paper', 'power': 10}
    """
    for old, new in RENAMED.items():
        if old in settings and new in settings:
            raise InputError(f"method.{old} is called {new} now; give one of them")
    current = {
        RENAMED.get(key, key): value
        for key, value in settings.items()
        if (key, value) not in RETIRED.items()
    }
    if issubclass(kind, BalanceMix):
        place = current.pop("mode", None)
        if current.get("relabel") is False:
            current["relabel"] = "off"
        elif place is not None or current.get("relabel") is True:
            current["relabel"] = place or "epoch"
    return current


def find_method(name: str) -> type[Method]:
    """Look up a method by its name, or import one by `package.module:Class`."""
    if name in METHODS:
        return METHODS[name]
    module, colon, attribute = name.partition(":")
    if not colon:
        raise InputError(f"unknown method {name!r}; {suggest(name, list(METHODS))}")
    if os.getcwd() not in sys.path:  # where people keep their own modules
        sys.path.append(os.getcwd())
    try:
        kind = getattr(importlib.import_module(module), attribute)
    except Exception as error:  # whatever the module raises
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise InputError(f"--method {name}: cannot be imported ({reason})") from error
    if not (isinstance(kind, type) and issubclass(kind, Method)):
        raise InputError(f"--method {name}: is not a subclass of balancemix.Method")
    return kind


def read_tree(path: Path) -> dict[str, Any]:
    """Read a TOML or JSON file of sections."""
    try:
        text = path.read_text(encoding="utf-8")
        tree = from_json(text) if path.suffix == ".json" else tomllib.loads(text)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    except ValueError as error:
        raise InputError(f"{path}: not a valid plan ({error})") from error
    except RecursionError:
        tree = None
    if tree is None or is_deep(tree):
        raise InputError(f"{path}: not a valid plan (its values are nested too deeply)")
    if not isinstance(tree, dict):
        raise InputError(f"{path}: a plan is a table of sections")
    return tree
