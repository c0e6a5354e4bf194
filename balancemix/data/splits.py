"""Which rows train and which are scored: by the splits that a file names, or a random holdout."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from balancemix.data.rows import Rows
from balancemix.data.source import ReadOptions, Source, check_text
from balancemix.errors import InputError, listing, suggest
from balancemix.labels import noise
from balancemix.labels.classes import class_counts

NAMES = ("train", "test", "val", "valid")
HELD_OUT = "held-out"  # training rows kept for scoring; no file has a split of this name


@dataclass(frozen=True)
class Splits:
    """`train` to learn from and `test` to score on; `splits` holds the rows of each split by name.

    `source` is what they were read from, with a split for each row.
    """

    train: Rows
    test: Rows
    splits: dict[str, Rows]
    source: Source | None = None

    @property
    def classes(self) -> list[str]:
        """The K class names."""
        return self.train.classes

    def named(self, name: str) -> Rows:
        """Look up the rows that a `--split` asks for."""
        if name not in self.splits:
            raise InputError(f"--split {name}: no such rows; {suggest(name, list(self.splits))}")
        return self.splits[name]

    def held_out(self, share: float, seed: int) -> Splits:
        """Score on a random `share` of the training rows, and train on the rest."""
        split = hold_out("the training rows", len(self.train), share, seed, self.train.groups)
        parts = ([i for i, name in enumerate(split) if name == part] for part in ("train", "test"))
        kept, held = (self.train.subset(torch.tensor(index)) for index in parts)
        splits = {**self.splits, "train": kept, HELD_OUT: held}
        return replace(self, train=kept, test=held, splits=splits)


def check_split(where: str, name: str) -> None:
    """Refuse an unknown name of a split; `where` begins the message.

    >>> check_split("labels.csv row 2", "train")
    """
    if name not in NAMES:
        raise InputError(f"{where}: unknown split {name!r}; {suggest(name, NAMES)}")


def check_classes(where: str, classes: Sequence[str]) -> None:
    """Refuse fewer than two classes, repeated names, and names that cannot be stored.

    >>> check_classes("classes.txt", ["cat", "dog"])
    """
    if len(classes) < 2:
        present = f"only {classes[0]!r}" if classes else "none"
        raise InputError(f"{where}: needs at least two classes, has {present}")
    repeated = [repr(name) for name, count in Counter(classes).items() if count > 1]
    if repeated:
        raise InputError(f"{where}: class names repeated: {listing(repeated)}; give each one once")
    for name in classes:
        check_text(f"{where}: class", name)


def split(where: str, rows: Rows, names: Sequence[str]) -> Splits:
    """Split rows by the name of each one's split; `where` begins the messages.

    The rows to score on are `test`, or else `val`, or else `valid`. Warns of classes without a
    positive among the training rows. A truth that is unknown where a label is given is for scoring
    only: the training rows lose it.

    >>> rows = Rows(torch.eye(3, dtype=torch.int8).repeat(2, 1), ["a", "b", "c"])
    >>> len(split("photos", rows, ["train"] * 4 + ["val"] * 2).test)
    2
    """
    places = {name: [i for i, value in enumerate(names) if value == name] for name in NAMES}
    parts = {name: rows.subset(torch.tensor(index)) for name, index in places.items() if index}
    if "train" not in parts:
        raise InputError(f"{where}: no rows to train on; give some of them the split 'train'")
    train = parts["train"]
    if rows.truth is not None and bool(((rows.truth < 0) & (rows.given >= 0)).any()):
        parts["train"] = train.with_given(train.given, None)
    scored = next((parts[name] for name in NAMES[1:] if name in parts), None)
    if scored is None:
        raise InputError(
            f"{where}: no rows to score on; give some of them the split 'test' or 'val', "
            "or leave the splits out for a random holdout"
        )
    _warn_of_divided_groups(where, parts["train"], scored)
    empty = (class_counts(parts["train"].given) == 0).nonzero().flatten().tolist()
    if empty:
        missing = listing([repr(rows.classes[k]) for k in empty])
        warnings.warn(f"{where}: no training row has the class {missing}", stacklevel=3)
    return Splits(parts["train"], scored, parts)


def _warn_of_divided_groups(where: str, train: Rows, scored: Rows) -> None:
    """Warn if the files put rows of one group into both."""
    if train.groups is None or scored.groups is None:
        return
    both = set(train.groups.tolist()) & set(scored.groups.tolist())
    if both:
        count = f"{len(both)} of {len(set(scored.groups.tolist()))}"
        warnings.warn(
            f"{where}: groups of the rows to score on are also trained on ({count}): scores will "
            "be too high",
            stacklevel=4,
        )


def hold_out(
    where: str, count: int, share: float, seed: int, groups: Tensor | None = None
) -> list[str]:
    """Name the split of each of `count` rows; a random `share` of them is "test".

    Groups stay whole.

    >>> sorted(hold_out("photos", 5, 0.2, 0))
    ['test', 'train', 'train', 'train', 'train']
    """
    if not 0 < share < 1:
        raise InputError(f"holdout must be between 0 and 1, not {share}")
    if count < 2:
        raise InputError(f"{where}: needs at least two rows, one to train and one to score on")
    drawn, _ = draw_rows(count, min(max(round(share * count), 1), count - 1), seed, groups)
    if not len(drawn):
        raise InputError(f"{where}: all rows are of one group, and a group is not divided")
    held = set(drawn.tolist())
    return ["test" if i in held else "train" for i in range(count)]


def rows_of_split(source: Source, name: str | None, options: ReadOptions) -> Sequence[int]:
    """List the rows of a split, `train` unless named; all, if neither it nor any split is."""
    splits = source.split
    if splits is None:
        if name is None:
            return range(len(source))
        count, groups = len(source), source.group_numbers
        splits = hold_out(str(source.path), count, options.holdout, options.seed, groups)
    name = name or "train"
    rows = [i for i, split in enumerate(splits) if split == name]
    if not rows:
        raise InputError(f"--split {name}: no such rows; {suggest(name, sorted(set(splits)))}")
    return rows


def draw_rows(
    count: int, most: int, seed: int, groups: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Draw `most` of `count` rows at random, and return the numbers of these and of the others.

    Groups (N numbers) stay whole: as many are drawn as fit into `most` rows, or else the smallest
    one. Of a single group nothing is drawn.

    >>> drawn, others = draw_rows(5, 3, 0, groups=torch.tensor([7, 7, 7, 2, 2]))
    >>> sorted([drawn.tolist(), others.tolist()])
    [[0, 1, 2], [3, 4]]
    """
    generator = torch.Generator().manual_seed(seed)
    if groups is None:
        drawn, others = torch.randperm(count, generator=generator).tensor_split([most])
        return drawn, others
    _, member, sizes = np.unique(groups.numpy(), return_inverse=True, return_counts=True)
    size, order = sizes.tolist(), torch.randperm(len(sizes), generator=generator).tolist()
    chosen, left = [], most
    for group in order:
        if size[group] <= left:
            chosen.append(group)
            left -= size[group]
    if not chosen and len(order) > 1:
        chosen = [min(order, key=lambda group: size[group])]
    held = np.isin(member, chosen)
    return torch.from_numpy(np.flatnonzero(held)), torch.from_numpy(np.flatnonzero(~held))


def add_noise(splits: Splits, kind: str, seed: int) -> tuple[Source, Tensor, dict[str, float]]:
    """Add noise to the training labels of loaded data.

    Returns the source with the labels before as its truth and what is verified now, the N×K labels
    with noise, and the measured rates.
    """
    source, train = splits.source, splits.train
    if source is None:
        raise InputError("only data that was loaded from files can be written again")
    noisy = noise.parse(kind).apply(train.given, seed, train.verified, train.truth)
    measured = noise.measured_rates(train.given, noisy.given, noisy.verified)
    given, verified, places = source.given.clone(), source.verified, source.rows_in("train")
    given[places] = noisy.given
    if noisy.verified is not None:
        blank = torch.zeros(given.shape, dtype=torch.bool)
        verified = blank if verified is None else verified.clone()
        verified[places] = noisy.verified
    truth = source.given if source.truth is None else source.truth
    facts = {"noise": kind, "seed": seed, "measured": measured}
    return replace(source, truth=truth, verified=verified, facts=facts), given, measured


def with_noise(rows: Rows, added: noise.Noises, seed: int) -> Rows:
    """Add noise to the truth of rows where it is known, else to their given labels.

    Noise that makes no label wrong (`unknown`, `keep`) leaves the given ones, whose errors are then
    real. Unknown and verified labels stay as they are given.
    """
    before = rows.given
    if rows.truth is not None and added.errs:
        stays = (rows.given < 0) | (rows.truth < 0)
        stays = stays if rows.verified is None else stays | rows.verified
        before = torch.where(stays, rows.given, rows.truth)
    noisy = added.apply(before, seed, rows.verified, rows.truth)
    truth = before if rows.truth is None else rows.truth
    return rows.with_given(noisy.given, truth).with_verified(noisy.verified)
