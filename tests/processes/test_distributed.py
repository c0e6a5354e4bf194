"""Real processes, joined by gloo on the CPU: what they make together is what one makes alone.

A launch costs two imports of torch, so a group of together.py does its trainings in one. What is
exact, and what is equal to rounding, is said in docs/distributed.md; the tolerances here hold on
any processor.
"""

import numpy as np
import pytest
import torch

from balancemix.labels.table import LabelTable
from balancemix.training.predict import predict_logits
from tests import together
from tests.launching import TOGETHER, launch, two
from tests.processes.alike import assert_alike

pytestmark = pytest.mark.launches
SCORES = 0.5  # points: two rows that all but tie may change places


def matrices(end: dict) -> dict[str, torch.Tensor]:
    return LabelTable(**end["method"]["table"]).whole()._asdict()


class Ends(dict):
    """What both processes ended with, by case; a group is launched when one of its is asked for."""

    def __init__(self, folder):
        super().__init__()
        self.folder = folder

    def __missing__(self, case):
        group = next(name for name, cases in together.GROUPS.items() if case in cases)
        out = self.folder / group
        out.mkdir()
        launch(*two(TOGETHER, str(out), group), cwd=out)
        for each in together.GROUPS[group]:
            self[each] = [torch.load(out / f"{each}-{rank}.pt") for rank in (0, 1)]
        return self[case]


class Alone(dict):
    """What this process ends with, by case."""

    def __missing__(self, case):
        self[case] = together.train(case)
        return self[case]


@pytest.fixture(scope="module")
def ends(tmp_path_factory):
    return Ends(tmp_path_factory.mktemp("together"))


@pytest.fixture(scope="module")
def alone():
    return Alone()


def marked(cases):
    marks = {"bf16": pytest.mark.bf16}
    return [pytest.param(case, marks=marks.get(case, ())) for case in cases]


@pytest.mark.parametrize("case", together.EXACT)
def test_two_processes_end_where_one_does(ends, alone, case):
    one, two = alone[case], ends[case][0]
    assert torch.equal(matrices(two)["given"], matrices(one)["given"])
    assert_alike(matrices(two), matrices(one), two["weights"], one["weights"])
    assert torch.equal(two["method"]["generator"], one["method"]["generator"])
    assert two["scores"] == pytest.approx(one["scores"], abs=SCORES)


@pytest.mark.parametrize("case", together.OWN)
def test_a_loop_of_ones_own_is_shared_by_wrapping_the_model(ends, case):
    first, second = ends[case]
    for name, weight in first["weights"].items():
        if "running" not in name:  # each process's own, as everywhere
            assert torch.equal(weight, second["weights"][name])
    one = together.own_loop(case)
    assert torch.equal(first["method"]["generator"], one["method"]["generator"])
    if "BatchNorm" not in case:
        assert_alike(matrices(first), matrices(one), first["weights"], one["weights"])


def test_two_processes_hear_one_second_opinion_of_unknown_labels(ends, alone):
    """The judge's targets are shares, equal to rounding; what is unknown has one as well."""
    case = "unknown labels, second opinion"
    two, one = ends[case][0], alone[case]
    table, expected = matrices(two), matrices(one)
    unknown = expected["given"] < 0
    assert unknown.float().mean() > 0.3
    assert ((expected["target"] > 0.01) & (expected["target"] < 0.99))[unknown].any()
    torch.testing.assert_close(table["target"], expected["target"], atol=2e-3, rtol=0)
    assert (table["status"] != expected["status"]).float().mean() < 0.01
    for name, weight in one["weights"].items():
        torch.testing.assert_close(two["weights"][name], weight, atol=1e-3, rtol=1e-2)


def test_unknown_labels_have_no_weight_in_either(ends):
    for end in ends["unknown labels, mixup, mixed"]:
        table = matrices(end)
        assert (table["weight"][table["given"] < 0] == 0).all()
        assert (table["weight"][table["given"] >= 0] == 1).all()


def test_two_processes_judge_by_landmarks_as_one_does(ends):
    (first, second), one = ends[together.JUDGED], together.judged()
    for name, value in one.items():
        torch.testing.assert_close(first[name], value, atol=1e-3, rtol=1e-3)
        assert torch.equal(first[name], second[name])


def test_what_is_compared_has_labels_of_every_kind(alone):
    """Were nothing decided, equal tables would say nothing."""
    table = matrices(alone["uneven"])
    assert set(table["status"].unique().tolist()) == {0, 1, 2, 3}
    assert (table["target"] != table["given"]).any()


@pytest.mark.parametrize("case", together.EXACT)
def test_the_stream_of_rows_is_one_processes_dealt_out(ends, alone, case):
    parts = 1 if alone[case]["method"]["odds"] is None else 2  # uniform rows, and drawn ones
    streams = [alone[case]["seen"], *(end["seen"] for end in ends[case])]
    for batch, *shares in zip(*streams, strict=True):
        whole = np.array(batch).reshape(parts, -1)
        for rank, share in enumerate(shares):
            # A process without rows of its own looks at the first one's.
            mine = whole[:, rank::2] if whole.shape[1] > rank else whole[:, :1]
            assert share == mine.flatten().tolist()


@pytest.mark.parametrize("case", marked({**together.EXACT, **together.LIKE}))
def test_both_processes_hold_the_same(ends, case):
    first, second = ends[case]
    assert all(weight.isfinite().all() for weight in first["weights"].values())
    for name, weight in first["weights"].items():
        assert torch.equal(weight, second["weights"][name]), name
    other = matrices(second)
    for name, state in matrices(first).items():
        assert torch.equal(state, other[name]), name
    assert torch.equal(first["method"]["generator"], second["method"]["generator"])
    assert first["scores"] == second["scores"]


@pytest.mark.parametrize("case", ["uneven", "own BatchNorm"])
def test_prediction_is_that_of_one_process_to_the_bit(ends, case):
    model = together.make_model(case)
    model.load_state_dict(ends[case][0]["weights"])
    for name, rows in (("logits", together.make_rows(37, seed=1)), ("one", together.make_rows(1))):
        assert torch.equal(predict_logits(model, rows.plain, 16), ends[case][1][name])
