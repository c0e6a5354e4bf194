"""Files that outlive a run: the ledger, features of images, and stages of a long judgement.

A damaged one must give what was stored, or nothing, or be refused or told about.
"""

from pathlib import Path
from typing import Any

import torch

from balancemix.bench.ledger import Entry, Ledger
from balancemix.data import ImageRows
from balancemix.judge.stages import Stages
from balancemix.plan.plan import Plan
from balancemix.training.experiment import load_rows
from balancemix.training.features import features_of
from tests.torture.changed import ChangedImages
from tests.torture.draw import Draw
from tests.torture.mutate import mutate_bytes
from tests.torture.outcome import READ, WRONG, Outcome, attempt, listening
from tests.torture.run_files import canonical


class KeptFile:
    """A file that was written once; its reader answers with what it says, or with None."""

    name: str
    group, chunk = "flips", 50
    modules: tuple[str, ...] = ()
    path: Path

    def make(self, folder: Path) -> Path:
        """Write the file, and return its path."""
        raise NotImplementedError

    def answer(self, folder: Path) -> Any:
        """Read the file."""
        raise NotImplementedError

    def right(self, answer: Any) -> bool:
        """Tell whether an answer is what was stored, or nothing."""
        return answer is None or answer == self.before

    def prepare(self, folder: Path) -> None:
        """Write the file and know what it says."""
        self.path = self.make(folder)
        self.whole = self.path.read_bytes()
        self.before = self.answer(folder)

    def case(self, draw: Draw, number: int, folder: Path) -> Outcome:
        """Damage the file, and read it."""
        self.path.write_bytes(mutate_bytes(self.whole, draw))
        try:
            with listening() as told:
                answer, outcome = attempt(lambda: self.answer(folder), (self.path.name,))
        finally:
            self.path.parent.mkdir(exist_ok=True)
            self.path.write_bytes(self.whole)
        wrong = outcome.kind == READ and not self.right(answer)
        if wrong and not any(self.path.name in line for line in told):
            return Outcome(WRONG, f"{self.path.name}: another answer without a word")
        return outcome


class LedgerFile(KeptFile):
    """The ledger of finished runs: each entry read is one that was written."""

    name = "ledger.jsonl"
    group = "readers"

    def make(self, folder: Path) -> Path:
        """Write three entries."""
        ledger = Ledger(folder / "ledger.jsonl")
        for seed in range(3):
            ledger.append(
                Entry(
                    bench="judge", label="BCE", data="tiny", fingerprint="ab12",
                    plan={"method": {"name": "bce"}, "seed": seed}, versions={"torch": "2.9"},
                    chosen="", candidates={"bce": 20.5}, last={"mAP": 53.25 + seed},
                    best={"epoch": 7.0, "mAP": 54.0}, class_ap=[91.25, 15.5],
                    seconds={"total": 14.0, "epochs": 12.0, "epoch": 0.5},
                )
            )  # fmt: skip
        return ledger.path

    def answer(self, folder: Path) -> Any:
        """List the entries."""
        return [repr(entry) for entry in Ledger(self.path).entries]

    def right(self, answer: Any) -> bool:
        """Tell whether each entry was written; a run that is missing is trained again."""
        return set(answer) <= set(self.before)


class FeaturesFile(KeptFile):
    """The features of images beside their folder."""

    name = "features of images"

    def make(self, folder: Path) -> Path:
        """Write images, and make their features."""
        ChangedImages.write_data(ChangedImages("", "", 0), folder)
        model = {"backbone": "test_resnet", "pretrained": False}
        data = {"path": str(folder / "photos"), "size": 32, "workers": 0}
        tree = {"data": data, "model": model, "train": {"device": "cpu"}}
        self.plan = Plan.from_tree(tree)
        rows = load_rows(self.plan, folder / "photos").splits["train"]
        assert isinstance(rows, ImageRows)
        self.rows = rows
        features_of(rows, self.plan)
        (path,) = (folder / "photos.balancemix").iterdir()
        return path

    def answer(self, folder: Path) -> Any:
        """Read the features; those that are damaged are made again."""
        return canonical(features_of(self.rows, self.plan))


class StageFile(KeptFile):
    """A finished part of a long judgement."""

    name = "stages of the judge"
    group = "readers"

    def make(self, folder: Path) -> Path:
        """Store a stage."""
        tensors = {"lift": torch.arange(12.0).view(3, 4), "spectrum": torch.rand(4)}
        Stages(folder).save("basis", b"key", tensors)
        return folder / "basis.stage"

    def answer(self, folder: Path) -> Any:
        """Read it."""
        stored = Stages(folder).load("basis", b"key")
        return None if stored is None else canonical(stored)


KEPT = [LedgerFile(), FeaturesFile(), StageFile()]
