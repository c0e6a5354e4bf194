"""Say how many labels people verified."""

from __future__ import annotations

from typing import TYPE_CHECKING

from balancemix.errors import counted, printable

if TYPE_CHECKING:
    from balancemix.data import Source


def verified_line(source: Source | None) -> str | None:
    """Count the labels that people verified beside the data; None if there are none."""
    from balancemix.data.beside import folder_beside

    if source is None or source.decided is None or not bool(source.decided.any()):
        return None
    count, folder = int(source.decided.sum()), folder_beside(source.path)
    assert folder is not None
    return f"{counted(count, 'label')} verified by a person ({folder.name})"


def say_verified(source: Source | None) -> None:
    """Print the line, if there is one."""
    line = verified_line(source)
    if line is not None:
        print(printable(line))
