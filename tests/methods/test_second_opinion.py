"""Second opinion: targets, table and model are what the judge's opinion makes of them."""

import numpy as np
import pytest
import torch

from balancemix.errors import InputError
from balancemix.judge.opinion import judge
from balancemix.judge.ridge import Ridge
from balancemix.labels.table import Status
from balancemix.methods import Mixup, SecondOpinion
from balancemix.models.kernel import MeanOfLogOdds
from balancemix.training.predict import predict_logits
from tests.methods.settings import draw_opinion
from tests.toys import EPOCHS, SIZE, Rows, Training, make_data, make_model, same


def informed(**options) -> SecondOpinion:
    method = SecondOpinion(**options)
    return method.informed_by(draw_opinion(make_data()[1]), None).start(make_data()[1], EPOCHS)


@pytest.mark.parametrize(("share", "modelled"), [(0.4, True), (0.4, False), (0.0, True), (1, True)])
def test_targets_are_mixed_label_by_label(share, modelled):
    _, labels = make_data()
    opinion = draw_opinion(labels)
    target = informed(share=share, modelled=modelled).table.rows(slice(None))[0]
    for i, row in enumerate(labels.tolist()):
        for k, given in enumerate(row):
            q, eta = float(opinion.posterior[i, k]), float(opinion.confidence[i, k])
            want = (1 - share) * (q if modelled else given) + share * eta
            assert target[i, k].item() == pytest.approx(want, abs=1e-3)


def test_the_table_says_what_became_of_each_label():
    _, labels = make_data()
    opinion, table = draw_opinion(labels), informed().table
    target = table.rows(slice(None))[0]
    for status, given, t in zip(
        table.status.flatten(), labels.flatten(), target.flatten(), strict=True
    ):
        changed = Status.PRESENT if t > 0.5 else Status.ABSENT
        assert status == (changed if (t > 0.5) != bool(given) else Status.CLEAN)
    assert {Status.CLEAN, Status.PRESENT, Status.ABSENT} == set(table.status.unique().tolist())
    right = torch.where(labels > 0, opinion.posterior, 1 - opinion.posterior)
    torch.testing.assert_close(table.clean.float(), right, atol=1e-3, rtol=0)


def test_it_is_mixup_on_the_targets():
    x, labels = make_data()
    soft, plain = informed(), Mixup().start(labels, EPOCHS)
    plain.table.soft = soft.table.soft
    index, model = torch.arange(SIZE), make_model(norm=False)
    assert soft.loss(model, x[index], index).equal(plain.loss(model, x[index], index))


def test_five_lines_train_on_the_opinion_of_a_judge():
    features, given = make_data(n=80)
    method = SecondOpinion().informed_by(judge(given, features), None).start(given, EPOCHS)
    training = Training(method, features).run()
    assert np.isfinite(training.losses).all()
    assert not method.table.rows(slice(None))[0].equal(given.float())


@pytest.mark.parametrize("options", [{}, {"modelled": False}, {"share": 0.0}])
def test_without_an_opinion_it_says_what_to_call(options):
    method = SecondOpinion(**options)
    with pytest.raises(InputError, match=r"informed_by\(judge\(given, features\), None\)"):
        method.start(make_data()[1], EPOCHS)
    assert "table" not in vars(method)


def test_an_opinion_of_other_rows_is_refused():
    _, labels = make_data()
    method = SecondOpinion().informed_by(draw_opinion(labels[1:]), None)
    with pytest.raises(InputError, match=r"shape \(39, 5\), not \(40, 5\)"):
        method.start(labels, EPOCHS)


def test_a_mean_without_features_is_refused():
    _, labels = make_data()
    method = SecondOpinion(form="mean").informed_by(draw_opinion(labels), None)
    with pytest.raises(InputError, match="or use form='trained', for images"):
        method.start(labels, EPOCHS)


def test_being_informed_changes_a_copy():
    method = SecondOpinion()
    method.informed_by(draw_opinion(make_data()[1]), None)
    assert method.opinion is None


def test_given_labels_are_solved_with_the_penalty_of_least_error():
    x, labels = make_data()
    ridge = Ridge.of(x)
    method = SecondOpinion(share=0.0, modelled=False, form="mean")
    machine = method.informed_by(draw_opinion(labels), ridge).start(labels, EPOCHS).machine
    assert machine is not None
    want = ridge.solve(labels, ridge.choose(labels).best)
    assert machine(x).equal(want(x))


@pytest.mark.parametrize("form", ["auto", "mean"])
def test_the_mean_of_log_odds_is_kept_at_the_end_of_the_last_epoch(form):
    x, labels = make_data()
    ridge = Ridge.of(x)
    method = SecondOpinion(form=form).informed_by(draw_opinion(labels), ridge)
    training = Training(method.start(labels, EPOCHS), x)
    for _ in range(EPOCHS - 1):
        assert training.method.members(training.model) == [training.model]
        training.epoch()
    target = training.method.table.rows(slice(None))[0]
    machine = ridge.solve(target, method.penalty)
    for _ in range(2):  # at the end of the last epoch, and after it
        (both,) = training.method.members(training.model)
        assert isinstance(both, MeanOfLogOdds)
        trained = predict_logits(training.model, Rows(x))
        want = (trained + machine(x)) / 2
        torch.testing.assert_close(predict_logits(both, Rows(x)), want)
        training.epoch()


def test_the_mean_is_trained_as_the_network_alone():
    x, labels = make_data()
    opinion = draw_opinion(labels)
    ends = []
    for form, ridge in (("mean", Ridge.of(x)), ("trained", None), ("auto", None)):
        method = SecondOpinion(form=form).informed_by(opinion, ridge)  # type: ignore[arg-type]
        ends.append(Training(method.start(labels, EPOCHS), x).run())
    for end in ends[1:]:
        assert end.losses == ends[0].losses
        assert end.weights().equal(ends[0].weights())
        assert same(end.method.state_dict(), ends[0].method.state_dict())
