"""What this machine can do."""

from __future__ import annotations

import torch

from balancemix.errors import InputError
from balancemix.wording import suggest


def check_device(device: str) -> None:
    """Refuse a device that is not here; "auto" is the best there is."""
    here = ["auto", "cpu"]
    here += ["cuda"] if torch.cuda.is_available() else []
    here += ["mps"] if torch.backends.mps.is_available() else []
    if device not in here:
        raise InputError(f"--device {device} is not to be had here; {suggest(device, here)}")
