"""Noises as people write them, damaged, and what each means."""

import math
import re
from pathlib import Path
from typing import Any

from balancemix.labels import noise
from tests.torture.draw import Draw
from tests.torture.mutate import encode, mutate_fields
from tests.torture.outcome import RefusedError
from tests.torture.seeds import Files


def make_noise(draw: Draw) -> str:
    """Draw a noise as people write it; one of four is two or three, joined."""
    more = draw.pick([1, 1, 1, 2, 3])
    return "+".join(_make_one(draw) for _ in range(more))


def _make_one(draw: Draw) -> str:
    rates = [draw.pick(["0", "1", "0.4", "1.0", ".5", "5e-1", "0.25"]) for _ in range(2)]
    kind = draw.pick(["none", "single", "mislabel", "flip", "drop", "flip2", "unknown", "keep"])
    if kind in ("none", "single"):
        return kind
    return f"flip:{rates[0]},{rates[1]}" if kind == "flip2" else f"{kind}:{rates[0]}"


def damage_noise(text: str, draw: Draw) -> Files:
    """Damage the text of a noise."""
    for _ in range(draw.below(3)):
        text = mutate_fields(text, draw, ":,+")
    return {"noise.txt": encode(text)}


def _noise_text(folder: Path) -> str:
    return (folder / "noise.txt").read_bytes().decode("utf-8", "surrogatepass")


def read_noise(folder: Path) -> Any:
    """Parse a noise."""
    made = noise.parse(_noise_text(folder))
    return [(part.kind, part.rate, part.positive_rate, part.negative_rate) for part in made.parts]


def literal_noise(folder: Path) -> Any:
    """Say what a noise means."""
    return meaning(_noise_text(folder))


Meaning = tuple[str, float, float | None, float | None]


def meaning(text: str) -> list[Meaning]:
    """Take a noise apart at each plus that a letter follows, which no rate has."""
    parts = [""]
    for i, character in enumerate(text):
        if character == "+" and text[i + 1 :].lstrip()[:1].isalpha():
            parts.append("")
        else:
            parts[-1] += character
    return [_meaning_of_one(part) for part in parts]


def _meaning_of_one(text: str) -> Meaning:
    """Take one kind apart: its name, and a rate from 0 to 1 for those that have one."""
    text = text.strip()
    if not re.fullmatch(r"[a-z]+(: *[0-9.eE+-]+ *(, *[0-9.eE+-]+ *)?)?", text):
        raise RefusedError("not a kind and rates")
    kind, _, rest = text.partition(":")
    words = rest.split(",") if rest else []
    if kind not in ("none", "single", "mislabel", "flip", "drop", "unknown", "keep"):
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
