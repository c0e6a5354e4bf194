"""Make the tables of docs/results.md and docs/tables: `make results`, or `results.py NAME …`.

Every table is one that `balancemix bench` writes, of a shipped plan or of one in benchmarks/plans.
Finished runs are kept under bench/, and their scores in benchmarks/ledger.jsonl: none is repeated,
and a killed one goes on. With --tables nothing is trained: the documents are written again from
what has ended. `judge` stands for all plans of the judge, the first seed of each before the others.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from balancemix.bench.finished import Finished
from balancemix.bench.ledger import Ledger
from balancemix.bench.plan import BenchPlan, jobs, read_bench
from balancemix.files import write_text
from balancemix.plan.shipped import bench_plans

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = [
    ROOT / name
    for name in (
        "README.md",
        "docs/results.md",
        "docs/estimates.md",
        "docs/findings.md",
        "docs/review-numbers.md",
        "docs/review-server.md",
    )
]
DOCUMENTS += sorted((ROOT / "docs" / "tables").glob("*.md"))
LEDGER = "benchmarks/ledger.jsonl"
FEATURES = "../shared/data/coco160-features.npz"
FASHION = "bench/deepfashion.npz"
EMBED = ["embed", "../shared/data/deepfashion", "--image-size", "160", "--out", FASHION]


@dataclass(frozen=True)
class Bench:
    """A bench: its plan, and the data and other flags that the plan leaves open."""

    plan: str
    data: str = ""
    flags: tuple[str, ...] = ()

    @property
    def file(self) -> str:
        """The name of a shipped plan, or the file of one of ours."""
        return self.plan if self.plan in bench_plans() else f"benchmarks/plans/{self.plan}.toml"

    def command(self, name: str) -> list[str]:
        """Say how it is called."""
        data = ["--data", self.data] if self.data else []
        out = ["--out", f"bench/{name}", "--ledger", LEDGER]
        return ["bench", self.file, *data, *out, *self.flags]

    def read(self) -> BenchPlan:
        """Read its plan, with its data."""
        return read_bench(self.file, {"data": [self.data]} if self.data else {})


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
    "judge-lite0": Bench("judge-lite0"),
    "judge-resnet50": Bench("judge-resnet50"),
    "judge-real": Bench("judge-real"),
    "judge-deepfashion": Bench("judge-deepfashion"),
    "pixels-judge": Bench("pixels-judge"),
    "unknown": Bench("unknown"),
}
JUDGE = [name for name in BENCHES if name.startswith("judge-")]


def main(words: list[str]) -> None:
    """Run what is missing, one bench after another, and put their tables into the documents."""
    os.chdir(ROOT)
    train = "--tables" not in words
    asked = [word for word in words if word != "--tables"] or list(BENCHES)
    names = [name for word in asked for name in (JUDGE if word == "judge" else [word])]
    unknown = [name for name in names if name not in BENCHES]
    if unknown:
        sys.exit(f"unknown bench {', '.join(unknown)}; use some of: {', '.join(BENCHES)}, judge")
    for name in names if train else ():
        if FASHION in BENCHES[name].read().data and not Path(FASHION).exists():
            balancemix(EMBED)
        if name in JUDGE and not has_grown(name):
            balancemix([*BENCHES[name].command(name), "--seeds", "0"])
    for name in names:
        if not train and not has_ended(name):
            continue
        balancemix(BENCHES[name].command(name) + ([] if train else ["--tables"]))
        put_into_documents(name)


def has_grown(name: str) -> bool:
    """Tell whether a bench has begun with more than its first seed."""
    stored = Path("bench") / name / "bench.json"
    return stored.exists() and read_bench(str(stored)).seeds != [0]


def has_ended(name: str) -> bool:
    """Tell whether any run of a bench has ended, by its directory or by the ledger."""
    if (Path("bench") / name).exists():
        return True
    finished = Finished(Ledger(Path(LEDGER)), name)
    return any(finished.find(job) is not None for job in jobs(BENCHES[name].read()))


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
