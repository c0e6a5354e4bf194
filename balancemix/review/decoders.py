"""Decoders: processes in which pictures are decoded, ended when one takes too long."""

from __future__ import annotations

import queue
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from balancemix.files import from_json, to_json
from balancemix.pictures import NotShown, PictureFile, too_slow
from balancemix.review.decoder import READY

START = 30.0  # seconds to start, on a busy machine


class Decoders:
    """Processes that decode at most `number` pictures at a time, each within `seconds`.

    They start when `start` says so, or with the first picture. Any thread may use them.
    """

    def __init__(self, number: int, max_pixels: int, seconds: float) -> None:
        self._all = [Decoder(max_pixels, seconds) for _ in range(number)]
        self._free: queue.LifoQueue[Decoder] = queue.LifoQueue()  # the last one used is warm
        for each in self._all:
            self._free.put(each)
        self._end = weakref.finalize(self, _close, self._all)

    def start(self) -> None:
        """Start all processes, and wait for none of them."""
        for each in self._all:
            each.start()

    def close(self) -> None:
        """End all processes."""
        self._end()

    def jpeg(self, file: PictureFile, width: int, quality: int) -> bytes:
        """Decode a picture when a process is free; raise NotShown if it cannot be decoded."""
        decoder = self._free.get()
        try:
            return decoder.jpeg(file, width, quality)
        finally:
            self._free.put(decoder)


class Decoder:
    """One process, and another one in its place when it had to be ended; for one thread at a time.

    The start is not counted in `seconds`.
    """

    def __init__(self, max_pixels: int, seconds: float) -> None:
        self.max_pixels, self.seconds = max_pixels, seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._ready = False

    def start(self) -> None:
        """Start the process if none runs."""
        if self._process is not None and self._process.poll() is not None:
            self.close()
        if self._process is None:
            # Not -m, which imports from the current folder first: that may be the data's.
            run = f"import sys; sys.path[:] = {sys.path!a}; import {_MODULE} as decoder; "
            run += f"decoder.main({self.max_pixels}, {self.seconds!r})"
            self._process = subprocess.Popen(
                [sys.executable, "-c", run],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,  # Ctrl-C is not for it
            )
            self._ready = False

    def close(self) -> None:
        """End the process, whatever it does."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                assert pipe is not None
                with suppress(OSError):  # what was not written yet
                    pipe.close()

    def jpeg(self, file: PictureFile, width: int, quality: int) -> bytes:
        """Decode a picture; raise NotShown if it cannot be decoded, or not in time."""
        self._wait_until_ready(file.name)
        request = {
            "path": str(file.path),
            "name": file.name,
            "length": file.length,
            "width": width,
            "quality": quality,
        }
        with self._ended_after(self.seconds) as late:
            reply, content = self._ask(to_json(request).encode("ascii") + b"\n")
        if reply is None or late.is_set():
            self.close()
        if reply is None and late.is_set():
            raise too_slow(file.name, self.seconds)
        if reply is None:
            raise NotShown("unreadable", f"{file.name} cannot be read (its decoder crashed).")
        if "reason" in reply:
            raise NotShown(reply["reason"], reply["message"])
        return content

    def _wait_until_ready(self, name: str) -> None:
        self.start()
        if self._ready:
            return
        with self._ended_after(START):
            self._ready = self._pipe().readline() == READY
        if not self._ready:
            self.close()
            raise NotShown("later", f"{name} is not shown: the decoder of pictures did not start.")

    def _ask(self, line: bytes) -> tuple[dict[str, Any] | None, bytes]:
        """Send a request; returns None where the process ended before it had answered."""
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line)
            self._process.stdin.flush()
            reply = from_json(self._pipe().readline())
            size = reply.get("bytes", 0)
            content = self._pipe().read(size)
        except (OSError, ValueError):
            return None, b""
        return (reply, content) if len(content) == size else (None, b"")

    def _pipe(self) -> Any:
        assert self._process is not None
        return self._process.stdout

    @contextmanager
    def _ended_after(self, seconds: float) -> Iterator[threading.Event]:
        """End the process when the time is up: what reads from it then reads no more."""
        process, late = self._process, threading.Event()
        assert process is not None

        def end() -> None:
            late.set()
            process.kill()

        timer = threading.Timer(seconds, end)
        timer.start()
        try:
            yield late
        finally:
            timer.cancel()
            timer.join()  # now it is known whether it was late


_MODULE = "balancemix.review.decoder"


def _close(decoders: list[Decoder]) -> None:
    for each in decoders:
        each.close()
