"""The paper's experiments as plans: TOML files whose head comments say what to run and expect."""

from __future__ import annotations

from pathlib import Path

HERE = Path(__file__).parent


def presets() -> dict[str, Path]:
    """List the shipped plans by name."""
    return {path.stem: path for path in sorted(HERE.glob("*.toml"))}


def summary(path: Path) -> list[str]:
    """Read the head comment of a plan.

    >>> summary(presets()["coco2017"])[0]
    'COCO 2017, ResNet-50 at 448 pixels (Tables 1 to 4).'
    """
    lines = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            break
        lines.append(line.removeprefix("#").strip())
    return lines
