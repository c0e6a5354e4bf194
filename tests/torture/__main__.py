"""`python -m tests.torture`: try all that is in the table, or one case again."""

import argparse
import os
import shlex
import sys
import time
from pathlib import Path

from tests.torture import figures, names, runner
from tests.torture.branches import Branches
from tests.torture.draw import Draw
from tests.torture.outcome import FAILURES
from tests.torture.table import COUNTS, PARTS

EXAMPLES = """\
examples:
  python -m tests.torture                                   everything, with the default counts
  python -m tests.torture --only labels.csv --count 2000    one part
  python -m tests.torture --only labels.csv --case 241      one case again, with its traceback
  python -m tests.torture --planted                         find ten planted bugs"""


def arguments_of(words: list[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.torture",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--only", action="append", metavar="PART", choices=[*PARTS, *COUNTS])
    parser.add_argument("--count", type=int, help="cases of each part")
    for group, count in COUNTS.items():
        flag = group.replace(" ", "-")
        parser.add_argument(f"--{flag}", type=int, default=count, help=f"cases each ({count:,})")
    parser.add_argument("--case", type=int, metavar="N", help="try one case of the one part again")
    parser.add_argument("--state", type=Path, help="file to keep results in, to go on from")
    parser.add_argument("--kept", action="store_true", help="try no more: show what --state holds")
    parser.add_argument("--branches", type=int, default=0, help="cases to trace, of each reader")
    parser.add_argument("--write", type=Path, help="document to write the figures into")
    parser.add_argument("--planted", action="store_true", help="find the planted bugs instead")
    return parser.parse_args(words)


def main(words: list[str]) -> int:
    """Try, print a table and what failed; 1 if anything did."""
    arguments = arguments_of(words)
    if arguments.planted:
        from tests.torture.planted import find_all

        return find_all(sys.stdout.write)
    chosen = [
        part
        for name, part in PARTS.items()
        if not arguments.only or name in arguments.only or part.group in arguments.only
    ]
    if arguments.case is not None:
        return again(chosen[0].name, arguments.seed, arguments.case)
    counts = {
        part.name: getattr(arguments, part.group.replace(" ", "_"))
        if arguments.count is None
        else arguments.count
        for part in chosen
    }
    begin = time.time()
    names.scratch()  # before there are several processes
    notebook = runner.Notebook(arguments.state)
    left = [each for each in runner.chunks(counts, arguments.seed) if notebook.lacks(each)]
    left = [] if arguments.kept else left
    show = runner.Progress(len(left))
    for result in runner.run(left, arguments.processes):
        notebook.add(result)
        show.advance(result)
    wanted = {(each.part, each.start) for each in runner.chunks(counts, arguments.seed)}
    results = [
        r for r in notebook.results if r.seed == arguments.seed and (r.part, r.start) in wanted
    ]
    groups = {part.name: getattr(part, "modules", ()) for part in chosen if arguments.branches}
    traced = {modules: trace(modules, arguments) for modules in set(groups.values())}
    shares = {name: traced[modules] for name, modules in groups.items()}
    text = figures.table(results, shares)
    failed = figures.failures(results)
    sys.stdout.write("\n".join([text, "", *failed, ""]))
    if arguments.write:
        command = shlex.join(["python", "-m", "tests.torture", *words])
        spent = sum(result.seconds for result in results)
        head = f"`{command}`, seed {arguments.seed}, {time.strftime('%Y-%m-%d')}, "
        head += f"{spent / 60:.0f} minutes of one core."
        figures.write(arguments.write, f"{head}\n\n{text}")
    sys.stderr.write(f"{time.time() - begin:.0f} seconds\n")
    names.clear()
    return 1 if any(r.outcomes.get(kind) for r in results for kind in FAILURES) else 0


def again(name: str, seed: int, number: int) -> int:
    """Try one case, and leave its files to be looked at."""
    folder = runner.prepared(name)
    os.environ["TORTURE_KEEP"] = "1"  # its files, and its traceback
    outcome = PARTS[name].case(Draw(name, seed, number), number, folder)
    sys.stdout.write(f"{outcome.kind}: {outcome.detail}\nfiles: {folder}\n")
    return 1 if outcome.kind in FAILURES else 0


def trace(modules: tuple[str, ...], arguments: argparse.Namespace) -> tuple[int, int]:
    """Count the branches that the first cases take, of all readers of these modules."""
    if not modules:
        return 0, 0
    branches = Branches(modules)
    alike = [each for each in PARTS.values() if getattr(each, "modules", ()) == modules]
    for each in alike:
        folder = runner.prepared(each.name)
        for number in range(arguments.branches):
            with branches.watching():  # anew: Python stops tracing where values nest too deeply
                each.case(Draw(each.name, arguments.seed, number), number, folder)
    return len(branches.taken), len(branches.all())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
