"""ML-Decoder head: one cross-attention block in which fixed queries read the map.

Ridnik et al., "ML-Decoder: Scalable and Versatile Classification Head" (WACV 2023). There are
Q = min(K, groups) queries; up to K = groups each query stands for one class, beyond that for G of
them. The block has no self-attention, so its cost is linear in Q. T counts positions of the map.
"""

import torch
from torch import Tensor, nn

from balancemix.errors import InputError
from balancemix.models.layers import perceptron, tokens


class MLDecoder(nn.Module):
    """Turn a map (B, D, H, W), tokens (B, T, D) or pooled features (B, D) into logits (B, K).

    The queries are random and frozen, as in the paper. They are saved: the other weights are
    useless without them.

    >>> MLDecoder(8, classes=5, groups=3, width=16, heads=2)(torch.zeros(2, 8, 3, 3)).shape
    torch.Size([2, 5])
    """

    queries: Tensor

    def __init__(
        self,
        features: int,
        classes: int,
        *,
        groups: int = 100,
        width: int = 768,
        heads: int = 8,
        feedforward: int = 2048,
        dropout: float = 0.1,
    ) -> None:
        super().__init__()
        if min(features, classes, groups, width, heads, feedforward) < 1 or width % heads:
            raise InputError(
                "MLDecoder: give features, classes, groups, width, heads and feedforward of at "
                f"least 1 and a width that heads divides, not width={width}, heads={heads}, "
                f"features={features}, classes={classes}, groups={groups}, "
                f"feedforward={feedforward}"
            )
        self.classes = classes
        count = min(classes, groups)  # Q
        self.register_buffer("queries", torch.randn(count, width))
        self.memory = nn.Sequential(nn.Linear(features, width), nn.ReLU())
        self.attention = nn.MultiheadAttention(width, heads, dropout=dropout, batch_first=True)
        self.feedforward = perceptron(width, feedforward, dropout, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))
        self.dropout = nn.Dropout(dropout)
        self.weight = nn.Parameter(torch.empty(count, width, -(-classes // count)))  # (Q, width, G)
        self.bias = nn.Parameter(torch.zeros(classes))
        nn.init.xavier_normal_(self.weight)

    def forward(self, features: Tensor) -> Tensor:
        """Return logits; positions carry no encoding, so their order does not matter."""
        memory = self.memory(tokens(features))  # (B, T, width)
        # Expanded before the dropout, so that each row has another mask.
        q = self.queries.expand(len(memory), -1, -1)  # (B, Q, width)
        q = self.norms[0](q + self.dropout(q))
        q = self.norms[1](
            q + self.dropout(self.attention(q, memory, memory, need_weights=False)[0])
        )
        q = self.norms[2](q + self.dropout(self.feedforward(q)))
        logits = torch.einsum("bqw,qwg->bqg", q, self.weight).flatten(1)  # (B, Q·G)
        # Q·G may exceed K: the paper drops the surplus outputs of the last queries.
        return logits[:, : self.classes] + self.bias  # (B, K)
