"""Files that are written whole or not at all."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any


def write_whole(path: Path, save: Callable[[Path], object]) -> None:
    """Let `save` write a draft beside `path`, and move it into place once it is on the disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.draft")
    save(draft)
    with draft.open("rb") as written:
        os.fsync(written.fileno())
    draft.replace(path)


def write_text(path: Path, text: str) -> None:
    """Write a text file."""
    write_whole(path, lambda draft: draft.write_text(text, encoding="utf-8", newline="\n"))


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON file that people may read."""
    write_text(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def write_arrays(path: Path, arrays: Mapping[str, Any]) -> None:
    """Write a compressed .npz file, the same bytes for the same arrays."""
    import numpy as np

    def save(draft: Path) -> None:
        with draft.open("wb") as out:
            np.savez_compressed(out, allow_pickle=False, **arrays)

    write_whole(path, save)


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a CSV file."""

    def save(draft: Path) -> None:
        with draft.open("w", newline="", encoding="utf-8") as out:
            writer = csv.writer(out, lineterminator="\n")
            writer.writerow(header)
            writer.writerows(rows)

    write_whole(path, save)
