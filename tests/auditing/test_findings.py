import re

import numpy as np
import pytest
import torch
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

from balancemix.auditing.findings import HEADER, audit, find
from balancemix.auditing.judged import judge_confidence, weigh
from balancemix.errors import InputError
from balancemix.estimates import Calibration


def planted(rows: int = 400, classes: int = 4):
    """Make confident predictions of a truth whose labels were flipped here and there."""
    generator = torch.Generator().manual_seed(0)
    truth = (torch.rand(rows, classes, generator=generator) < 0.3).to(torch.uint8)
    wrong = torch.rand(rows, classes, generator=generator) < 0.1
    given = torch.where(wrong, 1 - truth, truth)
    logits = 6.0 * truth - 3 + 0.5 * torch.randn(truth.shape, generator=generator)
    confidence = logits.sigmoid()
    return given, truth, confidence


def judged_by_hand(names=None, classes=None, **more):
    """Make four labels of two classes, one of each problem and one that is right."""
    given = torch.tensor([[1, 0], [-1, 1]], dtype=torch.int8)
    posterior = torch.tensor([[0.2, 0.9], [0.7, 0.99]])
    able = torch.tensor([True, True])
    return weigh(given, posterior, posterior, posterior, able, names=names, classes=classes, **more)


def test_planted_flips_are_found_worst_first():
    given, truth, confidence = planted()
    every = audit(given, confidence=confidence, above=0)
    for problem, side in (("wrong", 1), ("missing", 0)):
        errors = int(((given == side) & (truth != side)).sum())
        first = every.of(problem)[:errors]
        assert bool((truth[first.row, first.column] != side).all())
    findings = audit(given, confidence=confidence)
    quality = findings.score(truth)
    assert quality["errors"] == int((given != truth).sum())
    assert quality["precision"] > 0.99
    assert quality["recall"] > 0.5
    assert {finding.problem for finding in findings} == {"wrong", "missing"}


def test_each_problem_has_a_list_of_its_own_and_wrong_comes_first():
    given, _, confidence = planted()
    given = given.to(torch.int8)
    given[::9, 1] = -1
    findings = audit(given, confidence=confidence, above=0)
    assert len(findings) == given.numel()
    problems = findings.problem
    order = ["wrong", "missing", "unknown"]
    assert problems == sorted(problems, key=order.index)
    for problem, value in zip(order, (1, 0, -1), strict=True):
        part = findings.of(problem)
        assert len(part) == int((given == value).sum())
        assert part.rank.tolist() == list(range(1, len(part) + 1))
        assert bool((part.probability.diff() <= 0).all())
        doubt = part.judged.doubt[part.row, part.column]
        assert bool((doubt.diff() <= 0).all())
        assert bool((part.suggested == (0 if value == 1 else 1)).all())
        assert {finding.suggested for finding in part} == {0 if value == 1 else 1}


def test_precision_and_recall_are_those_of_a_hand_count():
    findings = find(judged_by_hand())
    assert [(f.row, f.column, f.problem, f.suggested, f.rank) for f in findings] == [
        (0, 0, "wrong", 0, 1),
        (0, 1, "missing", 1, 1),
        (1, 0, "unknown", 1, 1),
    ]
    assert findings.score(torch.tensor([[0, 0], [0, 0]])) == {
        "findings": 3,
        "errors": 2,
        "precision": 0.5,
        "recall": 0.5,
    }


def test_nothing_found_has_no_precision():
    given = torch.zeros(3, 2)
    quality = audit(given, confidence=given).score(given)
    assert quality["findings"] == 0
    assert quality["precision"] != quality["precision"]


def test_the_input_is_not_changed():
    given, _, confidence = planted(50)
    before = given.clone()
    audit(given, confidence=confidence).applied(given)
    assert torch.equal(given, before)


def test_shapes_must_agree():
    with pytest.raises(ValueError, match="must both be N×K"):
        audit(torch.zeros(2, 3), confidence=torch.zeros(3, 2))
    with pytest.raises(InputError, match="12 rows of labels, but 11 rows of features"):
        audit(torch.zeros(12, 3), features=torch.zeros(11, 2))


def test_one_of_features_and_confidence_is_given_by_its_name():
    given, _, confidence = planted(50)
    for wrong in (
        lambda: audit(given, confidence),
        lambda: audit(given),
        lambda: audit(given, features=confidence, confidence=confidence),
    ):
        with pytest.raises(TypeError, match=r"give one by its name: audit\(given, features=…\)"):
            wrong()


def test_findings_are_columns_that_can_be_cut():
    given, _, confidence = planted()
    findings = audit(given, confidence=confidence)
    rows, columns = findings.row, findings.column
    assert torch.equal(findings.given, given[rows, columns].to(torch.int8))
    assert torch.equal(findings.suggested, 1 - findings.given)
    assert torch.equal(findings.probability, findings.judged.probability[rows, columns])
    assert len(findings[:3]) == 3
    assert list(findings[:3]) == list(findings)[:3]
    assert list(findings[2:]) == list(findings)[2:]  # with the ranks that they had


def test_the_file_names_rows_and_classes(tmp_path):
    judged = judged_by_hand(["a.png", "b.png"], ["cat", "dog"], split=["train", "test"])
    findings = find(judged)
    findings.write(tmp_path / "findings.csv")
    lines = (tmp_path / "findings.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "image,class,problem,given,suggested,probability,rank,basis,split,verdict"
    shown = [f"{p:.9g}" for p in findings.probability.tolist()]
    assert lines[1:] == [
        f"a.png,cat,wrong,1,0,{shown[0]},1,modelled,train,",
        f"a.png,dog,missing,0,1,{shown[1]},1,modelled,train,",
        f"b.png,cat,unknown,-1,1,{shown[2]},1,modelled,test,",
    ]
    assert next(find(judged_by_hand()).lines())[:2] == ("0", "0")
    with pytest.raises(ValueError, match="classes: give 2, not 1"):
        judged_by_hand(classes=["cat"])


def test_no_name_is_a_formula_in_the_file(tmp_path):
    findings = find(judged_by_hand(["=1+1", "b"], ["@cat", "dog"]))
    findings.write(tmp_path / "findings.csv")
    line = (tmp_path / "findings.csv").read_text(encoding="utf-8").splitlines()[1]
    assert line.startswith("'=1+1,'@cat,wrong,1,0,0.")
    assert next(findings.lines())[:2] == ("=1+1", "@cat")


def test_findings_are_not_applied_to_other_labels():
    given, _, confidence = planted(50)
    findings = audit(given, confidence=confidence)
    with pytest.raises(ValueError, match=r"labels of shape \(50, 4\), not \(49, 4\)"):
        findings.applied(given[1:])
    with pytest.raises(ValueError, match="no longer those that were audited"):
        findings.applied(1 - given)


def test_verified_labels_are_never_found():
    given, _, confidence = planted()
    every = audit(given, confidence=confidence)
    verified = torch.zeros_like(given, dtype=torch.bool)
    verified[every.row[::2], every.column[::2]] = True
    rest = audit(given, confidence=confidence, verified=verified)
    assert len(rest) > 0
    assert not bool(verified[rest.row, rest.column].any())
    assert not len(audit(given, confidence=confidence, verified=given < 2, above=1e-9))
    with pytest.raises(ValueError, match="verified must have the shape of given"):
        audit(given, confidence=confidence, verified=verified[1:])


def test_a_class_that_cannot_be_judged_is_not_listed():
    given, _, confidence = planted()
    generator = torch.Generator().manual_seed(1)
    confidence[:, 2] = torch.rand(len(given), generator=generator)  # says nothing
    findings = audit(given, confidence=confidence)
    assert findings.judged.judged.tolist() == [True, True, False, True]
    assert set(findings.column.tolist()) == {0, 1, 3}
    every = audit(given, confidence=confidence, above=0)
    assert len(every) == given.numel()


def test_fewer_than_ten_rows_are_not_judged():
    findings = audit(torch.eye(5), features=torch.eye(5))
    assert len(findings) == 0
    assert not bool(findings.judged.judged.any())
    assert findings.summary()["expected"] is None


@pytest.mark.parametrize("above", [-1.0, -0.001, 1.5, float("nan")])
def test_a_threshold_outside_0_to_1_is_refused(above):
    given, _, confidence = planted(50)
    with pytest.raises(InputError, match=r"above must be between 0 and 1, it is"):
        audit(given, confidence=confidence, above=above)


def test_labels_given_as_booleans_or_lists_are_audited_like_numbers():
    given, _, confidence = planted(50)
    expected = list(audit(given, confidence=confidence))
    assert expected
    assert list(audit(given > 0, confidence=confidence)) == expected
    assert list(audit(given.tolist(), confidence=confidence.numpy())) == expected


def test_labels_are_judged_by_features():
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(400, 6, generator=generator)
    truth = (features[:, :3] > 0.4).to(torch.int8)
    flipped = torch.rand(truth.shape, generator=generator) < 0.05
    given = torch.where(flipped, 1 - truth, truth)
    quality = audit(given, features=features.numpy()).score(truth)
    assert quality["precision"] > 0.8
    assert quality["recall"] > 0.6
    groups = np.arange(400) // 2
    assert len(audit(given, features=features, groups=groups)) > 0


def test_a_frame_has_the_columns_of_the_file():
    pandas = pytest.importorskip("pandas")
    findings = find(judged_by_hand(["a.png", "b.png"], ["cat", "dog"]))
    frame = findings.to_frame()
    assert isinstance(frame, pandas.DataFrame)
    assert tuple(frame.columns) == HEADER
    expected = [list(map(str, line)) for line in findings.lines()]
    assert [list(map(str, line)) for line in frame.drop(columns="probability").values] == [
        line[:5] + line[6:] for line in expected
    ]
    assert frame["probability"].tolist() == findings.probability.tolist()


def test_a_frame_needs_pandas(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(InputError, match=r"to_frame\(\) needs pandas; install it"):
        find(judged_by_hand()).to_frame()


def test_a_notebook_shows_a_table_of_plain_text():
    findings = find(judged_by_hand(["<script>a", "b"], ["<b>cat", "dog"]))
    shown = findings._repr_html_()
    assert "&lt;script&gt;a" in shown
    assert set(re.findall(r"<(\w+)", shown)) == {"p", "table", "tr", "th", "td"}
    assert shown.count("<tr>") == 4
    assert "1 wrong, 1 missing, 1 unknown, of 4 labels" in shown


HALVED = Calibration(intercept=0.0, slope=1.0, floor=0.0, ceiling=0.5)


def test_measured_probabilities_replace_the_modelled_ones_of_their_side():
    judged = judged_by_hand()
    findings = find(judged, 0.1, {"wrong": HALVED})
    assert findings.measured == {"wrong"}
    assert [line[7] for line in findings.lines()] == ["measured", "modelled", "modelled"]
    assert float(findings.probability[0]) == pytest.approx(0.4, abs=0.001)
    assert not len(find(judged, 0.45, {"wrong": HALVED}).of("wrong"))


@settings(deadline=None, max_examples=25)
@drawn(st.integers(0, 2**31), st.integers(1, 40), st.integers(1, 4))
def test_any_labels_and_confidence_are_ranked(seed, rows, classes):
    generator = torch.Generator().manual_seed(seed)
    given = torch.randint(-1, 2, (rows, classes), generator=generator)
    confidence = torch.rand(rows, classes, generator=generator)
    confidence = (4 * confidence).round() / 4 if seed % 2 else confidence  # ties, 0 and 1
    findings = find(judge_confidence(given.to(torch.int8), confidence), 0.0)
    places = findings.row * classes + findings.column
    assert sorted(places.tolist()) == list(range(rows * classes))
    assert bool(((findings.probability >= 0) & (findings.probability < 1)).all())
    for problem in ("wrong", "missing", "unknown"):
        assert bool((findings.of(problem).probability.diff() <= 0).all())
    values = [float(str(line[5])) for line in findings.lines()]
    assert np.array_equal(np.array(values, np.float32), findings.probability.numpy())
