"""Checkpoints: all that is needed to resume a training, kept twice, and its log for people."""

from __future__ import annotations

import io
import json
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from balancemix import files, interrupts, processes
from balancemix.directory import FILES, Directory
from balancemix.errors import DamagedFile, InputError
from balancemix.methods import Method

VERSION = 2  # of label table and checkpoint; the first did not say so

Log = list[dict[str, Any]]


class Checkpoints(Directory):
    """The directory of a run as training sees it, which stores a state and resumes from it."""

    def save_log(self, log: Log) -> None:
        """Store the log for people; training resumes from that in the checkpoint."""
        text = "".join(files.to_json(line) + "\n" for line in log)
        self._write("log", lambda path: path.write_bytes(text.encode()))

    def save_checkpoint(self, state: Mapping[str, Any]) -> None:
        """Store the state to resume from, and keep the one before; Ctrl-C waits for it."""

        def save(path: Path) -> None:
            try:
                with path.open("wb") as out:
                    torch.save({"version": VERSION, **state}, out)
            except RuntimeError as error:  # what torch makes of a full disk
                if isinstance(error.__context__, OSError):
                    raise error.__context__ from None
                raise

        with interrupts.deferred():
            self._write("checkpoint", save, keep=FILES["previous"])

    def is_started(self) -> bool:
        """Return whether there is a checkpoint to resume from; the same in all processes."""
        exists = processes.rank() == 0 and (self.has("checkpoint") or self.has("previous"))
        return processes.broadcast(b"yes" if exists else None) is not None

    def restore(self, method: Method, engine: Any) -> Log:
        """Put method and engine where the run stopped, and return its log up to there."""
        state, log = self.read_checkpoint()
        if state is None:
            return []
        try:
            method.load_state_dict(state["method"])
            engine.load_state_dict(state)
        except (KeyError, TypeError) as error:
            raise self._other_version() from error
        return log[: method.epoch]

    def read_checkpoint(self) -> tuple[dict[str, Any] | None, Log]:
        """Read the state to resume from, if there is one, and the log; nothing in it is executed.

        All processes get what the first one reads: they resume from one place, or none does.
        """
        path = self._last_checkpoint() if processes.rank() == 0 else None
        content = processes.broadcast(path.read_bytes() if path is not None else None)
        if content is None:
            return None, []
        path = path or self.path_of("checkpoint")
        try:
            state = unpack(content)
        except Exception as error:  # a damaged file fails in zip, in pickle or in torch
            raise DamagedFile(f"{path}: cannot be read; {self.start_over}") from error
        if state.get("version") != VERSION or "log" not in state:
            raise self._other_version()
        try:
            log: Log = json.loads(state["log"])
        except (ValueError, TypeError, RecursionError) as error:
            raise DamagedFile(f"{path}: its log cannot be read; {self.start_over}") from error
        return state, log

    def _last_checkpoint(self) -> Path | None:
        """Find the newest checkpoint that is as it was written."""
        last, previous = self.path_of("checkpoint"), self.path_of("previous")
        if last.is_file() and self.manifest.is_intact(last.name) is not False:
            return last
        if not last.is_file() and not previous.is_file():
            return None
        if previous.is_file() and self.manifest.is_intact(previous.name):
            state = "is damaged" if last.is_file() else "is missing"
            warnings.warn(f"{last}: {state}; resuming from the one before", stacklevel=4)
            return previous
        raise DamagedFile(f"{last}: is damaged; {self.start_over}")

    def _other_version(self) -> InputError:
        path = self.path_of("checkpoint")
        return InputError(f"{path}: is of another version of balancemix; start over with --force")


def unpack(content: bytes) -> dict[str, Any]:
    """Read a state that torch saved; nothing in it is executed."""
    state: Any = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    if not isinstance(state, dict):
        raise ValueError("it holds no state")
    return state
