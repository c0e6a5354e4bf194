"""The store of decisions, damaged and killed, and tables that people filled in.

A damaged store gives what was stored or is refused. What it reported as saved is there after a
kill.
"""

import contextlib
import os
import shutil
import signal
import tempfile
import time
from pathlib import Path
from typing import Any

from balancemix.data import read
from balancemix.data.decisions.answers import Decision, Settled
from balancemix.data.decisions.filled import read_filled
from balancemix.data.decisions.samples import Unit
from balancemix.data.decisions.snapshots import Band, Suspicion
from balancemix.data.decisions.store import Store
from tests.torture import decided, literal_table, seeds
from tests.torture.draw import Draw
from tests.torture.kept import KeptFile
from tests.torture.outcome import LOST, READ, WRONG, Outcome, RefusedError, UnsureError, attempt
from tests.torture.readers import LABEL_READERS, put
from tests.torture.seeds import Files

IMAGES, CLASSES = list(decided.GIVEN), decided.CLASSES
VERDICTS = ("present", "absent", "unsure")


class StoreFile(KeptFile):
    """A store with answers, a sample and an audit: read, and opened to write."""

    name = "review.sqlite"
    modules = tuple(
        f"balancemix.data.decisions.{name}" for name in ("connection", "logs", "names", "states")
    )

    def make(self, folder: Path) -> Path:
        """Save some of everything."""
        images = {f"photos/{name}": LABEL_READERS[0].fixed[name] for name in IMAGES}
        put(folder, images | {"photos/labels.csv": decided.TABLE.encode()})
        with Store.open(folder / "photos.balancemix", create=True) as store:
            fill(store)
        return folder / "photos.balancemix" / "review.sqlite"

    def answer(self, folder: Path) -> Any:
        """Read what everybody reads, and what the sample needs."""
        for end in ("-wal", "-shm"):
            self.path.with_name(f"{self.path.name}{end}").unlink(missing_ok=True)
        source = read(folder / "photos")
        assert source.verified is not None
        with Store.open(self.path.parent, write=False) as store:
            states, answers = sorted(map(repr, store.states())), repr(store.answers(1, CLASSES))
            rest = repr((store.samples(), store.units(1), store.overview(CLASSES)))
        with Store.open(self.path.parent) as store:
            seq = store.record([Decision("b.png", "cat", "absent", "Ana", client="0")])
        return source.given.tolist(), source.verified.tolist(), states, answers, rest, seq


def fill(store: Store) -> None:
    """Save answers of every kind."""
    for number in range(60):
        image, class_ = IMAGES[number % 3], CLASSES[number % 2]
        verdict = VERDICTS[number % 5 % 3]
        who, client = ("Ana", "Ben")[number % 7 == 0], str(number)
        mode = ("focus", "sweep", "file", "resolve")[number % 11 % 4]
        store.record([Decision(image, class_, verdict, who, mode, client, width=number * 20)])
    store.undo("17", "Ana")
    store.new_sample(0, "image", {"split": "train"}, [Unit(name) for name in IMAGES])
    store.settle([Settled("ä.png", "Ben", ["cat"], CLASSES, sample=1)])
    store.settle([Settled("c.png", "Ana", [], CLASSES, ["dog"], mode="file")])
    store.add_snapshot(
        source="photos", fingerprint="f", judge="ridge", seed=0, expected=(1.5, 2.5),
        bands=[Band("wrong", 1, 4, 0.5)],
        findings=[Suspicion("b.png", "cat", "missing", 0, 1, 0.75)],
    )  # fmt: skip


class StoreKills:
    """A process that saves answers one by one is killed: what it reported is there, once."""

    name, group, chunk = "kills: review.sqlite", "kills", 5

    def prepare(self, folder: Path) -> None:
        """Nothing is shared."""

    def case(self, draw: Draw, number: int, folder: Path) -> Outcome:
        """Kill a process after some answers, up to three times."""
        place = Path(tempfile.mkdtemp(dir=folder))
        try:
            saved = 0
            for _ in range(1 + draw.below(3)):
                saved = max(saved, killed(place, draw.below(40), draw.below(20) / 1000))
                _, outcome = attempt(lambda: names_in(place), ("review.sqlite",))
                if outcome.kind != READ:
                    return Outcome(LOST, f"after a kill: {outcome.kind} {outcome.detail}")
                names = names_in(place)
                if len(set(names)) < len(names):
                    return Outcome(WRONG, "an answer is there twice")
                if not {str(i) for i in range(saved)} <= set(names):
                    return Outcome(LOST, "an answer that was reported as saved is gone")
            return Outcome(READ)
        finally:
            shutil.rmtree(place, ignore_errors=True)


def names_in(place: Path) -> list[str]:
    """List the images that have an answer."""
    if not (place / "review.sqlite").exists():
        return []
    with Store.open(place) as store:
        store.rebuild()
        return [image for image, _, _ in store.verified()]


def killed(place: Path, lines: int, wait: float) -> int:
    """Save answers in a child, kill it, and return how many it reported."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            store = Store.open(place, create=True)
            for i in range(100_000):
                store.record([Decision(str(i), "cat", "present", "Ana", client=str(i))])
                os.write(writing, b".")
        os._exit(1)
    os.close(writing)
    with open(reading, "rb") as pipe:
        said = len(pipe.read(lines))
        time.sleep(wait)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return said + len(pipe.read())


def filled(draw: Draw) -> Files:
    """Draw findings with verdicts, or a sample of images."""
    if draw.chance(0.5):
        header = ["image", "class", "problem", "verdict"]
        lines = [
            [draw.pick(IMAGES), draw.pick(CLASSES), "wrong", draw.pick([*VERDICTS, "", "Present"])]
            for _ in range(draw.below(6))
        ]
    else:
        header = ["image", "given_labels", "true_labels", "unsure"]
        said = [("", ""), ("(none)", ""), ("cat", "dog"), ("cat|dog", ""), ("(none)", "cat")]
        lines = [[draw.pick(IMAGES), "cat", *draw.pick(said)] for _ in range(draw.below(6))]
    text = "".join(",".join(map(seeds.cell, record)) + "\n" for record in [header, *lines])
    return {"filled.csv": text.encode()}


def read_filled_table(folder: Path) -> Any:
    """Read a filled-in table."""
    found = read_filled(folder / "filled.csv", Path("photos"), set(IMAGES), CLASSES)
    labels = [(each.image, each.class_, each.verdict) for each in found.labels]
    images = [(each.image, sorted(each.present), sorted(each.unsure)) for each in found.images]
    return {"labels": labels, "images": images, "blank": found.blank}


def literal_filled(folder: Path) -> Any:
    """Read a filled-in table of commas, cell by cell."""
    if not (folder / "filled.csv").exists():
        raise RefusedError("not found")
    raw = (folder / "filled.csv").read_bytes()
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        raise UnsureError("not UTF-8") from None
    if any(mark in text for mark in "'\r\0;\t\ufeff") or text.startswith("sep="):
        raise UnsureError("an apostrophe, another dialect, or other line ends")
    records = literal_table.parse_csv(text)
    header = [name.strip().casefold() for name in records[0]] if records else []
    if "true_labels" in header and "verdict" in header:
        raise RefusedError("both kinds")
    if {"time", "mode", "width", "reviewer"} & set(header):
        raise UnsureError("facts of answers")
    kind = "true_labels" if "true_labels" in header else "verdict"
    needed = {"image", kind} | ({"class"} if kind == "verdict" else set())
    if any(header.count(name) != 1 for name in needed) or header.count("unsure") > 1:
        raise RefusedError("a column is missing, or there twice")
    labels, images, blank = [], [], 0
    for cells in records[1:]:
        if not "".join(cells).strip():
            continue
        line = dict.fromkeys(header, "") | dict(zip(header, cells, strict=False))
        image, said, unsure = line["image"].strip(), line[kind].strip(), line.get("unsure", "")
        if image not in IMAGES:
            raise RefusedError("not an image")
        if not said and kind == "true_labels" and unsure.strip():
            raise RefusedError("unsure of what is not answered")
        if not said:
            blank += 1
        elif kind == "verdict":
            if said.casefold() not in VERDICTS or line["class"].strip() not in CLASSES:
                raise RefusedError("an unknown verdict or class")
            labels.append((image, line["class"].strip(), said.casefold()))
        else:
            present, doubted = _names(said), _names(unsure)
            if present & doubted:
                raise RefusedError("both present and unsure")
            images.append((image, sorted(present), sorted(doubted)))
    return {"labels": labels, "images": images, "blank": blank}


def _names(cell: str) -> set[str]:
    if cell.strip().casefold() == "(none)":
        return set()
    found = {part.strip() for part in cell.split("|")} - {""}
    if not found <= set(CLASSES):
        raise RefusedError("not a class")
    return found
