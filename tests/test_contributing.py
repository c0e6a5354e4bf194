"""The worked examples of CONTRIBUTING.md, followed step by step."""

import inspect
import re
import sys
from types import ModuleType

import pytest

from balancemix.data.formats import FORMATS
from balancemix.methods import METHODS
from tests.conftest import ROOT
from tests.methods import settings, test_contract
from tests.reference import losses as reference


def blocks(name: str) -> list[str]:
    text = (ROOT / name).read_text(encoding="utf-8")
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


EXAMPLES = dict(block.removeprefix("# ").split("\n", 1) for block in blocks("CONTRIBUTING.md"))


@pytest.fixture
def add(monkeypatch):
    """Put a file of the documents where Python finds it."""

    def module(path: str, code: str | None = None) -> ModuleType:
        name = path.removesuffix(".py").replace("/", ".")
        made = ModuleType(name)
        monkeypatch.setitem(sys.modules, name, made)
        exec(compile(EXAMPLES[path] if code is None else code, path, "exec"), vars(made))
        package, _, last = name.rpartition(".")
        monkeypatch.setattr(sys.modules[package], last, made, raising=False)
        return made

    return module


def only_test(module: ModuleType):
    (name,) = [name for name in vars(module) if name.startswith("test_")]
    return vars(module)[name]


def test_the_files_of_every_example_are_listed():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for path in EXAMPLES:
        assert f"| `{path.partition(',')[0]}` |" in text
    existing = set(re.findall(r"^\| `([\w/.]+)` \| (?!new)", text, re.MULTILINE))
    assert existing
    assert [path for path in existing if not (ROOT / path).exists()] == []


def test_a_data_format(add, tmp_path):
    add("balancemix/data/formats/cxr.py", blocks("docs/data.md")[0])
    only_test(add("tests/data/formats/test_cxr.py"))(tmp_path)


def test_a_method(add, monkeypatch):
    capped = add("balancemix/methods/capped.py").Capped
    monkeypatch.setitem(METHODS, "capped", capped)
    chosen = eval(EXAMPLES["tests/methods/settings.py, in SETTINGS"], vars(settings))
    monkeypatch.setitem(settings.SETTINGS, "capped", chosen["capped"])
    checks = [check for name, check in vars(test_contract).items() if name.startswith("test_")]
    for check in checks:
        if list(inspect.signature(check).parameters) == ["name"]:
            check("capped")
    for options in chosen["capped"].bce:
        test_contract.test_bce_setting_equals_bce_bit_for_bit("capped", options)

    scope = dict(vars(reference))
    exec(EXAMPLES["tests/reference/losses.py"], scope)
    monkeypatch.setattr(reference, "capped", scope["capped"], raising=False)
    only_test(add("tests/methods/test_capped.py"))()


def test_an_export_format(add, monkeypatch, tiny, tmp_path):
    monkeypatch.setitem(FORMATS, "jsonl", add("balancemix/data/formats/jsonl.py"))
    only_test(add("tests/data/formats/test_jsonl.py"))(tiny, tmp_path)
