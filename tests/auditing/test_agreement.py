"""Two people on the same label."""

import numpy as np

from balancemix.auditing.agreement import agreement, agreement_in
from balancemix.data.decisions.entries import Written
from balancemix.estimates.agreement import kappa
from tests.review import listed


def entry(seq, who, row, verdict, **more):
    return listed.entry(seq, who, row, verdict=verdict, **more)


def test_pairs_of_definite_answers_count():
    log = [entry(1, "Ana", 1, "present"), entry(2, "Ben", 1, "absent"),
           entry(3, "Ana", 2, "present"), entry(4, "Ben", 2, "present"),
           entry(5, "Ana", 3, "present"), entry(6, "Ben", 3, "unsure"),
           entry(7, "Ana", 4, "absent")]  # fmt: skip
    found = agreement(log)
    assert (found.both, found.same, found.people) == (2, 1, ("Ana", "Ben"))
    assert found.kappa is None


def test_what_resolves_a_dispute_and_what_comes_from_a_file_do_not_count():
    log = [entry(1, "Ana", 1, "present"), entry(2, "Ben", 1, "absent"),
           entry(3, "Ben", 1, "present", mode="resolve"),
           entry(4, "Ana", 2, "present"), entry(5, "Ben", 2, "absent", mode="file"),
           entry(6, "Ben", 2, "undone", undoes=5)]  # fmt: skip
    assert agreement(log)[:2] == (1, 0)


def test_from_fifty_labels_on_there_is_a_kappa():
    generator = np.random.default_rng(0)
    first = generator.random(60) < 0.5
    second = first ^ (generator.random(60) < 0.1)
    words = np.array(["absent", "present"])
    log = [entry(i, "Ana", i, words[int(a)]) for i, a in enumerate(first)]
    log += [entry(100 + i, "Ben", i, words[int(b)]) for i, b in enumerate(second)]
    found = agreement(log)
    assert found.both == 60
    assert found.same == (first == second).sum()
    assert found.kappa == kappa(first, second)


def test_in_a_store_what_is_undone_does_not_count():
    def row(number, who, class_, verdict, undoes=None, mode="focus"):
        return Written(number, f"c{number}{class_}", who, "a.png", class_, verdict, undoes, mode)

    rows = [row(1, "Ana", "cat", "present"), row(1, "Ana", None, "settled"),
            row(2, "Ben", "cat", "absent"), row(3, "Ana", "dog", "present"),
            row(4, "Ben", "dog", "present"), row(2, "Ana", None, "undone", undoes=1)]  # fmt: skip
    assert agreement_in(rows)[:2] == (2, 1)  # the whole picture has numbers of its own
    assert agreement_in([*rows, row(5, "Ben", "cat", "undone", undoes=2)])[:2] == (1, 1)
