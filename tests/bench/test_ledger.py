"""The ledger's file: its schema, lines added by several processes, and whatever else it holds."""

import json
import math
import multiprocessing
import re
import warnings
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from balancemix.bench.ledger import VERSION, Entry, Ledger
from balancemix.errors import DamagedFile, InputError

ENTRY = Entry(
    bench="judge",
    label="BCE Loss",
    data="tiny",
    fingerprint="ab12",
    plan={"method": {"name": "bce"}, "noise": "none", "seed": 0},
    versions={"torch": "2.9"},
    chosen="mixup",
    candidates={"mixup": 21.5, "bce": 20.0},
    last={"mAP": 53.8125, "mAP_few": math.nan},
    best={"epoch": 7.0, "mAP": 54.0},
    class_ap=[91.25, math.nan],
    seconds={"total": math.nan, "epochs": 12.0, "epoch": 0.4},
)
SCHEMA = {
    "version": 1,
    "bench": "judge",
    "label": "BCE Loss",
    "data": "tiny",
    "fingerprint": "ab12",
    "plan": {"method": {"name": "bce"}, "noise": "none", "seed": 0},
    "versions": {"torch": "2.9"},
    "chosen": "mixup",
    "candidates": {"mixup": 21.5, "bce": 20.0},
    "last": {"mAP": 53.8125, "mAP_few": None},
    "best": {"epoch": 7.0, "mAP": 54.0},
    "class_ap": [91.25, None],
    "seconds": {"total": None, "epochs": 12.0, "epoch": 0.4},
}


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "notes" / "ledger.jsonl"


def test_a_line_is_the_schema_and_is_read_back(path):
    Ledger(path).append(ENTRY)
    line = json.loads(path.read_text())
    assert re.fullmatch("[0-9a-f]{16}", line.pop("checksum"))
    assert line == SCHEMA
    assert SCHEMA["version"] == VERSION
    (entry,) = Ledger(path).entries
    assert repr(entry) == repr(ENTRY)  # NaN is not equal to itself


def test_a_file_that_does_not_exist_is_empty_and_nothing_is_written_by_reading(path):
    assert Ledger(path).entries == []
    assert not path.parent.exists()
    path.mkdir(parents=True)
    with pytest.raises(InputError, match=r"ledger\.jsonl: cannot be read"):
        Ledger(path)


def test_a_line_without_a_checksum_is_an_old_one(path):
    path.parent.mkdir()
    path.write_text(json.dumps(SCHEMA) + "\n")
    (entry,) = Ledger(path).entries
    assert repr(entry) == repr(ENTRY)


def test_a_changed_score_is_noticed(path):
    path.parent.mkdir()
    path.write_text(ENTRY.line() + ENTRY.line().replace("53.8125", "54.8125"))
    with pytest.raises(DamagedFile, match=r"line 2: was changed since it was written; restore"):
        Ledger(path)


def add(path: Path, label: str, count: int) -> None:
    ledger = Ledger(path)
    for _ in range(count):
        ledger.append(Entry(**{**vars(ENTRY), "label": label * 5000}))


def test_several_processes_add_whole_lines(path):
    fork = multiprocessing.get_context("spawn")
    workers = [fork.Process(target=add, args=(path, label, 20)) for label in "abc"]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    labels = [entry.label for entry in Ledger(path).entries]
    assert sorted(labels) == sorted(20 * ["a" * 5000, "b" * 5000, "c" * 5000])


@pytest.mark.parametrize("length", [1, 5, 12, 40, -2])
def test_a_torn_last_line_is_reported_ignored_and_replaced(path, length):
    Ledger(path).append(ENTRY)
    whole = path.read_bytes()
    path.write_bytes(whole + ENTRY.line().encode()[:length])
    with pytest.warns(UserWarning, match=r"ledger\.jsonl: its last line is not whole"):
        ledger = Ledger(path)
    assert len(ledger.entries) == 1
    ledger.append(ENTRY)
    assert path.read_bytes() == whole * 2


def test_a_last_line_without_its_end_is_kept(path):
    Ledger(path).append(ENTRY)
    whole = path.read_bytes()
    path.write_bytes(whole.rstrip())
    ledger = Ledger(path)
    assert len(ledger.entries) == 1
    ledger.append(ENTRY)
    assert path.read_bytes() == whole * 2


@pytest.mark.parametrize("content", [b"my notes", b"{}", b"\x00\x00", b'{"version": "1"}'])
def test_another_file_is_refused_and_left_alone(tmp_path, content):
    (tmp_path / "notes.txt").write_bytes(content)
    with pytest.raises(DamagedFile, match=r"notes\.txt, line 1: "):
        Ledger(tmp_path / "notes.txt")
    assert (tmp_path / "notes.txt").read_bytes() == content


def changed(**changes) -> str:
    return json.dumps({**SCHEMA, **changes})


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("", "is not an entry of a ledger"),
        ("[]", "is not an entry of a ledger"),
        (changed()[:-5], "is not an entry of a ledger"),
        (changed(last={"mAP": math.nan}), "is not an entry of a ledger"),
        (changed().replace("53.8125", "1e999"), "is not an entry of a ledger"),
        (changed(plan=json.loads("[" * 30 + "]" * 30)), "is not an entry of a ledger"),
        ("[" * 100_000, "is not an entry of a ledger"),
        (changed(version=0), "its version is not 1"),
        (changed(version=True), "its version is not 1"),
        (changed(label=3), "its label is not a text"),
        (changed(plan=[]), "its plan is not a section"),
        (changed(versions={"torch": 2}), "its versions are not texts"),
        (changed(last={}), "its last has no mAP"),
        (changed(best=None), "its best is not a section"),
        (changed(candidates=[]), "its candidates is not a section"),
        (changed(candidates={"bce": "x"}), "its candidates.bce is not a number from 0 to 100"),
        (changed(chosen=None), "its chosen is not a text"),
        (changed(last={"mAP": "53"}), "its last.mAP is not a number from 0 to 100"),
        (changed(last={"mAP": 101}), "its last.mAP is not a number from 0 to 100"),
        (changed(best={"mAP": True}), "its best.mAP is not a number from 0 to 100"),
        (changed(class_ap=[-1]), "its class_ap is not a number from 0 to 100"),
        (changed(class_ap={}), "its class_ap is not a list"),
        (changed(seconds={"total": 1}), "its seconds has no epoch"),
        (changed(seconds={"epoch": -1}), "its seconds.epoch is not a number from 0 to"),
        (changed(weights=[]), "it has an unknown 'weights'"),
        (json.dumps({k: v for k, v in SCHEMA.items() if k != "plan"}), "it has no plan"),
    ],
)
def test_a_damaged_line_is_refused_by_its_number(path, line, problem):
    path.parent.mkdir()
    path.write_text(f"{ENTRY.line()}{line}\n{ENTRY.line()}")
    with pytest.raises(DamagedFile) as refused:
        Ledger(path)
    assert str(refused.value).startswith(f"{path}, line 2: {problem}")
    assert str(refused.value).endswith("delete the line to train its run again")


def test_a_newer_version_is_refused(path):
    path.parent.mkdir()
    path.write_text(f"{ENTRY.line()}{changed(version=2, new='thing')}\n")
    with pytest.raises(InputError, match=r"line 2: has version 2, this balancemix reads 1; update"):
        Ledger(path)


def read(folder: Path, content: bytes) -> int | None:
    """Read a ledger; None if it is refused. Anything but a sentence is a fault."""
    (folder / "ledger.jsonl").write_bytes(content)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            return len(Ledger(folder / "ledger.jsonl").entries)
        except InputError as error:
            message = str(error)
    assert "\n" not in message
    assert "ledger.jsonl, line " in message
    return None


LINES = ENTRY.line().encode() * 2
PLACES = st.integers(0, len(LINES))


@settings(max_examples=300, deadline=None)
@given(content=st.binary(max_size=200))
def test_random_bytes_are_read_or_refused(tmp_path_factory, content):
    read(tmp_path_factory.getbasetemp(), content)


@settings(max_examples=500, deadline=None)
@given(start=PLACES, length=st.integers(0, 30), put=st.binary(max_size=30))
def test_changed_lines_are_read_or_refused(tmp_path_factory, start, length, put):
    content = LINES[:start] + put + LINES[start + length :]
    read(tmp_path_factory.getbasetemp(), content)


@settings(max_examples=200, deadline=None)
@given(length=PLACES)
def test_cut_short_it_keeps_the_lines_before(tmp_path_factory, length):
    whole = LINES[:length].count(b"\n") + (LINES[length : length + 1] == b"\n")
    assert read(tmp_path_factory.getbasetemp(), LINES[:length]) == whole


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=300, deadline=None)
@given(name=st.sampled_from(list(SCHEMA)), value=JSON)
def test_any_value_of_a_field_is_read_or_refused(tmp_path_factory, name, value):
    read(tmp_path_factory.getbasetemp(), json.dumps({**SCHEMA, name: value}).encode() + b"\n")
