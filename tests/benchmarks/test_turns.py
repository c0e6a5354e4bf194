"""The benchmarks' clock: jobs work in turns, each until all have made their rounds."""

from functools import partial
from threading import Thread

import pytest

from balancemix.progress import Silent
from benchmarks import turns
from benchmarks.turns import Enough, Turn, Turns, fastest, in_turns


def job(name: str, turn: Turn) -> str:
    if name == "broken":
        raise ZeroDivisionError
    try:
        while True:
            turn.count()
            turn.offer()
    except Enough:
        return name.upper()


def test_one_works_at_a_time_until_all_have_made_their_rounds(monkeypatch):
    monkeypatch.setattr(turns, "SLICE", 0.0)
    shared, worked = Turns(3, rounds=4), []

    def work(place: int) -> None:
        try:
            turn = Turn(shared, place)
            while True:
                worked.append(place)
                turn.count()
                turn.offer()
        except Enough:
            shared.over.set()
            for permit in shared.permits:
                permit.release()

    threads = [Thread(target=work, args=(place,), daemon=True) for place in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert worked == [0, 1, 2] * 4


def test_a_clock_counts_the_yardstick_s_units(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("time.perf_counter", lambda: now[0])
    shared = Turns(1, rounds=1)
    turn = Turn(shared, 0)
    now[0] += 3  # the first unit is a second
    assert turn.clock() == 3
    turn.measure(2.0)
    turn.measure(4.0)
    turn.offer()  # to itself, being alone
    assert shared.unit.value == 3
    now[0] += 6
    assert turn.clock() == 3 + 6 / 3


def test_short_calls_alternate():
    called: list[str] = []
    found = fastest({name: partial(called.append, name) for name in "ab"}, 3)
    assert called == ["a", "b"] * 3
    assert list(found) == ["a", "b"]


def test_results_are_by_name_and_a_failure_is_everybody_s():
    assert in_turns(job, ["a"], 2, Silent()) == {"a": "A"}
    for names in (["broken", "a"], ["a", "broken"]):
        with pytest.raises(ZeroDivisionError):
            in_turns(job, names, 2, Silent())
