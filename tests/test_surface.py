"""The public surface, and the rules of the house that a machine can see."""

import ast
import doctest
import re
import subprocess
import sys
import tempfile

import pytest

import balancemix
from balancemix.cli import build_parser
from balancemix.commands import COMMANDS
from tests.conftest import ROOT

SOURCES = sorted((ROOT / "balancemix").rglob("*.py"))


def test_all_is_sorted_and_complete():
    constants = [n for n in balancemix.__all__ if n.isupper()]
    classes = [n for n in balancemix.__all__ if n[0].isupper() and n not in constants]
    functions = [n for n in balancemix.__all__ if n[0].islower()]
    assert balancemix.__all__ == sorted(constants) + sorted(classes) + sorted(functions)
    for name in balancemix.__all__:
        assert getattr(balancemix, name) is not None
    assert set(balancemix.__all__) <= set(dir(balancemix))
    with pytest.raises(AttributeError, match="no attribute 'Balancemix'"):
        balancemix.Balancemix  # noqa: B018


def test_the_names_that_users_were_promised_are_there():
    promised = (
        "METHODS BCE Mixup BalanceMix LabelTable clean_probability minority_odds mix draw_lambda "
        "predict fit average_precision noise load Rows FeatureRows ImageRows View manage Request "
        "Batch Run Findings"
    )
    assert set(promised.split()) <= set(balancemix.__all__)
    for name in ("mislabel", "flip", "single_positive", "drop"):
        assert callable(getattr(balancemix.noise, name))


def test_type_checkers_see_the_same_names():
    tree = ast.parse((ROOT / "balancemix" / "__init__.py").read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    names = [
        a.asname for node in block.body if isinstance(node, ast.ImportFrom) for a in node.names
    ]
    assert sorted(map(str, names)) == sorted(balancemix.__all__)


def test_every_public_name_has_an_example_that_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    page = doctest.DocTestParser().get_doctest(text, {}, "docs/api.md", "docs/api.md", 0)
    code = "".join(example.source for example in page.examples)
    used = {node.id for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name)}
    assert set(balancemix.__all__) <= used
    report: list[str] = []
    results = doctest.DocTestRunner(verbose=False).run(page, out=report.append)
    assert results.failed == 0, "".join(report)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_file_is_long_or_vaguely_named(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 300
    assert path.stem not in {"utils", "helpers", "misc", "common"}


def test_help_is_there_before_torch_is():
    code = (
        "import sys; from balancemix.cli import build_parser; build_parser().format_help(); "
        "heavy = {'torch', 'numpy', 'timm', 'torchvision', 'sklearn', 'accelerate', 'rich'}; "
        "sys.exit(', '.join(heavy & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, f"--help imports {done.stderr}"


def test_importing_the_library_imports_neither_timm_nor_torchvision():
    code = (
        "import sys, balancemix; [getattr(balancemix, name) for name in balancemix.__all__]; "
        "sys.exit(', '.join({'timm', 'torchvision'} & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, f"balancemix imports {done.stderr}"


def test_every_command_explains_itself():
    text = build_parser().format_help()
    for name, command in COMMANDS.items():
        assert re.search(rf"^\s+{name}\s", text, re.MULTILINE)
        assert "example" in command.DESCRIPTION
    assert "option_strings" not in text  # an unescaped % makes argparse say strange things


def test_the_help_of_train_names_every_method():
    named = re.search(r"methods: (.*?)\n\n", COMMANDS["train"].DESCRIPTION, re.DOTALL)
    assert named is not None
    assert named[1].replace("\n ", "").split(", ") == list(balancemix.METHODS)


def blocks(language: str) -> list[str]:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


@pytest.mark.parametrize("code", blocks("python"))
def test_the_readme_s_python_runs(code):
    import torch

    generator = torch.Generator().manual_seed(0)
    labels = (torch.rand(96, 6, generator=generator) < 0.3).to(torch.uint8)
    x = torch.randn(96, 8, generator=generator)
    model = torch.nn.Linear(8, 6)
    names = {
        "labels": labels,
        "dataset": [(x[i], i) for i in range(96)],
        "model": model,
        "optimizer": torch.optim.SGD(model.parameters(), 0.1),
        "epochs": 4,
    }
    exec(compile(code, "README.md", "exec"), names)


def test_the_readme_s_commands_are_known():
    parser = build_parser()
    lines = [line for block in blocks("sh") for line in block.splitlines()]
    calls = [line.split("#")[0].split()[1:] for line in lines if line.startswith("balancemix ")]
    assert calls
    for call in calls:
        parser.parse_args(call)


DOCUMENTS = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_links_of_the_documents_lead_somewhere(path):
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", path.read_text(encoding="utf-8"))
    local = [link for link in links if "://" not in link]
    assert [link for link in local if not (path.parent / link).exists()] == []


# CONTRIBUTING.md names files that its reader is to write; test_contributing.py follows it.
NAMING = [path for path in DOCUMENTS if path.name != "CONTRIBUTING.md"]


@pytest.mark.parametrize("path", NAMING, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_files_that_documents_name_exist(path):
    names = re.findall(r"`((?:[\w-]+/)*[\w-]+\.(?:py|toml))`", path.read_text(encoding="utf-8"))
    folders = [ROOT / name for name in ("balancemix", "benchmarks", "tests")]
    known = {f"/{file.relative_to(ROOT).as_posix()}" for top in folders for file in top.rglob("*")}
    missing = {name for name in names if not any(file.endswith(f"/{name}") for file in known)}
    assert missing <= {"my_methods.py"}  # the reader's


def test_no_path_of_a_machine_is_in_the_repository():
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.split()
    for name in listed:
        path = ROOT / name
        if path.suffix in {".py", ".md", ".toml", ""} and path.is_file():
            text = path.read_text(encoding="utf-8", errors="ignore")
            assert not re.search(r"(^|[^\w.])/(home|root|work)/\w", text), name
