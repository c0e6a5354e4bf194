"""Data formats: a module for each, which reads a `Source` and may write one."""

from importlib.metadata import entry_points
from pathlib import Path
from typing import Protocol, runtime_checkable

from torch import Tensor

from balancemix.data.formats import builtin, coco, deepfashion, deepfashion_coarse, npz, table, voc
from balancemix.data.source import ReadOptions, Source
from balancemix.errors import InputError, suggest

GROUP = "balancemix.formats"
KNOWN = (
    *builtin.NAMES, "a folder with labels.csv", "an .npz file", "a table",
    "a folder of COCO", "of VOC", "of DeepFashion",
)  # fmt: skip


class Format(Protocol):
    """A module that reads one kind of data; see docs/data.md."""

    def recognise(self, path: Path) -> str | None:
        """Say why a path is of this format, or return None.

        Looks at names of files, and at most at the beginning of one.
        """

    def read(self, path: Path, options: ReadOptions) -> Source:
        """Read the files, without decoding any image."""


@runtime_checkable
class WritableFormat(Format, Protocol):
    """A format that can also be written, to a file that ends in `ENDING`, or one of `ENDINGS`."""

    ENDING: str

    def write(self, source: Source, given: Tensor, out: Path) -> list[str] | None:
        """Write the source with other labels, and change nothing else.

        Returns what a person should know about the file, if anything, a sentence each.
        """


# The first that recognises a path reads it: a labels.csv goes before what else a folder holds.
FORMATS: dict[str, Format] = {
    "builtin": builtin,
    "table": table,
    "coco": coco,
    "voc": voc,
    "deepfashion": deepfashion,
    "deepfashion-coarse": deepfashion_coarse,
    "npz": npz,
}


def all_formats() -> dict[str, Format]:
    """Return our formats, then those that other packages declare as entry points.

    >>> list(all_formats())[:3]
    ['builtin', 'table', 'coco']
    """
    formats = dict(FORMATS)
    for point in entry_points(group=GROUP):
        try:
            formats.setdefault(point.name, point.load())
        except Exception as error:  # whatever another package raises when it is imported
            raise InputError(
                f"format {point.name!r} ({point.value}) cannot be loaded ({error}); "
                "repair or uninstall its package"
            ) from error
    return formats


def find_format(path: Path, name: str | None = None) -> Format:
    """Choose the format that reads a path; table if it is a folder that none recognises.

    `name` overrules what is recognised.
    """
    formats = all_formats()
    if name is not None:
        if name not in formats:
            raise InputError(f"--format {name}: unknown; {suggest(name, list(formats))}")
        return formats[name]
    for format_ in formats.values():
        if format_.recognise(path) is not None:
            return format_
    if path.is_dir():
        return table
    state = "unknown format" if path.exists() else "not found"
    raise InputError(f"data {str(path)!r}: {state}; {suggest(str(path), KNOWN)}")


def why(path: Path, format_: Format) -> str:
    """Say which format reads a path, and why.

    >>> why(Path("x.npz"), npz)
    'x.npz is read as npz: it ends in .npz (--format)'
    """
    name = next(name for name, each in all_formats().items() if each is format_)
    return f"{path} is read as {name}: {format_.recognise(path) or '--format says so'} (--format)"


def is_label_file(path: Path) -> bool:
    """Tell whether a path is a file with labels of images, and not a folder.

    >>> is_label_file(Path("labels.csv")), is_label_file(Path("x.npz"))
    (True, False)
    """
    if path.is_dir():
        return False
    return table.recognise(path) is not None or coco.recognise(path) is not None


def images_of(path: Path, options: ReadOptions) -> Path:
    """Name the folder of the images of a file with labels, which need not exist.

    >>> images_of(Path("photos/labels.csv"), ReadOptions()).as_posix()
    'photos'
    """
    if options.images is not None:
        return options.images
    return coco.images_of(path) if coco.recognise(path) is not None else path.parent


def picture_folder(path: Path, options: ReadOptions = ReadOptions()) -> Path:
    """Name the folder below which the pictures of a data set are; it need not exist.

    >>> picture_folder(Path("photos/labels.csv")).as_posix(), picture_folder(Path("voc")).as_posix()
    ('photos', 'voc')
    """
    if options.images is not None:
        return options.images
    if npz.recognise(path):
        return npz.picture_folder(path) or path
    return images_of(path, options) if is_label_file(path) else path


def is_data(path: Path) -> bool:
    """Tell whether a format recognises a path.

    >>> is_data(Path("digits")), is_data(Path("nowhere"))
    (True, False)
    """
    return any(each.recognise(path) is not None for each in all_formats().values())


def find_writer(out: Path, path: Path | None = None) -> WritableFormat:
    """Choose the format that writes a file with that ending: that of `path`, if it can.

    >>> find_writer(Path("noisy.csv")).ENDING
    '.csv'
    """
    writers = [each for each in all_formats().values() if isinstance(each, WritableFormat)]
    ending = out.suffix.lower()
    fitting = [writer for writer in writers if ending in _endings(writer)]
    if not fitting:
        endings = sorted({ending for writer in writers for ending in _endings(writer)})
        raise InputError(f"--out {out}: must end in {' or '.join(endings)}")
    same = (writer for writer in fitting if path is not None and writer.recognise(path))
    return next(same, fitting[0])


def _endings(writer: WritableFormat) -> tuple[str, ...]:
    endings: tuple[str, ...] = getattr(writer, "ENDINGS", (writer.ENDING,))
    return endings
