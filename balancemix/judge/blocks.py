"""Blocks: rows some thousands at a time, so that no matrix of all of them is needed."""

from __future__ import annotations

from collections.abc import Iterator

from balancemix import interrupts, processes

BLOCK = 4096


def blocks(rows: int) -> Iterator[slice]:
    """Split rows into blocks; stop between two if the user interrupts."""
    for start in range(0, rows, BLOCK):
        interrupts.check()
        yield slice(start, min(start + BLOCK, rows))


def local_blocks(rows: int) -> Iterator[slice]:
    """List this process's share of the blocks."""
    for number, block in enumerate(blocks(rows)):
        if number % processes.world_size() == processes.rank():
            yield block
