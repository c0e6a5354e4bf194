"""The figures of a torture as text: a table for docs/reliability.md, and what failed."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.torture.outcome import LOST, READ, REFUSED, TRACEBACK, UNTIDY, WRONG
from tests.torture.runner import Result, all_parts

BEGIN, END = "<!-- torture: begin -->", "<!-- torture: end -->"
COLUMNS = (READ, REFUSED, TRACEBACK, WRONG, LOST, UNTIDY)


def totals(results: Sequence[Result]) -> dict[str, Counter[str]]:
    """Sum the outcomes of each part, in the order of the table."""
    found: dict[str, Counter[str]] = {name: Counter() for name in all_parts()}
    for result in results:
        found[result.part].update(result.outcomes)
    return {name: counts for name, counts in found.items() if counts}


def table(results: Sequence[Result], branches: dict[str, tuple[int, int]]) -> str:
    """Write a row a part: tried, what became of it, and the branches of a reader taken."""
    lines = [
        "| what | tried | right | refused cleanly | traceback | silently wrong | lost | untidy | "
        "branches |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    whole: Counter[str] = Counter()
    for name, counts in totals(results).items():
        whole += counts
        taken, known = branches.get(name, (0, 0))
        share = f"{taken} of {known} ({taken / known:.0%})" if known else ""
        lines.append(_line(name, counts, share))
    return "\n".join([*lines, _line("**all**", whole, "")])


def _line(name: str, counts: Counter[str], share: str) -> str:
    cells = [name, f"{counts.total():,}", *(f"{counts[kind]:,}" for kind in COLUMNS), share]
    return "| " + " | ".join(cells) + " |"


def failures(results: Sequence[Result]) -> list[str]:
    """List what failed, by part and cause, with the number of the first case."""
    found: dict[tuple[str, str, str], list[int]] = {}
    for result in results:
        for kind, causes in result.failures.items():
            for detail, numbers in causes.items():
                found.setdefault((result.part, kind, detail), []).extend(numbers)
    return [
        f"{part}: {kind}: {detail} (case {min(numbers)}, {len(numbers)} or more)"
        for (part, kind, detail), numbers in sorted(found.items())
    ]


def write(path: Path, text: str) -> None:
    """Replace what stands between the markers of a document."""
    before, _, rest = path.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    path.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}", encoding="utf-8")
