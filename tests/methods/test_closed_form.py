"""Ridge and kernel ridge: what scikit-learn solves, and what they refuse."""

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.kernel_ridge import KernelRidge as OtherKernelRidge
from sklearn.linear_model import Ridge as OtherRidge
from sklearn.model_selection import LeaveOneOut, cross_val_predict

from balancemix.judge.ridge import Ridge
from balancemix.methods import METHODS, Method
from balancemix.methods.closed_form import KernelRidge, RidgeRegression, solve_targets
from tests.methods.settings import SOLVED
from tests.toys import D, make_data


def standardised(x: torch.Tensor) -> np.ndarray:
    array = x.double().numpy()
    return (array - array.mean(0)) / array.std(0)


def other(kernel: str, penalty: float) -> Any:
    if kernel == "linear":
        return OtherRidge(alpha=penalty, fit_intercept=False)
    # exp(−‖a − b‖² / 2D)
    return OtherKernelRidge(alpha=penalty, kernel="rbf", gamma=1 / (2 * D))


@pytest.mark.parametrize("name", SOLVED)
def test_scores_of_any_rows_are_scikit_learns(name):
    method: Any = METHODS[name]()
    x, labels = make_data(n=60)
    new, _ = make_data(seed=3, n=25)
    ridge = Ridge.of(x, kernel=method.closed_form.kernel)
    machine = method.solve(ridge, labels)
    mean = labels.double().numpy().mean(0)
    z = standardised(x)
    fitted = other(method.closed_form.kernel, ridge.choose(labels).best).fit(
        z, labels.numpy() - mean
    )
    shown = (new.double().numpy() - x.double().numpy().mean(0)) / x.double().numpy().std(0)
    want = fitted.predict(shown) + mean
    np.testing.assert_allclose(machine.scores(new).numpy(), want, atol=2e-4)


@pytest.mark.parametrize("name", SOLVED)
def test_the_stored_confidence_is_scikit_learns_without_the_row(name):
    method: Any = METHODS[name]()
    x, labels = make_data(n=60)
    solution = solve_targets(Ridge.of(x, kernel=method.closed_form.kernel), labels)
    mean = labels.double().numpy().mean(0)
    want = cross_val_predict(
        other(method.closed_form.kernel, solution.penalty.best),
        standardised(x),
        labels.numpy() - mean,
        cv=LeaveOneOut(),
    )
    want = np.clip(want + mean, 0, 1)
    np.testing.assert_allclose(solution.confidence.numpy(), want, atol=2e-4)


@pytest.mark.parametrize("name", SOLVED)
def test_the_penalty_has_the_least_error_against_the_given_labels(name):
    method: Any = METHODS[name]()
    x, labels = make_data(n=60)
    penalty = solve_targets(Ridge.of(x, kernel=method.closed_form.kernel), labels).penalty
    assert penalty.best == penalty.grid[int(np.argmin(penalty.errors))]


@pytest.mark.parametrize("kind", [RidgeRegression, KernelRidge])
@pytest.mark.parametrize("options", [{"alpha": 4.0}, {"reduction": "mean"}])
def test_settings_of_training_are_refused(kind: type[Method], options: dict[str, Any]):
    with pytest.raises(ValueError, match="solved, not trained"):
        kind(**options)


def test_no_other_method_is_solved_unless_it_is_asked():
    closed = {name for name in METHODS if METHODS[name]().closed}
    assert closed == set(SOLVED)
    assert METHODS["second-opinion"](form="closed").closed  # type: ignore[call-arg]
