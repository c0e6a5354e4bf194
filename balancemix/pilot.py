"""A short training that looks at the labels before the real one, to choose settings by them."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable

import torch
from torch import nn

from balancemix.data.dataset import Rows
from balancemix.evidence import Evidence, weigh
from balancemix.methods import Mixup
from balancemix.methods.base import warm_epochs
from balancemix.plan import Plan
from balancemix.prediction import predict

_UNSEEN = 0.1


def explore(make_model: Callable[[], nn.Module], train: Rows, plan: Plan) -> Evidence:
    """Train on nine tenths of the rows, half as long as a warm-up, and weigh the others' labels.

    What the real training does afterwards does not depend on it but through what is chosen: no
    random number and no weight goes over.
    """
    from balancemix.train import fit  # which calls this

    order = torch.randperm(len(train), generator=torch.Generator().manual_seed(plan.seed))
    unseen, seen = order.tensor_split([int(_UNSEEN * len(train))])
    epochs = max(warm_epochs(None, plan.train.epochs) // 2, 1)
    pilot = copy.deepcopy(plan)
    pilot.method, pilot.train.epochs, pilot.train.track = Mixup(), epochs, None
    pilot.train.batch_size = min(plan.train.batch_size, len(seen))
    kept = train.subset(unseen)
    with warnings.catch_warnings():  # of classes without positives among few rows: no wonder
        warnings.simplefilter("ignore", UserWarning)
        model, _ = fit(make_model, train.subset(seen), kept, pilot)
    return weigh(predict(model, kept.plain, plan.train.batch_size), kept.labels)
