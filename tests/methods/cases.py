"""BalanceMix past its warm-up, on a label table that is known."""

from typing import Any

import numpy as np
import torch

from balancemix.labels.mixtures import Mixtures
from balancemix.labels.table import Status
from balancemix.methods import BalanceMix
from balancemix.methods.base import Batch
from balancemix.processes import Shard
from tests.toys import EPOCHS, K, N, make_data, make_model


def known_case(**options):
    """A method past its warm-up with random P(clean), a model, and a batch of 4 + 4 rows."""
    x, labels = make_data(1)
    kept: dict[str, Any] = {"warmup": 0, "epsilon": 0.52, "relabel": "paper"}
    method = BalanceMix(**kept | options).start(labels, EPOCHS)
    generator = torch.Generator().manual_seed(2)
    clean = torch.rand(N, K, generator=generator)
    clean[7] = 0.9  # a row of which nothing is doubted
    method.table.write(slice(None), Status.CLEAN, clean)
    method.mixtures, method.epoch = some_mixtures(), 1
    index = torch.tensor([7, 30, 2, 19, 5, 30, 11, 26])  # row 30 is mixed with another one's 30
    return method, make_model(norm=False, seed=3), x, index


def some_mixtures():
    half = torch.full((2, K, 2), 0.5, dtype=torch.float64)
    return Mixtures(half, half, half, torch.zeros(2, K, dtype=torch.uint8))


def confidence_of(model):
    """The model as the reference wants it: a row in, K confidences out."""

    def f(row):
        with torch.no_grad():
            return model(torch.tensor(np.asarray(row), dtype=torch.float32)).sigmoid().tolist()

    return f


def managed(method, model, x, index):
    """Target and weight of a batch, decided by its views."""
    views = [x] if isinstance(x, torch.Tensor) else x
    batch = Batch(views, index, Shard(len(index)))
    return method.managed(model, batch, *method.table.rows(index))
