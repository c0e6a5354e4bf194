"""What a method will draw next, without drawing it."""

import torch
from torch import Tensor

from balancemix.methods import Method
from balancemix.methods.mixing import draw_lambda


def copied_generator(method: Method) -> torch.Generator:
    """A generator that draws what the method's will."""
    generator = torch.Generator()
    generator.set_state(method.generator.get_state())
    return generator


def pairing_of(method: Method, rows: int) -> tuple[Tensor, float]:
    """The partners within the next batch of so many rows, and their λ."""
    generator = copied_generator(method)
    return torch.randperm(rows, generator=generator), float(draw_lambda(method.alpha, generator))


def lambda_of(method, pairs=1):
    """The λ of the next batch."""
    lam = draw_lambda(method.alpha, copied_generator(method), pairs)
    return float(lam) if pairs == 1 else lam.tolist()
