"""A process's share of a batch, and what is made for it: all without another process."""

import copy

import pytest
import torch
from torch import nn

from balancemix.data.loading import Loader
from balancemix.methods import BCE
from balancemix.methods.mixing import draw_lambda
from balancemix.methods.sampling import Batches
from balancemix.models.batchnorm import SharedBatchNorm, share_statistics
from balancemix.processes import BatchIndex, Shard
from tests import together


@pytest.mark.parametrize("world", [2, 3])
@pytest.mark.parametrize("total", [1, 2, 7])
def test_parts_make_the_whole(total, world):
    parts = [Shard(total, rank, world) for rank in range(world)]
    values = torch.rand(total, dtype=torch.float64)
    mean = sum(part.weight * part.take(values).mean() for part in parts) / world
    torch.testing.assert_close(mean, values.mean())
    owned = [place for part in parts if part.weight for place in part.places]
    assert sorted(owned) == list(range(total))
    assert all(torch.equal(values[part.places], part.take(values)) for part in parts)


def test_a_permutation_of_a_part_draws_as_that_of_the_whole():
    ends = []
    for part in (Shard(7), Shard(7, 0, 2), Shard(7, 1, 2)):
        generator = torch.Generator().manual_seed(0)
        order = part.permutation(generator)
        assert sorted(order.tolist()) == list(range(len(part.places)))
        ends.append(generator.get_state())
    assert torch.equal(ends[0], ends[1])
    assert torch.equal(ends[0], ends[2])
    alone = torch.randperm(7, generator=torch.Generator().manual_seed(0))
    assert torch.equal(Shard(7).permutation(torch.Generator().manual_seed(0)), alone)


def test_ratios_of_a_part_are_among_those_of_the_whole():
    whole = draw_lambda(4.0, torch.Generator().manual_seed(0), 7)
    for rank in (0, 1):
        part = draw_lambda(4.0, torch.Generator().manual_seed(0), Shard(7, rank, 2))
        assert torch.equal(part, whole[rank::2])


@pytest.mark.parametrize(("kind", "workers"), [("features", 0), ("images", 0), ("images", 1)])
def test_views_of_shares_are_those_of_the_whole(tmp_path, kind, workers):
    made = together.make_rows(30) if kind == "features" else together.make_photos(tmp_path, 30)
    rows = made.with_views(2, seed=5)
    batch = [4, 9, 1, 4, 20]
    whole, _ = rows.__getitems__(batch)
    assert not torch.equal(whole[0][0], whole[0][3])
    shares = [BatchIndex(batch, [0, 2, 4]), BatchIndex(batch, [1, 3])]
    for share, (views, index) in zip(shares, Loader(rows, shares, workers), strict=True):
        assert index.tolist() == share
        for view, all_of_it in zip(views, whole, strict=True):
            assert torch.equal(view, all_of_it[share.places])


def test_a_process_without_a_row_of_its_own_is_shown_one():
    method = BCE().start(torch.zeros(3, 2), 1)
    batches = Batches(method, 1, rank=1, world=2)
    assert [part.weight for part in batches.shards] == [0, 0, 0]
    assert [len(share) for share in batches] == [1, 1, 1]


@pytest.mark.parametrize("kind", [nn.BatchNorm1d, nn.BatchNorm2d])
def test_shared_batchnorm_alone_is_batchnorm(kind):
    shape = (9, 4) if kind is nn.BatchNorm1d else (9, 4, 3, 2)
    torch.manual_seed(0)
    own = kind(4)
    nn.init.normal_(own.weight)
    (shared,) = share_statistics(nn.Sequential(copy.deepcopy(own))).children()
    assert isinstance(shared, SharedBatchNorm)
    for mode in (True, True, False):
        x, y = (3 * torch.randn(shape) + 1).requires_grad_(), torch.randn(shape)
        gradients = []
        for module in (own.train(mode), shared.train(mode)):
            out = module(x)
            gradients.append((out.detach(), *torch.autograd.grad((out * y).sum(), x)))
        torch.testing.assert_close(gradients[0], gradients[1], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(own.state_dict(), shared.state_dict())


def test_shared_batchnorm_keeps_an_activation():
    from timm.layers.norm_act import BatchNormAct2d

    shared = share_statistics(BatchNormAct2d(3)).train()
    assert (shared(torch.randn(4, 3, 2, 2)) >= 0).all()
