"""Answers of people from any file: a table that they filled in, or what another tool exports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from balancemix.data.decisions.filled import Filled, read_filled
from balancemix.data.source import Source
from balancemix.errors import InputError
from balancemix.exchange import cleanlab, fiftyone, label_studio_export
from balancemix.exchange.known import Known
from balancemix.files import from_json
from balancemix.progress import Show, silence


def read_answers(file: Path, source: Source, show: Show = silence, *, named: bool = True) -> Filled:
    """Read the answers in a file, which is recognised by its content; all of them, or none.

    `named` says that somebody answers for them: labels that differ from the data's do not say who
    changed them.
    """
    known, ending = Known(source), file.suffix.lower()
    content: Any = _json(file) if ending == ".json" else None
    if label_studio_export.recognise(content):
        return label_studio_export.read(file, content, known)
    if fiftyone.recognise(content):
        return fiftyone.read(file, content, known)
    if ending in (".npy", ".npz") or cleanlab.is_lists(content):
        if not named:
            raise InputError(
                f"{file}: holds labels, but not who decided them; pass --name, if a person did"
            )
        return cleanlab.read_corrected(file, known, content)
    return read_filled(file, source.path, set(source.names), source.classes, show)


def _json(file: Path) -> Any:
    """Read JSON; None if it is not, which the reader of tables explains."""
    try:
        return from_json(file.read_bytes().decode("utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        return None
