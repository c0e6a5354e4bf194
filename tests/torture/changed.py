"""Data that changes under a run: rows in another order, labels edited, images replaced."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from balancemix import data
from tests.torture.damage import Damaged
from tests.torture.draw import Draw
from tests.torture.outcome import READ, WRONG, Outcome
from tests.torture.run_files import TRAIN
from tests.torture.same import arrays_of

ASKED = {"unfinished": ("resume",), "finished": ("export", "audit", "resume")}
IMAGES, CLASSES = 12, ["cat", "cup", "dog"]
Table = list[list[str]]  # of labels.csv


def change_arrays(change: str, arrays: dict[str, Any], draw: Draw) -> dict[str, Any]:
    """Change the arrays of an .npz."""
    count = len(arrays["labels"])
    order = {
        "shuffled": draw.rng.permutation(count),
        "sorted": np.argsort(arrays["images"])[::-1],
        "a row dropped": np.delete(np.arange(count), draw.below(30)),
    }
    if change in order:
        rows = order[change]
        return {key: value if key == "classes" else value[rows] for key, value in arrays.items()}
    arrays = {key: value.copy() for key, value in arrays.items()}
    k = draw.below(3)
    if change == "classes reordered":
        columns = np.roll(np.arange(3), 1 + draw.below(2))
        arrays |= {"classes": arrays["classes"][columns], "labels": arrays["labels"][:, columns]}
    elif change == "a label edited":
        arrays["labels"][draw.below(30), k] ^= 1
    elif change == "a class renamed":
        arrays["classes"][k] = "new"
    elif change == "two classes swapped":
        arrays["classes"][[k, k - 1]] = arrays["classes"][[k - 1, k]]
    else:
        arrays["features"][draw.below(30)] += 1
    return arrays


def change_images(change: str, place: Path, draw: Draw) -> None:
    """Change labels.csv, classes.txt or an image of a folder."""
    file, listed = place / "photos" / "labels.csv", place / "photos" / "classes.txt"
    header, *rows = csv.reader(file.read_text(encoding="utf-8").splitlines())
    i, k = draw.below(len(rows) - 2), draw.below(3)
    swapped = {CLASSES[k]: CLASSES[k - 1], CLASSES[k - 1]: CLASSES[k]}
    if change == "shuffled":
        rows = draw.shuffled(rows)
    elif change == "sorted":
        rows.sort(reverse=True)
    elif change == "a row dropped":
        del rows[i]
    elif change == "classes reordered":
        listed.write_text("\n".join(CLASSES[::-1]), encoding="utf-8")
    elif change == "a label edited":
        rows[i][1] = CLASSES[k] if rows[i][1] != CLASSES[k] else CLASSES[k - 1]
    elif change == "a class renamed":
        rows = [[name, cell.replace(CLASSES[k], "new"), split] for name, cell, split in rows]
        listed.write_text("\n".join(CLASSES).replace(CLASSES[k], "new"), encoding="utf-8")
    elif change == "two classes swapped":
        rows = [
            [name, "|".join(swapped.get(label, label) for label in cell.split("|")), split]
            for name, cell, split in rows
        ]
    else:
        (place / "photos" / rows[i][0]).write_bytes(picture(99))
    write_table(file, [header, *rows])


CHANGES = (
    "shuffled", "sorted", "a row dropped", "classes reordered", "a label edited",
    "a class renamed", "two classes swapped", "an input replaced",
)  # fmt: skip


class ChangedData(Damaged):
    """The data of a run, changed after the run started."""

    change: Callable[[str, Path, Draw], None]

    def case(self, draw: Draw, number: int, folder: Path) -> Outcome:
        """Change the data, then resume or export."""
        state = draw.pick(sorted(self.folders))
        command = draw.pick(ASKED[state])
        change = draw.pick(CHANGES)
        now: dict[str, set[str]] = {}

        def hurt(place: Path) -> None:
            self.change(change, place, draw)
            now.update(self.labels(place))

        asked = self.ask(state, command, folder, hurt)
        outcome, answer, told = asked
        if command != "export" or outcome.kind != READ:
            return self.verdict(state, command, folder, change, asked)
        _, expected, usual = self.before(state, command, folder)
        kept = allowed(by_image(answer), by_image(expected), now)
        said = [line for line in told if line not in usual]
        if kept or any(word in line for line in said for word in self.words(change)):
            return outcome
        return Outcome(WRONG, f"{change}: export without a word")

    def content(self, command: str, place: Path, out: str) -> Any:
        """Collect what a command answered; rows in another order are rounded otherwise."""
        answer, files = super().content(command, place, out), []
        if command != "audit":
            return answer
        for content in answer[1]:
            rows = csv.DictReader(io.StringIO(content.decode()))
            files.append(
                [row | {"probability": f"{float(row['probability']):.3f}"} for row in rows]
            )
        return json.loads(answer[0], parse_float=lambda text: round(float(text), 3)), files

    def words(self, what: str) -> tuple[str, ...]:
        """Expect the name of the data in a line about what changed."""
        return (self.train[1],)

    def labels(self, place: Path) -> dict[str, set[str]]:
        """Read the labels of each image as the data says now."""
        source = data.read(place / self.train[1])
        pairs = zip(source.names, source.given.tolist(), strict=True)
        return {
            name: {c for c, value in zip(source.classes, row, strict=True) if value}
            for name, row in pairs
        }


class ChangedFeatures(ChangedData):
    """An .npz that changes."""

    def change(self, change: str, place: Path, draw: Draw) -> None:
        """Change the file."""
        path = place / "x.npz"
        np.savez(path, allow_pickle=False, **change_arrays(change, arrays_of(path), draw))


class ChangedImages(ChangedData):
    """A folder of images that changes."""

    train = (
        "train", "photos", "--out", "run", *TRAIN, "--backbone", "test_resnet", "--no-pretrained",
        "--image-size", "32", "--cache", "off",
    )  # fmt: skip

    def write_data(self, place: Path) -> None:
        """Write images, labels.csv and classes.txt."""
        folder = place / "photos"
        folder.mkdir()
        rows = [["image", "labels", "split"]]
        for i in range(IMAGES):
            labels = [name for k, name in enumerate(CLASSES) if (i >> k) & 1 or i % 3 == k]
            rows.append([f"{i:02}.png", "|".join(labels), "test" if i >= IMAGES - 2 else "train"])
            (folder / f"{i:02}.png").write_bytes(picture(i))
        write_table(folder / "labels.csv", rows)
        (folder / "classes.txt").write_text("\n".join(CLASSES), encoding="utf-8")

    def change(self, change: str, place: Path, draw: Draw) -> None:
        """Change the folder."""
        change_images(change, place, draw)


def picture(i: int) -> bytes:
    """Draw a small image of its own colour."""
    out = io.BytesIO()
    Image.new("RGB", (8, 8), (20 * i % 256, 7 * i % 256, 255 - i)).save(out, "PNG")
    return out.getvalue()


def write_table(file: Path, rows: Table) -> None:
    """Write labels.csv."""
    file.write_text("".join(",".join(row) + "\n" for row in rows), encoding="utf-8")


def by_image(answer: Any) -> dict[str, set[str]]:
    """Read the labels of each image from an exported file."""
    _, (content,) = answer
    header, *rows = csv.reader(content.decode().splitlines())
    image, labels = header.index("image"), header.index("labels")
    return {row[image]: set(row[labels].split("|")) - {""} for row in rows}


def allowed(written: Any, before: Any, now: Any) -> bool:
    """Whether each row has the labels of the run's export or, where nothing was trained, its own.

    The run has added noise, so that its labels are written for the rows that it was trained on,
    whatever somebody has edited since.
    """
    return written.keys() == now.keys() and all(
        labels in (before.get(name), now[name]) for name, labels in written.items()
    )
