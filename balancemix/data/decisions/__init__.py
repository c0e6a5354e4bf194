"""What people decided about labels: decisions.csv and the store, in `photos.balancemix/`.

On reading data, a verdict replaces the given label, which is then verified; "unsure" changes
nothing. The store, review.sqlite, is asked after the file that people write themselves.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Collection, Generator, Iterable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from balancemix.data.beside import folder_beside
from balancemix.data.decisions.connection import FILE
from balancemix.data.decisions.file import decisions_file, read_decisions
from balancemix.data.decisions.store import Store
from balancemix.data.source import Source
from balancemix.errors import InputError, listing, suggest


def store_folder(data: Path) -> Path:
    """Name the folder of the store of a data set."""
    folder = folder_beside(data)
    if folder is None:
        raise InputError(f"{data}: is the root of a disk, beside which nothing can be kept")
    return folder


def has_store(data: Path) -> bool:
    """Say whether there is a store beside a data set.

    >>> has_store(Path("nowhere"))
    False
    """
    folder = folder_beside(data)
    return folder is not None and os.path.isfile(folder / FILE)


def decide(source: Source) -> Source:
    """Replace given labels by what people decided about them; the file's are kept.

    Decisions about images that are gone are left out with a warning. A class that is not there is
    refused.
    """
    labels = _answered(source)
    return source if labels is None else labels.decided()


def unsure_labels(source: Source) -> Tensor:
    """Mark the labels about which people are unsure or differ: N×K booleans.

    None of a source that was read without what people decided.
    """
    labels = None if source.decided is None else _answered(source.as_in_file)
    blank = torch.zeros(source.given.shape, dtype=torch.bool)
    return blank if labels is None else labels.unsure


def _answered(source: Source) -> _Labels | None:
    """Apply what people decided to the labels of a file; None where nobody decided anything."""
    file = decisions_file(source.path)
    if file is None and not has_store(source.path):
        return None
    labels = _Labels(source)
    if file is not None:
        labels.apply(str(file), read_decisions(file))
    if has_store(source.path):
        with (
            Store.open(store_folder(source.path), write=False) as store,
            closing(_verdicts(store, labels.column)) as verdicts,
        ):
            labels.apply(str(store.file), verdicts)
    return labels


def _verdicts(store: Store, classes: Collection[str]) -> Generator[tuple[str, str, str, int]]:
    """List what a store says: place, image, class, and 1, 0 or −1 for as in the file.

    What is absent by a glance at a small picture alone changes nothing. A class that is gone is
    absent, as far as nothing but "no others" was said about it.
    """
    for image, class_, state, named in store.each_state():
        if not named and class_ not in classes:
            continue
        if state.verified:
            yield str(store.file), image, class_, int(state.verdict == "present")
        elif state.state in ("unsure", "disputed"):
            yield str(store.file), image, class_, -1


class _Labels:
    """The labels of a source while decisions are applied to them."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.place = {name: i for i, name in enumerate(source.names)}
        self.column = {name: k for k, name in enumerate(source.classes)}
        self.given = source.given.clone()
        self.people = torch.zeros(source.given.shape, dtype=torch.bool)
        self.unsure = torch.zeros_like(self.people)

    def apply(self, file: str, verdicts: Iterable[tuple[str, str, str, int]]) -> None:
        """Apply verdicts in their order: of two about one label the last one counts."""
        source, gone = self.source, dict[str, None]()
        rows, columns, values = list[int](), list[int](), list[int]()
        for where, image, class_, verdict in verdicts:
            k = self.column.get(class_)
            if k is None:
                raise InputError(
                    f"{where}: {class_!r} is not a class of {source.path}; "
                    f"{suggest(class_, source.classes)}"
                )
            i = self.place.get(image)
            if i is None:
                gone[repr(image)] = None
                continue
            rows.append(i)
            columns.append(k)
            values.append(verdict)
        # Of an index that occurs twice, only the last value may be written.
        last = {(i, k): v for i, k, v in zip(rows, columns, values, strict=True)}
        if last:
            index = torch.tensor(list(last)).T
            verdict_ = torch.tensor(list(last.values()), dtype=self.given.dtype)
            i_, k_ = index[0], index[1]
            sure = verdict_ >= 0  # else as in the file, also if an earlier one decided it
            self.given[i_, k_] = torch.where(sure, verdict_, source.given[i_, k_])
            self.people[i_, k_], self.unsure[i_, k_] = sure, ~sure
        if gone:
            warnings.warn(
                f"{file}: images that {source.path} does not have ({len(gone)}): "
                f"{listing(list(gone), 3)}; their decisions are left out",
                stacklevel=3,
            )

    def decided(self) -> Source:
        """Return the source with the decisions."""
        source = self.source
        verified: Tensor = self.people
        if source.verified is not None:
            verified = verified | source.verified
        return replace(
            source,
            given=self.given,
            verified=verified,
            decided=self.people,
            file_given=source.given,
        )
