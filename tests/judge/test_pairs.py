"""Factors for one penalty at a time, against eigenvectors that serve every penalty."""

import numpy as np
import pytest
import torch

from balancemix.judge import pairs, ridge
from balancemix.judge.pairs import Pairs, similarities
from balancemix.judge.penalty import Penalty, growing
from balancemix.judge.ridge import Ridge
from balancemix.models.kernel import squared_exponential
from tests.judge.test_ridge import make
from tests.reference import ridge as slow


@pytest.fixture
def few(monkeypatch):
    """Make pairs of what tests have, and blocks of columns that do not divide it."""
    monkeypatch.setattr(pairs, "_COLUMNS", 16)
    monkeypatch.setattr(pairs, "_ROWS", 16)

    def at_most(rows):
        for module in (pairs, ridge):
            monkeypatch.setattr(module, "FEW", rows)

    at_most(30)
    return at_most


@pytest.mark.parametrize("penalty", [0.3, 3.0])
@pytest.mark.parametrize("grouped", [False, True])
def test_leave_one_out_is_refitting_without_the_row(few, penalty, grouped):
    x, y = make()
    groups = torch.arange(40) // 3 if grouped else None
    rows = Ridge.of(x, groups=groups)
    assert isinstance(rows.basis, Pairs)
    numbers = None if groups is None else groups.numpy()
    expected = slow.left_out(x.numpy(), y.numpy(), penalty, numbers)
    for _ in range(2):  # computed, and kept
        np.testing.assert_allclose(rows.leave_one_out(y, penalty), expected, atol=1e-4)


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("unknown", [False, True])
def test_penalty_scores_and_machine_are_those_of_eigenvectors(few, grouped, unknown):
    x, y = make(rows=120)
    generator = torch.Generator().manual_seed(1)
    known = torch.rand(y.shape, generator=generator) < 0.7 if unknown else None
    counted = torch.rand(y.shape, generator=generator) < 0.8
    groups = torch.arange(120) // 2 if grouped else None
    by_pairs = Ridge.of(x, groups=groups)
    ours = by_pairs.choose(y, known, counted)
    few(1000)
    exact = Ridge.of(x, groups=groups)
    theirs = exact.choose(y, known, counted)
    assert ours.best == theirs.best
    assert len(ours.grid) < len(theirs.grid)
    assert not ours.at_edge
    errors = dict(zip(theirs.grid, theirs.errors, strict=True))
    assert ours.errors == pytest.approx([errors[value] for value in ours.grid], rel=1e-3)
    new = make(seed=1)[0]
    a, b = (each.leave_one_out(y, ours.best, known) for each in (by_pairs, exact))
    torch.testing.assert_close(a, b, atol=1e-4, rtol=0)
    a, b = (each.solve(y, ours.best, known).scores(new) for each in (by_pairs, exact))
    torch.testing.assert_close(a, b, atol=1e-4, rtol=0)


def test_a_penalty_far_from_that_of_some_rows_is_found(few, monkeypatch):
    x, y = make(rows=120)
    want = Ridge.of(x).choose(y).best
    for begin in (want / 16, want * 16):
        monkeypatch.setattr(ridge, "_some", lambda *case, start=begin: (start, *case))
        search = ridge._searched

        def searched(cases, grid, some=None, *, search=search):
            if isinstance(cases[0][0], float):
                return {cases[0][0]: 0.0}
            return search(cases, grid, some)

        with monkeypatch.context() as context:
            context.setattr(ridge, "_searched", searched)
            assert Ridge.of(x).choose(y).best == want


def test_each_pair_is_compared_once_and_alike(few):
    x, _ = make()
    torch.testing.assert_close(similarities(x), squared_exponential(x, x))
    assert torch.equal(similarities(x), similarities(x).T)


SOME = {0.5: 75.0, 1.0: 70.0, 2.0: 71.0, 4.0: 80.0}  # errors of some rows, by penalty


@pytest.mark.parametrize(
    ("double", "some", "tried"),
    [
        (60.5, SOME, [1.0, 2.0]),  # it rises less than from 70 to 71: no smaller one is tried
        (65.0, SOME, [1.0, 2.0, 0.5]),  # more: some rows are not like all
        (60.5, None, [1.0, 2.0, 0.5]),
        (60.5, {1.0: 70.0, 2.0: 71.0}, [1.0, 2.0, 0.5]),  # some rows say nothing of a smaller one
        (60.5, {0.5: 69.0} | SOME, [1.0, 2.0]),
        (60.5, SOME | {0.5: 69.0}, [1.0, 2.0, 0.5]),  # they call for a smaller one
        (59.0, SOME, [1.0, 2.0, 4.0]),
    ],
)
def test_a_smaller_penalty_is_tried_unless_some_rows_speak_against_it(double, some, tried):
    all_rows = {0.25: 70.0, 0.5: 61.0, 1.0: 60.0, 2.0: double, 4.0: 90.0}
    errors = dict.fromkeys([1.0, 2.0], 0.0)
    for more in growing(errors, some):
        errors |= {value: all_rows[value] for value in more}
    assert list(errors) == tried
    assert not Penalty.of(errors, some).at_edge


def test_an_edge_that_nothing_speaks_for_is_told():
    errors = {1.0: 60.0, 2.0: 60.5}
    assert Penalty.of(errors).at_edge
    assert not Penalty.of(errors, SOME).at_edge
    assert Penalty.of({1.0: 60.0, 2.0: 59.0}, SOME).at_edge


def test_copies_of_rows_call_for_a_smaller_penalty_than_some_of_the_rows_do(few):
    """Each row has a copy; among some rows hardly any has."""
    x, y = make(rows=100)
    twice = torch.arange(200) % 100
    with pytest.warns(UserWarning, match="100 rows have the same features"):
        rows = Ridge.of(x[twice])
    with pytest.warns(UserWarning, match="at the edge"):
        assert rows.choose(y[twice]).best < Ridge.of(x).choose(y).best


def test_a_target_that_changes_in_place_is_solved_again(few):
    x, y = make()
    rows = Ridge.of(x)
    rows.leave_one_out(y, 1.0)
    y[3] = 1 - y[3]
    torch.testing.assert_close(rows.leave_one_out(y, 1.0), Ridge.of(x).leave_one_out(y, 1.0))
    torch.testing.assert_close(
        rows.solve(y, 1.0).coefficients, Ridge.of(x).solve(y, 1.0).coefficients
    )


def test_equal_rows_and_next_to_no_penalty_are_factored_with_more_digits(few):
    x, y = make()
    twice = torch.arange(80) % 40
    with pytest.warns(UserWarning, match="40 rows have the same features"):
        rows = Ridge.of(x[twice])
    assert isinstance(rows.basis, Pairs)
    assert rows.basis._factor(2.0**-23).dtype == torch.float64
    scores = rows.leave_one_out(y[twice], 2.0**-23)
    torch.testing.assert_close(scores, y[twice], atol=1e-3, rtol=0)  # each by its copy
