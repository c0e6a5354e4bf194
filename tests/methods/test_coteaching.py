"""Two peers that choose each other's rows."""

import json

import numpy as np
import pytest
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel

from balancemix.cli import main
from balancemix.data import FeatureRows
from balancemix.evaluation.metrics import evaluate
from balancemix.methods import CoTeaching, Mixup
from balancemix.methods.coteaching import Peers, partners
from balancemix.methods.mixing import draw_lambda
from balancemix.plan.plan import Plan
from balancemix.training.fit import fit
from balancemix.training.predict import predict
from tests.methods.draws import copied_generator
from tests.methods.settings import trained
from tests.reference import coteaching as reference
from tests.toys import EPOCHS, SIZE, D, K, N, Rows, Training, make_data, make_model


def two_peers(norm=False):
    return Peers(make_model(norm, seed=0), make_model(norm, seed=1))


def confidence_of(model, x):
    with torch.no_grad():
        return model(x).sigmoid().double().numpy()


# The peers.


def test_peers_are_both_in_training_and_a_in_evaluation():
    peers, x = two_peers(), make_data()[0]
    both = peers(x)
    assert both.shape == (2, N, K)
    assert both[0].equal(peers.a(x))
    assert both[1].equal(peers.b(x))
    apart = peers(x, 2 * x)
    assert apart[0].equal(both[0])
    assert apart[1].equal(peers.b(2 * x))
    peers.eval()
    assert peers(x).equal(peers.a(x))
    assert peers(x).shape == (N, K)


def test_prediction_asks_a_and_each_member_itself():
    x, model = make_data()[0], two_peers(norm=True)
    a, b = CoTeaching().members(model)
    assert a is model.a
    assert b is model.b
    assert predict(model, Rows(x)).equal(predict(a, Rows(x)))
    assert not predict(b, Rows(x)).equal(predict(a, Rows(x)))
    assert model.training


def test_peers_are_found_in_what_is_wrapped_around_them():
    average = AveragedModel(two_peers())
    assert CoTeaching().members(average) == [average.module.a, average.module.b]


def test_two_models_of_different_weights_are_built_and_the_first_is_kept():
    torch.manual_seed(3)
    method = CoTeaching()
    model = method.build(lambda: nn.Linear(D, K))
    torch.manual_seed(3)
    first = nn.Linear(D, K)
    assert isinstance(model, Peers)
    assert model.a.get_parameter("weight").equal(first.weight)
    assert not model.b.get_parameter("weight").equal(first.weight)
    kept = method.members(model)[0].state_dict()
    nn.Linear(D, K).load_state_dict(kept)
    assert kept["weight"].equal(first.weight)


def test_a_model_that_is_not_two_is_refused():
    x, labels = make_data()
    method, index = CoTeaching().start(labels, 1), torch.arange(SIZE)
    with pytest.raises(ValueError, match=r"method\.build"):
        method.loss(make_model(), x[index], index)
    with pytest.raises(ValueError, match=r"model\.train"):
        method.loss(two_peers().eval(), x[index], index)


@pytest.mark.parametrize("optimiser", [torch.optim.SGD, torch.optim.AdamW])
def test_one_optimiser_on_two_peers_equals_two(optimiser):
    x, labels = make_data()
    options = {"lr": 0.05, "weight_decay": 0.01}
    together, apart = two_peers(), two_peers()
    one = optimiser(together.parameters(), **options)
    two = [optimiser(peer.parameters(), **options) for peer in (apart.a, apart.b)]
    methods = [CoTeaching().start(labels, 1) for _ in range(2)]
    for method in methods:
        method.sets[:, ::3] = False
        method.sets[1, ::2] = False
    for rows in torch.arange(N).view(4, -1).repeat(5, 1):
        methods[0].loss(together, x[rows], rows).backward()
        one.step()
        one.zero_grad()
        methods[1].loss(apart, x[rows], rows).backward()
        for each in two:
            each.step()
            each.zero_grad()
    for ours, other in zip(together.parameters(), apart.parameters(), strict=True):
        assert ours.equal(other)


@pytest.mark.parametrize("options", [{"warmup": -1}, {"alpha": -0.5}])
def test_settings_out_of_range_are_refused(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        CoTeaching(**options)


# The loss.


@pytest.mark.parametrize("alpha", [0.0, 4.0])
def test_the_loss_is_the_sum_of_means_over_sets_mixed_within(alpha):
    x, labels = make_data()
    method, model, index = CoTeaching(alpha=alpha).start(labels, 1), two_peers(), torch.arange(SIZE)
    method.sets = torch.rand(2, N, generator=torch.Generator().manual_seed(0)) < 0.6
    known = copied_generator(method)
    want = 0.0
    for peer, kept in zip((model.a, model.b), method.sets[:, index], strict=True):
        rows = [i for i in range(SIZE) if kept[i]]
        order = torch.randperm(len(rows), generator=known).tolist()
        lam = float(draw_lambda(alpha, known))
        others = [rows[j] for j in order]
        shown = lam * x[rows] + (1 - lam) * x[others]
        wanted = lam * labels[rows].double() + (1 - lam) * labels[others].double()
        want += reference.loss(confidence_of(peer, shown), wanted.numpy(), [True] * len(rows))
    assert method.loss(model, x[index], index).item() == pytest.approx(want, rel=1e-5)


def test_labels_outside_a_set_do_not_matter_to_its_peer():
    x, labels = make_data()
    index, gradients = torch.arange(SIZE), []
    for changed in (labels, torch.where(torch.arange(N)[:, None] % 3 == 0, 1 - labels, labels)):
        method, model = CoTeaching().start(changed, 1), two_peers()
        method.sets[0, ::3] = False
        method.loss(model, x[index], index).backward()
        gradients.append([peer[0].weight.grad for peer in (model.a, model.b)])
    assert gradients[0][0].equal(gradients[1][0])
    assert not gradients[0][1].equal(gradients[1][1])


def test_a_batch_without_a_row_of_a_set_leaves_its_peer_alone():
    x, labels = make_data()
    method, model, index = CoTeaching().start(labels, 1), two_peers(norm=True), torch.arange(SIZE)
    method.sets[1] = False
    loss = method.loss(model, x[index], index)
    loss.backward()
    assert loss.isfinite()
    assert all(not parameter.grad.any() for parameter in model.b.parameters())
    assert any(parameter.grad.any() for parameter in model.a.parameters())


def test_partners_stay_within_the_set():
    kept = torch.rand(50, generator=torch.Generator().manual_seed(0)) < 0.5
    generator = torch.Generator().manual_seed(1)
    for _ in range(20):
        partner = partners(kept, generator)
        assert partner.sort().values.equal(torch.arange(50))
        assert kept[partner[kept]].all()
        assert partner[~kept].equal(torch.arange(50)[~kept])


def test_while_all_rows_are_kept_a_peer_s_first_step_is_mixup():
    x, labels = make_data()
    index, model = torch.arange(SIZE), two_peers()
    CoTeaching().start(labels, 1).loss(model, x[index], index).backward()
    plain = make_model(norm=False, seed=0)
    Mixup().start(labels, 1).loss(plain, x[index], index).backward()
    torch.testing.assert_close(model.a[0].weight.grad, plain[0].weight.grad)


def test_selection_changes_the_result_once_the_warm_up_is_over():
    full, without = trained("coteaching"), trained("coteaching", select=False)
    steps = len(full.losses) // EPOCHS
    assert full.losses[:steps] == without.losses[:steps]
    assert full.losses[steps:] != without.losses[steps:]


def test_rows_with_wrong_labels_are_left_out_of_training():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(300, D, generator=generator)
    truth = (x @ torch.randn(D, K, generator=generator) > 0.3).to(torch.uint8)
    wrong = torch.rand(300, generator=generator) < 0.2
    labels = torch.where(wrong[:, None], 1 - truth, truth)
    training = Training(CoTeaching(warmup=2).start(labels, 6), x)
    training.model = two_peers(norm=True)
    training.optimiser = torch.optim.SGD(training.model.parameters(), lr=0.05, momentum=0.9)
    kept = training.run(6).method.sets
    assert kept[:, wrong].float().mean() < 0.1
    assert kept[:, ~wrong].float().mean() > 0.7


def test_the_ensemble_is_the_mean_probability_of_both_peers():
    rows = FeatureRows(*make_data(), [f"class {k}" for k in range(K)])
    plan = Plan(method=CoTeaching(warmup=1))
    plan.train.epochs, plan.train.batch_size = 2, SIZE
    model, method, metrics = fit(make_model, rows, rows, plan)
    both = torch.stack([predict(each, rows.plain) for each in method.members(model)]).mean(0)
    want = evaluate(rows.given, both.double().logit())["mAP"]
    assert metrics["last"]["mAP_ensemble"] == pytest.approx(want)


def test_the_command_trains_resumes_and_scores(tiny, tmp_path, capsys):
    call = ["train", str(tiny), "--method", "coteaching", "--noise", "mislabel:0.3"]
    call += ["--epochs", "4", "--batch-size", "16", "--set", "model.hidden=16"]
    run = tmp_path / "run"
    assert main([*call, "--out", str(run)]) == 0
    before = (run / "label_table.npz").read_bytes(), (run / "model.safetensors").read_bytes()
    assert "kept_a" in json.loads((run / "log.jsonl").read_text().splitlines()[-1])
    with np.load(run / "label_table.npz") as arrays:
        assert arrays["confidence"].shape == arrays["given"].shape
    for name in ("label_table.npz", "model.safetensors", "metrics.json"):
        (run / name).unlink()
    assert main(["train", "--resume", "--out", str(run)]) == 0
    assert (
        (run / "label_table.npz").read_bytes(),
        (run / "model.safetensors").read_bytes(),
    ) == before
    capsys.readouterr()
    assert main(["evaluate", str(run), "--json"]) == 0
    last = json.loads((run / "metrics.json").read_text())["last"]
    assert 0 < last.pop("mAP_ensemble") <= 100  # the run keeps peer a alone
    assert json.loads(capsys.readouterr().out) == pytest.approx(last)
