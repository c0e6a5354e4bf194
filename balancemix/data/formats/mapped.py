"""Large arrays that stay in their .npz: written in blocks, and mapped into memory to be read.

NumPy cannot map a member of an archive. But a member stored without compression has the same bytes
in the file as in memory, some way after its header.
"""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from balancemix.files import write_whole

Array = npt.NDArray[Any]

LARGE = 1 << 24  # bytes; smaller arrays are read, which also checks their checksums
ALIGNMENT = 64
PADDING = 0xD935  # the field that Android's zipalign pads headers with


def write_stored(path: Path, arrays: Mapping[str, Array]) -> None:
    """Write an uncompressed .npz whose arrays can be mapped, the same bytes for the same arrays.

    A slice of a mapped array is copied in blocks, never as a whole.
    """

    def save(draft: Path) -> None:
        with draft.open("wb") as out, zipfile.ZipFile(out, "w") as archive:
            for name, array in arrays.items():
                if array.flags.fnc:  # in Fortran order, which cannot be mapped
                    array = np.ascontiguousarray(array)
                info = zipfile.ZipInfo(f"{name}.npy")  # dated 1980, like NumPy's
                info.extra = _padding(out.tell(), info.filename)
                with archive.open(info, "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, array, allow_pickle=False)

    write_whole(path, save)


def _padding(start: int, name: str) -> bytes:
    """Pad the header that starts at `start`, so that the array after it is aligned in memory."""
    fixed, sizes = 30, 20  # bytes before the name, and of the 64-bit sizes after our field
    count = -(start + fixed + len(name.encode()) + 4 + sizes) % ALIGNMENT
    return struct.pack("<HH", PADDING, count) + bytes(count)


def map_array(file: Path, archive: zipfile.ZipFile, name: str) -> Array | None:
    """Map an array of an open .npz, or return None where it must be read.

    That is where it is small, compressed, of objects, in Fortran order or not aligned. A page that
    is written to becomes a private copy: the file never changes.
    """
    info = archive.getinfo(f"{name}.npy")
    if info.compress_type != zipfile.ZIP_STORED:
        return None
    if info.compress_size != info.file_size:  # NumPy would read as much as it needs, unchecked
        raise zipfile.BadZipFile(f"two sizes of {name}")
    if info.file_size < LARGE or info.flag_bits & 1:
        return None
    try:
        archive.open(info).close()  # compares the archive's directory with the array's header
    except zipfile.BadZipFile:
        return None
    with file.open("rb") as stream:
        stream.seek(info.header_offset)
        header = stream.read(30)
        if len(header) < 30 or header[:4] != b"PK\x03\x04":
            return None
        stream.seek(sum(struct.unpack("<HH", header[26:])), 1)  # the lengths of name and extra
        start = stream.tell()
        shape, fortran, dtype = _read_header(stream)
        offset = stream.tell()
    size = dtype.itemsize * int(np.prod(shape, dtype=np.int64))
    whole = size == info.file_size - (offset - start)
    if fortran or dtype.hasobject or not whole or offset % dtype.alignment:
        return None
    return np.memmap(file, dtype, "c", offset, shape)


def read_stored(path: Path, mapped: Sequence[str]) -> dict[str, Array]:
    """Read all arrays of an .npz and compare their checksums; those named are mapped if large."""
    with path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
        damaged = archive.zip.testzip()
        if damaged is not None:
            raise zipfile.BadZipFile(f"wrong checksum of {damaged}")
        arrays: dict[str, Array] = {}
        for name in archive:
            large = map_array(path, archive.zip, name) if name in mapped else None
            arrays[name] = archive[name] if large is None else large
            if not isinstance(arrays[name], np.ndarray):  # NumPy returns other members as bytes
                raise TypeError(f"{name} is not an array")
        return arrays


def _read_header(stream: BinaryIO) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = np.lib.format.read_magic(stream)
    read = np.lib.format.read_array_header_1_0
    if version != (1, 0):
        read = np.lib.format.read_array_header_2_0
    return read(stream)
