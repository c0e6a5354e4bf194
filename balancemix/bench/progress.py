"""The progress of a bench: one bar for all runs, and the runs that failed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from balancemix.bench.table import Cell
from balancemix.files import write_text
from balancemix.progress import Progress


class BenchProgress:
    """One bar for all runs, in units of their expected cost.

    `enter` is called with the name of each run that ends, and the seconds that it took, if known.
    """

    def __init__(
        self,
        out: Path,
        costs: dict[str, int],
        bar: Progress,
        enter: Callable[[str, float | None], None] | None = None,
    ) -> None:
        self.out, self.bar, self.costs, self.enter = out, bar, costs, enter
        self.seconds: dict[str, float] = {}
        self.first: dict[str, float] = {}  # share of a run that was done at its first message
        self.counted = dict.fromkeys(costs, 0)
        self.failures: dict[str, str] = {}
        self.done, self.warnings = 0, set[str]()

    def at(self, name: str, share: float) -> None:
        """Move the bar to the share of a run that is done, counted from where it resumed."""
        first = self.first.setdefault(name, share if share < 1 else 0.0)
        reached = round(self.costs[name] * (share - first) / (1 - first))
        if reached > self.counted[name]:
            self.bar.advance(reached - self.counted[name])
            self.counted[name] = reached

    def took(self, name: str, seconds: float) -> None:
        """Note the time of a run that was trained in one go."""
        self.seconds[name] = seconds

    def ended(self, name: str, metrics: dict[str, Any]) -> None:
        """Count a run, enter it, and report its score."""
        if self.enter is not None:
            self.enter(name, self.seconds.get(name))
        (self.out / "failures" / f"{name}.txt").unlink(missing_ok=True)
        self.bar.line(f"{name}: mAP {Cell.of(metrics['last']['mAP']).text}")
        self._over(name)

    def failed(self, name: str, line: str, trace: str) -> None:
        """Keep the reason for the end, and write the traceback to a file."""
        self.failures[name] = line
        write_text(self.out / "failures" / f"{name}.txt", trace.rstrip() + "\n")
        self.bar.line(f"{name}: failed: {line}")
        self._over(name)

    def warned(self, name: str, text: str) -> None:
        """Print each warning once, however many runs give it."""
        if text not in self.warnings:
            self.warnings.add(text)
            self.bar.line(f"warning: {text}")

    def _over(self, name: str) -> None:
        self.done += 1
        self.bar.say(ended=self.done, failed=len(self.failures))
        self.at(name, 1.0)
