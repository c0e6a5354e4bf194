"""The minority sampler against Eqs. 2–4, and the batches it fills."""

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
    class_confidence,
    draw,
    effective_rows,
    ladder_of,
    minority_odds,
    over_positives,
    row_scores,
    upsampling,
)
from tests.reference import balancemix as reference


def drawn(seed=0, n=50, k=6, rate=0.3):
    generator = torch.Generator().manual_seed(seed)
    labels = (torch.rand(n, k, generator=generator) < rate).to(torch.uint8)
    return labels, torch.rand(n, k, generator=generator, dtype=torch.float64)


def started(rows=50, odds=None, epoch=0):
    """What `Batches` reads of a method."""
    table = LabelTable.from_given(torch.zeros(rows, 2))
    return SimpleNamespace(table=table, odds=odds, epoch=epoch)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("seed", range(4))
def test_odds_equal_equation_4(seed, dtype):
    labels, confidence = drawn(seed, rate=[0.05, 0.3, 0.5, 0.9][seed])
    confidence = confidence.to(dtype)
    got = minority_odds(labels, confidence)
    assert got.dtype == torch.float64
    want = reference.sampling_probability(confidence.double().numpy(), labels.numpy())
    np.testing.assert_allclose(got, want, rtol=1e-9)


def test_confidence_by_class_and_scores_are_equations_2_and_3():
    labels, confidence = drawn(n=80)
    f, Y = confidence.numpy(), labels.numpy()
    presence, absence, positives = class_confidence(labels, confidence)
    P, A = reference.presence_and_absence(f, Y)
    np.testing.assert_allclose(presence, P, rtol=1e-9)
    np.testing.assert_allclose(absence, A, rtol=1e-9)
    assert positives.equal(labels.sum(0))
    np.testing.assert_allclose(row_scores(labels, confidence), reference.scores(f, Y), rtol=1e-9)


def test_a_class_without_positives_or_negatives_has_confidence_zero():
    labels, confidence = drawn()
    labels[:, 0], labels[:, 1] = 0, 1
    presence, absence, _ = class_confidence(labels, confidence)
    assert presence[0] == 0
    assert absence[1] == 0


def test_unknown_labels_are_of_no_side():
    labels, confidence = drawn()
    known = torch.rand(labels.shape, generator=torch.Generator().manual_seed(1)) < 0.6
    given = labels.to(torch.int8).masked_fill(~known, -1)
    presence, absence, positives = class_confidence(given, confidence)
    for k in range(labels.shape[1]):
        present, absent = given[:, k] == 1, given[:, k] == 0
        assert presence[k] == pytest.approx(float(confidence[present, k].mean()))
        assert absence[k] == pytest.approx(float(1 - confidence[absent, k].mean()))
        assert positives[k] == present.sum()


def test_half_precision_is_widened():
    labels, confidence = drawn()
    half = confidence.bfloat16()
    assert minority_odds(labels, half).equal(minority_odds(labels, half.float()))


def test_sums_over_positives_are_a_matrix_product():
    labels, _ = drawn(n=70_000, k=3)  # more than a chunk
    value = torch.tensor([0.5, -2.0, 1 / 3], dtype=torch.float64)
    torch.testing.assert_close(over_positives(labels, value), labels.double() @ value)


@pytest.mark.parametrize("value", [torch.nan, -0.1, 1.1])
def test_what_is_no_confidence_is_refused(value):
    labels, confidence = drawn()
    confidence[7, 2] = value
    with pytest.raises(ValueError, match="confidence must be between 0 and 1"):
        minority_odds(labels, confidence)


@pytest.mark.parametrize("shape", [(50, 5), (49, 6), (50,)])
def test_other_shapes_are_refused(shape):
    with pytest.raises(ValueError, match="must both be N×K"):
        minority_odds(torch.zeros(50, 6), torch.zeros(shape))


def test_arguments_in_the_wrong_order_are_noticed():
    labels, confidence = drawn()
    with pytest.raises(ValueError, match="0, 1 or −1"):
        minority_odds(confidence, labels)


@pytest.mark.parametrize("power", [0.0, 0.5, 3.0])
def test_power_raises_the_inverse_score(power):
    labels, confidence = drawn()
    score = np.array(reference.scores(confidence.numpy(), labels.numpy()))
    want = score**-power / (score**-power).sum()
    np.testing.assert_allclose(minority_odds(labels, confidence, power), want, rtol=1e-9)


@pytest.mark.parametrize("power", [1.0, 30.0])
def test_full_confidence_in_every_given_label_gives_uniform_odds(power):
    labels, _ = drawn()
    odds = minority_odds(labels, labels.float(), power)
    torch.testing.assert_close(odds, torch.full((50,), 1 / 50, dtype=torch.float64))


@pytest.mark.parametrize("score", ["paper", "positive-mean", "inverse-frequency"])
def test_a_high_power_of_float32_confidences_of_80_classes_is_finite(score):
    labels, confidence = drawn(1, n=400, k=80, rate=0.04)
    confidence = (0.05 * confidence + torch.linspace(0.1, 0.9, 80) * labels).float()
    odds = minority_odds(labels, confidence, 30, score)
    assert odds.isfinite().all()
    assert (odds > 0).all()
    assert float(odds.sum()) == pytest.approx(1)
    assert odds.max() > 2 * odds.min()


@pytest.mark.parametrize("score", ["paper", "positive-mean", "inverse-frequency", "uniform"])
@pytest.mark.parametrize("power", [0.0, 1.0, 5.0])
def test_odds_sum_to_one(score, power):
    odds = minority_odds(*drawn(), power, score)
    assert odds.shape == (50,)
    assert float(odds.sum()) == pytest.approx(1, rel=1e-12)


def test_uniform_ignores_everything():
    odds = minority_odds(*drawn(), 5.0, "uniform")
    assert odds.tolist() == [1 / 50] * 50


def test_positive_mean_is_the_inverse_of_the_mean_presence_of_a_rows_positives():
    labels, confidence = drawn()
    labels[3] = 0
    P, _ = reference.presence_and_absence(confidence.numpy(), labels.numpy())
    score = []
    for y in labels.tolist():
        own = [P[k] for k in range(6) if y[k]]
        score.append(sum(own) / len(own) if own else max(P))
    want = np.array([1 / s for s in score])
    got = minority_odds(labels, confidence, score="positive-mean")
    np.testing.assert_allclose(got, want / want.sum(), rtol=1e-9)


def test_inverse_frequency_is_the_mean_inverse_share_of_a_rows_positives():
    labels, confidence = drawn(rate=0.2)
    labels[3] = 0
    labels[:, 1] = 0
    count = labels.sum(0).tolist()
    weight = []
    for y in labels.tolist():
        own = [50 / count[k] for k in range(6) if y[k]]
        weight.append(sum(own) / len(own) if own else 50 / max(count))
    want = np.array(weight)
    got = minority_odds(labels, confidence, score="inverse-frequency")
    np.testing.assert_allclose(got, want / want.sum(), rtol=1e-9)
    assert got.equal(minority_odds(labels, torch.zeros(50, 6), score="inverse-frequency"))


@pytest.mark.parametrize("score", ["paper", "positive-mean", "inverse-frequency"])
def test_a_class_without_positives_or_without_negatives_and_a_row_without_positives(score):
    labels, confidence = drawn()
    labels[:, 2], labels[:, 4] = 0, 1
    labels[7] = torch.tensor([0, 0, 0, 0, 1, 0])
    odds = minority_odds(labels, confidence, score=score)
    assert odds.isfinite().all()
    assert (odds > 0).all()
    if score == "paper":
        want = reference.sampling_probability(confidence.numpy(), labels.numpy())
        np.testing.assert_allclose(odds, want, rtol=1e-9)


@pytest.mark.parametrize("score", ["paper", "positive-mean", "inverse-frequency"])
def test_no_positives_at_all_give_uniform_odds(score):
    labels, confidence = drawn()
    odds = minority_odds(torch.zeros_like(labels), confidence, score=score)
    torch.testing.assert_close(odds, torch.full((50,), 1 / 50, dtype=torch.float64))


@pytest.mark.parametrize("score", ["paper", "positive-mean"])
def test_confidence_of_nothing_in_any_label_is_finite(score):
    labels = drawn()[0]
    odds = minority_odds(labels, 1 - labels.float(), 30, score)
    assert odds.isfinite().all()


def test_rows_of_the_class_of_lowest_confidence_are_preferred():
    labels = torch.eye(3).repeat(10, 1)
    confidence = torch.where(labels > 0, torch.tensor([0.9, 0.6, 0.2]), 0.1)
    odds = minority_odds(labels, confidence)
    assert odds[2] > odds[1] > odds[0]


def test_upsampling_is_the_mean_drawn_share_of_a_class_over_its_share_of_rows():
    odds, labels = torch.tensor([0.5, 0.25, 0.25]), torch.tensor([[1, 1], [1, 0], [0, 0]])
    assert upsampling(labels, odds).tolist() == pytest.approx([1.125, 1.5])
    assert upsampling(drawn()[0], torch.full((50,), 1 / 50)).tolist() == pytest.approx([1.0] * 6)


def test_effective_rows_is_one_for_uniform_odds_and_a_row_for_a_single_one():
    assert effective_rows(torch.full((8,), 1 / 8)) == pytest.approx(1)
    assert effective_rows(torch.eye(8)[0]) == pytest.approx(1 / 8)


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
    odds = minority_odds(*drawn())
    plain = list(Batches(started(), 16))
    double = list(Batches(started(odds=odds), 16))
    assert [batch[: len(batch) // 2] for batch in double] == plain
    assert all(len(batch) % 2 == 0 for batch in double)
    assert all(0 <= row < 50 for batch in double for row in batch)


def test_drawn_frequencies_match_the_odds():
    odds = minority_odds(*drawn(n=20), 8.0)
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
    rows = draw(ladder_of(odds), 1_000, torch.Generator().manual_seed(0))
    assert set(rows.tolist()) == {1, 3}


def test_odds_need_not_sum_to_one():
    odds = torch.tensor([1.0, 2.0, 3.0])
    first = draw(ladder_of(odds), 100, torch.Generator().manual_seed(0))
    assert first.equal(draw(ladder_of(odds / 6), 100, torch.Generator().manual_seed(0)))


def test_batches_depend_on_seed_and_epoch_alone():
    odds = minority_odds(*drawn())

    def epoch(seed, number):
        torch.manual_seed(seed + 7 * number)  # must not matter
        return list(Batches(started(odds=odds, epoch=number), 16, seed))

    assert epoch(0, 0) == epoch(0, 0)
    assert epoch(3, 2) == epoch(3, 2)
    seen = [epoch(seed, number) for seed in range(3) for number in range(3)]
    assert all(a != b for i, a in enumerate(seen) for b in seen[:i])


def test_batches_leave_the_global_generator_alone():
    before = torch.get_rng_state()
    list(Batches(started(odds=minority_odds(*drawn())), 16))
    assert torch.get_rng_state().equal(before)


@pytest.mark.parametrize("with_odds", [False, True])
@pytest.mark.parametrize("world", [2, 3])
def test_slices_of_all_ranks_join_to_the_global_batch(world, with_odds):
    odds = minority_odds(*drawn()) if with_odds else None
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
    monkeypatch.setattr(sampling, "ladder_of", lambda odds: calls.append(1) or ladder_of(odds))
    list(Batches(started(odds=torch.full((50,), 1 / 50)), 5))
    assert len(calls) == 1


@pytest.mark.parametrize("with_odds", [False, True])
def test_a_batch_is_known_by_its_rows(with_odds):
    odds = torch.full((50,), 1 / 50) if with_odds else None
    for rank in range(3):
        batches = Batches(started(odds=odds), 16, rank=rank, world=3)
        ahead = list(batches)  # a loader may be some batches ahead of the training
        found = [batches.part_of(torch.tensor(batch)) for batch in ahead]
        assert found == batches.parts
    alone = Batches(started(odds=odds), 16)
    assert [alone.part_of(torch.tensor(batch)) for batch in alone] == [None] * 4


def test_new_odds_and_the_next_epoch_are_read_when_an_epoch_begins():
    method = started(odds=torch.full((50,), 1 / 50))
    loader = DataLoader(range(50), batch_sampler=Batches(method, 10))
    first = [batch.tolist() for batch in loader]
    method.odds, method.epoch = torch.eye(50)[13], 1
    second = [batch.tolist() for batch in loader]
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
