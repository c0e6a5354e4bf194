"""How tests load the scripts in benchmarks/, which find each other by their names."""

import importlib

import pytest

from tests.conftest import ROOT


@pytest.fixture
def load(monkeypatch):
    """Load a script by its name."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module
