"""The report of many runs: tables of methods by noise, pentagons, and the curves of each noise."""

from __future__ import annotations

import csv
import html
import json
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from balancemix.errors import InputError
from balancemix.figures.curves import learning
from balancemix.figures.look import colours
from balancemix.figures.pentagon import pentagons
from balancemix.pages.shell import (
    SCORES,
    document,
    listed,
    paragraph,
    picture,
    scores,
    section,
    table,
)
from balancemix.plan import read_tree
from balancemix.ranking import CORNERS, from_all_corners
from balancemix.run import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Entry:
    """One run of a benchmark; without metrics it has not ended."""

    name: str
    variant: str
    noise: str
    seed: int
    metrics: dict[str, Any] | None
    log: list[dict[str, Any]]


def read_entries(path: Path) -> list[Entry]:
    """Read the runs of a benchmark's directory, in the order of their names."""
    entries = []
    for folder in sorted((path / "runs").glob("*/")):
        if not (folder / "plan.json").is_file():
            continue
        run, plan = Run(folder), read_tree(folder / "plan.json")
        text, seed = str(plan.get("noise", "none")), int(plan.get("seed", 0))
        variant = folder.name
        for part in (f"-{seed}", f"-{text.replace(':', '-').replace(',', '-')}"):
            variant = variant.removesuffix(part)
        ended = (folder / "metrics.json").exists()
        metrics = run.read_json("metrics.json") if ended else None
        entries.append(Entry(folder.name, variant, text, seed, metrics, run.log()))
    if not any(entry.metrics for entry in entries):
        raise InputError(f"{path / 'runs'}: holds no run that has ended; nothing to report on")
    return entries


def render(path: Path) -> str:
    """Write the page."""
    entries = read_entries(path)
    done = [entry for entry in entries if entry.metrics]
    noises, variants = _noises(done), _variants(done)
    lead = (
        f"{len(done)} of {len(entries)} runs have ended: {len(variants)} methods, "
        f"{len(noises)} kinds of noise, {len({entry.seed for entry in done})} seeds."
    )
    body = (
        _tables(path, done)
        + _pentagons(done)
        + _curves(done)
        + _runs(entries)
        + _settings(path)
        + section("Commands", listed([f"balancemix report {path}"]))
    )
    return document(f"Benchmark {path.resolve().name}", lead, body)


def figures(path: Path) -> Iterator[tuple[str, Figure]]:
    """Draw all figures of a benchmark, by name."""
    done = [entry for entry in read_entries(path) if entry.metrics]
    ranks = ranked(done)
    if _can_span(ranks):
        yield "pentagons", pentagons(ranks)
    for text, runs in _by_noise(done).items():
        yield (
            f"learning-{text.replace(':', '-').replace(',', '-')}",
            learning(mean_curves(runs), colours(_variants(done))),
        )


def ranked(done: Sequence[Entry]) -> dict[str, dict[str, int]]:
    """Rank the variants from each of the paper's perspectives that the runs show."""
    scored: dict[str, dict[tuple[str, str], float]] = {}
    for text, runs in _by_noise(done).items():
        for group, key in (("All", "mAP"), ("Few", "mAP_few")):
            for name, (mean, _) in mean_scores(runs, key).items():
                scored.setdefault(name, {})[text, group] = mean
    return from_all_corners([scored], _noises(done))


def mean_scores(runs: Sequence[Entry], key: str) -> dict[str, tuple[float, float | None]]:
    """Average a last score over seeds, by variant; with the standard error where there are more."""
    values: dict[str, list[float]] = {}
    for entry in runs:
        if entry.metrics and key in entry.metrics["last"]:
            values.setdefault(entry.variant, []).append(entry.metrics["last"][key])
    return {
        name: (
            statistics.fmean(own),
            statistics.stdev(own) / len(own) ** 0.5 if len(own) > 1 else None,
        )
        for name, own in values.items()
    }


def mean_curves(runs: Sequence[Entry]) -> dict[str, list[float]]:
    """Average mAP after each epoch over seeds, by variant, the best at the end first."""
    logs: dict[str, list[list[float]]] = {}
    for entry in runs:
        logs.setdefault(entry.variant, []).append([line["mAP"] for line in entry.log])
    means = {
        name: [statistics.fmean(values) for values in zip(*own, strict=False)]
        for name, own in logs.items()
    }
    return dict(sorted(((n, m) for n, m in means.items() if m), key=lambda item: -item[1][-1]))


def _tables(path: Path, done: Sequence[Entry]) -> str:
    parts = []
    for file in sorted((path / "tables").glob("*.csv")):
        with file.open(newline="", encoding="utf-8") as lines:
            header, *rows = list(csv.reader(lines)) or [[]]
        whole = [row for row in rows if len(row) == len(header)]
        if whole:
            title = html.escape(file.stem.replace("-", " ").replace("_", " "))
            parts.append(f"<h3>{title}</h3>" + table(header, whole))
    if not parts:
        parts = [_simple_table(done)]
    return section("Tables", *parts)


def _simple_table(done: Sequence[Entry]) -> str:
    noises = _noises(done)
    means = {text: mean_scores(runs, "mAP") for text, runs in _by_noise(done).items()}
    rows = [
        [name, *(_with_error(means[text].get(name)) for text in noises)] for name in _variants(done)
    ]
    said = "Last test mAP, mean ± standard error over seeds."
    return paragraph(said) + table(("method", *noises), rows, sortable=True)


def _pentagons(done: Sequence[Entry]) -> str:
    ranks = ranked(done)
    if not _can_span(ranks):
        said = "Ranks need two methods or more that have run on three perspectives or more."
        return section("Ranks", paragraph(said))
    seen = next(iter(ranks.values()))
    lacking = [place for place in CORNERS if place not in seen]
    caption = (
        f"Ranks of the {len(ranks)} methods that have run on all noises (1 is best, at the rim), "
        "with the share of the whole pentagon that they span; few-shot classes without noise are "
        "“Imbal.”."
    )
    if lacking:
        caption += f" Not run: {', '.join(lacking)}."
    return section("Ranks", picture(pentagons(ranks), "pentagons", caption))


def _curves(done: Sequence[Entry]) -> str:
    parts = []
    for i, (text, runs) in enumerate(_by_noise(done).items()):
        caption = f"Noise {text}: test mAP after each epoch, mean over seeds: last (best)."
        parts.append(
            picture(learning(mean_curves(runs), colours(_variants(done))), f"learning-{i}", caption)
        )
    return section("Learning", *parts)


def _runs(entries: Sequence[Entry]) -> str:
    rows = []
    for entry in entries:
        measured = scores(entry.metrics) if entry.metrics else [None] * len(SCORES)
        seconds = entry.metrics["seconds_per_epoch"] if entry.metrics else None
        rows.append([entry.name, entry.variant, entry.noise, entry.seed, *measured, seconds])
    header = ("run", "method", "noise", "seed", *SCORES, "s an epoch")
    return section("Runs", table(header, rows, text=(0, 1, 2), sortable=True))


def _settings(path: Path) -> str:
    content = json.dumps(read_tree(path / "bench.json"), indent=2, ensure_ascii=False)
    shown = f'<div class="wide"><pre>{html.escape(content)}</pre></div>'
    return section("Settings", f"<details><summary>bench.json</summary>{shown}</details>")


def _with_error(measured: tuple[float, float | None] | None) -> str | None:
    if measured is None:
        return None
    mean, error = measured
    return f"{mean:.1f}" if error is None else f"{mean:.1f} ± {error:.1f}"


def _by_noise(entries: Sequence[Entry]) -> dict[str, list[Entry]]:
    return {text: [e for e in entries if e.noise == text] for text in _noises(entries)}


def _noises(entries: Sequence[Entry]) -> list[str]:
    found = dict.fromkeys(entry.noise for entry in entries)
    return sorted(found, key=lambda text: (text != "none", text))


def _variants(entries: Sequence[Entry]) -> list[str]:
    return list(dict.fromkeys(entry.variant for entry in entries))


def _can_span(ranks: Mapping[str, Mapping[str, int]]) -> bool:
    return len(ranks) > 1 and len(next(iter(ranks.values()))) > 2
