"""A folder of images without labels."""

from pathlib import Path

import torch

from balancemix.data import images
from balancemix.data.source import ReadOptions, Source, leave_out
from balancemix.errors import InputError


def read(path: Path, options: ReadOptions) -> Source:
    """List every image below a folder."""
    paths = sorted(each for each in path.rglob("*") if each.suffix.lower() in images.ENDINGS)
    if not paths:
        raise InputError(f"{path}: holds no image ({', '.join(sorted(images.ENDINGS))})")
    problems = dict(zip(paths, images.problems(paths), strict=True))
    bad = [f"{each.name!r} ({problem})" for each, problem in problems.items() if problem]
    leave_out(f"{path}: %s cannot be read", bad, len(paths), options.skip_bad)
    usable = [each for each, problem in problems.items() if problem is None]
    return Source(
        path=path,
        classes=[],
        names=[each.relative_to(path).as_posix() for each in usable],
        given=torch.empty(len(usable), 0, dtype=torch.int8),
        images=usable,
    )
