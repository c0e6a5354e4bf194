"""The readers of people's data: how each is given damaged files, and what it should make of them.

READERS is the one table. A reader writes a case into a folder, reads it with the package, and
compares the answer with that of the literal reader, or with itself under a law: shuffled rows,
renamed classes and reordered categories change no label.
"""

import functools
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from PIL import Image

from balancemix import data
from balancemix.data import formats
from balancemix.data.formats import mapped
from tests.torture import laws, literal, literal_npz, literal_table, seed_tables, seeds
from tests.torture.damage_data import damage_arrays, damage_coco, damage_table, damage_text
from tests.torture.draw import Draw
from tests.torture.outcome import READ, WRONG, Outcome, attempt, difference, judge
from tests.torture.rewrites import Rewrite, rewrite_coco, rewrite_table
from tests.torture.seeds import Files

# Looking through all installed packages takes longer than a whole case.
formats.entry_points = functools.cache(formats.entry_points)  # type: ignore[attr-defined,assignment]

LAW_EVERY = 8  # cases: every eighth is a law, every other one a damaged file
ROUND_TRIP = 0.25  # share of what was read that is also written and read again


@dataclass(frozen=True)
class Reader:
    """A reader: `make` draws valid files, `damage` changes them, `read` and `literal` read them.

    `fixed` are files that every case has. `law` draws two versions of one data set, with the new
    name of each class; `rewrites` write what was read, and read that. A refusal names a file, or
    one of `words`: flags are not files.
    What the literal reader reads must not be refused if it is `exact`. `modules` are what the
    reader consists of, for its branch coverage.
    """

    name: str
    modules: tuple[str, ...]
    make: Callable[[Draw], Any]
    damage: Callable[[Any, Draw], Files]
    read: Callable[[Path], Any]
    literal: Callable[[Path], Any]
    fixed: Files = field(default_factory=dict)
    law: Callable[[Draw], tuple[Files, Files, dict[str, str]]] | None = None
    rewrites: tuple[Rewrite, ...] = ()
    words: Callable[[Path], tuple[str, ...]] | None = None
    exact: bool = True
    group: str = "readers"
    chunk: int = 1000

    def prepare(self, folder: Path) -> None:
        """Write what all cases share."""
        folder.mkdir(parents=True, exist_ok=True)
        put(folder, self.fixed)

    def case(self, draw: Draw, number: int, folder: Path) -> Outcome:
        """Try one case and leave the folder as it was."""
        if self.law is not None and number % LAW_EVERY == 0:
            return self._law(draw, folder)
        files = self.damage(self.make(draw), draw)
        put(folder, files)
        try:
            names = (folder.name, *(Path(name).name for name in files))
            names += self.words(folder) if self.words is not None else ()
            answer, outcome = attempt(lambda: self.read(folder), names)
            if outcome.kind == READ or self.exact:
                outcome = judge(answer, outcome, lambda: self.literal(folder))
            if outcome.kind == READ and self.rewrites and draw.chance(ROUND_TRIP):
                outcome = draw.pick(self.rewrites)(folder, draw)
            return outcome
        finally:
            take(folder, [*files, "again"])

    def _law(self, draw: Draw, folder: Path) -> Outcome:
        assert self.law is not None
        before, after, names = self.law(draw)
        answers = []
        for files in (before, after):
            put(folder, files)
            answer, outcome = attempt(lambda: self.read(folder))
            take(folder, list(files))
            if outcome.kind != READ:
                return Outcome(WRONG, f"valid data: {outcome.kind} {outcome.detail}")
            answers.append(answer)
        expected = renamed(answers[0], names)
        if answers[1] != expected:
            return Outcome(WRONG, f"law: {difference(answers[1], expected)}")
        return Outcome(READ)


def put(folder: Path, files: Files) -> None:
    """Write files into a folder."""
    for name, content in files.items():
        path = folder / name
        if not path.parent.is_dir():
            path.parent.mkdir(parents=True)
        path.write_bytes(content)


def take(folder: Path, names: list[str]) -> None:
    """Take files, or a folder, out of a folder again."""
    if os.environ.get("TORTURE_KEEP"):
        return
    for name in names:
        path = folder / name
        if path.is_dir():
            shutil.rmtree(path)
        elif path.exists():
            os.unlink(path)


def renamed(answer: Any, names: dict[str, str]) -> Any:
    """Name the classes of an answer as its other version does."""
    rows = {
        name: (split, frozenset(names[c] for c in present), frozenset(names[c] for c in unknown), x)
        for name, (split, present, unknown, x) in answer["rows"].items()
    }
    return {"classes": frozenset(names[c] for c in answer["classes"]), "rows": rows}


def labels_by_name(source: Any) -> dict[str, Any]:
    """Say what a data set says, by the names of rows and classes."""
    rows: dict[str, Any] = {}
    given = source.given.tolist()
    truth = None if source.truth is None else source.truth.tolist()
    for i, name in enumerate(source.names):
        present = frozenset(c for c, v in zip(source.classes, given[i], strict=True) if v == 1)
        known = given[i] if truth is None else truth[i]
        unknown = frozenset(c for c, v in zip(source.classes, known, strict=True) if v == -1)
        split = None if source.split is None else source.split[i]
        if source.features is None:
            rows[name] = (split, present, unknown, str(source.images[i]))
            continue
        views = () if source.stored is None else tuple(source.stored[i].flatten().tolist())
        verified = [0] * len(given[i])
        if source.verified is not None:
            verified = source.verified[i].int().tolist()
        labels = tuple(known), tuple(given[i]), tuple(verified)
        inputs = (tuple(source.features[i].flatten().tolist()), views, labels)
        rows[name] = (split, present, frozenset(), inputs)
    if len(rows) < len(source.names):
        return {"rows": "two of one name"}
    return {"classes": frozenset(source.classes), "rows": rows}


def read_folder(folder: Path) -> Any:
    """Read a folder as every command does."""
    return labels_by_name(data.read(folder))


def read_file(folder: Path) -> Any:
    """Read the .npz of a folder."""
    return labels_by_name(data.read(folder / "x.npz"))


def read_coco_file(folder: Path) -> Any:
    """Read the train file of COCO by itself."""
    file = folder / "annotations" / "instances_train2017.json"
    return labels_by_name(data.read(file, data.ReadOptions(format="coco")))


def read_mapped(folder: Path) -> Any:
    """Read the .npz of a folder, whose arrays are mapped however small they are."""
    before = mapped.LARGE
    mapped.LARGE = 1
    try:
        return read_file(folder)
    finally:
        mapped.LARGE = before


def _png() -> bytes:
    import io

    out = io.BytesIO()
    Image.new("RGB", (2, 2), (200, 100, 50)).save(out, "PNG")
    return out.getvalue()


def _coco_images() -> Files:
    return {f"{part}2017/{name}.jpg": b"" for part in ("train", "val") for name in seeds.NAMES}


FORMATS = "balancemix.data.formats"
TABLES = tuple(
    f"balancemix.data.tables.{name}"
    for name in (
        *("text", "dialect", "roles", "rows", "reading", "joined"),
        *("separators", "names", "columns", "packed", "lines"),
    )
)
LABEL_READERS = [
    Reader(
        name="labels.csv",
        modules=(f"{FORMATS}.table", *TABLES),
        make=seeds.csv,
        damage=damage_text(",|"),
        read=read_folder,
        literal=literal_table.read_table,
        fixed={name: _png() for name in seeds.IMAGES},
        law=laws.csv,
        rewrites=(rewrite_table,),
    ),
    Reader(
        name="tables",
        modules=TABLES,
        make=seed_tables.table,
        damage=damage_table,
        read=read_folder,
        literal=literal_table.read_table,
        fixed={name: _png() for name in seeds.IMAGES},
        law=seed_tables.law,
    ),
    Reader(
        name="COCO JSON",
        modules=(f"{FORMATS}.coco", f"{FORMATS}.coco_json"),
        make=seeds.coco,
        damage=damage_coco,
        read=read_folder,
        literal=literal.read_coco,
        fixed=_coco_images(),
        law=laws.coco,
        rewrites=(rewrite_table, rewrite_coco),
    ),
    Reader(
        name="COCO JSON, one file",
        modules=(f"{FORMATS}.coco", f"{FORMATS}.coco_json"),
        make=seeds.coco,
        damage=damage_coco,
        read=read_coco_file,
        literal=literal.read_coco_file,
        fixed=_coco_images(),
    ),
    Reader(
        name="VOC text",
        modules=(f"{FORMATS}.voc",),
        make=seeds.voc,
        damage=damage_text(" _"),
        read=read_folder,
        literal=literal.read_voc,
        fixed={f"VOC2007/JPEGImages/{name}.jpg": b"" for name in seeds.NAMES},
        law=laws.voc,
        rewrites=(rewrite_table,),
    ),
    Reader(
        name="DeepFashion text",
        modules=(f"{FORMATS}.deepfashion",),
        make=seeds.deepfashion,
        damage=damage_text(" "),
        read=read_folder,
        literal=literal.read_deepfashion,
        fixed={f"img/x/{name}.jpg": b"" for name in seeds.NAMES},
        law=laws.deepfashion,
        rewrites=(rewrite_table,),
    ),
    Reader(
        name=".npz",
        modules=(f"{FORMATS}.npz",),
        make=seeds.arrays,
        damage=damage_arrays,
        read=read_file,
        literal=lambda folder: literal_npz.read_npz(folder / "x.npz"),
        law=laws.npz,
    ),
    Reader(
        name=".npz, mapped",
        modules=(f"{FORMATS}.mapped",),
        make=seeds.arrays,
        damage=damage_arrays,
        read=read_mapped,
        literal=lambda folder: literal_npz.read_npz(folder / "x.npz", checked=False),
        exact=False,  # sums are checked of what is not mapped
        law=laws.npz,
    ),
]
