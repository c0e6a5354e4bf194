"""Answers are saved exactly once, never changed, undone by rows, and kept whole."""

import sqlite3
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from balancemix.data.decisions import connection
from balancemix.data.decisions.answers import Decision, Settled
from balancemix.data.decisions.samples import Unit
from balancemix.data.decisions.snapshots import Band, Suspicion
from balancemix.data.decisions.states import LARGE
from balancemix.data.decisions.store import Store
from balancemix.errors import DamagedFile, InputError

CLASSES = ["cat", "dog", "=owl"]


@pytest.fixture
def store(tmp_path):
    with Store.open(tmp_path, create=True) as made:
        yield made


def say(verdict, who="Ana", image="a.jpg", class_="cat", **more):
    return Decision(image, class_, verdict, who, **more)


def state(store, image="a.jpg", class_="cat"):
    found = [each for each in store.states() if (each.image, each.class_) == (image, class_)]
    return found[0].state if found else None


def test_the_same_answer_is_saved_once(store):
    answer = say("present", client="x")
    assert store.record([answer, answer]) == [1, 1]
    assert store.record([answer]) == [1]
    assert store._connection.execute("SELECT count(*) FROM decision").fetchone() == (1,)


def test_a_row_can_neither_be_changed_nor_deleted(store):
    store.record([say("present")])
    for change in ("UPDATE decision SET verdict='absent'", "DELETE FROM decision"):
        with pytest.raises(sqlite3.IntegrityError, match="only grows"):
            store._connection.execute(change)


def test_the_newest_opinion_of_a_person_counts(store):
    store.record([say("present"), say("absent", who=" ana ")])  # the same person
    assert (state(store).state, state(store).verdict) == ("decided", "absent")
    store.record([say("unsure", who="Ben")])
    assert state(store).state == "decided"
    store.record([say("present", who="Ben")])
    assert state(store).state == "disputed"
    assert not state(store).verified
    store.record([say("absent", who="Cleo", mode="resolve", width=LARGE, client="end")])
    assert (state(store).state, state(store).verdict) == ("resolved", "absent")
    assert state(store).verified
    assert store.undo("end", "Cleo") == 1
    assert state(store).state == "disputed"


def test_absence_is_verified_only_if_it_was_seen(store):
    shown: list[dict[str, Any]] = [
        {"mode": "sweep", "width": 2000},
        {"mode": "focus", "width": LARGE - 1},
        {"mode": "focus", "width": LARGE},
        {"mode": "focus", "width": 64, "whole": True},
        {"mode": "file"},
    ]
    for i, more in enumerate(shown):
        store.record([say("absent", image=f"{i}", **more)])
    assert [image for image, _, _ in store.verified()] == ["2", "3", "4"]
    store.record([say("present", image="0", mode="sweep", class_="dog")])
    assert ("0", "dog", True) in store.verified()


def test_only_one_s_own_answers_are_undone_and_only_once(store):
    store.record([say("present", client="a", batch="b"), say("absent", image="b.jpg", batch="b")])
    assert store.undo("b", "Ben") == 0
    assert store.undo("b", "Ana", by="u") == 2
    assert store.undo("b", "Ana", by="u") == 0
    assert state(store).state == "open"
    assert store._connection.execute("SELECT count(*) FROM decision").fetchone() == (4,)


def test_a_settled_image_verifies_what_was_shown(store):
    store.record([say("present", class_="dog"), say("present", who="Ben", class_="=owl")])
    settled = Settled("a.jpg", "Ana", ["cat"], ["cat", "dog"], client="s")
    assert store.settle([settled]) == store.settle([settled]) == [1]
    assert sorted(store.verified()) == [
        ("a.jpg", "=owl", True),
        ("a.jpg", "cat", True),
        ("a.jpg", "dog", False),
    ]
    store.settle([Settled("a.jpg", "Ana", [], ["cat", "dog"], client="t")])
    assert ("a.jpg", "cat", False) in store.verified()
    assert store.undo("t", "Ana") == 1
    assert ("a.jpg", "cat", True) in store.verified()
    assert store.undo("s", "Ana") == 2
    assert [each[1] for each in store.verified()] == ["dog", "=owl"]


def test_odd_names_come_back(store):
    names = ["a'b\".jpg", "caf\udce9.jpg", "'; DROP TABLE decision; --", "\x1b[2J", "名.jpg"]
    store.record([say("present", image=name, class_=f"<{i}>") for i, name in enumerate(names)])
    assert [image for image, _, _ in store.verified()] == names


@pytest.mark.parametrize("name", ["", "  ", "x" * 201, "a\udce9", "a\0b"])
def test_a_bad_reviewer_is_refused(store, name):
    with pytest.raises(InputError, match="name"):
        store.record([say("present", who=name)])


def test_a_sample_is_extended_and_answered(store):
    number = store.new_sample(3, "image", {"split": "train"}, [Unit("b.jpg"), Unit("a.jpg")])
    assert store.extend(number, [Unit("c.jpg")]) == 3
    assert [unit.image for unit in store.units(number)] == ["b.jpg", "a.jpg", "c.jpg"]
    assert store.samples()[0].strata == {"split": "train"}
    store.settle([Settled("a.jpg", "Ana", ["cat"], ["cat"], sample=number)])
    assert store.answers(number, CLASSES) == []  # not all classes were shown
    store.settle([Settled("a.jpg", "Ana", ["cat"], CLASSES, ["dog"], sample=number)])
    store.settle([Settled("c.jpg", "Ben", [], CLASSES, mode="file")])
    first, second = store.answers(number, CLASSES)
    assert (first.position, first.present, first.unsure) == (1, {"cat"}, {"dog"})
    assert (second.unit.image, second.present, second.reviewers) == ("c.jpg", set(), ("Ben",))
    store.settle([Settled("a.jpg", "Ben", [], CLASSES, mode="file")])  # disputed: cat
    assert store.answers(number, CLASSES)[0].unsure == {"cat"}
    assert store.answers(number, CLASSES)[0].reviewers == ("Ana", "Ben")


def test_a_sample_of_labels_is_answered_by_decisions(store):
    number = store.new_sample(0, "label", [10, 20], [Unit("a.jpg", "cat", 0), Unit("b", "dog", 1)])
    store.record([say("absent", image="b", class_="dog"), say("unsure", who="Ben")])
    answers = store.answers(number)
    assert [(a.unit.stratum, a.present, a.unsure) for a in answers] == [
        (0, set(), {"cat"}),
        (1, set(), set()),
    ]


def test_an_audit_is_saved_once(store):
    facts = {"source": "photos", "fingerprint": "f", "judge": "ridge", "seed": 0}
    findings = [
        Suspicion("a.jpg", "cat", "wrong", 1, 0, 0.75),
        Suspicion("b", "dog", "missing", 0, 1, 1),
    ]
    for expected, number in (((1.5, float("nan")), 1), ((1.5, float("nan")), 1), ((2, None), 2)):
        bands = [Band("wrong", 3, 10, 0.5)]
        made = store.add_snapshot(**facts, expected=expected, bands=bands, findings=findings)
        assert made == number
    assert store._connection.execute("SELECT count(*) FROM finding").fetchone() == (2 * number,)


def test_whatever_was_written_is_read_as_whole(store):
    test_an_audit_is_saved_once(store)
    test_a_sample_is_extended_and_answered(store)
    from balancemix.data.decisions.logs import check
    from balancemix.data.decisions.schema import LOGS

    for table in LOGS:
        check(store._connection, table)


def test_a_store_that_is_missing_foreign_or_newer_is_refused_in_a_line(tmp_path):
    with pytest.raises(InputError, match=r"review\.sqlite: not found"):
        Store.open(tmp_path)
    file = tmp_path / "review.sqlite"
    other = sqlite3.connect(file)
    other.executescript("CREATE TABLE x(y); PRAGMA user_version=1;")
    other.close()
    with pytest.raises(InputError, match="is not a store of balancemix"):
        Store.open(tmp_path)
    file.unlink()
    Store.open(tmp_path, create=True).close()
    changed = sqlite3.connect(file)
    changed.execute("PRAGMA user_version=99")
    changed.close()
    with pytest.raises(InputError, match=r"written by a newer balancemix .* update balancemix"):
        Store.open(tmp_path)
    file.write_bytes(b"what somebody wrote")
    with pytest.raises(DamagedFile, match="is damaged"):
        Store.open(tmp_path)


def test_a_changed_byte_is_refused_or_changes_nothing(tmp_path):
    with Store.open(tmp_path, create=True) as store:
        store.record([say("present", image=f"{i}.jpg", client=f"{i}") for i in range(30)])
        expected = store.states()
    file = tmp_path / "review.sqlite"
    whole, refused = file.read_bytes(), list[str]()
    texts = [whole.index(text) for text in (b"present", b"17.jpg", b"cat", b"Ana")]
    for at in [*texts, *range(0, len(whole), 997)]:
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        try:
            with Store.open(tmp_path, write=False) as store:
                assert store.states() == expected
        except InputError as error:
            refused.append(str(error))
    assert len(refused) >= len(texts)
    assert all("review.sqlite" in line and "\n" not in line for line in refused)


def test_a_store_is_read_where_nothing_can_be_written(tmp_path):
    with Store.open(tmp_path, create=True) as store:
        store.record([say("present")])
    tmp_path.chmod(0o500)
    (tmp_path / "review.sqlite").chmod(0o400)
    try:
        with Store.open(tmp_path, write=False) as store:
            assert len(store.verified()) == 1
    finally:
        tmp_path.chmod(0o700)


def test_a_full_disk_saves_nothing_and_says_so(store):
    store.record([say("present")])
    store._connection.execute("PRAGMA max_page_count=1")
    with pytest.raises(InputError, match="the disk is full, nothing of this was saved"):
        store.record([say("present", image=f"{i}" * 50) for i in range(20_000)])
    assert len(store.verified()) == 1


def test_a_disk_without_a_write_ahead_log_will_do(tmp_path, monkeypatch):
    with Store.open(tmp_path, create=True) as store:
        store.record([say("present")])
    opened = connection._opened
    monkeypatch.setattr(  # such files have no memory that processes share
        connection, "_opened", lambda file, mode: opened(file, f"{mode}&vfs=unix-dotfile")
    )
    with Store.open(tmp_path, write=False) as store:
        assert len(store.verified()) == 1
    with (
        pytest.warns(UserWarning, match="does not allow a write-ahead log"),
        Store.open(tmp_path) as store,
    ):
        store.record([say("present", image="b.jpg")])
    with Store.open(tmp_path, write=False) as store:
        assert len(store.verified()) == 2


def test_another_process_that_writes_is_waited_for_and_named(tmp_path, monkeypatch):
    monkeypatch.setattr("balancemix.data.decisions.connection.TIMEOUT", 0.05)
    with Store.open(tmp_path, create=True) as first, Store.open(tmp_path) as second:
        first._connection.execute("BEGIN IMMEDIATE")
        with pytest.raises(InputError, match="another process is writing"):
            second.record([say("present")])
        assert second.verified() == []
        first._connection.execute("ROLLBACK")
        second.record([say("present")])
        assert len(first.verified()) == 1


ACTIONS = st.lists(
    st.one_of(
        st.tuples(
            st.just("say"), st.sampled_from("AB"), st.sampled_from("xyz"), st.sampled_from(CLASSES),
            st.sampled_from(["present", "absent", "unsure"]),
            st.sampled_from(["focus", "sweep", "resolve", "file"]), st.sampled_from([100, 600]),
        ),
        st.tuples(
            st.just("settle"), st.sampled_from("AB"), st.sampled_from("xyz"),
            st.sets(st.sampled_from(CLASSES)), st.sets(st.sampled_from(CLASSES)),
        ),
        st.tuples(st.just("undo"), st.sampled_from("AB"), st.integers(0, 30)),
    ),
    max_size=30,
)  # fmt: skip


def act(store, actions):
    """Do random actions, and keep a literal account of them: what each person says, in order."""
    log = []
    for number, (kind, who, *rest) in enumerate(actions):
        if kind == "say":
            image, class_, verdict, mode, width = rest
            answer = Decision(image, class_, verdict, who, mode, str(number), width=width)
            store.record([answer])
            seen = verdict == "present" or mode == "file" or (mode != "sweep" and width >= LARGE)
            log.append((str(number), who, image, {class_: verdict}, mode == "resolve", seen))
        elif kind == "settle":
            image, present, shown = rest
            store.settle([Settled(image, who, present, shown, client=str(number))])
            said = dict.fromkeys(shown, "absent") | dict.fromkeys(present, "present")
            log.append((str(number), who, image, said, False, True))
        else:
            store.undo(str(rest[0]), who)
            log = [entry for entry in log if entry[:2] != (str(rest[0]), who)]
    return log


def literal(log):
    """Work out what is verified from the account, label by label."""
    labels = {(image, class_) for _, _, image, said, _, _ in log for class_ in said}
    verified = {}
    for image, class_ in labels:
        about = [(w, s[class_], r, v) for _, w, i, s, r, v in log if i == image and class_ in s]
        for place in range(len(about) - 1, -1, -1):
            if about[place][2]:
                about = about[place:]
                break
        newest = {who: (verdict, seen) for who, verdict, _, seen in about}
        definite = [each for each in newest.values() if each[0] != "unsure"]
        if len({verdict for verdict, _ in definite}) == 1 and any(seen for _, seen in definite):
            verified[image, class_] = definite[0][0] == "present"
    return verified


@settings(max_examples=60, deadline=None)
@given(ACTIONS)
def test_states_follow_from_answers_alone(actions):
    with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder), create=True) as store:
        store._connection.execute("PRAGMA synchronous=OFF")
        log = act(store, actions)
        assert {(i, c): p for i, c, p in store.verified()} == literal(log)
        read = "SELECT * FROM label_state ORDER BY image, class"
        cached = store._connection.execute(read).fetchall()
        store.rebuild()
        assert store._connection.execute(read).fetchall() == cached
        shown = Counter(each.state.state for each in store.states() if each.named)
        assert shown == Counter(row[2] for row in cached)


KILLED = """
import sys
from pathlib import Path
from typing import Any
from balancemix.data.decisions import connection
from balancemix.data.decisions.answers import Decision
from balancemix.data.decisions.store import Store
store = Store.open(Path(sys.argv[1]), create=True)
for i in range(10_000):
    store.record([Decision(f"{i}.jpg", "cat", "present", "Ana", client=str(i))])
    print(i, flush=True)
"""


def test_what_was_saved_before_a_kill_is_there(tmp_path):
    for _ in range(3):
        command = [sys.executable, "-c", KILLED, str(tmp_path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
            lines = [child.stdout.readline() for _ in range(40)]
            child.kill()
            lines += child.stdout.readlines()
        saved = max(int(line) for line in lines if line.endswith("\n"))
        with Store.open(tmp_path) as store:
            names = [image for image, _, _ in store.verified()]
        assert {f"{i}.jpg" for i in range(saved + 1)} <= set(names)
        assert len(names) == len(set(names))
