"""Rebuild the subsets that docs/results.md measures on, from the official downloads.

    python benchmarks/rebuild_subsets.py coco160 COCO --out data/coco160
    python benchmarks/rebuild_subsets.py deepfashion DEEPFASHION --out data/deepfashion

COCO holds annotations/ and train2014/, val2014/ (or those of 2017: the same images), DEEPFASHION
holds Anno_fine/ and img/. The lists of images are in benchmarks/subsets, in the subsets' own order;
the images and labels are their owners', and come from the downloads.

Size and JPEG quality are those of our copies (their quantisation tables say 90 and 88). The filter
with which ours were resized is not known: expect the same pictures, not the same bytes.

Our copy of DeepFashion had been renamed before it came to us, so its list holds a fingerprint of
each image, by which the original is found: whether each of 64 patches is brighter than the one to
its left and the one above. Copies of ours that are enlarged and compressed anew are found again
(tests/test_rebuild_subsets.py); the official download, behind a licence, has not been tried.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image

from balancemix.data import images
from balancemix.data.formats import coco, deepfashion
from balancemix.data.source import ReadOptions, present, read_lines
from balancemix.data.tables.new import write_table
from balancemix.errors import InputError, listing
from balancemix.files import write_whole
from balancemix.progress import progress

LISTS = Path(__file__).resolve().parent / "subsets"
SIDE = 160
QUALITY = {"coco160": 90, "deepfashion": 88}
NEAR = 10  # of 128 places in which a fingerprint may differ

Bits = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Member:
    """An image of a subset: its split, its name there, and what it is found by."""

    split: str
    name: str
    key: str


def read_list(name: str) -> list[Member]:
    """Read a list: split, number and, for DeepFashion, fingerprint on each line."""
    members = []
    for line in read_lines(LISTS / f"{name}.txt", "it belongs to the repository"):
        if line.startswith("#"):
            continue
        split, number, *key = line.split()
        if name == "coco160":
            members.append(Member(split, f"{int(number):012}.jpg", number))
        else:
            members.append(Member(split, f"{split}_{number}.jpg", key[0]))
    return members


def find_coco(paths: Sequence[Path], members: Sequence[Member]) -> list[int | None]:
    """Find the row of each member by the number that COCO gives its image."""
    rows = {int(path.stem[-12:]): i for i, path in enumerate(paths)}
    return [rows.get(int(member.key)) for member in members]


def find_deepfashion(paths: Sequence[Path], members: Sequence[Member]) -> list[int | None]:
    """Find the row whose fingerprint is nearest to each member's, every row once at most."""
    prints = []
    with progress("fingerprints", len(paths)) as show:
        for path in paths:
            prints.append(bits(fingerprint(images.decode(path))))
            show.advance()
    known = np.stack(prints)  # (N, 128)
    wanted = np.stack([bits(member.key) for member in members])
    nearest = [differing(known, key).min() for key in wanted]
    taken = np.zeros(len(known), dtype=bool)
    found: list[int | None] = [None] * len(members)
    # The surest first, lest a likeness takes what another member is the copy of.
    for i in np.argsort(nearest, kind="stable").tolist():
        distance = np.where(taken, np.inf, differing(known, wanted[i]))
        row = int(distance.argmin())
        if distance[row] <= NEAR:
            found[i] = row
            taken[row] = True
    return found


def differing(known: Bits, key: Bits) -> Bits:
    """Count the places in which each of N fingerprints differs from one.

    >>> differing(np.array([[0, 1], [1, 0]], dtype=np.float32), np.ones(2, np.float32))
    array([1., 1.], dtype=float32)
    """
    count: Bits = known.sum(1) + key.sum() - 2 * (known @ key)
    return count


def fingerprint(image: Image.Image) -> str:
    """Say of 64 patches whether they are brighter than their left and upper neighbours.

    >>> fingerprint(Image.linear_gradient("L"))
    '0000000000000000ffffffffffffffff'
    """
    patches = image.convert("L").resize((9, 9), Image.Resampling.BOX)
    grey = np.asarray(patches, dtype=np.int16)
    right = grey[:8, 1:] > grey[:8, :-1]
    below = grey[1:, :8] > grey[:-1, :8]
    return np.packbits(np.concatenate([right.ravel(), below.ravel()])).tobytes().hex()


def bits(key: str) -> Bits:
    """Take a fingerprint apart into 0s and 1s."""
    return np.unpackbits(np.frombuffer(bytes.fromhex(key), np.uint8)).astype(np.float32)


def shrink(image: Image.Image, name: str) -> Image.Image:
    """Resize to 160 × 160 (COCO), or make the short side 160 (DeepFashion).

    >>> shrink(Image.new("RGB", (300, 200)), "deepfashion").size
    (240, 160)
    """
    if name == "coco160":
        return images.resize(image, SIDE)
    scale = SIDE / min(image.size)
    size = (round(image.width * scale), round(image.height * scale))
    return image.resize(size, Image.Resampling.BICUBIC)


def rebuild(name: str, source: Path, out: Path) -> int:
    """Write images and labels.csv to `out`, and return how many; images that are there stay."""
    members = read_list(name)
    reader = coco if name == "coco160" else deepfashion
    if not reader.recognise(source):
        wanted = "annotations/instances_*.json" if name == "coco160" else "Anno_fine"
        raise InputError(f"{source}: holds no {wanted}; name the folder of the official download")
    found = reader.read(source, ReadOptions())
    paths = [source / image for image in found.names]
    # All of DeepFashion is looked at, of COCO what is listed.
    if name == "deepfashion":
        _check(source, paths)
        rows = find_deepfashion(paths, members)
    else:
        rows = find_coco(paths, members)
    lost = [member.name for member, row in zip(members, rows, strict=True) if row is None]
    if lost:
        raise InputError(
            f"{source}: {len(lost)} of {len(members)} images were not found there, such as "
            f"{listing(lost)}; is the download whole?"
        )
    chosen = [row for row in rows if row is not None]
    _check(source, [paths[row] for row in chosen])
    with progress("resize", len(members)) as show:
        for member, row in zip(members, chosen, strict=True):
            path = out / "images" / member.name
            if not path.exists():
                small = shrink(images.decode(paths[row]), name)
                write_whole(path, partial(_save, image=small, name=name))
            show.advance()
    columns = {"split": [member.split for member in members]}
    names = [member.name for member in members]
    write_table(out / "labels.csv", names, found.given[chosen], found.classes, columns)
    return len(members)


def _save(draft: Path, image: Image.Image, name: str) -> None:
    image.save(draft, format="JPEG", quality=QUALITY[name])


def _check(source: Path, paths: Sequence[Path]) -> None:
    there = present(paths)
    missing = [path.name for path, found in zip(paths, there, strict=True) if not found]
    if missing:
        raise InputError(
            f"{source}: {len(missing)} images are missing: {listing(missing)}; put them there"
        )


def main(argv: Sequence[str] | None = None) -> int:
    """Rebuild a subset."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("subset", choices=list(QUALITY))
    parser.add_argument("source", type=Path, metavar="DOWNLOAD", help="the official download")
    parser.add_argument("--out", type=Path, required=True, help="folder to write")
    arguments = parser.parse_args(argv)
    try:
        count = rebuild(arguments.subset, arguments.source, arguments.out)
    except InputError as error:
        print(f"rebuild_subsets: {error}", file=sys.stderr)
        return 2
    print(f"{arguments.out}: {count:,} images")
    return 0


if __name__ == "__main__":
    sys.exit(main())
