"""What correcting does, and what checking is worth: the pure parts of both benchmarks."""

import pytest
import torch


@pytest.fixture
def harm(load):
    return load("harm")


@pytest.fixture
def worth(load):
    return load("worth")


@pytest.fixture
def control(load):
    return load("harm_control")


@pytest.fixture
def folds(load):
    return load("folds")


def test_a_person_errs_as_often_as_asked(harm):
    generator = torch.Generator().manual_seed(0)
    truth = (torch.rand(2000, 50, generator=generator) < 0.04).to(torch.int8)
    given = (torch.rand(2000, 50, generator=generator) < 0.04).to(torch.int8)
    assert torch.equal(harm.answers(truth, given, 0.0, generator), truth)
    slips = harm.answers(truth, given, 0.1, generator) != truth
    considered = (truth > 0) | (given > 0)
    assert float(slips[considered].float().mean()) == pytest.approx(0.1, abs=0.01)
    assert int(slips[~considered].sum()) == pytest.approx(int(slips[considered].sum()), rel=0.15)


def changed(seed, right, score, errs=0.0):
    facts = {"wrong_changed": 10, "wrong_right": right, "missing_changed": 0, "missing_right": 0}
    facts |= {"errors_before": 100, "errors_after": 110 - 2 * right, "mAP": score, "mAP_few": score}
    return {"set": "birds", "noise": "real", "seed": seed, "errs": errs, **facts}


def before(seed, score):
    place = {"set": "birds", "noise": "real", "seed": seed, "errs": None}
    return {**place, "mAP": score, "mAP_few": score}


@pytest.mark.parametrize(
    ("right", "gain", "shown"), [(9, 1.0, "yes"), (8, 1.0, "**no**"), (9, -0.4, "**no**")]
)
def test_harm_is_nine_in_ten_right_and_no_score_lost(harm, right, gain, shown):
    kept = [before(seed, 50.0 + seed) for seed in range(3)]
    kept += [changed(seed, right, 50.0 + seed + gain) for seed in range(2)]
    (row,) = harm.table(kept).splitlines()[2:]
    assert row.startswith(f"| birds | 0 % | 2 | 20, {10 * right:.1f} % | 0, – | 100 |")
    assert f"| 50.5 | {gain:+.2f} ({gain:+.2f} to {gain:+.2f}) |" in row
    assert row.endswith(f"| {shown} |")


def test_where_nothing_changed_nothing_is_shown(harm):
    line = {**changed(0, 0, 50.0), "wrong_changed": 0}
    assert harm.verdict([line], [0.0]) == "nothing changed"


def checked(way, hours, seed, score, student="bce", times=1):
    key = {"set": "captions", "seed": seed, "way": way, "hours": hours}
    counts = {"images": 2, "looked": 20, "fixed": 5, "wrong_left": 1, "missing_left": 4}
    scores = {"mAP": score, "mAP_few": score}
    return {**key, "student": student, "times": times, **counts, **scores}


def test_worth_is_compared_with_doing_nothing_by_seed(worth):
    kept = [checked("nothing", 0.0, seed, 40.0 + seed) for seed in (0, 1)]
    kept += [checked("random", 2.0, seed, 41.0 + 3 * seed) for seed in (0, 1)]
    kept.append(checked("random", 2.0, 0, 60.0, times=10))
    first, second, third = worth.table(kept).splitlines()[2:]
    assert "| 40.5 | – | – |" in first
    assert "| 42.5 (+2.0 ± 1.0) | – | – |" in second
    assert third.startswith("| captions | random | 2 | 10 |")
    assert "| 60.0 (+20.0) |" in third
    assert worth.curve(kept, "captions", "bce", "random") == [(0.0, 40.5), (2.0, 42.5)]


def test_logistic_regression_is_scikit_learn_s(folds):
    from sklearn.linear_model import LogisticRegression

    generator = torch.Generator().manual_seed(0)
    x = torch.randn(200, 3, generator=generator)
    given = (x[:, :2] + torch.randn(200, 2, generator=generator) > 0.5).float()
    weight = folds.solve(x, given, 5.0, folds.start(given, 3))
    for k in range(2):
        model = LogisticRegression(C=1 / 5.0, tol=1e-8).fit(x.numpy(), given[:, k].numpy())
        assert weight[:-1, k].numpy() == pytest.approx(model.coef_[0], abs=2e-3)
        assert float(weight[-1, k]) == pytest.approx(float(model.intercept_[0]), abs=2e-3)


def test_corrections_of_the_control_are_all_right(control):
    generator = torch.Generator().manual_seed(0)
    given, truth = torch.randint(0, 2, (2, 40, 3), generator=generator)
    errors = int((given != truth).sum())
    after = control.corrected(given, truth, 7, generator)
    assert int((after != truth).sum()) == errors - 7
    assert int((after != given).sum()) == 7
    by_class = torch.tensor([2, 0, 5])
    after = control.corrected(given, truth, 7, generator, by_class)
    assert torch.equal((after != given).sum(0), by_class)
    assert torch.equal(after[after != given], truth[after != given])


def test_worth_is_the_change_from_doing_nothing_with_the_same_seed(worth):
    def record(seed, way, score):
        hours = 0.0 if way == "nothing" else 2.0
        facts = {"set": "birds", "seed": seed, "way": way, "hours": hours, "times": 1}
        return {**facts, **dict.fromkeys(worth.COUNTS, 10), "student": "bce", "mAP": score}

    scores = [(0, "nothing", 50.0), (1, "nothing", 52.0), (0, "list", 51.0), (1, "list", 54.0)]
    nothing, listed = worth.table([record(*each) for each in scores]).splitlines()[2:]
    assert "| 51.0 | – | – | 2 |" in nothing
    assert "| 10 | 10 | 10 | 10 | 10 | 52.5 (+1.5 ± 0.5) | – | – | 2 |" in listed
