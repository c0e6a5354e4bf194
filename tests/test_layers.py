"""Who may import whom: each package its own modules and those of earlier layers, without cycles."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT

PACKAGE = ROOT / "balancemix"
LAYERS = [
    "errors interrupts", "files options pictures", "manifest", "directory processes", "progress",
    "estimates labels models", "data judge", "methods", "checkpoints evaluation plan", "run",
    "training", "auditing", "bench exchange", "report", "review", "commands", "cli",
]  # fmt: skip
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names.split()}
DOORS = {"", "__main__"}  # the package itself, which imports what is asked for, and its command
KNOWN: set[tuple[str, str]] = set()


def module_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def imports(node: ast.AST) -> Iterator[str]:
    """List what is imported of balancemix, in functions too, but not for types alone."""
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
        return
    if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "balancemix":
        base = (node.module or "").partition(".")[2]
        for alias in node.names:
            inner = f"{base}.{alias.name}".strip(".")
            yield inner if inner in MODULES else base
    elif isinstance(node, ast.Import):
        yield from (a.name.partition(".")[2] for a in node.names if a.name.startswith("balancemix"))
    for child in ast.iter_child_nodes(node):
        yield from imports(child)


GRAPH = {
    name: set(imports(ast.parse(path.read_text(encoding="utf-8")))) - {name}
    for name, path in MODULES.items()
}


def test_every_module_is_in_a_layer():
    assert {name.split(".")[0] for name in MODULES} - DOORS == set(LEVEL)


@pytest.mark.parametrize("name", sorted(set(MODULES) - DOORS))
def test_a_module_imports_its_own_package_and_earlier_layers(name):
    package = name.split(".")[0]
    for other in GRAPH[name] - DOORS:
        below = other.split(".")[0]
        allowed = below == package or LEVEL[below] < LEVEL[package]
        assert allowed or (name, other) in KNOWN, f"{name} imports {other}"


def test_exceptions_that_are_mended_are_taken_off_the_list():
    assert {pair for pair in KNOWN if pair[1] not in GRAPH.get(pair[0], set())} == set()


def test_there_is_no_cycle():
    done: set[str] = set()

    def visit(name: str, path: list[str]) -> None:
        assert name not in path, " → ".join([*path[path.index(name) :], name])
        if name not in done:
            for other in sorted(GRAPH[name] - DOORS):
                if (name, other) not in KNOWN:
                    visit(other, [*path, name])
            done.add(name)

    for name in sorted(set(MODULES) - DOORS):
        visit(name, [])


def test_the_picture_of_the_layers_is_up_to_date():
    script = ROOT / "scripts" / "architecture"
    done = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
