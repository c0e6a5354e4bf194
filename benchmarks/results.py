"""Make the tables of docs/results.md and docs/tables: `make results`, or `results.py NAME …`.

Every table is one that `balancemix bench` writes, of a shipped plan or of one in benchmarks/plans.
Finished runs are kept under bench/ and never repeated; a killed one goes on. With --tables nothing
is trained: the documents are written anew from what has ended.
"""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from balancemix.files import write_text
from balancemix.plan.shipped import bench_plans

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = [ROOT / "docs" / "results.md", *sorted((ROOT / "docs" / "tables").glob("*.md"))]
FEATURES = "../shared/data/coco160-features.npz"
FASHION = "bench/deepfashion.npz"
EMBED = ["embed", "../shared/data/deepfashion", "--image-size", "160", "--out", FASHION]


@dataclass(frozen=True)
class Bench:
    """A bench: its plan, and the data and other flags that the plan leaves open."""

    plan: str
    data: str = ""
    flags: tuple[str, ...] = ()

    def command(self, name: str) -> list[str]:
        """Say how it is called."""
        plan = self.plan if self.plan in bench_plans() else f"benchmarks/plans/{self.plan}.toml"
        data = ["--data", self.data] if self.data else []
        return ["bench", plan, *data, "--out", f"bench/{name}", *self.flags]


BENCHES = {
    "coco": Bench("paper-tables", FEATURES),
    "deepfashion": Bench("paper-tables", FASHION, ("--paper", "deepfashion")),
    "ablation": Bench("ablation", FEATURES, ("--seeds", "0")),
    "modes": Bench("modes", FEATURES),
    "by-hand": Bench("by-hand", FEATURES),
    "wide": Bench("wide", FEATURES),
    "dropout": Bench("dropout", FEATURES),
    "digits": Bench("digits"),
    "warm-up": Bench("warm-up", FEATURES),
    "search": Bench("search", FEATURES, ("--seeds", "0")),
    "pixels": Bench("pixels", "../shared/data/coco160", ("--jobs", "3")),
    "pixels-long": Bench("pixels-long", "../shared/data/coco160", ("--jobs", "3")),
}


def main(words: list[str]) -> None:
    """Run what is missing, one bench after another, and put their tables into the documents."""
    train = "--tables" not in words
    names = [word for word in words if word != "--tables"] or list(BENCHES)
    unknown = [name for name in names if name not in BENCHES]
    if unknown:
        sys.exit(f"unknown bench {', '.join(unknown)}; use some of: {', '.join(BENCHES)}")
    for name in names:
        bench = BENCHES[name]
        if not train and not (ROOT / "bench" / name).exists():
            continue
        if train and bench.data == FASHION and not (ROOT / FASHION).exists():
            balancemix(EMBED)
        balancemix(bench.command(name) + ([] if train else ["--tables"]))
        put_into_documents(name)


def balancemix(arguments: list[str]) -> None:
    """Run a command of ours, and end with it should it fail."""
    done = subprocess.run([sys.executable, "-m", "balancemix", *arguments], cwd=ROOT)
    if done.returncode:
        sys.exit(done.returncode)


def put_into_documents(name: str) -> None:
    """Put the tables of a bench where a document has their marks, <!-- NAME/TABLE -->."""
    text = "".join(document.read_text("utf-8") for document in DOCUMENTS)
    for mark in sorted(set(re.findall(rf"<!-- ({re.escape(name)}/[\w-]+) -->", text))):
        table = ROOT / "bench" / name / "tables" / f"{mark.partition('/')[2]}.md"
        if not table.exists():
            sys.exit(f"<!-- {mark} -->: there is no {table}")
        put(mark, table.read_text("utf-8"))


def put(mark: str, text: str) -> None:
    """Replace what stands between a mark and the next <!-- end -->, wherever the mark is."""
    places = 0
    for document in DOCUMENTS:
        before, found, rest = document.read_text("utf-8").partition(f"<!-- {mark} -->\n")
        _, closed, after = rest.partition("<!-- end -->")
        if found and not closed:
            sys.exit(f"{document}: <!-- {mark} --> has no <!-- end -->")
        if found:
            write_text(document, f"{before}{found}{text}{closed}{after}")
            places += 1
    if not places:
        sys.exit(f"no document has the mark <!-- {mark} -->")


if __name__ == "__main__":
    main(sys.argv[1:])
