import pytest
import torch

from balancemix.auditing.findings import audit, corrected, score, suspicion, table_clean


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
    quality = score(findings, given, truth)
    assert quality["errors"] == int((given != truth).sum())
    assert quality["precision"] > 0.99
    assert quality["recall"] > 0.99
    rated = [finding.suspicion for finding in findings]
    assert rated == sorted(rated, reverse=True)
    assert torch.equal(corrected(given, findings), truth)
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
    assert score(findings, given, truth) == {
        "findings": 2,
        "errors": 2,
        "precision": 0.5,
        "recall": 0.5,
    }


def test_nothing_found_has_no_precision():
    given = torch.zeros(3, 2)
    quality = score([], given, given)
    assert quality["findings"] == 0
    assert quality["precision"] != quality["precision"]


def test_suspicion_needs_both_doubt_and_contradiction():
    given = torch.tensor([1.0, 1.0, 1.0])
    rated = suspicion(given, torch.tensor([0.0, 1.0, 0.0]), torch.tensor([0.0, 0.0, 1.0]))
    assert rated.tolist() == [1.0, 0.0, 0.0]


def test_the_input_is_not_changed():
    given, _, confidence = planted(50)
    before = given.clone()
    corrected(given, audit(given, confidence))
    assert torch.equal(given, before)


def test_shapes_must_agree():
    with pytest.raises(ValueError, match="must both be N×K"):
        audit(torch.zeros(2, 3), torch.zeros(3, 2))


def test_a_table_without_judgement_is_judged_anew():
    assert table_clean(torch.ones(2, 2)) is None
    assert table_clean(torch.tensor([[1.0, 0.2]])) is not None
