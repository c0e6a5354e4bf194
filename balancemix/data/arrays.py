"""Arrays in .npy files, as other programs write them."""

from __future__ import annotations

from pathlib import Path
from tokenize import TokenError

import numpy as np
import torch
from torch import Tensor

from balancemix.errors import InputError

# What NumPy raises about a file that is not one of its own, or is damaged.
_DAMAGED = (
    ValueError, EOFError, SyntaxError, TokenError, TypeError, MemoryError, OverflowError,
)  # fmt: skip


def read_array(file: Path) -> Tensor:
    """Read the numbers of an .npy file, which may be N×K integers, floats or booleans."""
    try:
        with file.open("rb") as content:
            array = np.lib.format.read_array(content, allow_pickle=False)
            rest = content.read(1)
    except FileNotFoundError as error:
        raise InputError(f"{file}: not found") from error
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror})") from error
    except _DAMAGED as error:
        raise InputError(f"{file}: is not an .npy file of numbers; write one by np.save") from error
    if rest or array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
        raise InputError(f"{file}: is not an .npy file of numbers; write one by np.save")
    plain = array.astype(array.dtype.newbyteorder("="), copy=False)
    if plain.dtype.kind == "u" and plain.dtype.itemsize > 1:
        plain = plain.astype(np.float64)  # torch knows no larger ones
    return torch.from_numpy(np.require(plain, requirements=["C", "W"]))
