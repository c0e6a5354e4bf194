"""One server a store: a lock of the system, which ends with the process however that ends."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from balancemix.errors import InputError
from balancemix.files import from_json, to_json

FILE = "review.lock"


@contextmanager
def only_server(folder: Path) -> Iterator[Callable[[str], None]]:
    """Hold the lock of a store; refuse, with the address, while another process does.

    Yields a function that writes the address of this server into the lock.
    """
    file = folder / FILE
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            _lock(descriptor)
        except BlockingIOError:
            raise InputError(f"{folder.name} is already open{_where(file)}") from None
        except OSError:
            pass  # a file system without locks

        def announce(address: str) -> None:
            text = to_json({"process": os.getpid(), "address": address}).encode("ascii")
            os.ftruncate(descriptor, 0)
            os.lseek(descriptor, 0, os.SEEK_SET)
            os.write(descriptor, text)

        yield announce
    finally:
        os.close(descriptor)


def _where(file: Path) -> str:
    with suppress(OSError, ValueError, TypeError, KeyError):
        content = from_json(file.read_bytes())
        return f" at {content['address']} (process {content['process']})"
    return " in another process"


def _lock(descriptor: int) -> None:
    """Lock a file, or raise BlockingIOError."""
    if sys.platform == "win32":
        import msvcrt

        os.lseek(descriptor, 1 << 30, os.SEEK_SET)  # a locked byte cannot be read
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError as error:
            raise BlockingIOError from error
        os.lseek(descriptor, 0, os.SEEK_SET)
    else:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
