"""Features of a folder's images, kept beside it: `photos.balancemix/features-BACKBONE-SIZE.npz`.

images     the N files, by their paths below the folder
facts      N×3: each file's size, and the dates of its content and of any change to it
checksums  N: of the files' bytes
features   N×D float16

There are no labels in it.
"""

from __future__ import annotations

import json
import os
import re
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from balancemix import interrupts
from balancemix.data.beside import folder_beside
from balancemix.data.formats.mapped import read_stored, write_stored
from balancemix.errors import InputError
from balancemix.files import locked
from balancemix.training.known_features import COLUMNS, NOTHING, Known, Wanted
from balancemix.training.partial import PartialArray, remove, rows_done

Array = npt.NDArray[Any]

MADE = "balancemix_features"  # the first array, by which the file is known as ours
HEAD = 30  # bytes of an archive before the name of its first array
LOOK = 0.5  # seconds between tries while another process makes the features


class FeatureFile:
    """The file of a folder's features; `made` says what they are made with.

    Whatever is wrong with the disk is a warning, and `stores` is False from then on. A file of that
    name that balancemix did not write is refused.
    """

    def __init__(self, folder: Path | None, made: Mapping[str, Any]) -> None:
        self.folder, self.made = folder, dict(made)
        self.path = None if folder is None else path_beside(folder, **made)
        self.stores = self.path is not None
        self.rows: PartialArray | None = None

    def read(self) -> Known:
        """Read the rows; none if the file is missing, damaged or made with something else."""
        if self.path is None or not os.path.exists(self.path):  # Path's refuses some names
            return NOTHING
        try:
            check_ours(self.path)
        except OSError as error:
            self._stop(error)
            return NOTHING
        try:
            arrays = read_stored(self.path, mapped=("features",))
            if json.loads(str(arrays[MADE])) != self.made:
                return NOTHING
            known = Known.of(arrays)
            known.check()
        except Exception as error:  # zip, JSON and NumPy's header parser raise different ones
            reason = " ".join(str(error).split())
            warnings.warn(f"{self.path}: is damaged ({reason}); made again", stacklevel=2)
            return NOTHING
        return known

    @contextmanager
    def held(self, wait: Callable[[], object]) -> Iterator[None]:
        """Keep other processes from making the same features; `wait` is called while one does."""
        with ExitStack() as stack:
            if self.path is not None and self.stores:
                try:
                    if not os.path.exists(self.path.parent):
                        self.path.parent.mkdir(exist_ok=True)
                        stack.callback(_remove_empty, self.path.parent)
                    while not _lock(self.path.parent, stack):
                        warnings.warn(
                            f"{self.path}: waits for the process that makes it", stacklevel=2
                        )
                        interrupts.check()
                        wait()
                        time.sleep(LOOK)
                except OSError as error:
                    self._stop(error)
            yield

    def absorb(self, known: Known) -> Known:
        """Add the rows that a killed process left."""
        if self.path is None or not self.stores:
            return known
        rows = rows_done(_partial(self.path), {"made": self.made})
        if rows is None or not len(rows) or rows.dtype.names != tuple(COLUMNS):
            return known
        left = Known.of(np.array(rows))
        try:
            left.check()
        except ValueError:
            return known
        known = known.joined(left)
        self.write(known)
        return known

    def append(self, records: Array, count: int) -> None:
        """Keep records as the next of `count` new rows."""
        if self.path is None or not self.stores:
            return
        try:
            if self.rows is None:
                remove(_partial(self.path))
                about = {"made": self.made}
                self.rows = PartialArray(_partial(self.path), about, (count,), records.dtype)
            self.rows.append(records)
        except OSError as error:
            self._stop(error)

    def note(self) -> None:
        """Count the new rows so far as done, before a stop."""
        if self.rows is not None:
            with suppress(OSError):
                self.rows.note()

    def finish(self, known: Known) -> None:
        """Write known rows and the new ones."""
        if self.rows is not None:
            known = known.joined(Known.of(self.rows.array()))
        self.write(known)

    def write(self, known: Known) -> None:
        """Replace the file, and delete what was on the way to it."""
        if self.path is None or not self.stores:
            return
        made = {MADE: np.array(json.dumps(self.made))}
        try:
            write_stored(self.path, made | {name: getattr(known, name) for name in COLUMNS})
            remove(_partial(self.path))
        except OSError as error:
            self._stop(error)

    def others(self, known: Known, wanted: Wanted) -> Array:
        """Find the rows of other images, the files of which still exist."""
        if self.folder is None:
            return np.empty(0, np.int64)
        at = {name: i for i, name in enumerate(known.images.tolist())}
        for name in wanted.images:
            at.pop(name, None)
        paths = {i: os.path.join(os.fsencode(self.folder), name) for name, i in at.items()}
        return np.array([i for i, path in paths.items() if os.path.isfile(path)], np.int64)

    def _stop(self, error: OSError) -> None:
        self.stores, self.rows = False, None
        reason = error.strerror or str(error)
        warnings.warn(
            f"{self.path}: cannot be kept ({reason}); the features are made without it",
            stacklevel=3,
        )
        if self.path is not None:
            with suppress(OSError):
                remove(_partial(self.path))


def path_beside(
    folder: Path, *, backbone: str, pretrained: bool, size: int, **_: Any
) -> Path | None:
    """Name the file of a folder's features; the root of a disk has none.

    >>> path_beside(Path("/x/photos"), backbone="resnet50", pretrained=True, size=160).as_posix()
    '/x/photos.balancemix/features-resnet50-160.npz'
    """
    name = re.sub(r"[^\w.-]+", "_", backbone) + ("" if pretrained else "-random")
    beside = folder_beside(folder)
    return beside and beside / f"features-{name}-{size}.npz"


def check_ours(path: Path) -> None:
    """Refuse a file that balancemix did not write; one that was cut short still counts as ours."""
    refusal = InputError(
        f"{path}: is in the place of image features and was not written by balancemix; "
        "rename or move it"
    )
    if not os.path.isfile(path):
        raise refusal
    name = f"{MADE}.npy".encode()
    with path.open("rb") as file:
        head = file.read(HEAD + len(name))
    if not (b"PK\3\4".startswith(head[:4]) and name.startswith(head[HEAD:])):
        raise refusal


def _partial(path: Path) -> Path:
    return path.with_name(f".{path.name}.npy")


def _remove_empty(folder: Path) -> None:
    with suppress(OSError):  # it holds something, or is gone
        folder.rmdir()


def _lock(folder: Path, stack: ExitStack) -> bool:
    """Hold a folder until the end of `stack`; return False while another process does."""
    try:
        stack.enter_context(locked(folder, "making features"))
    except InputError:
        return False
    return True
