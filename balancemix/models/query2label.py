"""Query2Label head: a transformer in which a learned query of each class reads the map.

Liu et al., "Query2Label: A Simple Transformer Way to Multi-Label Classification" (2021). An
encoder layer lets positions of the map see each other; in two decoder layers K queries, the
positional terms of a target that starts at zero, attend to them; each class has its linear output.
At the paper's sizes this is 150 million weights, whatever the backbone.
"""

import math

import torch
from torch import Tensor, nn

from balancemix.errors import InputError
from balancemix.models.layers import perceptron, tokens


class Query2Label(nn.Module):
    """Turn a map (B, D, H, W), tokens (B, T, D) or pooled features (B, D) into logits (B, K).

    Positions of a map are encoded by sines. Departure: tokens, which the paper does not have, are
    not, as their transformer has encoded their places. Pooled features are a single token, so the
    queries have nothing to choose from, and only the outputs differ between classes.

    >>> Query2Label(8, classes=5, width=16, feedforward=32)(torch.zeros(2, 8, 3, 3)).shape
    torch.Size([2, 5])
    """

    def __init__(
        self,
        features: int,
        classes: int,
        *,
        width: int = 2048,
        heads: int = 4,
        feedforward: int = 8192,
        encoders: int = 1,
        decoders: int = 2,
        dropout: float = 0.1,
    ) -> None:
        super().__init__()
        sizes = (features, classes, width, heads, feedforward, encoders + 1, decoders)
        if min(sizes) < 1 or width % heads or width % 4:
            raise InputError(
                "Query2Label: give features, classes, width, heads, feedforward and decoders of "
                "at least 1 and a width that heads and 4 divide, not "
                f"width={width}, heads={heads}, features={features}, classes={classes}, "
                f"feedforward={feedforward}, encoders={encoders}, decoders={decoders}"
            )
        # As in the original, a map that already has the width is not projected.
        self.project = nn.Identity() if features == width else nn.Linear(features, width)
        self.encoder = nn.ModuleList(
            Layer(width, heads, feedforward, dropout) for _ in range(encoders)
        )
        self.decoder = nn.ModuleList(
            Layer(width, heads, feedforward, dropout) for _ in range(decoders)
        )
        self.norm = nn.LayerNorm(width)
        self.queries = nn.Parameter(torch.randn(classes, width))
        self.weight = nn.Parameter(torch.empty(classes, width))
        self.bias = nn.Parameter(torch.empty(classes))
        for matrix in (*self.encoder.parameters(), *self.decoder.parameters()):
            if matrix.ndim > 1:
                nn.init.xavier_uniform_(matrix)
        bound = 1 / math.sqrt(width)
        for output in (self.weight, self.bias):
            nn.init.uniform_(output, -bound, bound)

    def forward(self, features: Tensor) -> Tensor:
        """Return logits."""
        places: Tensor | None = None
        if features.ndim == 4:
            height, width = features.shape[2:]
            places = sine_positions(height, width, self.norm.weight)  # (T, width of the head)
        memory = self.project(tokens(features))  # (B, T, width)
        for layer in self.encoder:
            memory = layer(memory, places, memory, places)
        target = memory.new_zeros(len(memory), *self.queries.shape)  # (B, K, width)
        for layer in self.decoder:
            target = layer(target, self.queries, memory, places)
        return torch.einsum("bkw,kw->bk", self.norm(target), self.weight) + self.bias


class Layer(nn.Module):
    """Post-norm attention from `x` to `memory`, each with its places, and a feed-forward part.

    With `memory` the same as `x` this is an encoder layer, otherwise a decoder layer.
    """

    def __init__(self, width: int, heads: int, feedforward: int, dropout: float) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(width, heads, dropout=dropout, batch_first=True)
        self.feedforward = perceptron(width, feedforward, dropout, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, x: Tensor, x_places: Tensor | None, memory: Tensor, memory_places: Tensor | None
    ) -> Tensor:
        """Return the new `x`; places are added to queries and keys, not to values."""
        attended = self.attention(
            _placed(x, x_places), _placed(memory, memory_places), memory, need_weights=False
        )[0]
        x = self.norms[0](x + self.dropout(attended))
        result: Tensor = self.norms[1](x + self.dropout(self.feedforward(x)))
        return result


def sine_positions(height: int, width: int, like: Tensor) -> Tensor:
    """Encode the places of a map, row by row: (height · width, length of `like`).

    The first half encodes the row and the second the column, both scaled to 2π for the whole map,
    alternating sines and cosines.

    >>> sine_positions(1, 2, torch.zeros(4))[:, 2:].round(decimals=2)
    tensor([[ 0., -1.],
            [-0.,  1.]])
    """
    half = len(like) // 2
    step = torch.arange(0, half, 2, device=like.device, dtype=like.dtype) / half
    sides = []
    for count in (height, width):
        place = torch.arange(1, count + 1, device=like.device, dtype=like.dtype)
        angle = place.mul(2 * math.pi / (count + 1e-6)).unsqueeze(1) / 10_000**step
        sides.append(torch.stack((angle.sin(), angle.cos()), dim=2).flatten(1))  # (count, half)
    rows = sides[0].unsqueeze(1).expand(height, width, half)
    columns = sides[1].unsqueeze(0).expand(height, width, half)
    return torch.cat((rows, columns), dim=2).flatten(0, 1)


def _placed(x: Tensor, places: Tensor | None) -> Tensor:
    return x if places is None else x + places
