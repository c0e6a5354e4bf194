"""The readers of settings: plans, bench plans, `--set` and noises, and a literal view of each.

A literal reader says which values a setting must have; whatever is not set has its default.
"""

import copy
import json
import math
import re
import tomllib
from pathlib import Path
from typing import Any

from balancemix.bench.plan import jobs, read_bench
from balancemix.labels import noise
from balancemix.plan.plan import Plan, read_tree
from balancemix.plan.settings import parse_assignment, put
from tests.torture import seeds
from tests.torture.draw import Draw
from tests.torture.mutate import (
    encode,
    mutate_fields,
    mutate_lines,
    mutate_tree,
    odd_text,
    odd_value,
    toml_value,
    write_json,
    write_toml,
)
from tests.torture.outcome import RefusedError, UnsureError
from tests.torture.seeds import Files

Flat = dict[str, Any]
DEFAULT_METHOD = "balancemix"


def flat(tree: Any, where: str = "") -> Flat:
    """Name each value by its path, as text that tells 1 from true and NaN from nothing."""
    found: Flat = {}
    for key, value in tree.items():
        if isinstance(value, dict):
            found |= flat(value, f"{where}{key}.")
        else:
            found[f"{where}{key}"] = _plain(value)
    return found


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
    for key, value in flat(tree).items():
        if key == "method.relabel_weight":
            raise UnsureError("a retired setting")
        if key not in default:
            raise RefusedError(f"unknown setting {key}")
        found[key] = value
    return found


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
    listed = jobs(read_bench(str(plan_file(folder))))
    return {
        repr((job.variant.label, job.noise, job.data, job.seed)): flat(job.plan.tree())
        for job in listed
    }


def literal_jobs(folder: Path) -> dict[str, Any]:
    """Make the settings of each run by hand: shared ones, the variant's, the noise's."""
    tree = tree_of(plan_file(folder))
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


def make_noise(draw: Draw) -> str:
    """Draw a noise as people write it."""
    rates = [draw.pick(["0", "1", "0.4", "1.0", ".5", "5e-1", "0.25"]) for _ in range(2)]
    kind = draw.pick(["none", "single", "mislabel", "flip", "drop", "flip2"])
    if kind in ("none", "single"):
        return kind
    return f"flip:{rates[0]},{rates[1]}" if kind == "flip2" else f"{kind}:{rates[0]}"


def damage_noise(text: str, draw: Draw) -> Files:
    """Damage the text of a noise."""
    for _ in range(draw.below(3)):
        text = mutate_fields(text, draw, ":,")
    return {"noise.txt": encode(text)}


def _noise_text(folder: Path) -> str:
    return (folder / "noise.txt").read_bytes().decode("utf-8", "surrogatepass")


def read_noise(folder: Path) -> Any:
    """Parse a noise."""
    made = noise.parse(_noise_text(folder))
    return made.kind, made.rate, made.positive_rate, made.negative_rate


def literal_noise(folder: Path) -> Any:
    """Say what a noise means: a kind, and a rate from 0 to 1 for those that have one."""
    text = _noise_text(folder).strip()
    if not re.fullmatch(r"[a-z]+(: *[0-9.eE+-]+ *(, *[0-9.eE+-]+ *)?)?", text):
        raise RefusedError("not a kind and rates")
    kind, _, rest = text.partition(":")
    words = rest.split(",") if rest else []
    if kind not in ("none", "single", "mislabel", "flip", "drop"):
        raise RefusedError("unknown kind")
    most = {"none": 0, "single": 0, "flip": 2}.get(kind, 1)
    if len(words) > most or (most and not words):
        raise RefusedError("too many rates or too few")
    try:
        rates = [float(word) for word in words]
    except ValueError:
        raise RefusedError("not a number") from None
    if not all(0 <= rate <= 1 and math.isfinite(rate) for rate in rates):
        raise RefusedError("not from 0 to 1")
    if len(rates) == 2:
        return kind, 0.0, rates[0], rates[1]
    return kind, rates[0] if rates else 0.0, None, None
