"""The quick check's choice: the tests of what changed, and not so many that it is slow."""

import doctest
import importlib.util
from importlib.machinery import SourceFileLoader

import pytest

from tests.conftest import ROOT

SCRIPT = ROOT / "scripts" / "changed_tests"


@pytest.fixture(scope="module")
def script():
    loader = SourceFileLoader("changed_tests", str(SCRIPT))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    exec(loader.get_code(loader.name) or "", vars(module))
    return module


def test_its_examples(script):
    assert doctest.testmod(script).failed == 0


def test_the_most_special_importers_come_first_and_the_others_are_named(script):
    wide = "import balancemix.a, balancemix.b"
    tests = {f"tests/test_{k}.py": wide for k in "stuvwxyz"} | {"tests/test_z.py": "import a"}
    tests["tests/test_y.py"] = "import balancemix.a"
    run, left = script.choose({"balancemix/a.py"}, tests)
    assert len(run) == 1 + script.MOST
    assert "tests/test_y.py" in run
    assert len(left) == 7 - script.MOST
    assert "tests/test_z.py" not in run + left  # which does not import it


def test_launches_wait_for_the_full_check_unless_they_changed(script):
    tests = {"tests/test_a.py": f"import balancemix.a\npytestmark = {script.HEAVY}"}
    assert script.choose({"balancemix/a.py"}, tests) == (["balancemix/a.py"], list(tests))
    assert script.choose(set(tests), tests) == (list(tests), [])


def test_a_data_file_is_tested_by_those_who_name_it(script):
    tests = {"tests/test_a.py": "'numbers.toml'", "tests/test_b.py": "check"}
    assert script.choose({"balancemix/numbers.toml"}, tests) == (["tests/test_a.py"], [])
    assert script.choose({"scripts/check"}, tests) == ([], [])
