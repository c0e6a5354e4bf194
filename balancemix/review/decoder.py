"""A process that decodes pictures, one after another, for the server of the review page.

A picture may come from anybody. What makes a decoder hang, crash or fill the memory takes this
process with it, and not the page. It imports no PyTorch, so that it starts in a moment.

A line of JSON asks for a picture; a line of JSON answers, and then the bytes of the JPEG.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any, BinaryIO

from PIL import Image

from balancemix.files import from_json, to_json
from balancemix.pictures import NotShown, PictureFile, jpeg

READY = b"ready\n"
BYTES_A_PIXEL = 24  # of memory; most is needed for a WebP: 21
MEMORY = 2**30  # bytes besides


def main(max_pixels: int, seconds: float) -> None:
    """Decode until nobody asks any more."""
    requests, replies = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # a decoder that prints must not speak for us
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which ends us
    Image.init()
    # Pillow has a limit of its own, and refuses what is twice as large.
    Image.MAX_IMAGE_PIXELS = max(Image.MAX_IMAGE_PIXELS or 0, max_pixels)
    limit_memory(MEMORY + BYTES_A_PIXEL * max_pixels)
    replies.write(READY)
    replies.flush()
    for line in requests:
        set_alarm(seconds)
        answer(from_json(line), max_pixels, replies)
        set_alarm(None)


def answer(request: dict[str, Any], max_pixels: int, replies: BinaryIO) -> None:
    """Decode one picture, or say why not."""
    file = PictureFile(Path(request["path"]), request["name"], request["length"], 0)
    content, reply = b"", dict[str, Any]()
    try:
        content = jpeg(file.read(request["width"], max_pixels, float("inf")), request["quality"])
        reply["bytes"] = len(content)
    except NotShown as error:
        reply |= {"reason": error.reason, "message": str(error)}
    replies.write(to_json(reply).encode("ascii") + b"\n" + content)
    replies.flush()


def limit_memory(most: int) -> None:
    """Let the system refuse more memory, where it can (on Linux)."""
    try:
        import resource
    except ImportError:  # Windows
        return
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    if hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (most, hard))


def set_alarm(seconds: float | None) -> None:
    """End this process a while after the time is up, for when the server is not there to do it."""
    if hasattr(signal, "alarm"):  # not on Windows
        signal.alarm(0 if seconds is None else int(seconds) + 2)
