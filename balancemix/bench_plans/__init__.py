"""The paper's comparisons as bench plans: TOML files whose head comments say what they compare."""

from __future__ import annotations

from pathlib import Path

HERE = Path(__file__).parent


def bench_plans() -> dict[str, Path]:
    """List the shipped plans by name.

    >>> list(bench_plans())
    ['ablation', 'paper-tables', 'quick', 'search', 'selection']
    """
    return {path.stem: path for path in sorted(HERE.glob("*.toml"))}
