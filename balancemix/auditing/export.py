"""Corrected labels: a run's with the findings of its audit, or a data set's with decisions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from balancemix.auditing.findings import find
from balancemix.auditing.judged import judge_run
from balancemix.data import ReadOptions, read
from balancemix.data.source import Source
from balancemix.data.writing import write_labels
from balancemix.run import Run


@dataclass(frozen=True)
class Corrected:
    """A source and its labels as they should be, with the reasons for each row and class.

    `left` counts findings that were not applied. Where there is no other reason, a label that
    changed was decided by a person, or else changed by `noise`.
    """

    source: Source
    given: Tensor
    reasons: Mapping[tuple[int, int], str]
    left: int = 0
    noise: str = "none"

    @property
    def changed(self) -> int:
        """How many labels are not those of the file."""
        return int((self.given != self.source.as_in_file.given).sum())

    def why(self, row: int, column: int) -> str:
        """Say why a label changed."""
        verified = self.source.verified
        rest = "decision" if verified is not None and bool(verified[row, column]) else self.noise
        return self.reasons.get((row, column), rest)

    def write(self, out: Path) -> list[str]:
        """Write the labels and the log of changes; returns what a person should know."""
        return write_labels(self.source, self.given, out, self.why)


def decided(data: str, options: ReadOptions) -> Corrected:
    """Read data with what people decided about its labels."""
    source = read(data, options)
    return Corrected(source, source.given, {})


def corrected(run: Run, above: float) -> Corrected:
    """Correct the labels of a run's data by the findings with a probability of at least `above`.

    The corrections go into the labels as they are in the files now; what people decided is left as
    it is. A run with added noise is an experiment: its noisy labels are corrected.
    """
    judged = judge_run(run)
    findings = find(judged, above)
    assert judged.source is not None
    reasons = {(each.row, each.column): f"probability {each.probability:.4f}" for each in findings}
    given = findings.applied(judged.given)
    return Corrected(judged.source, given, reasons, 0, run.plan.noise)
