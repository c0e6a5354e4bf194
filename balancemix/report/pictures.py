"""Pictures of rows on a page: the files that the data names, wherever they are now, made small."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from pathlib import Path

from PIL import Image
from torch import Tensor

from balancemix.data import images, values
from balancemix.data.formats import picture_folder
from balancemix.data.source import ReadOptions, Source
from balancemix.errors import InputError
from balancemix.pictures import NotShown, PictureFile, flatten, jpeg
from balancemix.run import Run

SIDE = 320  # pixels of a picture on a page
QUALITY = 75  # of its JPEG
TINY = 128  # pixels; up to here every one of them is kept


class PicturedRows:
    """Rows with pictures in a folder, by their names; any of them may be missing.

    `files` are those of the rows where they are known, or N×H×W pixels.
    """

    def __init__(
        self,
        names: Sequence[str],
        folder: Path | None,
        files: Sequence[Path] | Tensor | None = None,
        features: Tensor | None = None,
    ) -> None:
        self.names, self.folder = list(names), folder
        self.files, self.features = files, features

    @classmethod
    def of(cls, source: Source, options: ReadOptions = ReadOptions()) -> PicturedRows:
        """Take the pictures that a data set names, which was read with these options."""
        folder = None if source.images is None else picture_folder(source.path, options)
        return cls(source.names, folder, source.images, source.features)

    def picture(self, i: int) -> Image.Image | None:
        """Decode the picture of row i, if there is one below the folder; made small."""
        if isinstance(self.files, Tensor):
            return Image.fromarray(self.files[i].numpy())
        if self.folder is None:
            return None
        if self.files is not None:
            path = self.files[i]
        else:
            path = images.find_all(self.folder, [self.names[i]])[0]
        try:  # a run may come from anybody: its names lead nowhere else
            return PictureFile.find(path, self.folder).read(SIDE)
        except NotShown:
            return None

    def values(self, i: int) -> str:
        """Write the values of row i, for one without a picture."""
        return values.written(self.features, i)


def find_folder(run: Run, folder: Path | None = None) -> Path | None:
    """Name the folder of a run's pictures, which need not exist; None if its rows have no names.

    It is `folder` if that is given, else the folder that was trained on, or that of the images that
    an .npz or a table names.
    """
    if folder is not None and not folder.is_dir():
        raise InputError(f"--images {folder}: is not a folder; name the folder of the images")
    if folder is not None or run.names[:1] == ["row 0"]:  # the name of a row that has none
        return folder
    return picture_folder(Path(run.plan.data.path).expanduser(), run.plan.data.reading())


def data_uri(image: Image.Image | None) -> str:
    """Write a picture as a data URI, at most `SIDE` pixels wide and high; "" for none."""
    if image is None:
        return ""
    if max(image.size) <= TINY:
        data = io.BytesIO()
        image.save(data, format="png")
        kind, content = "png", data.getvalue()
    else:
        image.thumbnail((SIDE, SIDE))
        kind, content = "jpeg", jpeg(flatten(image), QUALITY)
    return f"data:image/{kind};base64,{base64.b64encode(content).decode()}"
