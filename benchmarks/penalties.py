"""Is a smaller penalty ever missed? `python benchmarks/penalties.py`, minutes.

Of thousands of rows, the judge searches for its penalty from that of 1,024 rows upwards, and tries
a smaller one only where these do not speak against it (judge/penalty.py). Here the smaller one is
always tried as well. Printed for each set, noise and seed: the penalty of 1,024 rows, that of all
rows, whether smaller ones were left out by the rule, and whether the next one would have been
better; then the counts.
"""

from __future__ import annotations

import warnings
from itertools import product

import torch
from label_sets import FILES, REAL, Case, factored, load_case

from balancemix.judge.penalty import GRID, is_low_enough, least
from balancemix.judge.ridge import _searched, _some

NOISES = ("none", "mislabel:0.2", "mislabel:0.4", "flip:0.1", "flip:0.2", "single")
SEEDS = (0, 1, 2)


def main() -> None:
    """Print a line for each case, and the counts."""
    left_out, missed, every = 0, 0, 0
    for case in cases():
        low_enough, better = search(case)
        every, left_out, missed = every + 1, left_out + low_enough, missed + (low_enough and better)
    print(f"{every} cases; no smaller penalty was tried in {left_out}, and one missed in {missed}")


def cases() -> list[Case]:
    """List all noises with each seed, of the files that are here; real and clean labels once."""
    planted = [name for name, file in FILES.items() if name not in REAL and file.exists()]
    every = [case for case in product(planted, NOISES, SEEDS) if case[1] != "none" or not case[2]]
    return every + [(name, "real", 0) for name in REAL if FILES[name].exists()]


def search(case: Case) -> tuple[bool, bool]:
    """Say whether smaller penalties are left out, and whether half of the least is better."""
    ridge = factored(case[0])
    target = (load_case(case).train.given > 0).float()
    counted = torch.ones_like(target)
    few = _searched([_some(ridge, target, counted)], GRID)
    begin = least(few)
    errors = _searched([(ridge, target, counted)], (begin, 2 * begin), few)
    low_enough = is_low_enough(errors, few) and least(errors) == begin
    half = begin / 2
    below = _searched([(ridge, target, counted)], (half, begin), few) if low_enough else errors
    better = half in below and below[half] < below[begin]
    print(*case, f"{begin:g} of few, {least(errors):g} of all", "left out" if low_enough else "",
          "MISSED" if low_enough and better else "", flush=True)  # fmt: skip
    return low_enough, better


if __name__ == "__main__":
    warnings.simplefilter("ignore", UserWarning)
    torch.set_num_threads(1)
    main()
