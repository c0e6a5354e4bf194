"""What is pinned is all that pyproject.toml asks for, within its bounds, and from nowhere."""

import re
import tomllib

import pytest

from tests.conftest import ROOT

FILES = ["constraints.txt", "constraints-lowest.txt"]
PIN = re.compile(r"([a-z0-9-]+)==([0-9]+(?:\.[a-z0-9]+)*)( ; [a-z_]+ == .+)?")


def pins(name):
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    found = [PIN.fullmatch(line) for line in lines if not line.startswith("#")]
    assert None not in found, "a line is not name==version, with a marker perhaps"
    return {match[1]: match[2] for match in found}


def bounds():
    """List (name, lower bound) of all that is needed to build, run, test and lint."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    asked = [*project["build-system"]["requires"], *project["project"]["dependencies"]]
    asked += [each for group in project["dependency-groups"].values() for each in group]
    extras = project["project"]["optional-dependencies"]
    asked += [*extras["tables"], *extras["review"]]
    pairs = [each.split(">=") for each in asked]
    return [(re.sub("[-_.]+", "-", name).lower(), bound) for name, bound in pairs]


def version(text):
    """Compare 2.6 and 2.6.0 as the same."""
    numbers = [int(part) for part in re.findall(r"[0-9]+", text)]
    return numbers + [0] * (4 - len(numbers))


@pytest.mark.parametrize("file", FILES)
def test_every_line_is_a_name_and_a_version_once_and_in_order(file):
    text = (ROOT / file).read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert len(pins(file)) == len(lines)
    assert lines == sorted(lines)
    assert "//" not in text
    assert "--" not in text  # no hash, no index


@pytest.mark.parametrize("file", FILES)
def test_what_installs_and_what_builds_is_pinned_too(file):
    assert pins(file).keys() >= {"pip", "hatchling", "editables", "packaging", "pluggy"}


def test_every_direct_dependency_is_pinned_within_its_bound():
    found = pins("constraints.txt")
    assert [(n, b) for n, b in bounds() if version(found[n]) < version(b)] == []


def test_the_lowest_are_the_bounds():
    found = pins("constraints-lowest.txt")
    assert [(n, b) for n, b in bounds() if version(found[n]) != version(b)] == []
