"""Large arrays that stay in their .npz: written in blocks, read by mapping the file into memory.

NumPy maps no member of an archive, but one that is stored without compression lies in the file as
it would in memory, some way behind the archive's header of it.
"""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from balancemix.files import write_whole

Array = npt.NDArray[Any]

LARGE = 1 << 24  # bytes; smaller arrays are read, which also checks their sums
ALIGNMENT = 64
PADDING = 0xD935  # the field with which Android's zipalign fills up headers


def write_stored(path: Path, arrays: Mapping[str, Array]) -> None:
    """Write an uncompressed .npz whose arrays can be mapped, the same bytes for the same arrays.

    An array that is a part of a mapped one is copied in blocks, never whole.
    """

    def save(draft: Path) -> None:
        with draft.open("wb") as out, zipfile.ZipFile(out, "w") as archive:
            for name, array in arrays.items():
                if array.flags.fnc:  # in Fortran's order, which is not mapped
                    array = np.ascontiguousarray(array)
                info = zipfile.ZipInfo(f"{name}.npy")  # of 1980, as NumPy's
                info.extra = _padding(out.tell(), info.filename)
                with archive.open(info, "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, array, allow_pickle=False)

    write_whole(path, save)


def _padding(start: int, name: str) -> bytes:
    """Fill up the header that begins at `start`, so that what follows is aligned in memory."""
    fixed, sizes = 30, 20  # the header before the name, and the field of 64-bit sizes behind ours
    count = -(start + fixed + len(name.encode()) + 4 + sizes) % ALIGNMENT
    return struct.pack("<HH", PADDING, count) + bytes(count)


def map_array(file: Path, archive: zipfile.ZipFile, name: str) -> Array | None:
    """Map an array of an open .npz, or return None where only reading will do.

    That is where it is small, compressed, of objects, in Fortran's order or not aligned. Pages that
    are written to become copies of one's own: the file never changes.
    """
    info = archive.getinfo(f"{name}.npy")
    if info.compress_type != zipfile.ZIP_STORED or info.file_size < LARGE or info.flag_bits & 1:
        return None
    with file.open("rb") as stream:
        stream.seek(info.header_offset)
        header = stream.read(30)
        if len(header) < 30 or header[:4] != b"PK\x03\x04":
            return None
        stream.seek(sum(struct.unpack("<HH", header[26:])), 1)  # the lengths of name and extra
        begin = stream.tell()
        shape, fortran, dtype = _read_header(stream)
        offset = stream.tell()
    size = dtype.itemsize * int(np.prod(shape, dtype=np.int64))
    whole = size == info.file_size - (offset - begin)
    if fortran or dtype.hasobject or not whole or offset % dtype.alignment:
        return None
    return np.memmap(file, dtype, "c", offset, shape)


def _read_header(stream: BinaryIO) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = np.lib.format.read_magic(stream)
    read = np.lib.format.read_array_header_1_0
    if version != (1, 0):
        read = np.lib.format.read_array_header_2_0
    return read(stream)
