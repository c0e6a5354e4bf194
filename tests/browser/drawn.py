"""Draw data to review: pictures with a shape and a word for each class, of which some labels err.

`Drawn.add_snapshot` saves what an audit would say, without the time that an audit takes.
"""

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from balancemix.auditing.snapshot import Judge, fingerprint_of
from balancemix.data import read
from balancemix.data.decisions import store_folder
from balancemix.data.decisions.snapshots import Suspicion
from balancemix.data.decisions.store import Store

Pen = ImageDraw.ImageDraw
Place = tuple[float, float, float]  # middle and radius

CLASSES = ["circle", "square", "triangle", "star", "cross", "ring"]
COLOURS = ["#d1495b", "#00798c", "#edae49", "#30638e", "#5b8e3e", "#7a4b9d"]
SIZE = (480, 360)
# Pillow's own font has one size before 10.1.
FONT = str(files("matplotlib") / "mpl-data/fonts/ttf/DejaVuSans.ttf")


def polygon(place: Place, corners: int, inner: float = 1.0) -> list[tuple[float, float]]:
    """Compute the corners of a polygon that stands upright, or of a star."""
    x, y, r = place
    steps = corners * (1 if inner == 1.0 else 2)
    angles = np.arange(steps) * 2 * np.pi / steps - np.pi / 2
    radii = np.where(np.arange(steps) % 2 == 0, r, r * inner)
    return [
        (x + s * float(np.cos(a)), y + s * float(np.sin(a)))
        for a, s in zip(angles, radii, strict=True)
    ]


def box(place: Place, share: float = 1.0) -> tuple[float, float, float, float]:
    x, y, r = place
    return x - share * r, y - share * r, x + share * r, y + share * r


def cross(pen: Pen, place: Place, colour: str) -> None:
    x, y, r = place
    pen.rectangle((x - r, y - r / 4, x + r, y + r / 4), fill=colour)
    pen.rectangle((x - r / 4, y - r, x + r / 4, y + r), fill=colour)


SHAPES: dict[str, Callable[[Pen, Place, str], None]] = {
    "circle": lambda pen, place, colour: pen.ellipse(box(place), fill=colour),
    "square": lambda pen, place, colour: pen.rectangle(box(place, 0.85), fill=colour),
    "triangle": lambda pen, place, colour: pen.polygon(polygon(place, 3), fill=colour),
    "star": lambda pen, place, colour: pen.polygon(polygon(place, 5, 0.42), fill=colour),
    "cross": cross,
    "ring": lambda pen, place, colour: pen.ellipse(
        box(place), outline=colour, width=int(place[2] / 4)
    ),
}


def draw(
    there: Sequence[str], generator: np.random.Generator, size: tuple[int, int] = SIZE
) -> Image.Image:
    """Draw the shapes that are there, each in a place of its own with its word below."""
    width, height = size
    ground = tuple(int(v) for v in generator.integers(225, 250, 3))
    picture = Image.new("RGB", size, ground)
    pen = ImageDraw.Draw(picture)
    cells = generator.permutation(6)
    font = ImageFont.truetype(FONT, width // 24)
    for name, cell in zip(there, cells, strict=False):
        shape = CLASSES.index(name) if name in CLASSES else sum(name.encode()) % len(CLASSES)
        place = (
            width * (cell % 3 + 0.5) / 3 + float(generator.uniform(-0.03, 0.03)) * width,
            height * (cell // 3 + 0.44) / 2,
            min(width, height) * float(generator.uniform(0.12, 0.16)),
        )
        SHAPES[CLASSES[shape]](pen, place, COLOURS[shape])
        below = (place[0], place[1] + place[2] + 6)
        pen.text(below, name[:14], fill="#222222", font=font, anchor="ma")
    return picture


@dataclass
class Drawn:
    """A folder of pictures, what is in them, what their labels say, what an audit says of those."""

    path: Path
    classes: list[str]
    truth: dict[str, list[str]]
    given: dict[str, list[str]]
    findings: list[Suspicion] = field(default_factory=list)

    @property
    def store(self) -> Path:
        """Name the folder of the store."""
        return store_folder(self.path)

    def number(self, class_: str) -> int:
        """Number a class as the page does."""
        return sorted(self.classes).index(class_)

    def is_there(self, image: str, class_: str) -> bool:
        """Say what a person would who looks at the picture."""
        return class_ in self.truth[image]

    def labels(self, file: Path | None = None) -> dict[str, set[str]]:
        """Read the labels of labels.csv, or of another file of that shape."""
        with (file or self.path / "labels.csv").open(newline="", encoding="utf-8") as lines:
            rows = list(csv.DictReader(lines))
        return {row["image"]: set(row["labels"].split("|")) - {""} for row in rows}

    def write(self, seed: int = 0, size: tuple[int, int] = SIZE) -> None:
        """Draw the pictures and write labels.csv; a quarter of the rows tests."""
        (self.path / "images").mkdir(parents=True)
        generator = np.random.default_rng(seed)
        rows = []
        for i, (name, there) in enumerate(self.truth.items()):
            draw(there, generator, size).save(self.path / "images" / name, quality=80)
            labels = "|".join(self.given[name])
            rows.append({"image": name, "labels": labels, "split": ("train", "test")[i % 4 == 3]})
        with (self.path / "labels.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, ["image", "labels", "split"])
            writer.writeheader()
            writer.writerows(rows)

    def add_snapshot(self, not_judged: Sequence[str] = (), measured: Sequence[str] = ()) -> None:
        """Save the findings as an audit does.

        Of the classes `not_judged` it had too few labels, of the problems `measured` a sample.
        """
        wrong = sum(f.probability for f in self.findings if f.problem == "wrong")
        missing = sum(f.probability for f in self.findings if f.problem == "missing")
        with Store.open(self.store, create=True) as store:
            store.add_snapshot(
                source=str(self.path), fingerprint=fingerprint_of(read(str(self.path))),
                judge=Judge(tuple(measured), tuple(not_judged)).write(), seed=0,
                expected=(wrong, missing), findings=self.findings, names=list(self.truth),
            )  # fmt: skip


def draw_set(
    path: Path,
    pictures: int = 48,
    classes: Sequence[str] = CLASSES,
    size: tuple[int, int] = SIZE,
) -> Drawn:
    """Draw data of which labels err as a review needs it.

    The first picture has four findings. Of the fourth class ("star") a page of a sweep is missing,
    of the last one ("ring") many are doubted, some of them right.
    """
    generator = np.random.default_rng(pictures)
    classes = list(classes)
    there = generator.random((pictures, len(classes))) < 0.4
    there[:, 3] = generator.random(pictures) < 0.85
    given = there.copy()
    given[:, 3] &= generator.random(pictures) < 0.12
    given[:, -1] |= generator.random(pictures) < 0.4
    there[0] = [True, False, True, True, False, False][: len(classes)]
    given[0] = [False, True, True, False, False, True][: len(classes)]
    given[1:, :3] ^= generator.random((pictures - 1, 3)) < 0.06
    doubted = there != given
    doubted[1:, 3] |= generator.random(pictures - 1) < 0.3  # false alarms
    doubted[1:, -1] |= given[1:, -1] & (generator.random(pictures - 1) < 0.5)
    names = [f"{i:04}.jpg" for i in range(pictures)]
    drawn = Drawn(
        path,
        classes,
        {
            name: [classes[k] for k in np.flatnonzero(row)]
            for name, row in zip(names, there, strict=True)
        },
        {
            name: [classes[k] for k in np.flatnonzero(row)]
            for name, row in zip(names, given, strict=True)
        },
    )
    for i, k in np.argwhere(doubted):
        right = there[i, k] != given[i, k]
        p = float(generator.uniform(0.7, 0.99) if right else generator.uniform(0.5, 0.75))
        p = 0.999 - k / 1000 if i == 0 else round(p, 4)  # the first picture comes first
        side = int(given[i, k])
        problem = "wrong" if side else "missing"
        drawn.findings.append(Suspicion(names[i], classes[k], problem, side, 1 - side, p))
    drawn.write(size=size)
    return drawn
