"""Open the file of a store; whatever SQLite complains about becomes one line."""

from __future__ import annotations

import os
import sqlite3
import uuid
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from balancemix.data.decisions.schema import APPLICATION, SCHEMA, VERSION
from balancemix.errors import DamagedFile, InputError

TIMEOUT = 5.0  # seconds to wait for another process that writes
FILE = "review.sqlite"
RESTORE = "restore it from a backup, or move it away to start without its answers"


@contextmanager
def explained(file: Path) -> Iterator[None]:
    """Raise what SQLite complains about as an error that names the file and what to do."""
    try:
        yield
    except sqlite3.Error as error:
        raise _explain(file, error) from error
    except UnicodeDecodeError as error:  # in what SQLite says of damaged names
        raise damaged(file, "its tables cannot be read") from error


def _explain(file: Path, error: sqlite3.Error) -> InputError:
    code = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        return InputError(
            f"{file}: the disk is full, nothing of this was saved; free some space and give the "
            "command again"
        )
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return InputError(f"{file}: another process is writing to it; wait for it and try again")
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        return InputError(
            f"{file}: cannot be written ({error}); check the permissions of the file and its folder"
        )
    if code == sqlite3.SQLITE_IOERR:
        return InputError(
            f"{file}: cannot be read or written ({error}); check the disk and its free space"
        )
    return damaged(file, str(error))


def damaged(file: Path, why: str) -> DamagedFile:
    """Word that a store does not hold what was written."""
    return DamagedFile(f"{file}: is damaged ({why}); {RESTORE}")


def connect(file: Path, *, create: bool, write: bool) -> sqlite3.Connection:
    """Open a store, or make one; refuses what is damaged, of another program or newer."""
    with explained(file):
        if create and not os.path.isfile(file):
            _make(file)
        if not write:
            return _open_to_read(file)
        connection = _opened(file, "rw")
        try:
            connection = _with_shared_memory(connection, file)
            check_kind(connection, file)
            mode = connection.execute("PRAGMA journal_mode=WAL").fetchone()[0]
            if mode != "wal":  # network disks have no memory that processes share
                connection.execute("PRAGMA journal_mode=DELETE")
                warnings.warn(
                    f"{file}: this disk does not allow a write-ahead log; each answer takes longer",
                    stacklevel=4,
                )
            connection.execute("PRAGMA synchronous=FULL")
            connection.execute("PRAGMA foreign_keys=ON")
            problem = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
            if problem != "ok":
                raise damaged(file, str(problem).splitlines()[-1])
        except BaseException:
            connection.close()
            raise
        return connection


def _with_shared_memory(connection: sqlite3.Connection, file: Path) -> sqlite3.Connection:
    """Take back the write-ahead log of a store that was moved to a disk that does not allow it."""
    try:
        connection.execute("PRAGMA application_id")
        return connection
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_CANTOPEN:
            raise
    connection.close()
    connection = _opened(file, "rw")
    try:
        for setting in ("locking_mode=EXCLUSIVE", "journal_mode=DELETE", "locking_mode=NORMAL"):
            connection.execute(f"PRAGMA {setting}")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _make(file: Path) -> None:
    """Make an empty store, whole or not at all, and never over another one."""
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name(f".{file.name}.{uuid.uuid4().hex}.draft")
    try:
        connection = sqlite3.connect(draft, isolation_level=None)
        try:
            number = uuid.uuid4()
            name = f"INSERT INTO meta VALUES ('store', '{number}');"
            connection.executescript(f"BEGIN; {SCHEMA} {name} COMMIT;")
        finally:
            connection.close()
        try:
            os.link(draft, file)
        except FileExistsError:
            pass  # another process has just made it
        except OSError:  # a disk without links
            if not file.exists():
                draft.replace(file)
    finally:
        draft.unlink(missing_ok=True)


def _open_to_read(file: Path) -> sqlite3.Connection:
    """Open a store that may be on a disk that cannot be written."""
    last: sqlite3.Error | None = None
    wal = file.with_name(f"{file.name}-wal")
    for mode in ("rw", "ro", "ro&immutable=1"):
        if "immutable" in mode and wal.exists() and wal.stat().st_size:
            break  # without what is in it, answers would be missing
        try:
            connection = _opened(file, mode)
        except sqlite3.Error as error:
            last = error
            continue
        try:
            check_kind(connection, file)
            return connection
        except sqlite3.OperationalError as error:
            connection.close()
            last = error
        except BaseException:
            connection.close()
            raise
    assert last is not None
    raise last


def _opened(file: Path, mode: str) -> sqlite3.Connection:
    address = f"{file.absolute().as_uri()}?mode={mode}"
    connection = sqlite3.connect(address, uri=True, timeout=TIMEOUT, isolation_level=None)
    # Names of files that are not UTF-8 keep their bytes.
    connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
    return connection


def check_kind(connection: sqlite3.Connection, file: Path) -> None:
    """Refuse a database that is not a store, or has other tables than this version knows."""
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if application != APPLICATION:
        raise InputError(f"{file}: is not a store of balancemix; move it away, or name other data")
    if version > VERSION:
        raise InputError(
            f"{file}: was written by a newer balancemix (tables {version}, this one knows "
            f"{VERSION}); update balancemix"
        )
    if _tables(connection) != _expected():
        raise damaged(file, "its tables are not those of balancemix")


def _tables(connection: sqlite3.Connection) -> list[tuple[str, ...]]:
    query = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name"
    rows = connection.execute(query).fetchall()
    return [row for row in rows if not row[1].startswith("sqlite_")]


def _expected() -> list[tuple[str, ...]]:
    connection = sqlite3.connect(":memory:")
    try:
        connection.executescript(SCHEMA)
        return _tables(connection)
    finally:
        connection.close()
