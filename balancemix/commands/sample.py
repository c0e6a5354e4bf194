"""`balancemix audit --sample` and `--passport`: what to ask people, and what their answers say."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from balancemix.commands.arguments import read_options

if TYPE_CHECKING:
    from balancemix.auditing.judged import Judged
    from balancemix.auditing.measured import Measured
    from balancemix.auditing.sample import Drawn, Population, Request
    from balancemix.data.source import Source
    from balancemix.run import Run

    Judge = Callable[[], Judged]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    group = parser.add_argument_group("how many labels are wrong")
    group.add_argument(
        "--sample",
        metavar="50|wrong:200",
        help="draw images, or given labels, at random for a person to settle; a larger number "
        "later extends the sample",
    )
    group.add_argument("--split", help="rows to draw from and to measure (default train)")
    group.add_argument(
        "--seed", type=int, default=0, help="of the sample (default 0); another one starts another"
    )
    group.add_argument(
        "--passport", type=Path, metavar="MD", help="write what was measured for a data-set card"
    )


def draw(arguments: argparse.Namespace, run_: Run | None, judge: Judge) -> None:
    """Draw or extend a sample, write the sheet to fill in, and say what to do with it.

    `judge` judges the data as if nobody had decided anything; only `wrong:` asks it.
    """
    from balancemix.auditing.sample import Population, Request, draw_images, draw_labels
    from balancemix.data.decisions import store_folder
    from balancemix.data.decisions.store import Store
    from balancemix.errors import printable
    from balancemix.files import to_json

    request = Request.parse(arguments.sample)
    source = _read(arguments, run_)
    population = Population.of(source, arguments.split)
    folder = store_folder(source.path)
    name = "sample.csv" if request.kind == "image" else "sample-wrong.csv"
    out = arguments.out or folder / name
    check_sheet(out, request, source)
    judged = judge() if request.kind == "label" else None
    with Store.open(folder, create=True) as store:
        if judged is None:
            drawn = draw_images(store, population, request.count, arguments.seed)
        else:
            drawn = draw_labels(store, population, judged, request.count, arguments.seed)
    blank = write(out, drawn, source)
    if arguments.json:
        counts = {"drawn": len(drawn.units), "planned": drawn.planned}
        counts |= {"answered": len(drawn.answers), "blank": blank, "seed": drawn.sample.seed}
        print(to_json({"file": str(out), "unit": drawn.sample.unit, **counts}, indent=2))
        return
    for line in advice(drawn, population, out, blank, str(source.path)):
        print(printable(line))


def check_sheet(out: Path, request: Request, source: Source) -> None:
    """Refuse, before anything is drawn, a file that is not a sheet of answers."""
    from balancemix.auditing.sheet import read_answers
    from balancemix.errors import InputError
    from balancemix.files import check_output

    if out.suffix.lower() != ".csv":
        raise InputError(f"--out {out}: a sample is a table to fill in; name a .csv")
    check_output(out, force=True, inputs=[source.path])
    read_answers(out, request.kind)


def write(out: Path, drawn: Drawn, source: Source) -> int:
    """Write the sheet; returns how many rows are blank."""
    from balancemix.auditing.sheet import write_sheet_of

    given = dict(zip(source.names, source.given, strict=True))
    present = [unit for unit in drawn.units if unit.image in given]
    still = {(unit.image, unit.class_) for unit in drawn.open}
    answered = [unit for unit in present if (unit.image, unit.class_) not in still]
    out.parent.mkdir(parents=True, exist_ok=True)
    return write_sheet_of(out, drawn.sample.unit, present, answered, given, source.classes)


def advice(drawn: Drawn, population: Population, out: Path, blank: int, data: str) -> list[str]:
    """Say what was drawn, and what to do next."""
    from balancemix.auditing.sheet import classes_file

    images = drawn.sample.unit == "image"
    noun = "images" if images else "given labels"
    where = f"the {len(population.names):,} images" + (
        f" of {population.split}" if population.split else ""
    )
    lines = [
        f"{len(drawn.units):,} {noun} drawn at random from {where} (seed {drawn.sample.seed}), "
        f"{len(drawn.answers):,} answered"
    ]
    read_back = f"balancemix review {data} --read {out}"
    if blank and images:
        lines += [
            f"fill in the column true_labels of {out}: every class that is there, joined by |, or "
            "(none); in the column unsure those that you cannot tell",
            f"all classes, to copy from: {classes_file(out)}",
        ]
    elif blank:
        lines.append(f"fill in the column verdict of {out}: present, absent or unsure")
    if blank:
        lines.append(f"then: {read_back}")
    if drawn.planned > len(drawn.units) and drawn.open:
        lines.append(
            f"the other {drawn.planned - len(drawn.units):,} are drawn by what these show: give "
            "this command again after that"
        )
    if not drawn.open:
        lines.append(f"all are answered; `balancemix audit {data}` says what they measure")
    elif not blank:
        lines.append(f"{out} is filled in; next: {read_back}")
    return lines


def measure(arguments: argparse.Namespace, run_: Run | None, judge: Judge) -> Measured | None:
    """Measure by the answers in the store beside the data; None where no sample was drawn."""
    from balancemix.auditing.measured import Measured
    from balancemix.data.decisions import has_store, store_folder
    from balancemix.data.decisions.store import Store

    if arguments.data is None:
        return None
    path = Path(arguments.data if run_ is None else run_.plan.data.path).expanduser()
    if arguments.no_verified or not has_store(path):
        return None
    with Store.open(store_folder(path), write=False) as store:
        if not store.samples():
            return None
        return Measured.of(judge(), store, arguments.split or "train")


def write_passport(out: Path, measured: Measured | None, data: str) -> None:
    """Write the passport, and say where."""
    from balancemix import __version__
    from balancemix.auditing.measured import Measured
    from balancemix.auditing.passport import passport
    from balancemix.errors import printable
    from balancemix.files import write_text

    text = passport(measured or Measured(0, None), data, __version__)
    write_text(out, text)
    print(f"passport: {printable(str(out))}", file=sys.stderr)


def _read(arguments: argparse.Namespace, run_: Run | None) -> Source:
    """Read the labels as they are in the files, without what people decided."""
    from dataclasses import replace

    from balancemix.data import read
    from balancemix.data.formats import builtin
    from balancemix.errors import InputError

    path, options = arguments.data, read_options(arguments, labels_only=True)
    if run_ is not None:
        path, options = run_.plan.data.path, run_.plan.data.reading()
    if builtin.recognise(Path(path)):
        raise InputError(f"--sample: {path} is built in, and nothing can be kept beside it")
    return read(path, replace(options, labels_only=True, verified=False))
