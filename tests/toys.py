"""Toys that tests train on: a little data, two small models, and a loop."""

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from balancemix.data.rows import Input
from balancemix.training.predict import predict

N, D, K, EPOCHS, SIZE = 40, 6, 5, 3, 12  # rows, features, classes, epochs, rows of a batch


class Rows(Dataset):
    """`rows[i]` is `(x, i)`, with x a list where more than one view is asked for."""

    def __init__(self, x, views=1):
        self.x, self.views = x, views

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        if self.views == 1:
            return self.x[i], i
        return [self.x[i] * (1 + 0.1 * view) for view in range(self.views)], i


def single(x: Input) -> Tensor:
    """The only view of an input."""
    assert isinstance(x, Tensor)
    return x


class Echo(nn.Module):
    """A model whose logits are its input."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, x):
        return self.scale * x


def make_data(seed=0, n=N) -> tuple[Tensor, Tensor]:
    """Labels that a linear rule explains, but for every tenth."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, D, generator=generator)
    labels = (x @ torch.randn(D, K, generator=generator) > 0.8).to(torch.uint8)
    wrong = torch.rand(n, K, generator=generator) < 0.1
    return x, torch.where(wrong, 1 - labels, labels)


def draw_confidence(seed=0, n=50, k=6, rate=0.3) -> tuple[Tensor, Tensor]:
    """Labels and confidence that have nothing to do with each other."""
    generator = torch.Generator().manual_seed(seed)
    labels = (torch.rand(n, k, generator=generator) < rate).to(torch.uint8)
    return labels, torch.rand(n, k, generator=generator, dtype=torch.float64)


def draw_logits(seed=0, n=16, k=10) -> tuple[Tensor, Tensor]:
    """Logits and labels that have nothing to do with each other."""
    generator = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(n, k, generator=generator, dtype=torch.float64)
    return logits, (torch.rand(n, k, generator=generator) < 0.3).to(torch.uint8)


def make_model(norm=True, seed=0) -> nn.Sequential:
    torch.manual_seed(seed)
    middle = nn.BatchNorm1d(16) if norm else nn.Identity()
    return nn.Sequential(nn.Linear(D, 16), middle, nn.ReLU(), nn.Linear(16, K))


class Training:
    """A loop of somebody's own, one epoch at a time."""

    def __init__(self, method, x, model=None, views=False):
        self.method, self.x, self.views = method, x, views
        self.model = method.build(make_model) if model is None else model
        self.optimiser = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)
        self.losses = []

    def epoch(self):
        request = self.method.request()
        rows = Rows(self.x, request.views if self.views else 1)
        self.model.train()
        for x, index in DataLoader(rows, batch_sampler=self.method.batches(SIZE)):
            loss = self.method.loss(self.model, x, index)
            loss.backward()
            self.optimiser.step()
            self.optimiser.zero_grad()
            self.losses.append(loss.item())
        return self.method.end_epoch(*(self.confidence() if request.passes else ()))

    def confidence(self):
        """Each member's, on plain rows."""
        return [predict(member, Rows(self.x)) for member in self.method.members(self.model)]

    def run(self, epochs=EPOCHS):
        for _ in range(epochs):
            self.epoch()
        return self

    def weights(self):
        return torch.cat([tensor.flatten().double() for tensor in self.model.state_dict().values()])


def same(a, b):
    """Are two state dictionaries equal to the last bit?"""
    if isinstance(a, torch.Tensor):
        return isinstance(b, torch.Tensor) and a.dtype == b.dtype and a.equal(b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    return a == b
