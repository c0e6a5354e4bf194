"""Pictures of a run's rows: the files that its data names, wherever they are now."""

import base64
import io
import os
from collections.abc import Sequence
from pathlib import Path

from PIL import Image

from balancemix.data import images
from balancemix.data.formats import picture_folder
from balancemix.errors import InputError
from balancemix.run import Run

SIDE = 320  # pixels of a picture on a page


class PicturedRows:
    """Rows with pictures in a folder, by their names; any of them may be missing."""

    def __init__(self, names: Sequence[str], folder: Path) -> None:
        self.names, self.folder = list(names), folder

    def picture(self, i: int) -> Image.Image | None:
        """Decode the picture of row i, if it is in the folder."""
        path = images.find_all(self.folder, [self.names[i]])[0]
        # A run may come from anybody: its names lead nowhere else.
        inside = Path(os.path.realpath(path)).is_relative_to(os.path.realpath(self.folder))
        if not inside or not images.is_file(path):
            return None
        try:
            return images.decode(path)
        except InputError:  # damaged since
            return None


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
    small, data = max(image.size) <= SIDE, io.BytesIO()
    kind = "png" if small else "jpeg"
    if not small:
        image.thumbnail((SIDE, SIDE))
    image.save(data, format=kind)
    return f"data:image/{kind};base64,{base64.b64encode(data.getvalue()).decode()}"
