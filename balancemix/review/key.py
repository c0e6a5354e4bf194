"""The key and the port of a review, kept with the store: an open tab goes on after a restart."""

from __future__ import annotations

import os
import secrets
from dataclasses import asdict, dataclass
from pathlib import Path

from balancemix.errors import InputError
from balancemix.files import from_json, to_json

FILE = "key"
BYTES = 32


@dataclass(frozen=True)
class Key:
    """What lets a browser in, and the port at which its waiting answers are sent."""

    key: str
    port: int | None

    @classmethod
    def new(cls, port: int | None = None) -> Key:
        """Draw a key of 256 bits."""
        return cls(secrets.token_urlsafe(BYTES), port)


def read_key(folder: Path) -> Key | None:
    """Read the key of a store; None if it has none yet."""
    file = folder / FILE
    try:
        content = from_json(file.read_bytes())
        key, port = content["key"], content["port"]
        if not isinstance(key, str) or len(key) < BYTES or not isinstance(port, int | None):
            raise ValueError
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError):
        raise InputError(
            f"{file}: is not a key of balancemix; delete it, or use --new-key"
        ) from None
    return Key(key, port)


def write_key(folder: Path, key: Key) -> None:
    """Keep a key where only its owner can read it."""
    draft = folder / f".{FILE}.draft"
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(to_json(asdict(key)))
        file.flush()
        os.fsync(descriptor)
    draft.replace(folder / FILE)
