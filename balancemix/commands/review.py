"""`balancemix review`: what people decide about labels, on a page or by tables they fill in."""

from __future__ import annotations

import argparse
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from balancemix.commands import review_page
from balancemix.commands.arguments import add_force, add_json, add_reading, read_options
from balancemix.commands.target import is_run
from balancemix.errors import counted

if TYPE_CHECKING:
    from balancemix.data import Source
    from balancemix.data.decisions.overview import Overview
    from balancemix.data.decisions.reading import Taken
    from balancemix.options import ReadOptions

DESCRIPTION = """\
decide about labels on a page in your browser, or take back tables that were filled in

Opens a local page that asks about what the audit suspects, one picture or one class at a time.
Where the data was not audited yet, that is done first. Nothing in your files is changed.

Answers are kept in DATA.balancemix/review.sqlite, beside the data; `train`, `audit` and `export`
trust them. --read takes a table that somebody filled in, each answer once:
  findings of `audit`, with the column verdict: present, absent, unsure, or blank
  a sample of `audit --sample`, with the column true_labels: all classes that are there, joined by
  |, or (none), or blank; and, if need be, unsure
  what Label Studio or FiftyOne exports as JSON, of findings that `audit --for` wrote
  corrected labels, as cleanlab has them: .npy or .npz, N×K, or .json, lists of the classes of rows;
  what differs from DATA is an answer of --name
A table that is read again adds nothing; a row that was changed counts as a new answer.

--status shows what is in the store, by whom, and what can be done next.

examples:
  balancemix review photos/
  balancemix review photos/ --status
  balancemix review photos/ --read findings.csv --name Ana
  balancemix review photos/ --csv answers.csv"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("data", metavar="DATA|RUN", help="data as `train` takes it, or a run")
    parser.add_argument(
        "--read",
        type=Path,
        metavar="FILE",
        help="a table that was filled in, or what a tool exports",
    )
    parser.add_argument("--name", help="who gave its answers (default: your login name)")
    parser.add_argument(
        "--csv", dest="out", type=Path, metavar="FILE", help="write all answers to a CSV"
    )
    parser.add_argument("--status", action="store_true", help="show what is decided, and by whom")
    add_force(parser, "--csv")
    add_json(parser, "what was done or found, and open no page,")
    review_page.add_arguments(parser)
    add_reading(parser)


def stopped(arguments: argparse.Namespace) -> str:
    """Say what an interruption leaves."""
    return "every answer is saved"


def run(arguments: argparse.Namespace) -> None:
    """Open the page; or read a table, write one, show what there is."""
    from balancemix.commands.show import console
    from balancemix.data import BUILT_IN, read
    from balancemix.data.decisions import has_store, store_folder
    from balancemix.data.decisions.store import Store
    from balancemix.errors import InputError
    from balancemix.files import check_output, to_json

    data, options = data_of(arguments)
    if data in BUILT_IN:
        raise InputError(f"{data}: is built in, nothing is kept beside it; name files of your own")
    if arguments.name is not None and arguments.read is None:
        raise InputError("--name says who filled in a table; name the table with --read")
    by_file = arguments.read is not None or arguments.out is not None
    if not (by_file or arguments.status or arguments.json):
        return review_page.run(arguments, data, options)
    source = read(data, options)
    folder = store_folder(source.path)
    if arguments.out is not None:
        inputs = [source.path, folder, *([arguments.read] if arguments.read else [])]
        check_output(arguments.out, inputs=inputs, force=arguments.force)
    facts: dict[str, Any] = {"data": data, "store": str(folder / "review.sqlite")}
    lines: list[str] = []
    if arguments.read is None and not has_store(source.path):
        if arguments.out is not None:
            raise InputError(
                f"{folder}: nobody has decided anything yet; there is nothing to write"
            )
        lines += [f"Nobody has decided anything about {data} yet.", *first_steps(data)]
    else:
        if arguments.read is not None:
            taken = take(arguments, source, folder)
            facts["read"] = asdict(taken)
            lines.append(taken_line(arguments.read, taken))
        with Store.open(folder, write=False) as store:
            if arguments.out is not None:
                facts["written"] = store.write_answers(arguments.out, source)
                lines.append(f"{arguments.out}: {counted(facts['written'], 'answer')}")
            found = store.overview(source.classes)
        facts |= facts_of(found)
        if found.people or found.samples:
            lines += [*overview_lines(found, folder), *next_steps(found, data)]
        else:  # it was only audited
            lines += [f"Nobody has decided anything about {data} yet.", *first_steps(data)]
    if arguments.json:
        print(to_json(facts, indent=2))
        return None
    out = console()
    for line in lines:
        out.print(line, soft_wrap=True, markup=False, highlight=False)
    return None


def data_of(arguments: argparse.Namespace) -> tuple[str, ReadOptions]:
    """Find the data, of a run too, and how it is read: as it is in its files, without decisions."""
    from balancemix.run import Run

    path = Path(arguments.data).expanduser()
    if is_run(path):
        plan = Run.open(path).plan.data
        data, options = plan.path, read_options(arguments, plan.reading())
    else:
        data, options = str(arguments.data), read_options(arguments)
    return data, replace(options, labels_only=True, verified=False)


def take(arguments: argparse.Namespace, source: Source, folder: Path) -> Taken:
    """Save the answers of a table; nothing, if a row of it is wrong."""
    from balancemix.data.decisions.names import person
    from balancemix.data.decisions.store import Store
    from balancemix.exchange.reading import read_answers
    from balancemix.progress import progress

    name = person(login() if arguments.name is None else arguments.name)
    filled = read_answers(arguments.read, source, progress, named=arguments.name is not None)
    with Store.open(folder, create=True) as store:
        return store.take(filled, arguments.read, source.classes, name, progress)


def login() -> str:
    """Look up the name of the person at the terminal."""
    import getpass

    from balancemix.errors import InputError

    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a system without accounts
        raise InputError("who filled in the table is not known; pass --name NAME") from None


def taken_line(file: Path, taken: Taken) -> str:
    """Say what came of reading a table."""
    parts = [counted(taken.new, "new answer")]
    parts += [f"{taken.known:,} known already"] * bool(taken.known)
    parts += [f"{taken.older:,} older than what the store has, left out"] * bool(taken.older)
    parts += [f"{counted(taken.blank, 'row')} without an answer"] * bool(taken.blank)
    return f"{file}: {', '.join(parts)}"


def facts_of(found: Overview) -> dict[str, Any]:
    """List what is in a store, for other programs."""
    return {
        "states": found.states,
        "verified": found.verified,
        "people": [asdict(person) for person in found.people],
        "samples": [
            {"id": sample.id, "unit": sample.unit, "drawn": drawn, "answered": answered}
            for sample, drawn, answered in found.samples
        ],
    }


def overview_lines(found: Overview, folder: Path) -> list[str]:
    """Say what is in a store."""
    lines = [f"{counted(found.verified, 'label')} verified by a person ({folder.name})"]
    others = [
        f"{found.states[state]:,} {state}"
        for state in ("unsure", "disputed")
        if found.states.get(state)
    ]
    if others:
        lines.append(f"{' and '.join(others)}: these labels stay as given")
    for person in found.people:
        what = [counted(person.labels, "label")] * bool(person.labels)
        what += [counted(person.images, "whole image")] * bool(person.images)
        lines.append(f"  {person.name}: {', '.join(what)}, last {person.last[:16]}")
    for sample, drawn, answered in found.samples:
        left = "complete" if answered == drawn else f"{drawn - answered:,} left"
        drawn_ = counted(drawn, sample.unit)
        lines.append(f"sample {sample.id}: {answered:,} of {drawn_} answered, {left}")
    return lines


def first_steps(data: str) -> list[str]:
    """Say how to begin."""
    return [
        f"balancemix review {data}   # asks you on a page in your browser; or in a spreadsheet:",
        f"balancemix audit {data} --out findings.csv   # then fill in the column verdict",
        f"balancemix review {data} --read findings.csv",
    ]


def next_steps(found: Overview, data: str) -> list[str]:
    """Say what to do with what is decided."""
    steps = [f"balancemix audit {data}"] if any(d == a for _, d, a in found.samples) else []
    if found.verified:
        steps += [f"balancemix train {data}", f"balancemix export {data}"]
    return [f"next: {' · '.join(steps)}"] if steps else []
