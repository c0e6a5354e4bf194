"""Make the tables of docs/results.md: `make results`, or `results.py NAME[:SEEDS] …` for some.

Every row is `balancemix train` with the settings below, one setting for all methods. Finished runs
are kept under runs/results and never repeated; a killed one goes on.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import mean, stdev

from balancemix.files import write_text
from balancemix.methods import METHODS
from balancemix.progress import progress

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared" / "data"
DOCUMENT = ROOT / "docs" / "results.md"
NAMES = {"bce": "BCE", "mixup": "BCE + Mixup", "balancemix": "BalanceMix"}


# BalanceMix with settings left to the data, and as the paper sets them for each kind of noise.
AUTO = ("--epsilon", "auto", "--set", "method.trust_positives=auto")
PAPER = ("--epsilon", "0.975", "--set", "method.trust_positives=false")
BY_HAND = ("--epsilon", "0.55", "--set", "method.trust_positives=true")
VARIANTS: dict[str, Callable[[str], tuple[str, ...]]] = {
    "auto": lambda noise: AUTO,
    "by hand": lambda noise: BY_HAND if noise == "single" else PAPER,
}


@dataclass(frozen=True)
class Table:
    """A table: its data, noises, methods, seeds and what all its runs share."""

    data: str
    noises: tuple[str, ...]
    methods: tuple[str, ...]
    seeds: tuple[int, ...]
    flags: tuple[str, ...]
    threads: int = 1
    at_once: int = 2
    wide: bool = False  # a row a method, a column a noise


TABLES = {
    "features": Table(
        data="coco160-features.npz",
        noises=("none", "mislabel:0.4"),
        methods=("bce", "mixup", "balancemix"),
        seeds=(0, 1, 2),
        flags=("--epochs", "30"),
    ),
    "dropout": Table(
        data="coco160-features.npz",
        noises=("none", "mislabel:0.4"),
        methods=("bce", "mixup", "balancemix"),
        seeds=(0,),
        flags=("--epochs", "30", "--set", "model.dropout=0.5"),
    ),
    "methods": Table(
        data="coco160-features.npz",
        noises=("none", "mislabel:0.2", "mislabel:0.4", "flip:0.1", "flip:0.2", "single"),
        methods=tuple(METHODS),
        seeds=(0, 1, 2),
        flags=("--epochs", "30"),
        wide=True,
    ),
    "auto": Table(
        data="coco160-features.npz",
        noises=("none", "mislabel:0.2", "mislabel:0.4", "flip:0.1", "flip:0.2", "single"),
        methods=("by hand", "auto"),
        seeds=(0, 1, 2),
        flags=("--epochs", "30"),
        wide=True,
    ),
    "digits": Table(
        data="digits",
        noises=("mislabel:0.4",),
        methods=("bce", "mixup", "balancemix"),
        seeds=(0, 1, 2),
        flags=("--epochs", "30"),
    ),
    "raw-digits": Table(
        data="digits:pixels",
        noises=("mislabel:0.4",),
        methods=("bce", "mixup", "balancemix"),
        seeds=(0, 1, 2),
        flags=("--epochs", "30"),
    ),
    "pixels": Table(
        data="coco160",
        noises=("mislabel:0.4",),
        methods=("bce", "balancemix"),
        seeds=(0,),
        flags=("--epochs", "6", "--image-size", "96", "--workers", "0"),
    ),
}


def main(names: list[str]) -> None:
    """Run what is missing and write the tables asked for."""
    for word in names or TABLES:
        name, _, seeds = word.partition(":")
        table = TABLES[name]
        if not table.data.startswith("digits") and not (SHARED / table.data).exists():
            sys.exit(f"{SHARED / table.data} is not there: the table {name!r} is made from it")
        jobs = [
            (noise, method, seed)
            for seed in (map(int, seeds.split(",")) if seeds else table.seeds)
            for noise in table.noises
            for method in table.methods
        ]
        with progress(name, len(jobs)) as show, ThreadPoolExecutor(table.at_once) as pool:
            for _ in pool.map(partial(train, name, table), *zip(*jobs, strict=True)):
                show.advance()
        put_into_document(name, matrix(name, table) if table.wide else markdown(name, table))


def directory(name: str, noise: str, method: str, seed: int) -> Path:
    """Say where a run is kept."""
    run = f"{method}-{noise}-{seed}".replace(":", "-").replace(" ", "-")
    return ROOT / "runs" / "results" / name / run


def train(name: str, table: Table, noise: str, method: str, seed: int) -> None:
    """Train once, or finish what was begun."""
    out = directory(name, noise, method, seed)
    if (out / "metrics.json").exists():
        return
    built_in = table.data.startswith("digits")
    data = table.data if built_in else f"../shared/data/{table.data}"
    command = [sys.executable, "-m", "balancemix", "train", data]
    named, extra = ("balancemix", VARIANTS[method](noise)) if method in VARIANTS else (method, ())
    command += ["--method", named, "--noise", noise, "--seed", str(seed), "--out", str(out)]
    command += [*table.flags, *extra, "--resume"]
    environment = {**os.environ, "OMP_NUM_THREADS": str(table.threads)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{out.name}: {done.stderr.strip().splitlines()[-1]}")


def markdown(name: str, table: Table) -> str:
    """Write a table of means and standard errors."""
    lines = [
        "| noise | method | mAP last | best | many | medium | few | clean precision | recall "
        "| re-labelled | accuracy | flips | accuracy | s / epoch |",
        "|---|---|" + "---|" * 12,
    ]
    for noise in table.noises:
        for method in table.methods:
            found = [
                json.loads((directory(name, noise, method, seed) / "metrics.json").read_text())
                for seed in table.seeds
            ]
            last = [metrics["last"] for metrics in found]
            chosen = [metrics["selection"] for metrics in found] if method == "balancemix" else []
            cells = [spread([scores["mAP"] for scores in last])]
            cells += [spread([metrics["best"]["mAP"] for metrics in found])]
            for group in ("many", "medium", "few"):
                cells.append(spread([scores[f"mAP_{group}"] for scores in last]))
            for key, scale in (
                ("clean_precision", 1),
                ("clean_recall", 1),
                ("relabel_proportion", 100),
                ("relabel_accuracy", 100),
                ("flip_proportion", 100),
                ("flip_accuracy", 100),
            ):
                values = [scale * selection[key] for selection in chosen if key in selection]
                digits = 3 if scale == 1 else 1
                cells.append(spread(values, digits) + (" %" if values and scale > 1 else ""))
            cells.append(f"{mean(metrics['seconds_per_epoch'] for metrics in found):.1f}")
            lines.append(f"| {noise} | {NAMES[method]} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def matrix(name: str, table: Table) -> str:
    """Write last mAP (and best) of every method under every noise, of the runs that have ended."""
    lines = [f"| method | {' | '.join(table.noises)} |", "|---|" + "---|" * len(table.noises)]
    for method in table.methods:
        cells = []
        for noise in table.noises:
            paths = [directory(name, noise, method, seed) / "metrics.json" for seed in table.seeds]
            found = [json.loads(path.read_text()) for path in paths if path.exists()]
            last = spread([metrics["last"]["mAP"] for metrics in found])
            best = spread([metrics["best"]["mAP"] for metrics in found]).split(" ")[0]
            cells.append(f"{last} ({best})" if found else last)
        lines.append(f"| {method} | {' | '.join(cells)} |")
    return "\n".join(lines)


def spread(values: list[float], digits: int = 1) -> str:
    """Write a mean, and its standard error where there are several values."""
    if not values:
        return "–"
    if len(values) == 1:
        return f"{values[0]:.{digits}f}"
    error = stdev(values) / len(values) ** 0.5
    return f"{mean(values):.{digits}f} ± {error:.{digits}f}"


def put_into_document(name: str, text: str) -> None:
    """Replace the table between its two marks in docs/results.md."""
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    before, found, rest = DOCUMENT.read_text(encoding="utf-8").partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise RuntimeError(f"{DOCUMENT}: no marks {begin} … {end}")
    write_text(DOCUMENT, f"{before}{begin}\n{text}\n{end}{after}")


if __name__ == "__main__":
    main(sys.argv[1:])
