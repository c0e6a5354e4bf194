"""judge(): what it finds, what it refuses to judge, and its laws."""

import numpy as np
import pytest
import torch

from balancemix.errors import InputError
from balancemix.judge.noise_model import fit_noise_model
from balancemix.judge.opinion import Opinion, is_judged, judge
from balancemix.judge.ridge import Ridge


def make(rows=300, classes=3, wrong=0.1, seed=0):
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(rows, 6, generator=generator)
    truth = (features[:, :classes] > 0.7).int()
    flipped = torch.rand(rows, classes, generator=generator) < wrong
    return truth, torch.where(flipped, 1 - truth, truth), features


def test_wrong_labels_are_doubted_most():
    truth, given, features = make()
    opinion = judge(given, features)
    doubt = (opinion.posterior - given).abs()
    wrong = truth != given
    assert float(doubt[wrong].median()) > float(doubt[~wrong].quantile(0.9))
    assert bool(opinion.judged.all())


def test_a_label_does_not_judge_itself():
    _, given, features = make()
    score = judge(given, features).score
    for row in (0, 17):
        other = given.clone()
        other[row] = 1 - other[row]
        changed = judge(other, features)
        # ȳ moves by 1/N, and the penalty may be another.
        assert float((changed.score[row] - score[row]).abs().max()) < 0.05


def test_permuting_rows_or_classes_permutes_the_opinion():
    _, given, features = make()
    rows = torch.randperm(300, generator=torch.Generator().manual_seed(7))
    classes = torch.tensor([2, 0, 1])
    opinion = judge(given, features)
    permuted = judge(given[rows][:, classes], features[rows])
    expected = opinion.posterior[rows][:, classes]
    torch.testing.assert_close(permuted.posterior, expected, atol=2e-3, rtol=0)
    torch.testing.assert_close(permuted.rho0, opinion.rho0[classes], atol=2e-3, rtol=0)


def test_what_says_nothing_is_not_judged():
    _, given, features = make()
    given[:, 1] = torch.randint(0, 2, (300,), generator=torch.Generator().manual_seed(3))
    given[:, 2] = 0
    opinion = judge(given, features)
    assert opinion.judged.tolist() == [True, False, False]


def test_a_class_with_only_positives_is_not_judged():
    _, given, features = make()
    given[:, 0] = 1
    assert not bool(judge(given, features).judged[0])


def test_unknown_labels_are_judged_by_known_ones():
    truth, given, features = make(wrong=0.0)
    hidden = given.masked_fill(
        torch.rand(300, 3, generator=torch.Generator().manual_seed(8)) < 0.3, -1
    )
    opinion = judge(hidden, features)
    unknown = hidden < 0
    assert torch.equal(opinion.posterior[unknown], opinion.confidence[unknown])
    right = (opinion.confidence[unknown] > 0.5) == (truth[unknown] > 0)
    assert float(right.float().mean()) > 0.85


def test_verified_labels_are_believed():
    _, given, features = make()
    verified = torch.zeros(300, 3, dtype=torch.bool)
    verified[:50] = True
    opinion = judge(given, features, verified=verified)
    assert torch.equal(opinion.posterior[:50], given[:50].float())


def test_the_penalty_is_chosen_by_the_labels_that_nobody_verified():
    _, given, features = make()
    verified = torch.zeros(300, 3, dtype=torch.bool)
    verified[:50] = True
    chosen = judge(given, features, verified=verified).penalty
    assert chosen == Ridge.of(features).choose(given.float(), counted=~verified)
    assert chosen != judge(given, features).penalty
    everything = torch.ones_like(verified)
    assert judge(given, features, verified=everything).penalty == judge(given, features).penalty


def test_settling_what_looks_wrong_does_not_make_the_rest_look_right():
    """A person goes through the top of a list; what is left is as wrong as it was."""
    truth, given, features = make(rows=2000, wrong=0.15)
    plain = judge(given, features)
    doubt = (plain.posterior - given).abs().masked_fill(given == 0, 0)
    listed = doubt >= doubt.flatten().sort().values[-300]
    corrected = torch.where(listed, truth, given)
    left = (given > 0) & ~listed
    wrong = float((truth[left] == 0).float().mean())

    def share(before):
        opinion = judge(corrected, features, verified=listed, before=before)
        return float((1 - opinion.posterior[left]).mean())

    assert share(None) < 0.5 * wrong  # what happens if the labels before are not known
    assert abs(share(given) - wrong) < 0.2 * wrong


def test_labels_before_say_nothing_where_nobody_verified_any():
    _, given, features = make()
    plain, again = judge(given, features), judge(given, features, before=given)
    assert torch.equal(again.posterior, plain.posterior)
    score = plain.score
    known = given.index_fill(0, torch.arange(99), -1)  # of 99 rows, only what was verified is known
    partly = judge(given, features, before=known)
    assert torch.equal(partly.rho0, fit_noise_model(known, score).rho0)


def test_labels_before_are_of_the_same_rows():
    _, given, features = make()
    with pytest.raises(InputError, match=r"before: is of shape \(299, 3\), not \(300, 3\)"):
        judge(given, features, before=given[1:])


def test_targets_are_the_mixture():
    _, given, features = make()
    opinion = judge(given, features)
    mixed = 0.75 * opinion.posterior + 0.25 * opinion.confidence
    torch.testing.assert_close(opinion.targets(given, 0.25), mixed)
    assert torch.equal(opinion.targets(given, 0.0, modelled=False), given.float())


def test_duplicates_are_told_and_groups_keep_them_apart():
    _, given, features = make()
    features[10] = features[11]
    with pytest.warns(UserWarning, match="1 rows have the same features"):
        judge(given, features)
    groups = torch.arange(300)
    groups[10] = groups[11]
    score = judge(given, features, groups=groups).score
    other = given.clone()
    other[11] = 1 - other[11]
    changed = judge(other, features, groups=groups).score
    assert float((changed[10] - score[10]).abs().max()) < 0.05


def test_an_opinion_survives_its_arrays(tmp_path):
    _, given, features = make()
    opinion = judge(given, features)
    np.savez(tmp_path / "judge.npz", **opinion.arrays())
    with np.load(tmp_path / "judge.npz") as file:
        read = Opinion.from_arrays(file)
    torch.testing.assert_close(read.posterior, opinion.posterior, atol=1e-3, rtol=0)
    assert torch.equal(read.judged, opinion.judged)
    assert read.penalty == opinion.penalty
    broken = opinion.arrays() | {"score": np.zeros((2, 2))}
    with pytest.raises(InputError, match="do not fit"):
        Opinion.from_arrays(broken)


def test_bad_input_is_refused():
    _, given, features = make()
    with pytest.raises(InputError, match="300 rows of labels, but 299"):
        judge(given, features[:-1])
    with pytest.raises(ValueError, match="0, 1 or −1"):
        judge(given * 2, features)


def test_judged_needs_two_standard_errors():
    given = torch.zeros(1000, 2, dtype=torch.int8)
    given[:100] = 1
    score = torch.rand(1000, 2, generator=torch.Generator().manual_seed(0))
    score[:100, 1] += 0.3
    assert is_judged(given, score).tolist() == [False, True]
