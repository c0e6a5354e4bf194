"""`balancemix report`: a page about a run, or about a benchmark of many."""

import argparse
from pathlib import Path

from balancemix.commands.arguments import add_force

DESCRIPTION = """\
write a page about a run or a benchmark: plan, curves, classes, mixtures, findings

The page is one HTML file that needs no network. --figures also stores each of its figures as SVG
and PNG.

examples:
  balancemix report runs/photos --open
  balancemix report bench/ --out page.html --figures figures/"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "directory",
        type=Path,
        metavar="RUN|BENCH",
        help="a directory that `train` or `bench` wrote",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="page to write (default: report.html in that directory)",
    )
    parser.add_argument(
        "--images",
        type=Path,
        metavar="FOLDER",
        help="of the pictures of rows (default: that of the data, or the one its .npz names)",
    )
    parser.add_argument("--figures", type=Path, metavar="FOLDER", help="also write SVGs and PNGs")
    add_force(parser)
    parser.add_argument("--open", action="store_true", help="open it in a browser")


def run(arguments: argparse.Namespace) -> None:
    """Read the run or bench, and write its page."""
    from balancemix.errors import InputError, printable
    from balancemix.files import write_text
    from balancemix.run import Run

    folder = arguments.directory
    run_ = Run(folder)  # or a bench; both know what was written there for people
    out = arguments.out or run_.path_of("report")
    if not folder.is_dir():
        raise InputError(f"{folder}: is not a directory; name one that `train` or `bench` wrote")
    if out.is_dir():
        raise InputError(f"--out {out}: is a directory; name the page to write, e.g. report.html")
    run_.check_output(out, force=arguments.force)
    if (folder / "bench.json").is_file():
        if arguments.images is not None:
            raise InputError(
                f"--images: {folder} is a benchmark, the page of which has no pictures"
            )
        from balancemix.report import bench_page

        page = bench_page.make_page(folder)
    else:
        from balancemix.report import run_page
        from balancemix.report.summary import Summary

        page = run_page.make_page(Summary(Run.open(folder)), arguments.images)
    write_text(out, page.render())
    run_.outputs.remember(out)
    if arguments.figures is not None:
        page.save_figures(arguments.figures, force=arguments.force)
    print(printable(str(out)))
    if arguments.open:
        import webbrowser

        webbrowser.open(out.resolve().as_uri())
