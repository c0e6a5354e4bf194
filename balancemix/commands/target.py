"""What a command is about, data or a run: where its files go, and which it may write."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from balancemix.run import Run


def is_run(path: Path) -> bool:
    """Tell whether DATA|RUN names a run; what is neither counts as one that is missing."""
    from balancemix.data.formats import is_data
    from balancemix.run import Run

    return Run(path).has("plan") or not is_data(path)


@dataclass(frozen=True)
class Target:
    """The run, if it is one, and the files that the command reads, which it never writes."""

    run: Run | None
    inputs: list[Path]
    force: bool

    @classmethod
    def of(cls, run: Run | None, inputs: list[Path], *, force: bool) -> Target:
        """Take the run and its data, or the files that are read instead."""
        return cls(run, inputs if run is None else [Path(run.plan.data.path)], force)

    def file(self, name: str) -> Path:
        """Name a file in the run or, without one, here."""
        return Path(name) if self.run is None else self.run.path / name

    def check(self, *files: Path) -> None:
        """Refuse, before anything is computed, files that must not be written."""
        from balancemix.files import check_output

        check = check_output if self.run is None else self.run.check_output
        for file in files:
            check(file, force=self.force, inputs=self.inputs)

    def remember(self, *files: Path) -> None:
        """Let the run know that a command wrote these, and nobody else."""
        if self.run is not None:
            for file in files:
                self.run.outputs.remember(file)
