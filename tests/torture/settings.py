"""The readers of settings: plans, bench plans and `--set`, and a literal view of each.

A literal reader says which values a setting must have; whatever is not set has its default.
"""

import copy
import json
import tomllib
from pathlib import Path
from typing import Any

from balancemix.bench.plan import BenchPlan, jobs, read_bench
from balancemix.errors import printable
from balancemix.plan.plan import Plan, read_tree
from balancemix.plan.settings import parse_assignment, put
from tests.torture import noises, rules, seeds
from tests.torture.draw import Draw
from tests.torture.mutate import (
    mutate_fields,
    mutate_lines,
    mutate_tree,
    odd_text,
    odd_value,
    toml_value,
    write_json,
    write_toml,
)
from tests.torture.outcome import RefusedError
from tests.torture.seeds import Files

Flat = dict[str, Any]
DEFAULT_METHOD = "balancemix"


def values_of(tree: Any, where: str = "") -> Flat:
    """Name each value by its path."""
    found: Flat = {}
    for key, value in tree.items():
        if isinstance(value, dict):
            found |= values_of(value, f"{where}{key}.")
        else:
            found[f"{where}{key}"] = value
    return found


def flat(tree: Any) -> Flat:
    """Name each value by its path, as text that tells 1 from true and NaN from nothing."""
    return {key: _plain(value) for key, value in values_of(tree).items()}


def _plain(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return repr(value)
    if isinstance(value, int | float):
        return repr(float(value)) if abs(value) < 1e300 else repr(value)
    return "None" if value == "none" else repr(value)


def literal_settings(tree: Any) -> Flat:
    """Put what a plan sets over the defaults of its method."""
    if not isinstance(tree, dict):
        raise RefusedError("not a table")
    method = tree.get("method", {})
    if not isinstance(method, dict):
        raise RefusedError("method is not a section")
    name = method.get("name", DEFAULT_METHOD)
    if not isinstance(name, str):
        raise RefusedError("the name of a method is not text")
    try:
        default = flat(Plan.from_tree({"method": {"name": name}}).tree())
    except Exception:
        raise RefusedError("no such method") from None
    found = dict(default)
    for key, value in values_of({**tree, "method": current(name, method)}).items():
        if key not in default:
            raise RefusedError(f"unknown setting {key}")
        rules.check(key, value)
        if key == "noise":
            noises.meaning(str(value))
        found[key] = _plain(value)
    return found


def current(name: str, method: Any) -> Any:
    """Call the settings of older versions by their names of today."""
    method = dict(method)
    if method.get("relabel_weight") == "one":
        del method["relabel_weight"]
    if "fewest" in method:
        if "min_labels" in method:
            raise RefusedError("one setting by two names")
        method["min_labels"] = method.pop("fewest")
    if name == "balancemix":
        mode, relabel = method.pop("mode", None), method.get("relabel")
        if relabel is False:
            method["relabel"] = "off"
        elif mode is not None or relabel is True:
            method["relabel"] = mode or "epoch"
    return method


def tree_of(file: Path) -> Any:
    """Read TOML or JSON with the standard library."""
    try:
        text = file.read_bytes().decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
        if file.suffix == ".json":
            return json.loads(text, object_pairs_hook=_once)
        return tomllib.loads(text)
    except (ValueError, RecursionError):
        raise RefusedError("not a plan") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) < len(pairs):
        raise RefusedError("a key twice")
    return dict(pairs)


def plan_file(folder: Path) -> Path:
    """Find the plan of a case."""
    return next(path for path in folder.iterdir() if path.stem == "plan")


def words(folder: Path) -> tuple[str, ...]:
    """List the settings of a plan or of assignments: a refusal names one of them, or the file.

    Settings of several places, a file and flags, are judged together, so that a file need not be
    named.
    """
    file = next(path for path in folder.iterdir() if path.stem in ("plan", "set"))
    try:
        found = json.loads(file.read_bytes()) if file.stem == "set" else tree_of(file)
    except RefusedError:
        return ()
    if file.stem == "set":
        texts = (printable(text.partition("=")[0].strip()) for text in found)
        return ("--set", *(part for text in texts for part in text.split(".")))
    return ("method", *(printable(key) for key in keys_of(found)))


def keys_of(tree: Any) -> list[str]:
    """List the keys of a tree and of what is in it."""
    inner = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ()
    own = [key for key in tree if key] if isinstance(tree, dict) else []
    return own + [key for each in inner for key in keys_of(each)]


def damage_plan(tree: Any, draw: Draw) -> Files:
    """Damage a plan as a tree, then write it as TOML or JSON."""
    tree = mutate_tree(tree, draw) if draw.chance(0.8) else tree
    if draw.chance(0.5):
        return {"plan.json": write_json(tree, draw)}
    return {"plan.toml": write_toml(tree, draw)}


def read_plan(folder: Path) -> Flat:
    """Read a plan as `train --plan` does."""
    return flat(Plan.from_tree(read_tree(plan_file(folder))).tree())


def literal_plan(folder: Path) -> Flat:
    """Say what a plan must come to."""
    return literal_settings(tree_of(plan_file(folder)))


def read_jobs(folder: Path) -> dict[str, Any]:
    """Read a bench plan and list the settings of each run, by variant, noise, data and seed."""
    return jobs_of(read_bench(str(plan_file(folder))))


def jobs_of(plan: BenchPlan) -> dict[str, Any]:
    """List the settings of each run of a plan."""
    return {
        repr((job.variant.label, job.noise, job.data, job.seed)): flat(job.plan.tree())
        for job in jobs(plan)
    }


def literal_jobs(folder: Path) -> dict[str, Any]:
    """Make the settings of each run by hand: shared ones, the variant's, the noise's."""
    return jobs_by_hand(tree_of(plan_file(folder)))


def jobs_by_hand(tree: Any) -> dict[str, Any]:
    """Make the settings of each run of a tree."""
    if not isinstance(tree, dict) or not isinstance(tree.get("methods"), list):
        raise RefusedError("no methods")
    found = {}
    try:
        for variant in tree["methods"]:
            for text in tree.get("noises", ["none"]):
                if text not in (variant.get("noises") or tree.get("noises", ["none"])):
                    continue
                for data in tree.get("data", []):
                    for seed in tree.get("seeds", [0]):
                        key = repr((variant.get("label") or variant["name"], text, data, seed))
                        found[key] = _job(tree, variant, text, data, seed)
    except (TypeError, AttributeError, KeyError):
        raise RefusedError("of another form") from None
    return found


def _job(tree: Any, variant: Any, text: str, data: str, seed: int) -> Flat:
    settings = {"data": {"workers": 0}, **copy.deepcopy(tree.get("settings", {}))}
    settings["data"] = {"workers": 0, **settings["data"]}
    method = {"name": variant["name"]}
    for assignment in variant.get("set", []):
        path, value = literal_assignment(assignment)
        place = {"method": method, **settings}
        for section in path[:-1]:
            place = place.setdefault(section, {})
            settings |= {section: place} if path[0] == section != "method" else {}
        place[path[-1]] = value
    method |= variant.get("settings", {}) | variant.get("on", {}).get(text, {})
    settings["data"]["path"] = data
    return literal_settings({**settings, "method": method, "noise": text, "seed": seed})


def literal_assignment(text: str) -> tuple[list[str], Any]:
    """Take section.key=value apart; a value that is not one value of TOML is a word."""
    path, equals, value = text.partition("=")
    if not equals or not path.strip():
        raise RefusedError("not section.key=value")
    try:
        parsed = tomllib.loads(f"value = {value}")
    except (tomllib.TOMLDecodeError, RecursionError):
        return path.strip().split("."), value
    if list(parsed) != ["value"]:
        raise RefusedError("more than one value")
    return path.strip().split("."), parsed["value"]


def make_assignments(draw: Draw) -> list[str]:
    """Draw some `--set` of a valid plan."""
    trees = [seeds.plan(draw) for _ in range(1 + draw.below(2))]  # the second changes the first
    return [
        f"{section}.{key}={_word(value)}"
        for tree in trees
        for section, keys in tree.items()
        if isinstance(keys, dict)
        for key, value in keys.items()
    ]


def _word(value: Any) -> str:
    return value if isinstance(value, str) else "none" if value is None else toml_value(value)


def damage_assignments(texts: list[str], draw: Draw) -> Files:
    """Damage one assignment; the file only carries the case."""
    texts = texts or ["seed=1"]
    i = draw.below(len(texts))
    kind = draw.below(6)
    if kind <= 1:
        texts[i] = mutate_fields(texts[i], draw, "=.")
    elif kind == 2:
        texts[i] = mutate_lines(texts[i], draw, "=.")
    elif kind == 3:
        texts[i] = texts[i].partition("=")[0] + "=" + toml_value(odd_value(draw))
    elif kind == 4:
        texts[i] = texts[i].partition("=")[0] + "=" + odd_text(draw)
    else:
        deep = "[" * 2000 + "]" * 2000
        texts[i] += draw.pick(["\nseed = 3", " # x", "1", " ", ".5", deep])
    return {"set.json": json.dumps(texts).encode()}


def read_assignments(folder: Path) -> Flat:
    """Apply assignments to an empty plan as `train --set` does."""
    tree: dict[str, Any] = {}
    for text in json.loads((folder / "set.json").read_bytes()):
        put(tree, *parse_assignment(text))
    return flat(Plan.from_tree(tree).tree())


def literal_assignments(folder: Path) -> Flat:
    """Say what the assignments must come to."""
    tree: dict[str, Any] = {}
    for text in json.loads((folder / "set.json").read_bytes()):
        path, value = literal_assignment(text)
        place = tree
        for section in path[:-1]:
            place = place.setdefault(section, {})
            if not isinstance(place, dict):
                raise RefusedError("a value is not a section")
        place[path[-1]] = value
    return literal_settings(tree)
