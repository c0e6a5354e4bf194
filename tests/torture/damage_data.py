"""Damage to the files of data sets."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.torture import seeds
from tests.torture.draw import Draw
from tests.torture.mutate import mutate_bytes, mutate_text, mutate_tree, write_json
from tests.torture.seeds import Files


def some_file(files: Files, draw: Draw) -> tuple[str, bytes]:
    """Choose the file to damage."""
    name = draw.pick(sorted(files))
    return name, files[name]


def damage_text(between: str) -> Callable[[Files, Draw], Files]:
    """Damage one text file, or remove it."""

    def damage(files: Files, draw: Draw) -> Files:
        name, content = some_file(files, draw)
        if draw.chance(0.01):
            return {each: files[each] for each in files if each != name}
        return files | {name: mutate_text(content, draw, between)}

    return damage


def damage_table(files: Files, draw: Draw) -> Files:
    """Damage a table, which may be in another encoding; now and then not at all."""
    content = files["labels.csv"]
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return files | {"labels.csv": mutate_bytes(content, draw)}
    if draw.chance(0.2):
        return files
    return files | {"labels.csv": mutate_text(content, draw, draw.pick(",;|\t"))}


def damage_coco(trees: dict[str, Any], draw: Draw) -> Files:
    """Damage one JSON file as a tree or as bytes; the other now and then in the same way."""
    name = draw.pick(sorted(trees))
    files = {each: seeds.to_json(tree) for each, tree in trees.items()}
    files[name] = write_json(mutate_tree(trees[name], draw), draw)
    if draw.chance(0.3):  # names that are odd in both
        text = draw.pick(["\0", "\ud800", "é", "=1+1", "a|b", " x ", "x\r", "\x1b[0m", ""])
        for each, tree in trees.items():
            tree["categories"][0]["name"] = text
            files[each] = seeds.to_json(tree)
    return files


KINDS = [
    "int64", "float64", ">f4", ">i8", "bool", "complex64", "U", "S", "O", "datetime64[s]",
    "float16", "longdouble", "V4", "uint64", "int8",
]  # fmt: skip


def damage_arrays(members: dict[str, Any], draw: Draw) -> Files:
    """Damage one to three arrays, then perhaps the bytes of the file."""
    for _ in range(1 + draw.below(3)):
        members = _damage_array(members, draw) or members
    twice = _damage_array(members, draw) if draw.chance(0.02) else None
    content = seeds.write_npz(members, draw.chance(0.3), twice)
    return {"x.npz": mutate_bytes(content, draw) if draw.chance(0.3) else content}


def _damage_array(members: dict[str, Any], draw: Draw) -> dict[str, Any]:
    name = draw.pick(sorted(members))
    array = members[name]
    kind = draw.below(13)
    if kind == 0:
        return {key: value for key, value in members.items() if key != name}
    if kind == 1:
        other = draw.pick(["labels", "views", "truth", "features", "x", "../x", "", "Labels"])
        return {**{k: v for k, v in members.items() if k != name}, other: array}
    if kind == 2:
        other = draw.pick(sorted(members))
        return members | {name: members[other], other: array}
    if kind <= 4:
        try:
            with np.errstate(all="ignore"):
                return members | {name: array.astype(draw.pick(KINDS))}
        except (ValueError, TypeError, OverflowError):
            return members
    if kind == 5:
        return members | {name: np.asfortranarray(array)}
    if kind == 6:
        return members | {name: draw.pick([array.T, array[None], array[..., None], array.ravel()])}
    if kind == 7 and array.ndim:
        return members | {name: draw.pick([array[1:], array[:0], np.concatenate([array, array])])}
    if kind == 8 and array.ndim:
        return members | {name: array[draw.rng.permutation(len(array))]}
    if kind == 9:
        return members | {name: np.array(draw.pick(["x", 1, 0.5, [], [["train"]], None]))}
    array = array.copy()
    if array.size and array.dtype.kind in "fiub":
        odd = [np.nan, np.inf, -np.inf, 1e39, 2, -1, 0.5, 1e-46, 255, 256, 2**40]
        with np.errstate(all="ignore"):
            try:
                array.flat[draw.below(array.size)] = draw.pick(odd)
            except (ValueError, OverflowError):
                return members
    elif array.size and array.dtype.kind == "U":
        odd_names = [
            "",
            "\0",
            "a\0b",
            "\ud800",
            "é",
            "x" * 300,
            "a|b",
            "../x",
            "train",
            array.flat[0],
        ]
        array = array.astype("U300")
        array.flat[draw.below(array.size)] = draw.pick(odd_names)
    return members | {name: array}
