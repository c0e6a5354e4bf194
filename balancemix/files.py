"""Files that are written whole or not at all, and never over what somebody may still want."""

from __future__ import annotations

import csv
import json
import math
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from balancemix.errors import InputError, listing

_NAME_BYTES = 240  # of a draft's name: file systems allow 255, a draft's dot and ending take some

_STORE = "review.sqlite"  # in the folder beside a data set; nothing may replace it


def check_output(path: Path, *, inputs: Iterable[Path] = (), force: bool = False) -> None:
    """Refuse, before anything is computed, a file that a command must not write.

    A file that the command reads, or one in a folder that it reads, is never written, not even
    with `force`. Any other file that exists is written only with it. Devices and pipes are written
    to, never replaced.
    """
    if str(path) in ("", "."):
        raise InputError("--out names no file; name one")
    if "\0" in str(path):
        raise InputError(f"{str(path)!r}: holds a NUL, which no name of a file can; name another")
    if path.is_dir():
        raise InputError(f"{path}: is a directory; name a file")
    for source in inputs:
        if path.exists() and source.exists() and _is_part(path, source):
            raise InputError(f"{path}: is part of what this command reads; write to another file")
    if path.name.startswith(_STORE) and path.absolute().parent.name.endswith(".balancemix"):
        raise InputError(f"{path}: holds what people decided; write to another file")
    if path.is_file() and not force:
        raise InputError(f"{path}: already exists; pass --force to replace it")


def check_folder(path: Path, ours: Iterable[str], what: str) -> None:
    """Refuse a directory that holds files and folders of other names than `what` writes."""
    if path.exists() and not path.is_dir():
        raise InputError(f"{path}: is a file; --out must name a directory")
    names = {file.name for file in path.iterdir()} if path.exists() else set()
    foreign = sorted(name for name in names - set(ours) if not name.startswith("."))
    if foreign:
        raise InputError(
            f"{path}: holds other files ({listing(foreign, 3)}); {what} needs a new or empty "
            "directory"
        )


def _is_part(path: Path, source: Path) -> bool:
    """Tell whether a file is the source, or one of the files in its folder."""
    inside = source.is_dir() and path.resolve().is_relative_to(source.resolve())
    return inside or path.samefile(source)


def write_whole(
    path: Path, save: Callable[[Path], object], ready: Callable[[Path], object] | None = None
) -> None:
    """Let `save` write a draft beside `path`, and move it into place once it is on the disk.

    A link is followed and its target replaced. What goes to a device or a pipe is written through.
    `ready` sees the draft before it is moved.
    """
    path = path.resolve() if path.is_symlink() else path
    if path.exists() and not stat.S_ISREG(path.stat().st_mode):
        _write_through(path, save)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = _draft_of(path)
    try:
        save(draft)
        with draft.open("rb+") as written:
            os.fsync(written.fileno())
        if ready is not None:
            ready(draft)
        draft.replace(path)
    except BaseException as error:
        draft.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename in (None, str(draft)):
            error.filename, error.filename2 = str(path), None  # the name that the user knows
        raise


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file of bytes."""
    write_whole(path, lambda draft: draft.write_bytes(content))


def write_text(path: Path, text: str) -> None:
    """Write a text file; names of files that are not UTF-8 keep their bytes."""
    with _naming(path):
        content = text.encode("utf-8", "surrogateescape")
    write_bytes(path, content)


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON file that people may read."""
    write_text(path, json_text(content))


def to_json(content: object, *, indent: int | None = None, ensure_ascii: bool = True) -> str:
    """Write JSON that every program reads: a number that is not finite is null.

    Names of files that are not UTF-8 are escaped, and read back the same.

    >>> to_json({"AP": [0.5, float("nan")]})
    '{"AP": [0.5, null]}'
    """
    text = json.dumps(_finite(content), indent=indent, ensure_ascii=ensure_ascii, allow_nan=False)
    return re.sub("[\ud800-\udfff]", lambda found: f"\\u{ord(found[0]):04x}", text)


def from_json(text: str | bytes) -> Any:
    """Read JSON, and refuse a key that is given twice, of which Python would keep the last."""
    return json.loads(text, object_pairs_hook=_once)


def json_at(text: str, start: int) -> tuple[Any, int]:
    """Read the JSON value that starts at a place, as `from_json` does, and find its end.

    >>> json_at('[{"a": 1}, 2]', 1)
    ({'a': 1}, 9)
    """
    return json.JSONDecoder(object_pairs_hook=_once).raw_decode(text, start)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice!r} is given twice")
    return content


def with_nan(scores: Mapping[str, Any]) -> dict[str, Any]:
    """Put NaN back where `to_json` wrote null."""
    return {
        key: with_nan(value) if isinstance(value, Mapping) else math.nan if value is None else value
        for key, value in scores.items()
    }


def json_text(content: Mapping[str, Any]) -> str:
    """Lay out JSON for people."""
    return to_json(content, indent=2, ensure_ascii=False) + "\n"


def write_arrays(path: Path, arrays: Mapping[str, Any]) -> None:
    """Write a compressed .npz file, the same bytes for the same arrays."""
    write_whole(path, lambda draft: save_arrays(draft, arrays))


def save_arrays(path: Path, arrays: Mapping[str, Any]) -> None:
    """Save arrays in a new .npz file."""
    import numpy as np

    with path.open("wb") as out:
        np.savez_compressed(out, allow_pickle=False, **arrays)


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a CSV file; every cell is read back as it is."""

    def save(draft: Path) -> None:
        with draft.open("w", newline="", encoding="utf-8", errors="surrogateescape") as out:
            writer = csv.writer(_Lines(out))
            writer.writerow(header)
            writer.writerows(rows)

    with _naming(path):
        write_whole(path, save)


class _Lines:
    """Records that end in LF; the writer ends them in CR LF, so that it quotes cells with a CR."""

    def __init__(self, out: TextIO) -> None:
        self.out = out

    def write(self, record: str) -> int:
        return self.out.write(record.removesuffix("\r\n") + "\n")


def write_sheet(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a CSV file that people open in a spreadsheet: no name in it becomes a formula."""
    lines = ([neutralise(c) if isinstance(c, str) else c for c in row] for row in rows)
    write_csv(path, [neutralise(name) for name in header], lines)


# A spreadsheet computes cells that begin with these, some also with the full-width forms.
_FORMULA = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")


def neutralise(cell: str) -> str:
    """Put an apostrophe before a cell that a spreadsheet would compute.

    >>> neutralise("=1+1"), neutralise("'=1+1"), neutralise("cat")
    ("'=1+1", "''=1+1", 'cat')
    """
    return f"'{cell}" if cell.lstrip("'").startswith(_FORMULA) else cell


def restore(cell: str) -> str:
    """Return the cell that was neutralised.

    >>> restore("'=1+1"), restore("'tis")
    ('=1+1', "'tis")
    """
    return cell[1:] if cell.startswith("'") and neutralise(cell) != cell else cell


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Refuse text that UTF-8 cannot hold, with the name of the file."""
    try:
        yield
    except UnicodeEncodeError as error:
        text = error.object[max(error.start - 20, 0) : error.end + 20]
        raise InputError(f"{path}: {text!r} is not UTF-8; rename it") from None


@contextmanager
def locked(path: Path, what: str, *, wait: bool = False) -> Iterator[None]:
    """Hold an existing file or directory for this process; refuse it while another one does.

    With `wait`, wait until it has ended. The lock is the system's and ends with the process,
    however that ends. Where there are no such locks, nothing is held.
    """
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            raise InputError(
                f"{path}: another process is {what}; wait for it, or stop it first"
            ) from None
        except OSError:
            pass  # a file system without locks
        yield
    finally:
        os.close(descriptor)


def _draft_of(path: Path) -> Path:
    """Name the hidden file that `path` is written to first; the same one every time."""
    name = path.name
    while len(os.fsencode(f".{name}.draft")) > _NAME_BYTES and len(name) > 1:
        name = name[1:]
    return path.with_name(f".{name}.draft")


def _write_through(path: Path, save: Callable[[Path], object]) -> None:
    if path.is_dir():
        raise InputError(f"{path}: is a directory; name a file")
    with tempfile.TemporaryDirectory() as folder:
        draft = Path(folder) / path.name
        save(draft)
        with draft.open("rb") as written, path.open("wb") as out:
            shutil.copyfileobj(written, out)


def _finite(content: object) -> object:
    if isinstance(content, float):
        return content if math.isfinite(content) else None
    if isinstance(content, Mapping):
        return {key: _finite(value) for key, value in content.items()}
    return [_finite(value) for value in content] if isinstance(content, list | tuple) else content
