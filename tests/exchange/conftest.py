"""A small folder of pictures, its findings, and a store beside it."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from PIL import Image

from balancemix.auditing.findings import Findings, find
from balancemix.auditing.judged import judge_confidence
from balancemix.data import ReadOptions, read
from balancemix.data.decisions.store import Store
from balancemix.data.source import Source
from balancemix.exchange.reading import read_answers
from tests.conftest import ROOT

CLASSES = ["cat", "dog", "<b>&\"'"]
TABLE = (
    'image,cat,dog,"<b>&""\'",split\n'
    "0.png,1,0,0,train\nsub/1 é.png,0,1,1,train\n2.png,1,1,-1,train\n3.png,0,0,0,test\n"
)
# 0.png: cat is wrong, dog is missing. 2.png: <b>… is unknown and looks present.
CONFIDENCE = [[0.02, 0.99, 0.01], [0.01, 0.99, 0.98], [0.98, 0.97, 0.99], [0.02, 0.03, 0.01]]


@dataclass
class Work:
    """The data, its findings, and how a file of answers is read into its store."""

    folder: Path
    source: Source
    findings: Findings

    def take(self, file: Path, name: str = "Ana", named: bool = True):
        filled = read_answers(file, self.source, named=named)
        with Store.open(self.folder.parent / "photos.balancemix", create=True) as store:
            return store.take(filled, file, self.source.classes, name)

    def answers(self) -> dict[tuple[str, str], str]:
        place = self.folder.parent / "photos.balancemix"
        if not place.exists():
            return {}
        with Store.open(place, write=False) as store:
            return {(i, c): s.verdict or s.state for i, c, s, _ in store.states()}


@pytest.fixture
def work(tmp_path) -> Work:
    folder = tmp_path / "photos"
    (folder / "sub").mkdir(parents=True)
    for name in ("0.png", "sub/1 é.png", "2.png", "3.png"):
        Image.new("RGB", (6, 4), (90, 0, 0)).save(folder / name)
    (folder / "labels.csv").write_text(TABLE, encoding="utf-8")
    source = read(folder, ReadOptions(minus_one="unknown", verified=False))
    assert source.classes == CLASSES
    judged = judge_confidence(
        source.given, torch.tensor(CONFIDENCE), names=source.names, classes=source.classes,
        split=source.split, source=source,
    )  # fmt: skip
    probability = torch.zeros(4, 3)
    probability[0, 0], probability[0, 1], probability[2, 2] = 0.9, 0.97, 0.8
    object.__setattr__(judged, "probability", probability)
    object.__setattr__(judged, "doubt", probability)
    return Work(folder, source, find(judged, 0.5))


def environment(name: str) -> Path:
    """Set up an environment of its own for a tool, and return its Python."""
    made = subprocess.run(
        ["make", f".venv-{name}/ready"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, f"make .venv-{name}/ready: {made.stderr[-2000:]}"
    return ROOT / f".venv-{name}" / "bin" / "python"
