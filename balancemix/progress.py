"""Progress for people: a live bar with time left on a terminal, plain lines elsewhere."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Protocol, TextIO

from balancemix.errors import printable


class Progress(Protocol):
    """Something that can be told how far a long job is."""

    def advance(self, steps: int = 1) -> None:
        """Count steps done."""

    def say(self, **facts: float) -> None:
        """Show the newest facts beside the bar."""

    def line(self, text: str) -> None:
        """Put a line above the bar."""


class Silent:
    """Shows nothing."""

    def advance(self, steps: int = 1) -> None:
        """Show nothing."""

    def say(self, **facts: float) -> None:
        """Show nothing."""

    def line(self, text: str) -> None:
        """Show nothing."""


# Starts to show a job by its name and number of steps.
Show = Callable[[str, int], AbstractContextManager[Progress]]


@contextmanager
def silence(what: str, total: int) -> Iterator[Progress]:
    """Show nothing of a job."""
    yield Silent()


class Lines:
    """A plain line now and then, for logs and pipes."""

    def __init__(self, what: str, total: int, out: TextIO, every: float = 10.0) -> None:
        self.what, self.total, self.out, self.every = what, total, out, every
        self.done, self.facts = 0, ""
        self.start = self.shown = time.monotonic()

    def advance(self, steps: int = 1) -> None:
        """Count, and say so if the last line is some time ago."""
        if not steps:
            return
        self.done += steps
        now = time.monotonic()
        if now - self.shown > self.every:
            self.shown = now
            left = (now - self.start) / self.done * max(self.total - self.done, 0)
            share = f"{self.done / self.total:.0%}"
            self.line(f"{self.what} {share}  {self.facts}{clock(left)} left")

    def say(self, **facts: float) -> None:
        """Keep facts for the next line."""
        self.facts = "".join(f"{name} {value:.4g}  " for name, value in facts.items())

    def line(self, text: str) -> None:
        """Write a line."""
        print(printable(text), file=self.out, flush=True)


class Bar:
    """A live bar by rich."""

    def __init__(self, what: str, total: int, out: TextIO) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

        self.start, self.total, self.done = time.monotonic(), total, 0
        self.bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            TaskProgressColumn(),
            TextColumn("{task.fields[facts]}"),
            TextColumn("{task.fields[left]}"),
            console=Console(file=out),
            transient=True,
        )
        self.task = self.bar.add_task(what, total=total, facts="", left="")

    def advance(self, steps: int = 1) -> None:
        """Move the bar, with its rate and time left."""
        if not steps:
            return
        self.done += steps
        rate = self.done / max(time.monotonic() - self.start, 1e-9)
        left = f"{rate:.3g}/s  {clock((self.total - self.done) / rate)} left"
        self.bar.update(self.task, completed=self.done, left=left)

    def say(self, **facts: float) -> None:
        """Show facts behind the bar."""
        text = "  ".join(f"{name} {value:.4g}" for name, value in facts.items())
        self.bar.update(self.task, facts=text)

    def line(self, text: str) -> None:
        """Put a line above the bar."""
        self.bar.console.print(printable(text), highlight=False, markup=False, emoji=False)


_hidden = ContextVar("hidden", default=False)


@contextmanager
def hidden() -> Iterator[None]:
    """Show no progress of what is done in this block: something else is on the terminal."""
    before = _hidden.set(True)
    try:
        yield
    finally:
        _hidden.reset(before)


@contextmanager
def progress(what: str, total: int, out: TextIO | None = None) -> Iterator[Progress]:
    """Show a job of `total` steps on standard error; of several processes, the first one does.

    A job within a job that has a bar shows nothing: a terminal has room for one.
    """
    from balancemix import processes

    out = out or sys.stderr
    if processes.rank() > 0 or _hidden.get():
        yield Silent()
        return
    if not out.isatty():
        yield Lines(what, total, out)
        return
    bar = Bar(what, total, out)
    with bar.bar, hidden():
        yield bar


def clock(seconds: float) -> str:
    """Write a duration as people do.

    >>> clock(75), clock(3725)
    ('1:15', '1:02:05')
    """
    minutes, second = divmod(int(max(seconds, 0)), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"
