"""The folder beside a data set in which balancemix keeps what belongs to it."""

import os
from pathlib import Path


def folder_beside(data: Path) -> Path | None:
    """Name the folder for what balancemix keeps of a data set; the root of a disk has none.

    >>> folder_beside(Path("/x/photos")).as_posix()
    '/x/photos.balancemix'
    """
    whole = Path(os.path.abspath(data))
    return whole.with_name(f"{whole.name}.balancemix") if whole.name else None
