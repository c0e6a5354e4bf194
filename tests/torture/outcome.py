"""What became of a case, and how that is decided."""

import contextlib
import io
import os
import re
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from balancemix.errors import InputError, printable

READ, REFUSED = "read", "refused"  # what should happen
TRACEBACK, WRONG, LOST, UNTIDY = "traceback", "silently wrong", "lost", "untidy refusal"
FAILURES = (TRACEBACK, WRONG, LOST, UNTIDY)
PATIENCE = 120  # seconds of the processor; `audit digits`, 5,000 rows, takes 30 on a busy machine
WAIT = 600  # seconds by the clock, for what waits and does nothing
TIMERS = (
    (signal.ITIMER_PROF, signal.SIGPROF, PATIENCE),
    (signal.ITIMER_REAL, signal.SIGALRM, WAIT),
)
BREAKS = re.compile(r"[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")


class RefusedError(Exception):
    """The literal reader finds the input wrong."""


class UnsureError(Exception):
    """The documents do not say what the input means: reading it and refusing it are both right."""


@dataclass(frozen=True)
class Outcome:
    """What became of a case; `detail` says where it failed, and groups failures of one cause."""

    kind: str
    detail: str = ""


class Told(list[str]):
    """What was said beside the answer."""


@contextlib.contextmanager
def listening() -> Iterator[Told]:
    """Collect warnings and all that is printed to standard error."""
    told, stream = Told(), io.StringIO()
    with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stderr(stream):
        warnings.simplefilter("always")
        yield told
    told += [str(warning.message) for warning in caught if warning.category is UserWarning]
    told += stream.getvalue().splitlines()


def attempt(read: Callable[[], Any], names: tuple[str, ...] = ()) -> tuple[Any, Outcome]:
    """Read, and see whether it went well; a refusal must be one line that names the file."""
    for timer, number, seconds in TIMERS:
        signal.signal(number, _too_long)
        signal.setitimer(timer, seconds)
    try:
        if os.environ.get("TORTURE_KEEP"):
            return _aloud(read), Outcome(READ)
        return read(), Outcome(READ)
    except InputError as error:
        message = printable(str(error))  # as the command line shows it
        if BREAKS.search(message):
            return None, Outcome(UNTIDY, f"more than one line: {_where(error)}")
        if names and not any(name in message for name in names):
            return None, Outcome(UNTIDY, f"names no file: {_where(error)}")
        return None, Outcome(REFUSED)
    except OSError as error:  # what the system says is one line too, if it names the file
        name = str(error.filename)
        if error.strerror and any(each in name for each in names or ("/",)):
            return None, Outcome(REFUSED)
        return None, Outcome(TRACEBACK, f"{type(error).__name__} at {_where(error)}")
    except BaseException as error:
        return None, Outcome(TRACEBACK, f"{type(error).__name__} at {_where(error)}")
    finally:
        for timer, _, _ in TIMERS:
            signal.setitimer(timer, 0)


def _aloud(read: Callable[[], Any]) -> Any:
    """Read, and print what comes of it."""
    try:
        answer = read()
    except BaseException:
        sys.stdout.write(traceback.format_exc())
        raise
    sys.stdout.write(f"read: {answer}\n")
    return answer


def _too_long(number: int, frame: Any) -> None:
    raise TimeoutError(f"took more than {PATIENCE} seconds of the processor, or waited {WAIT}")


def _where(error: BaseException) -> str:
    """Name the last line of the package that an error passed."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "/balancemix/" in frame.filename]
    frame = (ours or frames)[-1]
    return f"{frame.filename.rpartition('/balancemix/')[2]}:{frame.lineno} {frame.line}"


def judge(answer: Any, outcome: Outcome, literal: Callable[[], Any]) -> Outcome:
    """Compare what was read with what the literal reader reads."""
    if outcome.kind not in (READ, REFUSED):
        return outcome
    try:
        expected = literal()
        if os.environ.get("TORTURE_KEEP"):
            sys.stdout.write(f"should be: {expected}\n")
    except UnsureError:
        return outcome
    except RefusedError as error:
        wrong = Outcome(WRONG, f"read what should be refused: {error}")
        return wrong if outcome.kind == READ else outcome
    if outcome.kind == REFUSED:
        return Outcome(UNTIDY, "refused what is right")
    return outcome if answer == expected else Outcome(WRONG, difference(answer, expected))


def difference(answer: Any, expected: Any) -> str:
    """Say in which parts two answers differ, without the names of rows and runs."""
    return "differs in " + ", ".join(sorted(_differing(answer, expected, "it"))[:3])


def _differing(answer: Any, expected: Any, where: str) -> set[str]:
    if where == "rows" or not isinstance(answer, dict) or not isinstance(expected, dict):
        return {where}
    if answer.keys() != expected.keys():
        return {f"what {where} holds"}
    found = set()
    for key, value in answer.items():
        if value != expected[key]:
            found |= _differing(value, expected[key], "a run" if key.startswith("(") else str(key))
    return found
