"""Directory: the files of a run by their short names, who wrote them, and what may be replaced.

Each file is written whole or not at all. `FILES` is the only place that knows their names:

plan         what was run
noise        the noise that was added, and the rates measured after it
pilot        what a short training said of the labels, if settings were left to it
judge        what the judge said of them before training, if the method asked
auto         the methods that were compared and the one chosen, if that was left to the labels
log          a line for each epoch
metrics      last and best scores, quality of the selection; written last
per_class    given positives and last AP of each class
table        the label table, the model's confidence, the names of rows and classes
truth        the labels before noise, if noise was added; only for scoring
model        the weights
checkpoint   all that is needed to resume: weights, optimiser, method, log
previous     the checkpoint before, for when the last one is damaged
data         the fingerprint of the rows: what the run was started with

`checksums.json` holds their checksums, by which damage is noticed when they are read. `audit`,
`export` and `report` write findings, corrected and report, unless --out says otherwise; their
checksums are in `.outputs.json`, by which the edits of a person are noticed. `.judge` holds the
finished parts of a long judgement, until `judge` is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from balancemix import files
from balancemix.errors import DamagedFile, InputError, listing
from balancemix.manifest import Manifest, Outputs

FILES = {
    "plan": "plan.json",
    "noise": "noise.json",
    "pilot": "pilot.json",
    "judge": "judge.npz",
    "auto": "auto.json",
    "log": "log.jsonl",
    "metrics": "metrics.json",
    "per_class": "per_class.json",
    "table": "label_table.npz",
    "truth": "truth.npz",
    "model": "model.safetensors",
    "checkpoint": "checkpoint.pt",
    "previous": "checkpoint.previous.pt",
    "data": "data.npz",
    "findings": "findings.csv",
    "corrected": "labels.corrected.csv",
    "report": "report.html",
}
OUTPUTS = ("findings", "corrected", "report")  # by later commands, for people
OLD_NAMES = {"table": "labels.npz", "per_class": "classes.json"}  # read, never written


class Directory:
    """The files of one run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.manifest = Manifest(path)
        self.outputs = Outputs(path)
        self._intact: set[str] = set()  # files whose checksums were compared

    @property
    def resumes(self) -> str:
        """The command that continues the run, for messages of any command."""
        return f"`balancemix train --resume --out {self.path}`"

    @property
    def start_over(self) -> str:
        """What to do if that cannot continue it."""
        return "`balancemix train` with --force starts over"

    def remedy(self, name: str) -> str:
        """What to do about a damaged file."""
        if name == "data":
            return "delete it to resume without comparing the data"
        return self.start_over if name == "plan" else f"{self.resumes} writes it again"

    def damaged(self, name: str, problem: str) -> DamagedFile:
        """Word a problem with a file that training writes."""
        return DamagedFile(f"{self._find(name)}: {problem}; {self.remedy(name)}")

    def path_of(self, name: str) -> Path:
        """Return the path of a file, by its short name in `FILES`."""
        return self.path / FILES[name]

    def has(self, name: str) -> bool:
        """Return whether a file exists."""
        return self._find(name).is_file()

    def written_files(self) -> list[str]:
        """List the names of the files that a run wrote here, in the order to delete them.

        The checkpoints come first, the checksums last: whoever is killed between leaves files that
        are known as a run's. Of a run without checksums, an older one, every known name counts.
        """
        try:
            names = {*self.manifest.names, *self.outputs.names}
        except DamagedFile:
            if self.has("plan"):
                raise
            return []  # a file of somebody else's, by chance of this name
        if not self.manifest.exists and self.has("plan"):
            names = {*FILES.values(), *OLD_NAMES.values()}
        first, last = {FILES["checkpoint"], FILES["previous"]}, [self.outputs, self.manifest]
        order = [*sorted(names & first), *sorted(names - first), *(each.path.name for each in last)]
        return [name for name in order if (self.path / name).exists()]

    def foreign_files(self) -> list[str]:
        """List the names of files and folders here that no run wrote, hidden ones left out."""
        if not self.path.is_dir():
            return []
        names = {file.name for file in self.path.iterdir() if not file.name.startswith(".")}
        return sorted(names - set(self.written_files()))

    def check_removable(self, data: str) -> None:
        """Refuse to start over where that would delete the data, or what a person edited."""
        for name in self.written_files():
            path = self.path / name
            if Path(data).exists() and path.samefile(data):
                raise InputError(f"{path}: is the data to train on; choose another --out")
        if edited := self.outputs.edited():
            names = listing(edited)
            raise InputError(
                f"{self.path}: edited since they were written: {names}; move them away"
            )

    def check_output(self, path: Path, *, force: bool = False, inputs: Iterable[Path] = ()) -> None:
        """Refuse to write over a file, unless a command wrote it here and nobody changed it."""
        if path.exists() and any(path.samefile(file) for file in self._own_files()):
            raise InputError(f"{path}: is a file of the run; write to another one")
        self.outputs.check_output(path, force=force, inputs=inputs)

    def _own_files(self) -> list[Path]:
        names = set(self.written_files()) - set(self.outputs.names) - {FILES[n] for n in OUTPUTS}
        return [self.path / name for name in names]

    def write_json(self, name: str, content: Mapping[str, Any]) -> None:
        """Write one of the run's JSON files."""
        text = files.json_text(content)
        self._write(name, lambda path: path.write_bytes(text.encode()))

    def read_json(self, name: str) -> dict[str, Any]:
        """Read one of the run's JSON files."""
        return self._parse(self._text(name), name)

    def read_lines(self, name: str) -> list[dict[str, Any]]:
        """Read one of the run's files of JSON lines."""
        return [self._parse(line, name) for line in self._text(name).splitlines()]

    def write_arrays(self, name: str, arrays: Mapping[str, Any]) -> None:
        """Write one of the run's .npz files."""
        self._write(name, lambda path: files.save_arrays(path, arrays))

    def read_arrays(self, name: str) -> dict[str, np.ndarray[Any, Any]]:
        """Read one of the run's .npz files."""
        path = self._existing(name)
        try:
            with path.open("rb") as file, np.load(file, allow_pickle=False) as members:
                return {name: np.asarray(member) for name, member in members.items()}
        except Exception as error:  # zip, zlib and NumPy's header parser each raise their own
            raise self.damaged(name, "cannot be read") from error

    @contextmanager
    def _checking(self, name: str) -> Iterator[None]:
        """Name the file if what was read from it is found wrong."""
        try:
            yield
        except ValueError as error:
            raise self.damaged(name, str(error)) from error

    def _write(self, name: str, save: Callable[[Path], object], keep: str | None = None) -> None:
        self.manifest.write(FILES[name], save, keep)
        self._intact.discard(FILES[name])

    def _find(self, name: str) -> Path:
        """Return the path of a file, which in an older run may have another name."""
        path, old = self.path_of(name), self.path / OLD_NAMES.get(name, FILES[name])
        return old if old.is_file() and not path.is_file() else path

    def _existing(self, name: str) -> Path:
        path = self._find(name)
        if not path.is_file():
            raise InputError(
                f"{path}: not found; is the run unfinished? {self.resumes} finishes it"
            )
        if name not in OUTPUTS and path.name not in self._intact:
            self.manifest.check(path.name, self.remedy(name))
            self._intact.add(path.name)
        return path

    def _text(self, name: str) -> str:
        try:
            return self._existing(name).read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise self.damaged(name, "cannot be read (not UTF-8)") from error

    def _parse(self, text: str, name: str) -> dict[str, Any]:
        try:
            content = files.from_json(text)
        except (ValueError, RecursionError):
            content = None
        if not isinstance(content, dict):
            raise self.damaged(name, "cannot be read")
        return content
