"""A decoder with little memory, to see what a large picture does to it."""

from balancemix.review import decoder


def main(max_pixels: int, seconds: float) -> None:
    decoder.MEMORY, decoder.BYTES_A_PIXEL = 2**28, 0
    decoder.main(max_pixels, seconds)
