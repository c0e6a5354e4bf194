"""Compare all 2·K mixtures and P(clean) of every label with scikit-learn: `python mixtures.py`.

scikit-learn is timed on some classes (`sklearn_classes`), with its defaults, and the time scaled to
all of them. Agreement is measured with its fits to convergence, the best of five starts. We clamp
losses where the log-odds turn, our one departure (see `Mixtures.posterior`), so agreement is
measured three times: both clamped; neither (`unheld`), which compares the mixtures themselves; and
ours clamped with scikit-learn's as it is (`departing`).
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Iterator

import numpy as np
import torch
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from torch import Tensor

from balancemix.labels.mixtures import Mixtures, fit_losses, label_loss
from balancemix.progress import Progress, progress

CASES = {(82_081, 80): 100, (20_000, 1_000): 150}  # rows × classes: how many times as fast
CLASSES = 40
DECISIONS, POSTERIORS = 0.999, 0.99  # shares of labels: same decision, posterior within 0.01


def noisy_losses(
    rows: int, classes: int, share: float = 0.4, seed: int = 0
) -> tuple[Tensor, Tensor]:
    """Draw long-tailed labels, mislabel a share of the positives, and compute a model's losses."""
    generator = torch.Generator().manual_seed(seed)

    def between(low: float, high: float) -> Tensor:
        return low + (high - low) * torch.rand(classes, generator=generator)

    frequency = (0.5 / torch.arange(1, classes + 1)).clamp(min=0.002)
    truth = torch.rand(rows, classes, generator=generator) < frequency
    given = truth.clone()
    row, column = truth.nonzero(as_tuple=True)
    moved = torch.rand(len(row), generator=generator) < share
    given[row[moved], column[moved]] = False
    wrong = torch.multinomial(frequency, int(moved.sum()), replacement=True, generator=generator)
    given[row[moved], wrong] = True
    # Some rows are harder than others, which makes the margins' tails heavy.
    hardness = 1 / (0.35 + 0.9 * torch.rand(rows, 1, generator=generator))
    margin = torch.randn(rows, classes, generator=generator).mul_(hardness)
    present = margin * between(1, 2) + between(0.5, 3)
    absent = margin * between(1, 2) - between(2, 6)
    confidence = torch.where(truth, present, absent).sigmoid_()
    return label_loss(given, confidence), given.to(torch.uint8)


def seconds(job: Callable[[], object], repeats: int = 1) -> float:
    """Time a job; the best of some repeats."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        job()
        times.append(time.perf_counter() - start)
    return min(times)


def fitted(
    losses: np.ndarray, given: np.ndarray, **settings: float
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Fit both sides of a class by scikit-learn; yield P(clean) of the labels of each.

    First with losses clamped where the log-odds turn, so that a smaller loss is never less clean;
    then without.
    """
    for side in (0, 1):
        values = losses[given == side].astype(float)[:, None]
        mixture = GaussianMixture(2, random_state=0, **settings).fit(values)
        order = mixture.means_[:, 0].argsort()
        mean, precision = mixture.means_[order, 0], mixture.precisions_[order, 0, 0]
        turn = np.subtract(*(mean * precision)) / np.subtract(*precision)
        low, high = (turn, None) if precision[0] > precision[1] else (None, turn)
        held, plain = (
            mixture.predict_proba(x)[:, order[0]] for x in (values.clip(low, high), values)
        )
        yield held, plain


def unheld(mixtures: Mixtures, side: int, k: int, losses: np.ndarray) -> np.ndarray:
    """Compute P(clean) of one class and side by our mixture, literally by Eq. 8."""
    share, mean, variance = (
        part[side, k].numpy()[:, None]
        for part in (mixtures.share, mixtures.mean, mixtures.variance)
    )
    log_density = np.log(share) - 0.5 * np.log(variance) - (losses - mean) ** 2 / (2 * variance)
    return expit(log_density[0] - log_density[1])


def same(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Return which labels both call clean, or both do not."""
    return (got > 0.5) == (want > 0.5)


def close(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Return which posteriors are within 0.01."""
    return np.abs(got - want) <= 0.01


def case(rows: int, classes: int, faster: int, bar: Progress) -> dict[str, object]:
    """Measure one size."""
    losses, given = noisy_losses(rows, classes)
    mixtures = fit_losses(given, losses)
    clean = mixtures.posterior(given, losses)
    ours = seconds(lambda: fit_losses(given, losses).posterior(given, losses), 5)
    bar.advance()
    some = np.random.default_rng(0).choice(classes, CLASSES, replace=False)
    sklearn, agreed = 0.0, []
    for k in some:
        column, labels = losses[:, k].numpy(), given[:, k].numpy()
        sklearn += seconds(lambda column=column, labels=labels: list(fitted(column, labels)))
        converged = fitted(column, labels, tol=1e-6, max_iter=1000, n_init=5, reg_covar=1e-12)
        for side, (held, plain) in enumerate(converged):
            ours_held = clean[labels == side, k].numpy()
            ours_plain = unheld(mixtures, side, k, column[labels == side])
            pairs = (ours_held, held), (ours_plain, plain), (ours_held, plain)
            agreed.append([test(*pair) for pair in pairs for test in (same, close)])
        bar.advance()
    sklearn *= classes / len(some)
    shares = np.concatenate(agreed, axis=1).mean(1).round(6).reshape(3, 2)
    met = sklearn / ours >= faster and (shares >= (DECISIONS, POSTERIORS)).all()
    return {
        "benchmark": "mixtures",
        "case": f"{rows}x{classes}",
        "ratio": round(sklearn / ours, 1),
        "seconds": round(ours, 4),
        "sklearn_seconds": round(sklearn, 2),
        "sklearn_classes": len(some),
        **{
            f"{which}{what}": float(share)
            for which, pair in zip(("", "unheld_", "departing_"), shares, strict=True)
            for what, share in zip(("same_decision", "posterior_within_0.01"), pair, strict=True)
        },
        "requirement": f"ratio >= {faster}, same decision on {DECISIONS:.1%} of labels, "
        f"posteriors within 0.01 on {POSTERIORS:.0%}",
        "met": bool(met),
    }


def main() -> None:
    """Print one line for each size."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    with progress("mixtures", len(CASES) * (CLASSES + 1)) as bar:
        for (rows, classes), faster in CASES.items():
            print(json.dumps(case(rows, classes, faster, bar)), flush=True)


if __name__ == "__main__":
    main()
