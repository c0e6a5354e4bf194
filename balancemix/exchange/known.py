"""The images and classes of a data set, by which a file of another tool is checked."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import Any

from balancemix.data.decisions.names import person
from balancemix.data.source import Source
from balancemix.errors import InputError, suggest

_SHOWN = 60  # characters of a value in a message


class Known:
    """Looks up names, and refuses one that the data does not have with its place."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._images, self._classes = set(source.names), set(source.classes)
        self._paths: dict[str, str] | None = None

    def image(self, where: str, name: object) -> str:
        """Return the name of an image."""
        if isinstance(name, str) and name in self._images:
            return name
        raise InputError(f"{where}: {shown(name)} is not an image of {self.source.path}")

    def image_at(self, where: str, path: str) -> str:
        """Return the name of the image with an absolute path."""
        if self._paths is None:
            images = self.source.images if isinstance(self.source.images, list) else []
            pairs = zip(images, self.source.names, strict=False)
            self._paths = {os.path.abspath(image): name for image, name in pairs}
        name = self._paths.get(os.path.normpath(path)) if os.path.isabs(path) else None
        if name is None:
            raise InputError(f"{where}: {shown(path)} is not an image of {self.source.path}")
        return name

    def class_(self, where: str, name: object) -> str:
        """Return the name of a class."""
        if isinstance(name, str) and name in self._classes:
            return name
        known = suggest(str(name)[:_SHOWN], self.source.classes)
        raise InputError(f"{where}: {shown(name)} is not a class of {self.source.path}; {known}")


def shown(value: object) -> str:
    """Show a value in a message, cut if it is long.

    >>> shown("cat"), len(shown("x" * 500))
    ("'cat'", 60)
    """
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def field(where: str, content: dict[str, Any], name: str, kind: type, otherwise: Any) -> Any:
    """Return the value of a key; `otherwise` if it is missing or null. Refuses another kind."""
    value = content.get(name)
    if value is None:
        return otherwise
    if not isinstance(value, kind):
        raise InputError(f"{where}: {name} is {shown(value)}, not {_KINDS[kind]}")
    return value


def mapping(where: str, value: object) -> dict[str, Any]:
    """Return an object of JSON; refuses anything else."""
    if not isinstance(value, dict):
        raise InputError(f"{where}: is {shown(value)}, not an object")
    return value


def utc(where: str, text: str) -> str:
    """Write a time as the store does; a time without a zone is UTC.

    >>> utc("x", "2026-01-31T12:00:00+01:00")
    '2026-01-31T11:00:00.000000Z'
    """
    try:
        time = datetime.fromisoformat(text)
        time = time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError):
        raise InputError(f"{where}: time {shown(text)} is not like 2026-01-31T12:00:00Z") from None
    return f"{time:%Y-%m-%dT%H:%M:%S.%f}Z"


def reviewer(where: str, name: str) -> str:
    """Check the name of a person."""
    try:
        return person(name)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


_KINDS = {dict: "an object", list: "a list", str: "text", bool: "true or false"}
