"""Damage valid inputs: bytes, lines and fields of text, and trees of settings."""

import copy
import json
from collections.abc import Callable
from typing import Any

from tests.torture.draw import Draw

# What people and broken programs put into cells: blanks, control characters, text that is close to
# other text, markup of spreadsheets, terminals and LaTeX, paths, numbers at the edge.
ODD_TEXT = [
    "", " ", "\t", "\0", "\x07", "\x1b[31m", "\x85", "\u2028", "\u00a0", "\ufeff", "\u202e", "é",
    "e\u0301", "ﬁ", "🐈", "\ud800", "\udcff", "１", "²", "=1+1", "@x", "[/x]", "$_$ cost", "<b>",
    "&amp;",
    "|", "||", ",", ";", '"', '""', "'", "\r", "\n", "\r\n", "\\", "#", "=", ":", ".", "..", "/",
    "../x", "~", "~nobody", "%s", "{}", "NaN", "nan", "inf", "-inf", "-0", "-1", "0", "1", "2",
    "0.5",
    "1e999", "1_0", "0x1", "9223372036854775808", "1" + "0" * 400, "true", "none", "None", "null",
    "train", "test", "val", "valid", "held-out", "image", "labels", "split", "a" * 300,
]  # fmt: skip
ODD_VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 2**31, 2**63, -(2**63) - 1, 10**400, 0.5, -0.5, 1e308,
    float("nan"),
    float("inf"), -float("inf"), 0.0, "", "x", "none", "auto", "\0", "\ud800", "é", [], {}, [[]],
    [None],
    {"": {}}, {"name": "x"}, [1, "x"], "1", "a" * 300, "\n", "=1+1",
]  # fmt: skip
DEEP = 2000


def odd_text(draw: Draw) -> str:
    """Choose an odd piece of text."""
    return draw.pick(ODD_TEXT)


def odd_value(draw: Draw) -> Any:
    """Choose an odd value of a tree."""
    return copy.deepcopy(draw.pick(ODD_VALUES))


def encode(text: str) -> bytes:
    """Write text as UTF-8, and lone surrogates as the bytes that no UTF-8 has."""
    return text.encode("utf-8", "surrogatepass")


def mutate_bytes(content: bytes, draw: Draw) -> bytes:
    """Flip, cut, repeat, insert or blank bytes."""
    if not content:
        return draw.bytes(draw.below(4))
    at = draw.below(len(content))
    length = 1 + draw.below(min(16, len(content)))
    kind = draw.below(7)
    if kind <= 1:  # the commonest damage
        return flip_byte(content, at, draw)
    if kind == 2:
        return content[:at]
    if kind == 3:
        return content[:at] + content[at + length :]
    if kind == 4:
        return content[:at] + content[at : at + length] * 2 + content[at + length :]
    if kind == 5:
        return content[:at] + draw.bytes(length) + content[at:]
    return content[:at] + bytes(len(content[at : at + length])) + content[at + length :]


def flip_byte(content: bytes, at: int, draw: Draw) -> bytes:
    """Change one byte to any other."""
    changed = content[at] ^ (1 + draw.below(255))
    return content[:at] + bytes([changed]) + content[at + 1 :]


def mutate_lines(text: str, draw: Draw, between: str = ",") -> str:
    """Drop, repeat, swap or reorder lines, or the fields or characters of one."""
    lines = text.split("\n")
    i, j = draw.below(len(lines)), draw.below(len(lines))
    kind = draw.below(12)
    if kind == 0:
        del lines[i]
    elif kind == 1:
        lines.insert(j, lines[i])
    elif kind == 2:
        lines[i], lines[j] = lines[j], lines[i]
    elif kind == 3:
        lines = draw.shuffled(lines)
    elif kind == 4:
        lines.insert(i, odd_text(draw))
    elif kind == 5:
        return draw.pick(["\r\n", "\r", "\n\n", "\x0b", "\x85"]).join(lines)
    elif kind <= 9:
        lines[i] = mutate_fields(lines[i], draw, between)
    else:
        lines[i] = mutate_characters(lines[i], draw)
    return "\n".join(lines)


def mutate_fields(line: str, draw: Draw, between: str = ",") -> str:
    """Drop, repeat, swap or replace the fields of a line."""
    mark = draw.pick(between)
    fields = line.split(mark)
    i, j = draw.below(len(fields)), draw.below(len(fields))
    kind = draw.below(7)
    if kind == 0:
        del fields[i]
    elif kind == 1:
        fields.insert(j, fields[i])
    elif kind == 2:
        fields[i], fields[j] = fields[j], fields[i]
    elif kind == 3:
        fields[i] = odd_text(draw)
    elif kind == 4:
        fields[i] += odd_text(draw)
    elif kind == 5:
        fields[i] = odd_text(draw) + fields[i]
    else:
        fields[i] = '"' + fields[i] + ('"' if draw.chance(0.5) else "")
    return mark.join(fields)


def mutate_characters(line: str, draw: Draw) -> str:
    """Delete, insert or replace a character."""
    at = draw.below(len(line) + 1)
    kind = draw.below(3)
    if kind == 0:
        return line[:at] + line[at + 1 :]
    return line[:at] + odd_text(draw) + line[at + kind - 1 :]


def mutate_text(content: bytes, draw: Draw, between: str = ",") -> bytes:
    """Damage a text file in one to three places; now and then its encoding or its bytes."""
    text = content.decode("utf-8")
    for _ in range(1 + draw.below(3)):
        text = mutate_lines(text, draw, between)
    kind = draw.below(24)
    if kind == 0:
        return text.encode(draw.pick(["utf-16", "latin-1", "utf-8-sig"]), "replace")
    return mutate_bytes(encode(text), draw) if kind <= 3 else encode(text)


def mutate_tree(tree: Any, draw: Draw, times: int = 3) -> Any:
    """Damage a tree of mappings, lists and values in one to `times` places."""
    tree = copy.deepcopy(tree)
    for _ in range(1 + draw.below(times)):
        places = list(_places(tree))
        if not places:
            return odd_value(draw)
        parent, key = draw.pick(places)
        if isinstance(parent, dict):
            _mutate_mapping(parent, key, draw)
        else:
            _mutate_list(parent, key, draw)
    return tree


def _places(tree: Any) -> Any:
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield tree, key
            yield from _places(value)
    elif isinstance(tree, list):
        for i, value in enumerate(tree):
            yield tree, i
            yield from _places(value)


def _mutate_mapping(parent: dict[str, Any], key: str, draw: Draw) -> None:
    kind = draw.below(6)
    if kind == 0:
        del parent[key]
    elif kind == 1:
        parent[odd_text(draw)] = parent.pop(key)
    elif kind == 2:
        other = draw.pick(list(parent))
        parent[key], parent[other] = parent[other], parent[key]
    elif kind == 3:
        parent[key] = draw.pick([[parent[key]], {key: parent[key]}, str(parent[key])])
    elif kind == 4:
        parent[odd_text(draw)] = odd_value(draw)
    else:
        parent[key] = odd_value(draw)


def _mutate_list(parent: list[Any], at: int, draw: Draw) -> None:
    kind = draw.below(6)
    other = draw.below(len(parent))
    if kind == 0:
        del parent[at]
    elif kind == 1:
        parent.insert(other, copy.deepcopy(parent[at]))
    elif kind == 2:
        parent[at], parent[other] = parent[other], parent[at]
    elif kind == 3:
        parent[:] = draw.shuffled(parent)
    else:
        parent[at] = odd_value(draw)


def write_json(tree: Any, draw: Draw) -> bytes:
    """Write a tree as JSON; now and then with a key twice, too deep, or with damaged bytes."""
    text = json.dumps(tree, ensure_ascii=draw.chance(0.5), separators=(",", ":"))
    kind = draw.below(16)
    if kind == 0:
        text = text.replace("{", '{"id":7,"id":8,', 1)
    elif kind == 1:
        text = text.replace("[", "[" * DEEP, 1)
    content = encode(text)
    return mutate_bytes(content, draw) if kind in (2, 3, 4) else content


def write_toml(tree: Any, draw: Draw) -> bytes:
    """Write a tree as TOML, as far as TOML can say it."""
    if not isinstance(tree, dict):
        return encode(toml_value(tree))
    lines = [f"{json.dumps(str(key))} = {toml_value(value)}" for key, value in tree.items()]
    text = "\n".join(lines) + "\n"
    kind = draw.below(16)
    if kind == 0:
        text += f"deep = {'[' * DEEP}{']' * DEEP}\n"
    elif kind == 1:
        text = mutate_lines(text, draw, "=.")
    content = encode(text)
    return mutate_bytes(content, draw) if kind in (2, 3, 4) else content


def toml_value(value: Any) -> str:
    """Write one value as TOML has it; None, which it cannot say, as a word.

    >>> toml_value({"a": [1, True, "x"]})
    '{"a" = [1, true, "x"]}'
    """
    if isinstance(value, dict):
        pairs = (f"{json.dumps(str(key))} = {toml_value(each)}" for key, each in value.items())
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return '"none"'
    if isinstance(value, float):
        return repr(value)
    return str(value) if isinstance(value, int) else json.dumps(value, ensure_ascii=False)


Mutator = Callable[[bytes, Draw], bytes]
