"""Ctrl-C and SIGTERM: a job stops at the next batch, and says what is saved.

A handler that raises is not enough: Python drops an exception that is raised in a finaliser or in
a callback of C code, as happens while loading processes start and end. So the handler also
remembers the signal, and whoever makes a step asks `check`.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)

_received: list[int] = []


class Stopped(KeyboardInterrupt):
    """A signal asked to stop; `code` is what a shell expects of a process that it ended."""

    def __init__(self, number: int = signal.SIGINT) -> None:
        super().__init__(signal.Signals(number).name)
        self.code = 128 + number


@contextmanager
def listening() -> Iterator[None]:
    """Raise `Stopped` at the first Ctrl-C or SIGTERM; the second one ends the process at once."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may set handlers
        return
    before = {number: signal.signal(number, _stop) for number in SIGNALS}
    try:
        yield
    finally:
        _received.clear()
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def deferred() -> Iterator[None]:
    """Let the first Ctrl-C or SIGTERM wait until the block has ended; the second one does not.

    For C code that calls Python back, as torch does while it saves: it would turn the exception of
    a handler into one of its own.
    """
    waiting: list[int] = []

    def wait(number: int, frame: FrameType | None) -> None:
        waiting.append(number)
        restore()

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    main = threading.current_thread() is threading.main_thread()
    found = {number: signal.getsignal(number) for number in SIGNALS if main}
    before = {number: handler for number, handler in found.items() if callable(handler)}
    for number in before:
        signal.signal(number, wait)
    try:
        yield
    finally:
        restore()
        if waiting:
            signal.raise_signal(waiting[0])


def check() -> None:
    """Raise `Stopped` if a signal came and its exception was lost."""
    if (stopped := received()) is not None:
        raise stopped


def received() -> Stopped | None:
    """Return the signal that came, if one did, whatever became of its exception."""
    return Stopped(_received[0]) if _received else None


def _stop(number: int, frame: FrameType | None) -> None:
    _received.append(number)
    signal.signal(number, signal.SIG_DFL)
    raise Stopped(number)
