"""A newcomer's walk: 200 photographs and an Excel file to a corrected one, and training on it.

    python benchmarks/walk.py [--folder walk] [--no-pretrained] [--write docs/walk.md]

Draws the photographs and the workbook in an empty directory, runs the commands of docs/walk.md
there one after another and times each. The person who looks at photographs is played by the truth,
which the commands do not see. --no-pretrained is for a machine without the backbone's weights.
--write puts the table into the document.
"""

import argparse
import csv
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import openpyxl
from openpyxl.styles import Font
from PIL import Image, ImageDraw, ImageFilter

COUNT = 200
LOOKED = 20  # findings of each kind that the person looks at
SAMPLE = 50
CLASSES = {
    "ball": (200, 60, 50),
    "box": (60, 90, 190),
    "roof": (60, 150, 80),
    "sun": (240, 200, 70),
}
MISSED, WRONG = (
    0.15,
    0.04,
)  # shares of the present labels that are missing, of the absent ones given
BEGIN, END = "<!-- walk -->", "<!-- end of walk -->"

Labels = dict[str, set[str]]


def draw_photograph(present: set[str], rng: np.random.Generator) -> Image.Image:
    """Draw things in front of a blurred background, as large and bright as chance has it."""
    ground = rng.integers(115, 140, (6, 8, 3), dtype=np.uint8)
    picture = Image.fromarray(ground).resize((320, 240), Image.Resampling.BICUBIC)
    pen = ImageDraw.Draw(picture)
    for name in sorted(present, key=lambda each: rng.random()):
        side = int(rng.integers(80, 120))
        x, y = int(rng.integers(0, 320 - side)), int(rng.integers(0, 240 - side))
        shade = rng.uniform(0.85, 1.1)
        colour = tuple(int(min(255, shade * value)) for value in CLASSES[name])
        place = (x, y, x + side, y + side)
        if name == "box":
            pen.rectangle(place, fill=colour)
        elif name == "roof":
            pen.polygon([(x, y + side), (x + side, y + side), (x + side // 2, y)], fill=colour)
        elif name == "sun":
            pen.regular_polygon((x + side // 2, y + side // 2, side // 2), 9, fill=colour)
        else:
            pen.ellipse(place, fill=colour)
    return picture.filter(ImageFilter.GaussianBlur(1))


def make(folder: Path) -> tuple[Labels, Labels]:
    """Write photos/ and labels.xlsx; returns what is true and what the workbook says."""
    rng = np.random.default_rng(0)
    (folder / "photos").mkdir(parents=True)
    truth: Labels = {}
    given: Labels = {}
    for i in range(COUNT):
        name = f"IMG_{1000 + i}.jpg"
        truth[name] = {each for each in CLASSES if rng.random() < 0.35}
        draw_photograph(truth[name], rng).save(folder / "photos" / name, quality=90)
        kept = {each for each in sorted(truth[name]) if rng.random() >= MISSED}
        given[name] = kept | {e for e in CLASSES if e not in truth[name] and rng.random() < WRONG}
    book = openpyxl.Workbook()
    book.active.title = "photos"
    book.active.append(["File", "Tags", "Taken by", "Date"])
    for i, (name, labels) in enumerate(given.items()):
        who = ["Ana", "Ben", "Chloé"][i % 3]
        book.active.append([name, ", ".join(sorted(labels)), who, f"2026-05-{1 + i % 28:02}"])
    for cell in book.active[1]:
        cell.font = Font(bold=True)
    book.create_sheet("read me")["A1"] = "Tags are separated by commas."
    book.save(folder / "labels.xlsx")
    return truth, given


@dataclass
class Walk:
    """The steps, timed, in a folder."""

    folder: Path
    steps: list[tuple[str, float]] = field(default_factory=list)

    def run(self, *words: str, hidden: tuple[str, ...] = ()) -> None:
        """Run a command; `hidden` words are not part of the walk."""
        start = time.monotonic()
        call = [sys.executable, "-m", "balancemix", *words, *hidden]
        done = subprocess.run(call, cwd=self.folder, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{' '.join(words)}\n{done.stdout}\n{done.stderr}")
        self.steps.append((f"`balancemix {' '.join(words)}`", time.monotonic() - start))
        print(f"$ balancemix {' '.join(words)}\n{done.stdout}{done.stderr}", flush=True)

    def person(self, what: str) -> None:
        """Note what a person does, whose time is not measured."""
        self.steps.append((what, float("nan")))


def fill(file: Path, answer: Callable[[dict[str, str]], dict[str, str]]) -> int:
    """Fill in the rows of a CSV to which there is an answer; returns how many."""
    with file.open(encoding="utf-8-sig", newline="") as stream:
        reader = csv.DictReader(stream)
        rows, header = list(reader), list(reader.fieldnames or ())
    answers = [answer(row) for row in rows]
    with file.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, header)
        writer.writeheader()
        writer.writerows(row | filled for row, filled in zip(rows, answers, strict=True))
    return sum(map(bool, answers))


def labels_in(file: Path) -> Labels:
    """Read the labels of the workbook."""
    header, *rows = openpyxl.load_workbook(file)["photos"].iter_rows(values_only=True)
    assert list(header) == ["File", "Tags", "Taken by", "Date"]
    return {str(row[0]): {tag for tag in str(row[1] or "").split(", ") if tag} for row in rows}


def errors(labels: Labels, truth: Labels) -> int:
    """Count the labels that are not true."""
    return sum(len(labels[name] ^ truth[name]) for name in truth)


def walk(folder: Path, hidden: tuple[str, ...]) -> list[str]:
    """Go all the way; returns the lines of the table."""
    truth, given = make(folder)
    steps, data = Walk(folder), ("labels.xlsx", "--images", "photos")
    steps.run("stats", "labels.xlsx")
    steps.run("audit", *data, "--out", "findings.csv", hidden=hidden)

    def verdict(row: dict[str, str]) -> dict[str, str]:
        if int(row["rank"]) > LOOKED:
            return {}
        return {"verdict": "present" if row["class"] in truth[row["image"]] else "absent"}

    def settled(row: dict[str, str]) -> dict[str, str]:
        return {"true_labels": "|".join(sorted(truth[row["image"]])) or "(none)"}

    looked = fill(folder / "findings.csv", verdict)
    steps.person(
        f"look at the first {LOOKED} of each kind ({looked} labels), and fill in `verdict`"
    )
    steps.run("review", "labels.xlsx", "--read", "findings.csv", "--name", "Ana")
    steps.run("audit", "labels.xlsx", "--sample", str(SAMPLE), "--out", "sample.csv")
    drawn = fill(folder / "sample.csv", settled)
    steps.person(f"look at {drawn} photographs drawn at random, and fill in `true_labels`")
    steps.run("review", "labels.xlsx", "--read", "sample.csv", "--name", "Ana")
    steps.run("audit", *data, "--out", "findings2.csv", "--passport", "card.md", hidden=hidden)
    steps.run("export", "labels.xlsx", "--out", "labels.corrected.xlsx")
    corrected = labels_in(folder / "labels.corrected.xlsx")
    train = ("labels.corrected.xlsx", "--images", "photos", "--image-size", "128")
    no_weights = tuple(word for word in hidden if word == "--no-pretrained")
    steps.run("train", *train, "--epochs", "10", "--out", "run", hidden=no_weights)
    steps.run("report", "run")
    changed = sum(given[name] != corrected[name] for name in given)
    before, after = errors(given, truth), errors(corrected, truth)
    total = sum(seconds for _, seconds in steps.steps if seconds == seconds)
    lines = ["| step | time |", "|---|--:|"]
    lines += [f"| {what} | {shown(seconds)} |" for what, seconds in steps.steps]
    lines += [f"| **all commands** | **{shown(total)}** |", ""]
    lines += [
        f"Of the {COUNT * len(CLASSES)} labels, {before} were wrong before and {after} after; "
        f"{changed} of {COUNT} rows of the workbook changed."
    ]
    return lines


def shown(seconds: float) -> str:
    """Write a duration; that of a person is not measured."""
    if seconds != seconds:
        return "a person's"
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.1f} min"


def main() -> None:
    """Walk, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="an empty one to keep (default: a temporary)")
    parser.add_argument("--no-pretrained", action="store_true", help="random weights")
    parser.add_argument("--write", type=Path, help="document to write the table into")
    arguments = parser.parse_args()
    hidden = ("--no-pretrained",) if arguments.no_pretrained else ()
    with tempfile.TemporaryDirectory() as place:
        lines = walk(arguments.folder or Path(place) / "walk", hidden)
    if arguments.no_pretrained:
        lines[-1] += " The backbone had random weights (`--no-pretrained`)."
    print("\n".join(lines))
    if arguments.write:
        text = arguments.write.read_text(encoding="utf-8")
        before, rest = text.split(BEGIN)
        table = "\n".join([BEGIN, *lines, END])
        arguments.write.write_text(before + table + rest.split(END)[1], encoding="utf-8")


if __name__ == "__main__":
    main()
