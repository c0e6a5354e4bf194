"""Files that people edit: findings.csv, which no command may replace once it was edited."""

import shutil
from pathlib import Path
from typing import Any

import torch

from balancemix.auditing.findings import HEADER, audit
from balancemix.files import restore
from balancemix.methods import BCE
from balancemix.run import Run
from tests.torture.draw import Draw
from tests.torture.literal_table import parse_csv
from tests.torture.mutate import ODD_TEXT, mutate_text
from tests.torture.outcome import LOST, READ, REFUSED, UNTIDY, WRONG, Outcome, attempt, listening
from tests.torture.readers import LAW_EVERY
from tests.torture.run_files import findings, whole_run

FORMULA = "=+-@\t\r\n＝＋－＠"


class Mine(BCE):
    """A method that is not part of balancemix."""


nothing = 0  # is no method


class FindingsFile:
    """The findings of a run, edited as people do, then written again or the run started over."""

    name, group, chunk = "run: findings.csv", "readers", 500
    modules = ("balancemix.manifest",)

    def prepare(self, folder: Path) -> None:
        """Put a whole run into the folder."""
        shutil.copytree(whole_run(), folder, dirs_exist_ok=True)
        self.path = folder / "findings.csv"
        self.whole = self.path.read_bytes()
        with listening():
            self.before = findings(Run.open(folder))

    def case(self, draw: Draw, number: int, folder: Path) -> Outcome:
        """Edit the file and try to replace it; every eighth case writes odd names instead."""
        if number % LAW_EVERY == 0:
            return written(draw, folder / "again.csv")
        content = edited(self.whole, draw)
        if content is None:
            self.path.unlink()
        else:
            self.path.write_bytes(content)
        try:
            return self.judged(draw, folder, content)
        finally:
            self.path.write_bytes(self.whole)

    def judged(self, draw: Draw, folder: Path, content: bytes | None) -> Outcome:
        """Compare with what should happen: only what nobody edited is replaced without --force."""
        run, force = Run(folder), draw.chance(0.2)
        if draw.chance(0.2):
            answer, outcome = attempt(lambda: findings(run))
            same = outcome.kind == READ and answer == self.before
            return outcome if same else Outcome(WRONG, "an audit depends on its last output")
        over = draw.chance(0.5)

        def replace() -> Any:
            if over:
                Run.check(folder, run.plan, force=True)
            else:
                run.check_output(self.path, force=force)

        _, outcome = attempt(replace, (self.path.name,))
        keep = content not in (None, self.whole) and (over or not force)
        if outcome.kind == READ and keep:
            return Outcome(LOST, "edited findings are replaced")
        if outcome.kind == REFUSED and not keep:
            return Outcome(UNTIDY, "refused to replace what nobody edited")
        return outcome


def edited(content: bytes, draw: Draw) -> bytes | None:
    """Edit a table as people and spreadsheets do; None removes it."""
    kind = draw.below(10)
    lines = content.split(b"\n")
    if kind == 0:
        return content
    if kind == 1:
        return None
    if kind == 2:
        return b"\xef\xbb\xbf" + content
    if kind == 3:
        return b"\r\n".join(lines)
    if kind == 4:
        return b"\n".join([lines[0], *draw.shuffled(lines[1:-1]), b""])
    if kind == 5:
        return b"\n".join([line + b",ok" * bool(line) for line in lines])
    return mutate_text(content, draw)


def written(draw: Draw, path: Path) -> Outcome:
    """Write findings of odd names: each is read back the same, and none is a formula."""
    names = draw.shuffled([*ODD_TEXT, "'=1", "''", "'", "＝1", "-1+1", "@x|y"])[:3]
    classes = draw.shuffled(ODD_TEXT)[:2]
    given = torch.tensor([[1, 0], [0, 1], [1, 1]])
    confidence = 1 - given.float()
    found = audit(given, confidence=confidence, names=names, classes=classes, above=0)
    _, outcome = attempt(lambda: found.write(path), (path.name,))
    if outcome.kind != READ:
        return outcome
    table = parse_csv(path.read_bytes().decode("utf-8", "surrogateescape"))
    path.unlink()
    if any(cell[:1] in FORMULA for row in table[1:] for cell in row if cell):
        return Outcome(WRONG, "a name becomes a formula")
    rows = [[restore(cell) for cell in row] for row in table]
    expected = [list(HEADER), *([str(cell) for cell in line] for line in found.lines())]
    return outcome if rows == expected else Outcome(WRONG, "a name is not read back")
