"""The batches of an epoch: each row once, then rows drawn by their odds."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from balancemix import processes
from balancemix.labels.table import LabelTable
from balancemix.methods import BCE, sampling
from balancemix.methods.sampling import (
    Batches,
    cumulative_odds,
    draw,
    minority_odds,
)
from tests.toys import Rows, draw_confidence


def started(rows=50, odds=None, epoch=0):
    """What `Batches` reads of a method."""
    table = LabelTable.from_given(torch.zeros(rows, 2))
    return SimpleNamespace(table=table, odds=odds, epoch=epoch)


@pytest.mark.parametrize(("rows", "size"), [(50, 16), (50, 50), (50, 1), (17, 16), (48, 16)])
def test_every_row_comes_once_an_epoch_in_batches_of_nearly_equal_size(rows, size):
    batches = Batches(started(rows), size)
    epoch = list(batches)
    assert len(epoch) == len(batches)
    sizes = [len(batch) for batch in epoch]
    assert max(sizes) <= size
    assert max(sizes) - min(sizes) <= 1
    assert sorted(row for batch in epoch for row in batch) == list(range(rows))


def test_with_odds_each_batch_is_followed_by_as_many_drawn_rows():
    odds = minority_odds(*draw_confidence())
    plain = list(Batches(started(), 16))
    double = list(Batches(started(odds=odds), 16))
    assert [batch[: len(batch) // 2] for batch in double] == plain
    assert all(len(batch) % 2 == 0 for batch in double)
    assert all(0 <= row < 50 for batch in double for row in batch)


def test_drawn_frequencies_match_the_odds():
    odds = minority_odds(*draw_confidence(n=20), 8.0)
    method = started(20, odds)
    count = torch.zeros(20, dtype=torch.float64)
    for method.epoch in range(1_000):
        for batch in Batches(method, 10):
            count += torch.bincount(torch.tensor(batch[len(batch) // 2 :]), minlength=20)
    expected = odds * 20_000
    assert expected.max() > 3 * expected.min()
    chi_square = float(((count - expected) ** 2 / expected).sum())
    assert chi_square < 43.8  # the 99.9th percentile at 19 degrees of freedom


def test_rows_of_no_odds_are_never_drawn():
    odds = torch.tensor([0.0, 0.5, 0.0, 0.5, 0.0])
    rows = draw(cumulative_odds(odds), 1_000, torch.Generator().manual_seed(0))
    assert set(rows.tolist()) == {1, 3}


def test_odds_need_not_sum_to_one():
    odds = torch.tensor([1.0, 2.0, 3.0])
    first = draw(cumulative_odds(odds), 100, torch.Generator().manual_seed(0))
    assert first.equal(draw(cumulative_odds(odds / 6), 100, torch.Generator().manual_seed(0)))


def test_batches_depend_on_seed_and_epoch_alone():
    odds = minority_odds(*draw_confidence())

    def epoch(seed, number):
        torch.manual_seed(seed + 7 * number)  # must not matter
        return list(Batches(started(odds=odds, epoch=number), 16, seed))

    assert epoch(0, 0) == epoch(0, 0)
    assert epoch(3, 2) == epoch(3, 2)
    seen = [epoch(seed, number) for seed in range(3) for number in range(3)]
    assert all(a != b for i, a in enumerate(seen) for b in seen[:i])


def test_batches_leave_the_global_generator_alone():
    before = torch.get_rng_state()
    list(Batches(started(odds=minority_odds(*draw_confidence())), 16))
    assert torch.get_rng_state().equal(before)


@pytest.mark.parametrize("with_odds", [False, True])
@pytest.mark.parametrize("world", [2, 3])
def test_slices_of_all_ranks_join_to_the_global_batch(world, with_odds):
    odds = minority_odds(*draw_confidence()) if with_odds else None
    whole = list(Batches(started(odds=odds), 16))
    ranks = [list(Batches(started(odds=odds), 16, rank=r, world=world)) for r in range(world)]
    for number, batch in enumerate(whole):
        halves = np.array_split(np.array(batch), 2) if with_odds else [np.array(batch)]
        for part, half in enumerate(halves):
            joined = np.full(len(half), -1)
            for rank in range(world):
                mine = ranks[rank][number]
                pieces = np.array_split(np.array(mine), 2) if with_odds else [np.array(mine)]
                joined[rank::world] = pieces[part]
            assert joined.tolist() == half.tolist()


@pytest.mark.parametrize("size", [0, -1])
def test_batches_without_rows_are_refused(size):
    with pytest.raises(ValueError, match=rf"batch size {size} of 50 rows"):
        Batches(started(50), size)


@pytest.mark.parametrize("world", [1, 2])
def test_fewer_rows_than_a_batch_are_one_batch(world):
    ranks = [list(Batches(started(50), 64, rank=rank, world=world)) for rank in range(world)]
    assert [len(batches) for batches in ranks] == [1] * world
    assert sorted(row for (batch,) in ranks for row in batch) == list(range(50))


def test_odds_are_stacked_once_an_epoch(monkeypatch):
    """Once a batch, an epoch would take time by the square of the rows."""
    calls = []

    def stack(odds):
        calls.append(1)
        return cumulative_odds(odds)

    monkeypatch.setattr(sampling, "cumulative_odds", stack)
    list(Batches(started(odds=torch.full((50,), 1 / 50)), 5))
    assert len(calls) == 1


@pytest.mark.parametrize("with_odds", [False, True])
def test_a_batch_is_known_by_its_rows(with_odds):
    odds = torch.full((50,), 1 / 50) if with_odds else None
    for rank in range(3):
        batches = Batches(started(odds=odds), 16, rank=rank, world=3)
        ahead = list(batches)  # a loader may be some batches ahead of the training
        found = [batches.shard_of(torch.tensor(batch)) for batch in ahead]
        assert found == batches.shards
    alone = Batches(started(odds=odds), 16)
    assert [alone.shard_of(torch.tensor(batch)) for batch in alone] == [None] * 4


def test_new_odds_and_the_next_epoch_are_read_when_an_epoch_begins():
    method = started(odds=torch.full((50,), 1 / 50))
    loader = DataLoader(Rows(torch.arange(50)), batch_sampler=Batches(method, 10))
    first = [index.tolist() for _, index in loader]
    method.odds, method.epoch = torch.eye(50)[13], 1
    second = [index.tolist() for _, index in loader]
    assert all(batch[10:] == [13] * 10 for batch in second)
    assert [batch[:10] for batch in second] != [batch[:10] for batch in first]


def test_a_method_makes_its_own_batches():
    method = BCE().start(torch.zeros(20, 2), epochs=1)
    assert list(method.batches(8, seed=4)) == list(Batches(method, 8, 4))


def test_a_method_takes_the_share_of_its_process(monkeypatch):
    monkeypatch.setattr(processes, "rank", lambda: 1)
    monkeypatch.setattr(processes, "world_size", lambda: 2)
    method = BCE().start(torch.zeros(20, 2), epochs=1)
    assert list(method.batches(8, seed=4)) == list(Batches(method, 8, 4, rank=1, world=2))
