"""First, do no harm: each rule by which export leaves labels alone."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from balancemix.auditing.data import judge_data
from balancemix.auditing.export import acceptable, check_measured, check_sure, corrected, write_soft
from balancemix.auditing.findings import find
from balancemix.auditing.measured import Measured
from balancemix.auditing.sample import Population, draw_images, draw_labels
from balancemix.data import ReadOptions, read
from balancemix.data.decisions import store_folder
from balancemix.data.decisions.answers import Decision
from balancemix.data.decisions.store import Store
from balancemix.errors import InputError
from tests.auditing.people import CLASSES, answer, settle, write_npz

UNDECIDED = ReadOptions(verified=False)


class Known:
    """Data with planted errors, its store, and what was measured."""

    def __init__(self, path, **options):
        self.path = path
        self.truth, self.given = write_npz(path, **options)
        self.undecided = judge_data(str(path), UNDECIDED)

    def store(self) -> Store:
        return Store.open(store_folder(self.path), create=True)

    def measure(self, count: int = 50) -> Measured:
        """Settle images by the truth."""
        with self.store() as store:
            drawn = draw_images(store, Population.of(read(self.path, UNDECIDED)), count, 0)
            images = [unit.image for unit in drawn.units]
            settle(store, images, self.truth, sample=drawn.sample.id)
            return Measured.of(self.undecided, store)

    def judge(self):
        return judge_data(str(self.path))


@pytest.fixture
def known(tmp_path) -> Known:
    return Known(tmp_path / "x.npz")


def test_nothing_unmeasured_is_applied_unless_forced(known):
    with pytest.raises(InputError, match=r"not measured.*`balancemix audit x --sample 50`"):
        check_measured(None, "x", "--above 0.9", force=False)
    check_measured(None, "x", "--above 0.9", force=True)
    with known.store() as store:
        draw_images(store, Population.of(read(known.path, UNDECIDED)), 50, 0)
        unfinished = Measured.of(known.undecided, store)
    with pytest.raises(InputError, match="not measured"):
        check_measured(unfinished, "x", "--above 0.9", force=False)
    check_measured(known.measure(), "x", "--above 0.9", force=False)


def test_less_than_half_sure_is_refused_unless_forced():
    with pytest.raises(InputError, match="more would be made wrong than right"):
        check_sure(0.49, force=False)
    check_sure(0.5, force=False)
    check_sure(0.1, force=True)


def test_what_is_applied_was_mostly_wrong(known):
    measured = known.measure()
    findings, _ = acceptable(known.judge(), 0.7, measured)
    assert len(findings) > 10
    right = findings.suggested.numpy() == known.truth[findings.row, findings.column]
    assert right.mean() > 0.85


def test_labels_are_applied_by_the_lower_end_of_what_was_measured(known):
    measured = known.measure()
    likeliest = find(known.judge(), 0.7, measured.calibration)
    judged = known.judge()
    applied, _ = acceptable(judged, 0.7, measured)
    for problem, figures in measured.figures.items():
        inside = likeliest.of(problem)
        assert 0 < len(applied.of(problem)) < int((inside.row < 600).sum())
        every = find(known.undecided, 0, measured.cautious).of(problem)
        total = float(every.probability[every.row < 600].double().sum())
        assert total == pytest.approx(figures.total.low, rel=0.02)


def test_verified_labels_are_never_touched(known):
    measured = known.measure()
    judged = known.judge()
    # Even if somebody's calibration were absurd.
    sure = replace(judged, doubt=torch.full_like(judged.doubt, 9.0))
    findings, _ = acceptable(sure, 0, None)
    assert len(findings) > 1000
    assert not judged.verified[findings.row, findings.column].any()
    labels = corrected(judged, 0.5, measured)
    rows = [int(unit[:4]) for unit in judged.names if bool(judged.verified[int(unit[:4])].all())]
    assert len(rows) == 50
    assert labels.given[rows].tolist() == known.truth[rows].tolist()


def test_labels_that_were_not_judged_are_never_touched(known):
    judged = known.undecided
    blind = replace(judged, doubt=judged.doubt.masked_fill(torch.arange(6) == 2, -torch.inf))
    findings, _ = acceptable(blind, 0, None)
    assert set(findings.column.tolist()) == {0, 1, 3, 4, 5}


def test_labels_that_people_are_unsure_about_are_left(known):
    before, _ = acceptable(known.undecided, 0.5, None)
    places = [(known.undecided.names[f.row], CLASSES[f.column]) for f in before][:20]
    with known.store() as store:
        store.record(Decision(*place, "unsure", "Ana") for place in places[:10])
        store.record(Decision(*place, "present", "Ana") for place in places[10:])
        store.record(Decision(*place, "absent", "Ben") for place in places[10:])
    after, _ = acceptable(known.judge(), 0.0, None)
    assert not {(known.undecided.names[f.row], CLASSES[f.column]) for f in after} & set(places)


def test_rows_that_are_scored_on_are_never_touched(known):
    measured = known.measure()
    judged = known.judge()
    assert (find(judged, 0.5, measured.calibration).row >= 600).any()
    for how in (None, measured):
        findings, notes = acceptable(judged, 0.5, how)
        assert (findings.row < 600).all()
        assert any("not for training" in note for note in notes)


def test_no_more_labels_than_there_can_be_errors(known):
    measured = known.measure()
    wrong = measured.figures["wrong"]
    few = replace(wrong.total, right=replace(wrong.total.right, high=30.0))
    capped = replace(measured, figures={**measured.figures, "wrong": replace(wrong, total=few)})
    judged = known.judge()
    people = int(
        (judged.source.decided & (judged.source.file_given == 1) & (judged.given == 0)).sum()
    )
    assert 0 < people < 30
    findings, notes = acceptable(judged, 0.5, capped)
    first = find(judged, 0.5, measured.calibration).of("wrong")
    first = first[(first.row < 600)][: 30 - people]
    assert findings.of("wrong").row.tolist() == first.row.tolist()  # the surest
    assert any("no more than" in note for note in notes)
    none = replace(wrong.total, right=replace(wrong.total.right, high=3.0))
    capped = replace(measured, figures={**measured.figures, "wrong": replace(wrong, total=none)})
    assert len(acceptable(judged, 0.5, capped)[0].of("wrong")) == 0


def test_a_side_that_was_not_measured_is_left(known):
    with known.store() as store:
        population = Population.of(read(known.path, UNDECIDED))
        for _ in range(2):
            drawn = draw_labels(store, population, known.undecided, 200, 0)
            answer(store, drawn.open, known.truth)
        measured = Measured.of(known.undecided, store)
    assert set(measured.figures) == {"wrong"}
    findings, notes = acceptable(known.judge(), 0.5, measured)
    assert len(findings.of("wrong")) > 0
    assert len(findings.of("missing")) == 0
    assert any("missing labels were left out" in note for note in notes)


def test_unknown_labels_are_filled_only_by_above(tmp_path):
    path = tmp_path / "u.npz"
    truth, given = write_npz(path)
    arrays = dict(np.load(path))
    hidden = np.random.default_rng(1).random(given.shape) < 0.3
    arrays["labels"] = np.where(hidden, np.nan, given).astype(np.float32)
    np.savez(path, **arrays)
    judged = judge_data(str(path))
    assert torch.equal(corrected(judged, None, None).given, judged.given)
    filled = corrected(judged, 0.9, None).given
    changed = (filled != judged.given) & torch.from_numpy(hidden)
    assert int(changed.sum()) > 50
    assert (filled[changed] == 1).all()  # present or still unknown, never absent
    assert truth[changed.numpy()].mean() > 0.8


def test_the_reason_of_each_change_is_stated(known):
    measured = known.measure()
    labels = corrected(known.judge(), 0.7, measured)
    changed = (labels.given != labels.source.as_in_file.given).nonzero().tolist()
    reasons = {labels.why(i, k) for i, k in changed}
    assert "decision" in reasons
    others = reasons - {"decision"}
    assert others
    assert all(r.startswith("probability ") and r.endswith(" (measured)") for r in others)
    forced = corrected(known.undecided, 0.9, None)
    i, k = (forced.given != known.undecided.given).nonzero()[0].tolist()
    assert forced.why(i, k).endswith(" (modelled)")


def test_soft_targets_are_probabilities_of_presence(known, tmp_path):
    measured = known.measure()
    judged = known.judge()
    write_soft(judged, measured, tmp_path / "soft.npz", "x.npz")
    with np.load(tmp_path / "soft.npz", allow_pickle=False) as arrays:
        targets, weights = arrays["targets"], arrays["weights"]
        assert arrays["names"].tolist() == list(judged.names)
        assert arrays["measured"].tolist() == ["missing", "wrong"]
    assert targets.dtype == weights.dtype == np.float32
    assert targets.shape == weights.shape == (800, 6)
    verified = judged.verified.numpy()
    assert np.array_equal(targets[verified], judged.given.numpy()[verified])
    assert np.array_equal(targets[600:], judged.given.numpy()[600:])
    findings = find(judged, 0, measured.calibration)
    for f in [f for f in findings if f.row < 600 and not verified[f.row, f.column]][::97]:
        expected = 1 - f.probability if f.given == 1 else f.probability
        assert targets[f.row, f.column] == pytest.approx(expected, abs=1e-6)
    brier = {
        name: float(((each[:600] - known.truth[:600]) ** 2).mean())
        for name, each in (("soft", targets), ("given", judged.given.numpy()))
    }
    assert brier["soft"] < 0.6 * brier["given"]


def test_unsure_labels_can_be_written_as_unknown(known):
    with known.store() as store:
        store.record([Decision("0003.jpg", "ant", "unsure", "Ana")])
    labels = corrected(known.judge(), None, None)
    assert labels.changed == 0
    unsure = labels.without_unsure()
    assert (int(unsure.given[3, 0]), unsure.changed, unsure.why(3, 0)) == (-1, 1, "unsure")
