"""cleanlab: its arrays out, what it flags in, and labels that somebody corrected."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from balancemix.auditing.findings import HEADER
from balancemix.cli import main
from balancemix.data.decisions.reading import Taken
from balancemix.errors import InputError
from balancemix.exchange import cleanlab
from balancemix.exchange.known import Known
from tests.exchange.conftest import CLASSES, CONFIDENCE
from tests.exchange.sources import source_of

ODD = CLASSES[2]


@pytest.fixture
def arrays(work, tmp_path):
    cleanlab.write(work.findings, tmp_path / "x.npz")
    with np.load(tmp_path / "x.npz") as found:
        return dict(found)


def test_the_arrays_are_labels_confidence_and_findings(work, arrays):
    assert arrays["labels"].tolist() == work.source.given.tolist()
    np.testing.assert_allclose(arrays["pred_probs"], work.findings.judged.confidence, atol=1e-6)
    assert np.argwhere(arrays["issues"]).tolist() == [[0, 0], [0, 1], [2, 2]]
    np.testing.assert_allclose(arrays["quality"][0], [0.1, 0.03, 1], atol=1e-6)
    assert (arrays["names"].tolist(), arrays["classes"].tolist()) == (work.source.names, CLASSES)


def saved(tmp_path, array, name="x.npy"):
    np.save(tmp_path / name, array)
    return tmp_path / name


def pairs(findings):
    return sorted(zip(findings.row.tolist(), findings.column.tolist(), strict=True))


def test_what_is_flagged_is_kept(work, tmp_path):
    mask = np.zeros((4, 3), dtype=bool)
    mask[0, 1] = mask[3, 0] = True
    assert pairs(cleanlab.flagged(work.findings, saved(tmp_path, mask))) == [(0, 1)]
    rows = np.array([False, False, True, True])
    assert pairs(cleanlab.flagged(work.findings, saved(tmp_path, rows))) == [(2, 2)]
    assert pairs(cleanlab.flagged(work.findings, saved(tmp_path, [3, 0]))) == [(0, 0), (0, 1)]
    assert pairs(cleanlab.flagged(work.findings, saved(tmp_path, np.zeros(0, int)))) == []


@pytest.mark.parametrize(
    "array", [np.zeros((4, 3)), np.zeros(4), [4], [-1], np.zeros((3, 3), bool), np.int64(3)]
)
def test_another_array_is_refused(work, tmp_path, array):
    file = saved(tmp_path, array)
    with pytest.raises(InputError, match=r"x\.npy: "):
        cleanlab.flagged(work.findings, file)


@pytest.mark.parametrize("how", ["npy", "npz", "json"])
def test_labels_that_differ_are_answers_of_a_named_person(work, arrays, tmp_path, how):
    labels = arrays["labels"].copy()
    labels[0, 0], labels[3, 1] = 0, 1
    file = tmp_path / f"fixed.{how}"
    if how == "npy":
        np.save(file, labels)
    elif how == "npz":
        order, columns = [3, 0], [1, 0]
        np.savez(
            file, labels=labels[order][:, columns], names=arrays["names"][order],
            classes=arrays["classes"][columns], given=arrays["given"][order][:, columns],
        )  # fmt: skip
    else:
        file.write_text(json.dumps([np.flatnonzero(row == 1).tolist() for row in labels]))
    with pytest.raises(InputError, match="not who decided them; pass --name, if a person did"):
        work.take(file, named=False)
    assert work.answers() == {}
    assert work.take(file) == Taken(new=2)
    assert work.answers() == {("0.png", "cat"): "absent", ("3.png", "dog"): "present"}
    assert work.take(file) == Taken(known=2 * (how == "npz"))
    assert work.take(file, "Ben") == Taken(new=2 * (how == "npz"))  # who need not agree by chance


def test_what_somebody_decided_before_is_not_the_answer_of_another(work, tmp_path):
    (tmp_path / "filled.csv").write_text("image,class,verdict\n0.png,cat,absent\n")
    work.take(tmp_path / "filled.csv")
    labels = work.source.given.numpy().copy()
    labels[0, 0], labels[3, 0] = 0, 1
    assert work.take(saved(tmp_path, labels), "Ben") == Taken(new=1)
    assert work.answers() == {("0.png", "cat"): "absent", ("3.png", "cat"): "present"}


def test_what_was_written_says_nothing_new(work, arrays, tmp_path):
    assert work.take(tmp_path / "x.npz") == Taken()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.npy", np.zeros((4, 3), bool), "holds booleans, which say what a program flagged"),
        ("x.npy", np.zeros((3, 3)), "labels of shape (3, 3), the data (4, 3); give a row for each"),
        ("x.npy", np.full((4, 3), 2), "x.npy: "),
        ("x.npz", {"names": None}, "no array 'names'; it needs labels, given, names,"),
        ("x.npz", {"names": ["0.png"] * 2}, "the image '0.png' is there twice"),
        ("x.npz", {"names": ["0.png", "9.png"]}, "row 1: '9.png' is not an image of"),
        ("x.npz", {"names": [1, 2]}, "names are not 2 names; save them as text"),
        ("x.npz", {"classes": ["cat"]}, "classes are not 2 names"),
        ("x.npz", {"classes": ["cat", "dgo"]}, "'dgo' is not a class of"),
        ("x.npz", {"labels": np.array([["a", "b"]] * 2)}, "not numbers"),
        ("x.npz", {"given": np.ones((2, 3))}, "labels and given have different shapes"),
        ("x.json", [[0], [1], [3], []], "row 2: 3 is not the number of a class, 0 to 2"),
        ("x.json", [[0], 1, [], []], "row 1: is 1, not a list of"),
        ("x.json", [[0], [True], [], []], "row 1: True is not the number of a class"),
        ("x.json", [[0]], "labels of shape (1, 3), the data (4, 3)"),
    ],
)
def test_bad_labels_are_refused_and_nothing_is_saved(work, tmp_path, name, content, message):
    file = tmp_path / name
    if name.endswith(".npy"):
        np.save(file, content)
    elif name.endswith(".json"):
        file.write_text(json.dumps(content))
    else:
        usual: dict[str, Any] = {
            "given": np.zeros((2, 2)),
            "labels": np.ones((2, 2)),
            "names": ["0.png", "2.png"],
            "classes": ["cat", "dog"],
        }
        usual |= content
        np.savez(file, **{key: value for key, value in usual.items() if value is not None})
    with pytest.raises(InputError) as caught:
        work.take(file)
    assert str(file) in str(caught.value)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert work.answers() == {}


def test_an_array_with_a_damaged_header_is_refused(work, tmp_path):
    file = saved(tmp_path, np.zeros((4, 3)))
    file.write_bytes(file.read_bytes().replace(b"}", b"(", 1))
    with pytest.raises(InputError, match=r"x\.npy: is not an \.npy file of numbers"):
        work.take(file)


LABELS = st.lists(st.sampled_from([-1, 0, 1]), min_size=6, max_size=6)


@settings(max_examples=60, deadline=None)
@given(LABELS, LABELS)
def test_applying_the_answers_makes_the_labels_that_were_saved(before, after):
    import tempfile
    from pathlib import Path

    old, new = (np.array(each, dtype=np.int8).reshape(3, 2) for each in (before, after))
    known = Known(source_of(["a", "b", "c"], ["x", "y"], old.tolist()))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "x.npy"
        np.save(file, new)
        found = cleanlab.read_corrected(file, known)
    made = old.copy()
    for each in found.labels:
        made["abc".index(each.image), "xy".index(each.class_)] = each.verdict == "present"
    assert (made == np.where(new < 0, old, new)).all()


def rows_of(file):
    lines = file.read_text(encoding="utf-8").splitlines()
    assert lines[0] == ",".join(HEADER)
    return [line.split(",")[:2] for line in lines[1:]]


def test_the_commands(work, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.save("p.npy", np.array(CONFIDENCE))
    flags = ["--minus-one", "unknown"]
    assert main(["audit", "photos", *flags, "--confidence", "p.npy", "--above", "0"]) == 0
    assert len(rows_of(tmp_path / "findings.csv")) == 12
    mask = np.zeros((4, 3), bool)
    mask[0, 0] = True
    np.save("issues.npy", mask)
    call = ["audit", "photos", *flags, "--confidence", "p.npy", "--issues", "issues.npy"]
    assert main([*call, "--out", "flagged.csv"]) == 0
    assert rows_of(tmp_path / "flagged.csv") == [["0.png", "cat"]]
    assert main([*call, "--for", "cleanlab"]) == 0
    assert (tmp_path / "findings.cleanlab.npz").exists()
    assert "find_label_issues(labels, arrays['pred_probs'])" in capsys.readouterr().out
    (tmp_path / "labels.json").write_text("[[0], [1, 2], [0, 1], []]")
    call = ["audit", "--labels", "labels.json", "--confidence", "p.npy", "--above", "0"]
    assert main([*call, "--out", "lists.csv"]) == 0
    assert len(rows_of(tmp_path / "lists.csv")) == 12


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["photos", "--confidence", "small.npy"], "small.npy: "),
        (
            ["photos", "--labels", "p.npy", "--confidence", "p.npy"],
            "--labels and --confidence stand for DATA",
        ),
        (["--labels", "x.json", "--confidence", "p.npy"], "x.json: is not JSON"),
        (["photos", "--issues", "p.npy", "--sample", "2"], "leave them out with --sample"),
        (["photos", "--url", "x"], "--url is for --for label-studio"),
        (["photos", "--for", "cleanlab", "--out", "x.csv"], "--out x.csv: must end in .npz with"),
        (["--labels", "y.npy", "--confidence", "p.npy", "--for", "fiftyone"], "shows pictures"),
        (["photos", "--issues", "none.npy"], "none.npy: not found"),
    ],
)
def test_mistakes_are_one_line(work, tmp_path, monkeypatch, capsys, flags, message):
    monkeypatch.chdir(tmp_path)
    np.save("p.npy", np.array(CONFIDENCE))
    np.save("small.npy", np.array(CONFIDENCE)[:2])
    np.save("y.npy", np.array([[1, 0, 0]] * 4))
    (tmp_path / "x.json").write_text("[")
    assert main(["audit", *flags, "--minus-one", "unknown"]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1
