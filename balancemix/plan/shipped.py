"""The shipped plans: TOML files; the comment at the head of each says what to run and expect."""

from pathlib import Path

PACKAGE = Path(__file__).parent.parent


def presets() -> dict[str, Path]:
    """List the paper's experiments by name, each a plan."""
    return _plans(PACKAGE / "plan" / "presets")


def bench_plans() -> dict[str, Path]:
    """List the paper's comparisons by name, each a bench plan.

    >>> list(bench_plans())
    ['ablation', 'paper-tables', 'quick', 'search', 'selection']
    """
    return _plans(PACKAGE / "bench" / "plans")


def _plans(folder: Path) -> dict[str, Path]:
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


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
