"""Random images with random labels, to try a plan without its data."""

from __future__ import annotations

import torch
from torch import Tensor

from balancemix.data.rows import Rows, batch_seed
from balancemix.processes import Share


class RandomImages(Rows):
    """Rows of noise, (B, 3, size, size); every class has positives and negatives."""

    def __init__(self, count: int, classes: int, size: int) -> None:
        generator = torch.Generator().manual_seed(0)
        labels = (torch.rand(count, classes, generator=generator) < 0.5).to(torch.uint8)
        labels[0], labels[1] = 1, 0
        super().__init__(labels, [f"class {k}" for k in range(classes)])
        self.size = size

    def _draw(self, share: Share) -> list[Tensor]:
        generator = torch.Generator().manual_seed(batch_seed(self.seed, share.batch))
        shape = (len(share.batch), 3, self.size, self.size)
        views = range(max(self.views, 1))
        return [share.take(torch.randn(shape, generator=generator)) for _ in views]
