"""What a real browser must show: 24 points, and which tests show them.

A test says so by `@pytest.mark.point(8)`. The files are read, not collected, so that the answer is
the same whichever tests are chosen.
"""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.conftest import ROOT

POINTS = {
    1: "Y, N, U, A, X, Z, Shift Z, digits, arrows: the row in the database after each",
    2: "a held key: one row",
    3: "a key before the picture is decoded: no row",
    4: "four findings, answered out of order",
    5: "sweep: mark, unmark, unsure, Enter: rows with one batch; undo; reload",
    6: "sweep of wrong labels: Enter writes no absent",
    7: "Enter is refused while a tile is unseen",
    8: "kill -9 between answer and reply, three more answers, restart: each once",
    9: "the browser is killed with a full outbox: sent once when it is opened again",
    10: "a reply that is lost after the commit: one row",
    11: "two tabs, the same label: told, nothing lost",
    12: "two names: other leases; dispute, resolved, verified; undo reopens",
    13: "2,000 random actions in two tabs with ten kills: nothing lost, nothing twice",
    14: "export after review: only accepted labels changed; the next audit does not ask again",
    15: "no key, wrong key, other Host, other Origin, text/plain, iframe: refused",
    16: "paths, numbers and pictures that are hostile: refused with the page alive",
    17: "class names that are markup, quotes, right to left or long: shown as text",
    18: "no request leaves the host",
    19: "100,000 findings: first picture < 1 s, next < 50 ms",
    20: "390 × 844 without sideways scroll; 1440 × 900: a sweep page without scrolling",
    21: "dark, light, 200 % zoom, keyboard alone, axe-core without serious findings",
    22: "settle: no probability in the page; the result only at the end",
    23: "gallery from file://: filter, sort, no request, readable without script",
    24: "full disk, read-only folder, no write-ahead log: the page says so",
}
SLOW = {13, 21}  # shown by `make slow` alone
MEASURED = {19: "benchmarks/review.py"}  # shown by a benchmark, since no test asserts time


class Shown(NamedTuple):
    """A test that shows a point."""

    point: int
    test: str
    slow: bool


def shown() -> list[Shown]:
    """List the tests that show a point."""
    return [each for file in sorted(ROOT.glob("tests/**/test_*.py")) for each in _of_file(file)]


def _of_file(file: Path) -> Iterator[Shown]:
    text = file.read_text(encoding="utf-8")
    if "mark.point(" not in text:
        return
    tree = ast.parse(text)
    of_all = [
        mark
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark"
        for mark in (node.value.elts if isinstance(node.value, ast.List) else [node.value])
    ]
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            marks = [*of_all, *node.decorator_list]
            slow = any(ast.unparse(mark) == "pytest.mark.slow" for mark in marks)
            for point in (point for mark in marks for point in _points(mark)):
                yield Shown(point, f"{file.relative_to(ROOT)}::{node.name}", slow)


def _points(mark: ast.expr) -> Iterator[int]:
    if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.point":
        yield from (ast.literal_eval(each) for each in mark.args)
