import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from balancemix.errors import InputError
from balancemix.labels import noise
from balancemix.labels.noise import Noise, Noises, parse
from tests.reference import noise as reference

RATES = st.floats(0, 1)
SEEDS = st.integers(0, 2**31)


@st.composite
def matrices(draw) -> Tensor:
    rows, classes = draw(st.integers(0, 12)), draw(st.integers(2, 7))
    density = draw(st.floats(0, 1))
    generator = torch.Generator().manual_seed(draw(SEEDS))
    return (torch.rand(rows, classes, generator=generator) < density).to(torch.uint8)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def long_tailed(rows: int = 20_000, classes: int = 12) -> Tensor:
    share = 0.6 * 0.7 ** torch.arange(classes)
    return (torch.rand(rows, classes, generator=seeded(3)) < share).to(torch.uint8)


def near(share: float, rate: float, trials: int) -> bool:
    return abs(share - rate) <= 5 * (rate * (1 - rate) / trials) ** 0.5 + 1e-12


@given(matrices(), RATES, SEEDS, st.booleans())
def test_mislabel_keeps_the_positives_of_each_row(labels, rate, seed, exact):
    before = labels.clone()
    given = noise.mislabel(labels, rate, seeded(seed), exact=exact)
    assert torch.equal(labels, before)
    assert given.dtype == torch.uint8
    assert set(given.unique().tolist()) <= {0, 1}
    assert torch.equal(given.sum(1), labels.sum(1))
    assert not given[:, labels.sum(0) == 0].any()  # a class without positives receives none


@given(matrices(), SEEDS)
def test_mislabel_moves_every_label_that_has_somewhere_to_go(labels, seed):
    given = noise.mislabel(labels, 1.0, seeded(seed))
    room = ((labels == 0) & (labels.sum(0) > 0)).sum(1)
    lost = ((labels == 1) & (given == 0)).sum(1)
    assert torch.equal(lost, torch.minimum(labels.sum(1), room))


@given(matrices(), RATES, SEEDS)
def test_exact_mislabelling_moves_that_many(labels, rate, seed):
    given = noise.mislabel(labels, rate, seeded(seed), exact=True)
    room = ((labels == 0) & (labels.sum(0) > 0)).sum(1)
    movable = int(torch.minimum(labels.sum(1), room).sum())
    assert int((labels & ~given & 1).sum()) == min(int(rate * int(labels.sum())), movable)


@pytest.mark.parametrize("rate", [0.0, 0.2, 0.4, 1.0])
def test_mislabelling_rate(rate):
    labels = long_tailed()
    found = noise.measured_rates(labels, noise.mislabel(labels, rate, seeded()))
    positives = int(labels.sum())
    assert near(found["lost_positives"], rate, positives) or rate == 1.0
    assert found["lost_positives"] == found["false_positives"]


@pytest.mark.parametrize("exact", [False, True])
def test_mislabelling_goes_where_the_paper_says(exact):
    counts, tau = [60_000, 25_000, 9_000, 4_000, 2_000], 0.4
    true = torch.arange(5).repeat_interleave(torch.tensor(counts))
    labels = torch.nn.functional.one_hot(true, 5).to(torch.uint8)
    moved_to = noise.mislabel(labels, tau, seeded(), exact=exact).argmax(1)
    rho = reference.transition(labels.numpy(), tau)
    assert np.allclose(rho.sum(1), 1)
    for i, count in enumerate(counts):
        found = torch.bincount(moved_to[true == i], minlength=5) / count
        assert all(near(float(found[j]), rho[i, j], count) for j in range(5)), (i, found, rho[i])


def test_mislabelling_of_several_positives_agrees_with_one_at_a_time():
    labels = long_tailed(rows=6000, classes=6)
    ours = noise.mislabel(labels, 0.5, seeded()).numpy()
    slow = reference.mislabel(labels.numpy(), 0.5, np.random.default_rng(0))
    for pattern in ([1, 1, 0, 0, 0, 0], [1, 0, 1, 0, 0, 0], [1, 1, 1, 0, 0, 0]):
        rows = (labels.numpy() == pattern).all(1)
        spread = 5 * np.sqrt(2 * 0.25 / rows.sum())
        assert rows.sum() > 100
        assert np.abs(ours[rows].mean(0) - slow[rows].mean(0)).max() < spread


@given(matrices(), RATES, RATES, SEEDS)
def test_flip_at_the_ends(labels, rate, other, seed):
    before = labels.clone()
    given = noise.flip(labels, rate, seeded(seed), positive_rate=1.0, negative_rate=0.0)
    assert not given.any()
    assert torch.equal(noise.flip(labels, 1.0, seeded(seed)), 1 - labels)
    assert torch.equal(noise.flip(labels, 0.0, seeded(seed)), labels)
    noise.flip(labels, rate, seeded(seed), other)
    assert torch.equal(labels, before)


def test_flip_rates_by_side():
    labels = long_tailed()
    positives, negatives = int(labels.sum()), int((labels == 0).sum())
    even = noise.measured_rates(labels, noise.flip(labels, 0.2, seeded()))
    assert near(even["wrong"], 0.2, labels.numel())
    sided = noise.measured_rates(labels, noise.flip(labels, 0.2, seeded(), 0.1, 0.3))
    assert near(sided["lost_positives"], 0.1, positives)
    assert near(sided["flipped_negatives"], 0.3, negatives)
    one_side = noise.measured_rates(labels, noise.flip(labels, 0.2, seeded(), negative_rate=0.0))
    assert near(one_side["lost_positives"], 0.2, positives)
    assert one_side["flipped_negatives"] == 0


@given(matrices(), SEEDS)
def test_single_positive_keeps_exactly_one(labels, seed):
    before = labels.clone()
    given = noise.single_positive(labels, seeded(seed))
    assert torch.equal(labels, before)
    assert torch.equal(given.sum(1), labels.sum(1).clamp(max=1))
    assert not (given > labels).any()


def test_single_positive_is_uniform():
    labels = torch.tensor([[1, 0, 1, 1]], dtype=torch.uint8).repeat(30_000, 1)
    share = noise.single_positive(labels, seeded()).float().mean(0).tolist()
    assert share[1] == 0
    assert all(near(share[k], 1 / 3, 30_000) for k in (0, 2, 3))


@given(matrices(), RATES, SEEDS)
def test_drop_only_takes_away(labels, rate, seed):
    before = labels.clone()
    given = noise.drop(labels, rate, seeded(seed))
    assert torch.equal(labels, before)
    assert not (given > labels).any()


def test_drop_rate():
    labels = long_tailed()
    found = noise.measured_rates(labels, noise.drop(labels, 0.75, seeded()))
    assert near(found["lost_positives"], 0.75, int(labels.sum()))
    assert found["flipped_negatives"] == found["false_positives"] == 0


def test_measured_rates_by_hand():
    truth = torch.tensor([[1, 1, 0, 0, 0]], dtype=torch.uint8)
    given = torch.tensor([[1, 0, 1, 1, 0]], dtype=torch.uint8)
    assert noise.measured_rates(truth, given) == {
        "wrong": 3 / 5,
        "false_positives": 2 / 3,
        "false_negatives": 1 / 2,
        "lost_positives": 1 / 2,
        "flipped_negatives": 2 / 3,
    }
    assert noise.measured_rates(truth * 0, truth * 0)["lost_positives"] == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("none", Noise("none")),
        ("mislabel:0.4", Noise("mislabel", 0.4)),
        ("flip:0.2", Noise("flip", 0.2)),
        (" flip:0.1,0.3 ", Noise("flip", 0.0, 0.1, 0.3)),
        ("single", Noise("single")),
        ("drop:0.5", Noise("drop", 0.5)),
        ("drop:1e+0", Noise("drop", 1.0)),
        ("unknown:0.5", Noise("unknown", 0.5)),
        ("mislabel:0.4+unknown:+0.5", (Noise("mislabel", 0.4), Noise("unknown", 0.5))),
        ("single + keep:0.1 ", (Noise("single"), Noise("keep", 0.1))),
    ],
)
def test_parse(text, expected):
    expected = Noises(expected if isinstance(expected, tuple) else (expected,))
    assert parse(text) == expected
    assert parse(str(expected)) == expected
    labels = long_tailed(50).char()
    given = expected.apply(labels, seed=1).given
    assert torch.equal(given, expected.apply(labels, seed=1).given)
    assert given.data_ptr() != labels.data_ptr()
    assert torch.equal(given, labels) == (text == "none")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mislable:0.4", "did you mean 'mislabel'"),
        ("salt", "use one of: none, mislabel, flip, single, drop, unknown, keep"),
        ("mislabel:0.4+", "'0.4\\+' is not a number"),
        ("+mislabel:0.4", "unknown kind ''"),
        ("drop:0.4++keep:0.1", "'0.4\\+' is not a number"),
        ("drop:0.4+kep:0.1", "did you mean 'keep'"),
        ("drop:0.4+unknown", "unknown takes one rate"),
        ("mislabel", "one rate, as in mislabel:0.4"),
        ("mislabel:0.1,0.2", "one rate, as in mislabel:0.4"),
        ("single:0.5", "single takes no rate"),
        ("none:", "none takes no rate"),
        ("flip:0.1,0.2,0.3", "one rate or two"),
        ("drop:half", "'half' is not a number"),
        ("drop:40", "must be from 0 to 1, not 40.0"),
        ("drop:-0.1", "must be from 0 to 1, not -0.1"),
        ("drop:nan", "must be from 0 to 1, not nan"),
    ],
)
def test_parse_refuses(text, message):
    with pytest.raises(InputError, match=message):
        parse(text)


KINDS = st.sampled_from(["mislabel:0.4", "mislabel:1", "flip:0.3", "single", "drop:0.5"])


@st.composite
def partly_known(draw) -> tuple[Tensor, Tensor]:
    """Labels of 1, 0 and −1, and which of them are verified."""
    labels, generator = draw(matrices()).char(), seeded(draw(SEEDS))
    unknown = torch.rand(labels.shape, generator=generator) < draw(RATES)
    verified = torch.rand(labels.shape, generator=generator) < draw(RATES)
    return labels.masked_fill(unknown, -1), verified & ~unknown


@given(partly_known(), KINDS, SEEDS)
def test_unknown_labels_stay_unknown_and_verified_ones_as_they_are(data, text, seed):
    labels, verified = data
    before = labels.clone()
    noisy = parse(text).apply(labels, seed, verified)
    assert torch.equal(labels, before)
    assert torch.equal(noisy.given < 0, labels < 0)
    assert torch.equal(noisy.given[verified], labels[verified])
    assert torch.equal(noisy.verified, verified)
    if text.startswith("mislabel"):
        assert torch.equal((noisy.given == 1).sum(1), (labels == 1).sum(1))


@given(partly_known(), SEEDS, st.booleans())
def test_mislabelling_moves_what_is_known_and_not_verified(data, seed, exact):
    labels, verified = data
    given = noise.mislabel(labels, 1.0, seeded(seed), exact, verified)
    free = ~verified
    room = ((labels == 0) & free & ((labels == 1).sum(0) > 0)).sum(1)
    lost = ((labels == 1) & (given == 0)).sum(1)
    assert torch.equal(lost, torch.minimum(((labels == 1) & free).sum(1), room))


@given(partly_known(), KINDS, RATES, SEEDS)
def test_the_kept_rows_are_verified_wherever_keep_stands(data, text, rate, seed):
    labels, verified = data
    for order in (f"{text}+unknown:0.5+keep:{rate}", f"keep:{rate}+{text}+unknown:0.5"):
        noisy = parse(order).apply(labels, seed, verified)
        added = noisy.verified & ~verified
        rows = added.any(1)
        assert int(rows.sum()) <= round(rate * len(labels))
        assert torch.equal(noisy.given[rows], labels[rows])
        assert torch.equal(noisy.given[noisy.verified], labels[noisy.verified])
        assert torch.equal(noisy.verified[rows], labels[rows] >= 0)
        assert not noisy.verified[labels < 0].any()


def test_a_kind_draws_the_same_with_others_behind_it():
    labels = long_tailed(500).char()
    alone, joined = (
        parse(text).apply(labels, 7) for text in ("mislabel:0.4", "mislabel:0.4+unknown:0.3")
    )
    known = joined.given >= 0
    assert alone.verified is joined.verified is None
    assert torch.equal(alone.given[known], joined.given[known])
    assert near(1 - float(known.float().mean()), 0.3, labels.numel())
    few, many = (parse(f"mislabel:0.4+keep:{rate}").apply(labels, 7) for rate in (0.1, 0.3))
    assert (int(few.verified[:, 0].sum()), int(many.verified[:, 0].sum())) == (50, 150)
    assert not (few.verified & ~many.verified).any()
    assert torch.equal(alone.given[~many.verified], many.given[~many.verified])


def test_labels_of_both_sides_are_hidden_alike():
    labels = long_tailed().char()
    hidden = parse("unknown:0.9").apply(labels, 0).given < 0
    for side in (0, 1):
        of_side = hidden[labels == side].float()
        assert near(float(of_side.mean()), 0.9, len(of_side))
    with pytest.raises(InputError, match="such as int8, not"):
        noise.hide(labels.byte(), 0.5, seeded())


def test_measured_rates_leave_unknown_labels_out():
    truth = torch.tensor([[1, 1, 0, 0, 0, -1, 1, 0]])
    given = torch.tensor([[1, 0, 1, 1, 0, 1, -1, -1]])
    verified = torch.tensor([[1, 0, 0, 0, 1, 0, 0, 0]]) > 0
    by_hand = noise.measured_rates(truth[:, :5], given[:, :5])
    found = noise.measured_rates(truth, given, verified)
    assert found == {**by_hand, "unknown": 2 / 8, "verified": 2 / 8}


@given(st.text())
@settings(max_examples=200)
def test_parse_never_fails_otherwise(text):
    message = ""
    try:
        parse(text)
    except InputError as error:
        message = str(error)
    assert "\n" not in message


def test_rates_are_checked_without_parse_too():
    labels = long_tailed(5)
    for wrong in (
        lambda: noise.mislabel(labels, 1.5, seeded()),
        lambda: noise.drop(labels, -1, seeded()),
        lambda: noise.flip(labels, 0, seeded(), 2.0),
        lambda: Noise("drop", 7.0),
        lambda: Noise("drip", 0.5),
    ):
        with pytest.raises(InputError):
            wrong()


def test_kept_rows_have_the_truth_where_it_is_known():
    given = torch.tensor([[1, 0, -1], [1, 1, 0]], dtype=torch.int8)
    truth = torch.tensor([[0, -1, 1], [1, 0, 0]], dtype=torch.int8)
    noisy = parse("keep:1").apply(given, 0, truth=truth)
    assert noisy.given.tolist() == [[0, 0, 1], [1, 0, 0]]
    assert noisy.verified is not None
    assert bool(noisy.verified.all())
    sure = torch.zeros(2, 3, dtype=torch.bool)
    sure[1, 1] = True  # a person has said otherwise than the truth: it stays
    noisy = parse("keep:1").apply(given, 0, sure, truth)
    assert noisy.given.tolist() == [[0, 0, 1], [1, 1, 0]]


@pytest.mark.parametrize(
    ("text", "errs"), [("none", False), ("unknown:0.5+keep:0.1", False), ("keep:0.1+single", True)]
)
def test_only_some_kinds_make_labels_wrong(text, errs):
    assert parse(text).errs is errs
