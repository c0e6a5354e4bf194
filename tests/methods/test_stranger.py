"""The worked example of docs/own-method.md: a method from another package, used by name."""

import re
import sys
from pathlib import Path

import pytest

from balancemix.cli import main
from balancemix.errors import InputError
from balancemix.plan.plan import Plan, make_method
from balancemix.run import Run
from tests.conftest import ROOT

DOCUMENT = ROOT / "docs" / "own-method.md"


@pytest.fixture
def stranger(tmp_path, monkeypatch) -> Path:
    """Put the document's module where its reader would."""
    code = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)[0]
    assert len(code.splitlines()) < 40
    (tmp_path / "my_methods.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "my_methods", raising=False)
    return tmp_path


def test_the_worked_example_trains_resumes_and_is_stored_by_name(stranger, tiny, capsys):
    call = ["train", str(tiny), "--method", "my_methods:Trimmed", "--set", "method.share=0.1"]
    out = stranger / "run"
    assert main([*call, "--epochs", "3", "--batch-size", "16", "--out", str(out)]) == 0
    plan = Run.open(out).plan
    assert plan.tree()["method"] == {
        "name": "my_methods:Trimmed",
        "reduction": "sum",
        "alpha": 0.0,
        "share": 0.1,
    }
    assert Plan.from_tree(plan.tree()).tree() == plan.tree()
    resume = ["train", "--resume", "--out", str(out)]
    assert main(resume) == 2
    refusal = "its method my_methods:Trimmed is not part of balancemix; if you trust it, pass"
    assert refusal in capsys.readouterr().err
    assert main([*resume, "--method", "my_methods:Trimmed"]) == 0


def test_reading_a_run_imports_nothing_of_a_stranger(stranger, tiny, monkeypatch):
    out = stranger / "run"
    call = ["train", str(tiny), "--method", "my_methods:Trimmed", "--epochs", "2"]
    assert main([*call, "--batch-size", "16", "--out", str(out)]) == 0
    monkeypatch.delitem(sys.modules, "my_methods")
    (stranger / "my_methods.py").write_text("raise SystemExit('imported')")
    for command in ("audit", "export", "report", "evaluate"):
        assert main([command, str(out)]) == 0
    assert main(["predict", str(out), str(tiny), "--out", str(stranger / "p.csv")]) == 0
    assert main(["train", "--resume", "--out", str(out)]) == 2
    assert "my_methods" not in sys.modules


def test_the_worked_example_is_bce_where_it_says(stranger, tiny):
    for name, settings in (("bce", []), ("my_methods:Trimmed", ["--set", "method.share=0"])):
        call = ["train", str(tiny), "--method", name, *settings, "--epochs", "2"]
        assert main([*call, "--batch-size", "16", "--out", str(stranger / name[:3])]) == 0
    weights = [(stranger / name / "model.safetensors").read_bytes() for name in ("bce", "my_")]
    assert weights[0] == weights[1]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nowhere.at_all:Method", "cannot be imported"),
        ("json:Decoder", "cannot be imported"),
        ("json:JSONDecoder", "is not a subclass of balancemix.Method"),
    ],
)
def test_what_is_no_method_is_refused(name, said):
    with pytest.raises(InputError, match=said):
        make_method({"name": name})
