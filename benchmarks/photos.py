"""What the benchmarks of speed share: JPEG files like photographs, and a line for each result."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from PIL import Image


def write_photos(folder: Path, count: int, width: int = 640, height: int = 480) -> list[Path]:
    """Write smooth, grainy JPEG files of about 90 kB into subfolders, as ImageFolder wants them."""
    generator = np.random.default_rng(0)
    paths = [folder / f"class {i % 2}" / f"{i:05}.jpg" for i in range(count)]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        coarse = generator.integers(0, 256, (height // 40, width // 40, 3), dtype=np.uint8)
        smooth = Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)
        grain = generator.normal(0, 8, (height, width, 1))
        photo = (np.asarray(smooth) + grain).clip(0, 255).astype(np.uint8)
        Image.fromarray(photo).save(path, quality=90)
    return paths


def report(benchmark: str, case: str, ratio: float, requirement: str = "", **more: float) -> None:
    """Print a result as a line of JSON; `requirement` is "< 0.1", "<= 1.9", ">= 2" or nothing."""
    sign, _, bound = requirement.partition(" ")
    met = {
        "": None,
        "<": bool(bound) and ratio < float(bound),
        "<=": bool(bound) and ratio <= float(bound),
        ">=": bool(bound) and ratio >= float(bound),
    }[sign]
    numbers = {name: round(number, 4) for name, number in {"ratio": ratio, **more}.items()}
    line = {"benchmark": benchmark, "case": case, **numbers}
    print(json.dumps({**line, "requirement": requirement or None, "met": met}), flush=True)
