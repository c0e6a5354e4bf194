"""Read settings (TOML, JSON, `--set`) into dataclasses; refuse unknown keys and wrong types."""

import dataclasses
import math
import tomllib
import types
from collections.abc import Mapping
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from balancemix.errors import InputError, suggest

T = TypeVar("T")

LARGEST = 2**31  # whole number of a setting, exclusive: larger ones fit no array
_DEEPEST = 20  # levels of sections and lists; a bench plan has seven
_SHOWN = 100  # characters of a value in a message


def read_into(kind: type[T], given: Mapping[str, Any], where: str = "") -> T:
    """Build the dataclass `kind` from a mapping; `where` is the section's name in messages.

    >>> @dataclasses.dataclass
    ... class Lens: zoom: float = 1.0
    >>> read_into(Lens, {"zoom": 2})
    Lens(zoom=2.0)
    """
    hints = get_type_hints(kind)
    known = [field.name for field in dataclasses.fields(kind) if field.init]  # type: ignore[arg-type]
    values = {}
    for key, value in given.items():
        if key not in known:
            raise InputError(f"unknown setting {where}{key}; {suggest(key, known)}")
        values[key] = _checked(hints[key], value, where + key)
    try:
        return kind(**values)
    except ValueError as error:
        raise InputError(f"{where.rstrip('.') or 'settings'}: {error}") from error


def parse_assignment(text: str) -> tuple[list[str], Any]:
    """Split `section.key=value`; the value is read as TOML, or else as a word.

    >>> parse_assignment("method.alpha=4"), parse_assignment("noise=flip:0.2")
    ((['method', 'alpha'], 4), (['noise'], 'flip:0.2'))
    """
    path, equals, value = text.partition("=")
    parts = path.strip().split(".")
    if not equals or not all(parts):
        raise InputError(f"--set {text}: write it as section.key=value, e.g. method.alpha=2")
    try:
        parsed = tomllib.loads(f"value = {value}")
    except (ValueError, RecursionError):
        parsed = {"value": value}
    if len(parsed) > 1:
        raise InputError(f"--set {path.strip()}: has more than one value; pass --set for each")
    if is_deep(parsed["value"]):
        raise InputError(f"--set {path.strip()}: its value is nested too deeply")
    return parts, parsed["value"]


def is_deep(value: Any, levels: int = _DEEPEST) -> bool:
    """Tell whether sections and lists are nested more deeply than any setting is."""
    inner = value.values() if isinstance(value, Mapping) else value
    if not isinstance(value, Mapping | list):
        return False
    return levels == 0 or any(is_deep(each, levels - 1) for each in inner)


def put(tree: dict[str, Any], path: list[str], value: Any) -> None:
    """Set a value deep in a tree of sections."""
    for section in path[:-1]:
        tree = tree.setdefault(section, {})
        if not isinstance(tree, dict):
            raise InputError(f"{'.'.join(path)}: {section} is a value, not a section")
    tree[path[-1]] = value


def flat(tree: Mapping[str, Any], where: str = "") -> dict[str, Any]:
    """Name every value of a tree of sections by its path.

    >>> flat({"train": {"epochs": 3}, "seed": 0})
    {'train.epochs': 3, 'seed': 0}
    """
    values: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, Mapping):
            values |= flat(value, f"{where}{key}.")
        else:
            values[where + key] = value
    return values


def _checked(hint: Any, value: Any, name: str) -> Any:
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        if type(None) in get_args(hint) and value in (None, "none"):
            return None
        options = [option for option in get_args(hint) if option is not type(None)]
        words = [word for o in options if get_origin(o) is Literal for word in get_args(o)]
        if len(options) > 1 and words:  # `float | Literal["auto"]`
            if value in words:
                return value
            options = [option for option in options if get_origin(option) is not Literal]
            if isinstance(value, str):
                expected = f"{_kind(options[0])} or {', '.join(words)}"
                raise InputError(f"{name} must be {expected}, it is {_shown(value)}")
        if len(options) == 1:
            return _checked(options[0], value, name)
    if origin is Literal:
        if value not in get_args(hint):
            choices = [str(choice) for choice in get_args(hint)]
            raise InputError(f"{name} is {_shown(value)}; {suggest(str(value), choices)}")
        return value
    if origin is list:
        if not isinstance(value, list):
            raise InputError(f"{name} must be a list, it is {_shown(value)}")
        (inner,) = get_args(hint)
        return [_checked(inner, item, f"{name}[{i}]") for i, item in enumerate(value)]
    if origin is dict:
        if not isinstance(value, Mapping):
            raise InputError(f"{name} is a section, not the value {_shown(value)}")
        _, inner = get_args(hint)
        return {key: _checked(inner, item, f"{name}.{key}") for key, item in value.items()}
    if hint is Any:
        return value
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        if isinstance(value, hint):
            return value
        if not isinstance(value, Mapping):
            raise InputError(f"{name} is a section, not the value {_shown(value)}")
        return read_into(hint, value, name + ".")
    if type(value) is int and hint in (int, float) and abs(value) >= LARGEST:
        raise InputError(f"{name} must be less than 2³¹, it is {_shown(value)}")
    if hint is float and type(value) is int:
        return float(value)
    # bool is an int to Python, but `epochs = true` is a mistake.
    if not isinstance(hint, type) or type(value) is not hint:
        raise InputError(f"{name} must be {_kind(hint)}, it is {_shown(value)}")
    if isinstance(value, float) and not math.isfinite(value):
        raise InputError(f"{name} must be a finite number, it is {value}")
    return value


def _kind(hint: Any) -> str:
    """Describe the values of a type."""
    kinds = {"int": "a whole number", "float": "a number", "bool": "true or false"}
    name = getattr(hint, "__name__", str(hint))
    return kinds.get(name, name)


def _shown(value: Any) -> str:
    """Write a value for a message, a long one shortened."""
    try:
        text = repr(value)
    except ValueError:  # Python writes out no number of more than 4,300 digits
        return "a number of thousands of digits"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
