import pytest
import torch

from balancemix.auditing.findings import audit, suspicion, table_clean
from balancemix.errors import InputError


def planted(rows: int = 400, classes: int = 4):
    """Make confident predictions of a truth whose labels were flipped here and there."""
    generator = torch.Generator().manual_seed(0)
    truth = (torch.rand(rows, classes, generator=generator) < 0.3).to(torch.uint8)
    wrong = torch.rand(rows, classes, generator=generator) < 0.1
    given = torch.where(wrong, 1 - truth, truth)
    logits = 6.0 * truth - 3 + 0.5 * torch.randn(truth.shape, generator=generator)
    confidence = logits.sigmoid()
    return given, truth, confidence


def test_planted_flips_are_found_worst_first():
    given, truth, confidence = planted()
    findings = audit(given, confidence)
    quality = findings.score(truth)
    assert quality["errors"] == int((given != truth).sum())
    assert quality["precision"] > 0.99
    assert quality["recall"] > 0.99
    rated = [finding.suspicion for finding in findings]
    assert rated == sorted(rated, reverse=True)
    assert torch.equal(findings.applied(given), truth)
    assert {finding.kind for finding in findings} == {"wrong", "missing"}


def test_precision_and_recall_are_those_of_a_hand_count():
    given = torch.tensor([[1, 0], [0, 1]])
    truth = torch.tensor([[0, 0], [0, 0]])
    clean = torch.tensor([[0.0, 1.0], [0.1, 1.0]])
    confidence = torch.tensor([[0.1, 0.1], [0.9, 0.2]])
    findings = audit(given, confidence, clean)
    assert [(f.row, f.column, f.kind, f.suggested) for f in findings] == [
        (0, 0, "wrong", 0),
        (1, 0, "missing", 1),
    ]
    assert findings.score(truth) == {
        "findings": 2,
        "errors": 2,
        "precision": 0.5,
        "recall": 0.5,
    }


def test_nothing_found_has_no_precision():
    given = torch.zeros(3, 2)
    quality = audit(given, given, given + 1).score(given)
    assert quality["findings"] == 0
    assert quality["precision"] != quality["precision"]


def test_suspicion_needs_both_doubt_and_contradiction():
    given = torch.tensor([1.0, 1.0, 1.0])
    rated = suspicion(given, torch.tensor([0.0, 1.0, 0.0]), torch.tensor([0.0, 0.0, 1.0]))
    assert rated.tolist() == [1.0, 0.0, 0.0]


def test_the_input_is_not_changed():
    given, _, confidence = planted(50)
    before = given.clone()
    audit(given, confidence).applied(given)
    assert torch.equal(given, before)


def test_shapes_must_agree():
    with pytest.raises(ValueError, match="must both be N×K"):
        audit(torch.zeros(2, 3), torch.zeros(3, 2))


def test_a_clean_probability_that_is_none_is_refused():
    given, confidence = torch.zeros(2, 3), torch.rand(2, 3)
    for clean in (torch.ones(3, 2), torch.full((2, 3), 2.0), torch.full((2, 3), torch.nan)):
        with pytest.raises(ValueError, match="clean must be N×K"):
            audit(given, confidence, clean)


def test_findings_are_columns_that_can_be_cut():
    given, _, confidence = planted()
    findings = audit(given, confidence)
    rows, columns = findings.row, findings.column
    assert torch.equal(findings.given, given[rows, columns])
    assert torch.equal(findings.suggested, 1 - given[rows, columns])
    assert torch.equal(findings.confidence, confidence[rows, columns])
    rated = suspicion(given, findings.clean.new_zeros(given.shape), confidence)[rows, columns]
    assert torch.allclose(findings.suspicion, (1 - findings.clean) * rated)
    assert len(findings[:3]) == 3
    assert list(findings[:3]) == list(findings)[:3]


def test_the_file_names_rows_and_classes(tmp_path):
    given, confidence = torch.tensor([[1, 0], [0, 1]]), torch.tensor([[0.25, 0.0], [0.0, 1.0]])
    clean = torch.tensor([[0.125, 1.0], [1.0, 1.0]])
    findings = audit(given, confidence, clean, names=["a.png", "b.png"], classes=["cat", "dog"])
    findings.write(tmp_path / "findings.csv")
    assert (tmp_path / "findings.csv").read_text(encoding="utf-8").splitlines() == [
        "image,class,problem,given,suggested,suspicion,clean_probability,confidence",
        "a.png,cat,wrong,1,0,0.6562,0.1250,0.2500",
    ]
    assert next(audit(given, confidence, clean).lines())[:2] == ("0", "0")
    with pytest.raises(ValueError, match="classes: give 2, not 1"):
        audit(given, confidence, clean, classes=["cat"])


def test_no_name_is_a_formula_in_the_file(tmp_path):
    given, confidence = torch.tensor([[1, 0]]), torch.tensor([[0.25, 0.0]])
    clean = torch.tensor([[0.125, 1.0]])
    findings = audit(given, confidence, clean, names=["=1+1"], classes=["@cat", "dog"])
    findings.write(tmp_path / "findings.csv")
    line = (tmp_path / "findings.csv").read_text(encoding="utf-8").splitlines()[1]
    assert line == "'=1+1,'@cat,wrong,1,0,0.6562,0.1250,0.2500"
    assert next(findings.lines())[:2] == ("=1+1", "@cat")


def test_findings_are_not_applied_to_other_labels():
    given, _, confidence = planted(50)
    findings = audit(given, confidence)
    with pytest.raises(ValueError, match=r"labels of shape \(50, 4\), not \(49, 4\)"):
        findings.applied(given[1:])
    with pytest.raises(ValueError, match="no longer those that were audited"):
        findings.applied(1 - given)


def test_unknown_labels_are_neither_found_nor_scored():
    given = torch.tensor([[-1, 1], [0, 1]])
    confidence = torch.tensor([[0.9, 0.1], [0.9, 0.1]])
    findings = audit(given, confidence, torch.zeros(2, 2))
    assert [(f.row, f.column) for f in findings] == [(0, 1), (1, 0), (1, 1)]
    quality = findings.score(torch.tensor([[1, 0], [-1, 1]]))
    assert quality == {"findings": 3, "errors": 1, "precision": 0.5, "recall": 1.0}


def test_verified_labels_are_never_found():
    given, _, confidence = planted(50)
    every = audit(given, confidence)
    verified = torch.zeros_like(given, dtype=torch.bool)
    verified[every.row[::2], every.column[::2]] = True
    rest = audit(given, confidence, verified=verified)
    assert list(rest) == [finding for i, finding in enumerate(every) if i % 2]
    assert not len(audit(given, confidence, torch.zeros(given.shape), verified=given >= 0, above=0))
    with pytest.raises(ValueError, match="verified must be N×K like"):
        audit(given, confidence, verified=verified[1:])


def test_a_table_without_judgement_is_judged_anew():
    assert table_clean(torch.ones(2, 2)) is None
    assert table_clean(torch.tensor([[1.0, 0.2]])) is not None


@pytest.mark.parametrize("above", [-1.0, -0.001, 1.5, float("nan")])
def test_a_threshold_outside_0_to_1_is_refused(above):
    given, _, confidence = planted(50)
    with pytest.raises(InputError, match=r"above must be between 0 and 1, it is"):
        audit(given, confidence, above=above)


def test_labels_given_as_booleans_are_audited_like_numbers():
    given, _, confidence = planted(50)
    assert list(audit(given > 0, confidence)) == list(audit(given, confidence))


def test_half_precision_does_not_round_suspicion():
    given, confidence = torch.tensor([[1]]), torch.tensor([[0.0]])
    clean = torch.tensor([[0.0003]]).half()
    (finding,) = audit(given, confidence, clean)
    assert finding.suspicion == pytest.approx(1 - float(clean), abs=1e-7)
