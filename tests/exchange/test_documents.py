"""The pages about round trips: their commands are known, their Python is Python."""

import re
import shlex

import pytest

from balancemix.cli import build_parser
from tests.conftest import ROOT

PAGES = sorted((ROOT / "docs" / "round-trips").glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_and_python(page):
    text = page.read_text(encoding="utf-8")
    calls = re.findall(r"^balancemix (.*)$", text, re.MULTILINE)
    assert len(calls) >= 2
    for call in calls:
        build_parser().parse_args(shlex.split(call, comments=True))
    for code in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        compile(code, page.name, "exec")


def test_there_is_a_page_for_each_tool():
    assert [page.stem for page in PAGES] == ["cleanlab", "fiftyone", "label-studio", "spreadsheet"]
