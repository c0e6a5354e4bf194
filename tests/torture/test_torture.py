"""The short version of the torture: a few cases of each part, and three of the planted bugs."""

import csv
import io
import json
import signal
import time
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.torture import damage, figures, literal_table, names, outcome, planted, runner
from tests.torture.branches import Branches
from tests.torture.draw import Draw
from tests.torture.mutate import mutate_bytes, mutate_text, mutate_tree
from tests.torture.outcome import FAILURES, READ, REFUSED, UNTIDY, WRONG, UnsureError
from tests.torture.runner import Chunk, Notebook, Result
from tests.torture.table import PARTS

SEED = 20
SHORT = {"readers": 150, "commands": 25, "flips": 40, "changed data": 6, "kills": 4}
SHORT |= {"signals": 4, "full disks": 4}


@pytest.fixture(scope="module", autouse=True)
def scratch():
    yield
    runner.prepared.cache_clear()
    names.clear()


def test_the_same_key_draws_the_same_case():
    content, tree = b"image,labels\na.png,cat|dog\n", {"seed": 1, "train": {"lr": 0.1}}
    for number in range(200):
        one, other = Draw("x", 0, number), Draw("x", 0, number)
        assert mutate_text(content, one) == mutate_text(content, other)
        assert repr(mutate_tree(tree, one)) == repr(mutate_tree(tree, other))
        assert mutate_bytes(content, one) == mutate_bytes(content, other)


CELLS = st.text(st.sampled_from('ab ,"|é\0\r\n\u2028'), max_size=6)


@given(st.lists(st.lists(CELLS, min_size=2, max_size=3), min_size=1, max_size=4))
def test_the_literal_reader_of_csv_reads_what_pythons_writer_writes(rows):
    out = io.StringIO(newline="")
    csv.writer(out, quoting=csv.QUOTE_ALL).writerows(rows)
    assert literal_table.parse_csv(out.getvalue()) == rows


@given(st.text(st.sampled_from('ab,|"\r\n'), max_size=12))
def test_the_literal_reader_of_csv_reads_what_pythons_strict_reader_reads(text):
    try:
        expected = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except csv.Error:
        return
    try:
        rows = literal_table.parse_csv(text)
    except UnsureError:
        return
    assert [row for row in rows if row != [""]] == [
        row for row in expected if row not in ([], [""])
    ]


def test_an_interrupted_torture_goes_on_with_what_is_left(tmp_path):
    notebook = Notebook(tmp_path / "state.jsonl")
    first = Result("noise", 0, 0, 10, 0.1, {READ: 9, WRONG: 1}, {WRONG: {"differs": [3]}})
    notebook.add(first)
    again = Notebook(tmp_path / "state.jsonl")
    assert again.results == [first]
    assert not again.lacks(Chunk("noise", 0, 0, 10))
    assert again.lacks(Chunk("noise", 1, 0, 10))
    assert "noise: silently wrong: differs (case 3" in figures.failures(again.results)[0]


def test_figures_replace_what_stands_between_the_markers(tmp_path):
    path = tmp_path / "x.md"
    path.write_text(f"before\n{figures.BEGIN}\nold\n{figures.END}\nafter\n")
    figures.write(path, "new")
    text = path.read_text()
    assert "new" in text
    assert "old" not in text
    assert text.startswith("before\n")
    assert text.endswith("after\n")


def test_branches_are_counted_one_by_one():
    branches = Branches(("balancemix.labels.noise",))
    from balancemix.labels.noise import parse

    with branches.watching():
        parse("none")
    few = len(branches.taken)
    with branches.watching():
        parse("flip:0.1,0.3")
    assert 0 < few < len(branches.taken) <= len(branches.all())


@pytest.mark.parametrize(
    ("code", "told", "kind"),
    [
        (2, ["balancemix: run: damaged"], REFUSED),
        (1, ["balancemix: run: damaged"], UNTIDY),
        (2, ["balancemix: run:", "damaged"], UNTIDY),
        (2, [], UNTIDY),
    ],
)
def test_a_refusal_ends_with_its_line_and_exit_code(code, told, kind):
    assert damage.refusal("audit", code, told).kind == kind


def test_a_case_has_processor_time_however_long_it_waits_for_a_busy_machine(monkeypatch):
    timers = [(signal.ITIMER_PROF, signal.SIGPROF, 0.1), (signal.ITIMER_REAL, signal.SIGALRM, 9)]
    monkeypatch.setattr(outcome, "TIMERS", timers)
    assert outcome.attempt(lambda: time.sleep(0.3))[1].kind == READ
    assert outcome.attempt(lambda: sum(0 for _ in count()))[1].detail.startswith("TimeoutError")


@pytest.mark.parametrize("name", PARTS)
def test_nothing_fails(name):
    part = PARTS[name]
    result = runner.try_chunk(Chunk(name, SEED, 0, SHORT[part.group]))
    failed = {kind: count for kind, count in result.outcomes.items() if kind in FAILURES}
    assert failed == {}, json.dumps(result.failures, indent=1)


def test_every_planted_bug_can_still_be_planted():
    bugs = planted.read()
    assert len(bugs) == 10
    for bug in bugs:
        assert (planted.ROOT / bug.file).read_text(encoding="utf-8").count(bug.old) == 1, bug.name
        assert bug.part in PARTS
