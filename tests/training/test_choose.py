"""`--method auto`: what it compares, what it takes, and what has no say in it."""

import json
import sys
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch

from balancemix.cli import main
from balancemix.data import FeatureRows
from balancemix.errors import InputError
from balancemix.evaluation.metrics import average_precision
from balancemix.judge.ridge import Ridge
from balancemix.labels.noise import parse
from balancemix.methods.auto import CANDIDATES, MEANS, Auto, Choice
from balancemix.methods.closed_form import KernelRidge
from balancemix.plan.plan import Plan
from balancemix.plan.sections import ModelPlan
from balancemix.progress import Silent
from balancemix.run import Run
from balancemix.training import choose as choosing
from balancemix.training.choose import Comparison, choose, split, take
from balancemix.training.experiment import load_experiment
from balancemix.training.fit import fit
from tests.conftest import tiny_arrays
from tests.launching import launch, two
from tests.page import Page

SMALL = {"epochs": 3, "batch_size": 16, "device": "cpu"}


def auto(path="digits", candidates=None, noise="none", **train) -> Plan:
    sections = {"data": {"path": str(path)}, "model": {"hidden": 16}, "noise": noise}
    method = {"name": "auto", "candidates": candidates}
    return Plan.from_tree({**sections, "method": method, "train": {**SMALL, **train}})


def linear(noise: str, rows=500) -> FeatureRows:
    """Rows whose classes are sides of planes."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(rows, 16, generator=generator)
    truth = (x @ torch.randn(16, 4, generator=generator) > 3).to(torch.uint8)
    given = truth if noise == "none" else parse(noise).apply(truth, 0).given
    return FeatureRows(x, given, list("abcd"))


def waves(rows=1500) -> FeatureRows:
    """Rows whose classes come and go along two of eight features, too fast for a wide kernel."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(rows, 8, generator=generator)
    x[:, :2] = 2 * torch.rand(rows, 2, generator=generator) - 1
    given = torch.sin(2 * torch.pi * x[:, [0, 1]]) > 0
    return FeatureRows(x, given.to(torch.uint8), ["a", "b"])


def chosen(rows, candidates, **train) -> Choice:
    plan = auto(candidates=candidates, epochs=40, lr=0.1, batch_size=32, **train)
    plan.model.hidden, plan.data.feature_dropout, plan.data.feature_noise = 64, 0.0, 0.0
    return choose(rows, plan)


def test_where_a_network_memorises_errors_the_closed_form_is_taken():
    choice = chosen(linear("flip:0.25"), ["bce", "kernel-ridge"])
    assert choice.chosen == "kernel-ridge"
    assert choice.scores["kernel-ridge"] > choice.scores["bce"] + 3
    assert choice.settings == {"name": "kernel-ridge", "reduction": "sum", "alpha": 0.0}


def test_where_a_kernel_cannot_follow_clean_labels_the_network_is_taken():
    choice = chosen(waves(), ["kernel-ridge", "bce"])
    assert choice.chosen == "bce"
    assert choice.scores["bce"] > choice.scores["kernel-ridge"] + 5


def test_second_opinion_is_taken_unless_another_is_clearly_ahead():
    mean = torch.tensor([50.0, 60.0, 70.0, float("nan")])
    slightly = mean + torch.tensor([1.0, -1.0, 0.6, 0.0])  # 0.2 ahead, error 0.61
    clearly = mean + torch.tensor([1.0, 0.8, 0.6, 0.0])  # 0.8 ahead, error 0.12
    name = "second-opinion-mean"
    assert take({"bce": slightly, name: mean})[0] == name
    chosen, errors = take({"bce": clearly, name: mean})
    assert chosen == "bce"
    assert errors == pytest.approx({"bce": 0.2 / 3**0.5, name: 0.0}, rel=1e-4)
    assert take({"bce": slightly, "mixup": mean})[0] == "bce"


def test_a_choice_says_why():
    def reason(chosen, **scores):
        scores = {name.replace("_", "-"): score for name, score in scores.items()}
        return Choice(chosen, scores, dict.fromkeys(scores, 1.0), {}, 80, 20).reason

    mean = "second-opinion-mean"
    assert reason(mean, bce=50.0, second_opinion_mean=51.0) == "no other scored higher"
    assert reason(mean, bce=51.5, second_opinion_mean=51.0).startswith("bce is ahead by no more")
    assert "more than a standard error" in reason("bce", bce=53.0, second_opinion_mean=51.0)
    assert reason("bce", bce=53.0, mixup=51.0) == "no other scored higher"


def test_of_equal_scores_the_cheapest_is_taken(monkeypatch):
    equal = torch.full((3,), 50.0)
    monkeypatch.setattr(
        Comparison, "class_scores", lambda self, names, bar: dict.fromkeys(names, equal)
    )
    assert choose(linear("none"), auto()).chosen == "second-opinion-mean"
    some = ["balancemix", "mixup", "bce"]
    choice = choose(linear("none"), auto(candidates=some))
    assert choice.chosen == "bce"
    assert list(choice.scores) == ["bce", "mixup", "balancemix"]


def test_a_part_of_the_rows_is_held_out_by_seed():
    rows = linear("none", 103)
    seen, kept = split(rows, 0.2, 0)
    assert len(kept) == 20
    assert set(seen.names) | set(kept.names) == set(rows.names)
    assert not set(seen.names) & set(kept.names)
    assert split(rows, 0.2, 0)[1].names == kept.names
    assert split(rows, 0.2, 1)[1].names != kept.names
    seen, kept = split(rows.with_groups(torch.arange(103) // 5), 0.2, 0)
    assert seen.groups is not None
    assert kept.groups is not None
    assert 10 < len(kept) <= 20
    assert not set(seen.groups.tolist()) & set(kept.groups.tolist())


def test_what_candidates_share_is_computed_once(monkeypatch):
    trained, factored = [], []
    factor: Any = vars(Ridge)["of"].__func__

    def count_fit(*arguments, **options):
        trained.append(type(arguments[3].method).__name__)
        return fit(*arguments, **options)

    def count_factor(cls, *arguments, **options):
        factored.append(cls)
        return factor(cls, *arguments, **options)

    monkeypatch.setattr("balancemix.training.choose.fit", count_fit)
    monkeypatch.setattr(Ridge, "of", classmethod(count_factor))
    choice = choose(linear("flip:0.1"), auto())
    assert list(choice.scores) == list(CANDIDATES)
    assert sorted(trained) == ["BCE", "BalanceMix", "Mixup", "SecondOpinion"]
    assert len(factored) == 1


@pytest.mark.parametrize("name", CANDIDATES)
def test_a_score_is_that_of_the_method_trained_alone(tmp_path, name):
    """The means of log-odds too, which the comparison makes of two other candidates."""
    rows = linear("flip:0.1", 200)
    seen, kept = split(rows, 0.2, 0)
    arrays: dict[str, Any] = {
        "features": torch.cat([seen.features, kept.features]).numpy(),
        "labels": torch.cat([seen.given, kept.given]).numpy(),
        "split": np.array(["train"] * len(seen) + ["test"] * len(kept)),
    }
    np.savez(tmp_path / "rows.npz", **arrays)
    plan = auto(tmp_path / "rows.npz")
    score = Comparison(seen, kept, plan).scores([name])[name]
    tree = {**plan.tree(), "method": choosing._with(plan, name).tree()["method"]}
    metrics = load_experiment(Plan.from_tree(tree)).fit().metrics
    assert score == pytest.approx(metrics["last"]["mAP"], abs=0.2)


def test_a_class_without_given_positives_in_the_held_out_rows_does_not_count():
    rows = linear("none")
    seen, kept = split(rows, 0.2, 0)
    given = kept.given.clone()
    given[:, 2] = 0
    machine = KernelRidge().solve(Ridge.of(seen.features), seen.given)
    each = 100 * average_precision(given, machine(kept.features))
    assert each[2].isnan()
    with pytest.warns(UserWarning, match="without positives: c"):
        scores = Comparison(seen, kept.with_given(given, None), auto()).scores(["kernel-ridge"])
    assert scores["kernel-ridge"] == pytest.approx(float(each[[0, 1, 3]].mean()))
    empty = rows.with_given(torch.zeros_like(rows.given), None)
    with pytest.raises(InputError, match="none of the 100 held-out training rows has a given pos"):
        choose(empty, auto(candidates=["bce", "mixup"]))


def test_one_bar_counts_every_batch_of_every_candidate():
    bars = []

    class Count(Silent):
        done = 0

        def advance(self, steps=1):
            self.done += steps

    @contextmanager
    def bar(what, total):
        bars.append((what, total, Count()))
        yield bars[-1][2]

    choose(linear("none", 1600), auto(), bar)
    ((what, total, show),) = bars
    assert what == "comparing methods"
    assert show.done == total > 4 * 3 * 80  # and a pilot


# What has no say in it.


def test_truth_and_test_labels_have_no_say(tmp_path):
    weights = []
    for name, flip in (("as it is", False), ("flipped", True)):
        arrays = tiny_arrays(rows=200)
        tests = arrays["split"] == "test"
        arrays["labels"][tests] = arrays["labels"][tests] ^ flip
        arrays["truth"] = arrays["labels"] ^ flip
        np.savez(tmp_path / f"{name}.npz", **arrays)
        plan = auto(tmp_path / f"{name}.npz")
        run = Run.create(tmp_path / name, plan)
        load_experiment(plan).fit(run)
        weights.append((run.path / "model.safetensors").read_bytes())
        stored = [(tmp_path / each / "auto.json").read_bytes() for each in ("as it is", name)]
        assert stored[0] == stored[1]
    assert weights[0] == weights[1]


def test_only_the_choice_is_left_of_the_comparison(tmp_path, tiny):
    plan = auto(tiny, noise="mislabel:0.3")
    run = Run.create(tmp_path / "auto", plan)
    metrics = load_experiment(plan).fit(run).metrics
    choice = run.choice
    assert choice is not None
    named = Plan.from_tree({**plan.tree(), "method": choice.settings})
    alone = Run.create(tmp_path / "named", named)
    last = load_experiment(named).fit(alone).metrics["last"]
    assert metrics["last"] == last
    assert (run.path / "model.safetensors").read_bytes() == (
        alone.path / "model.safetensors"
    ).read_bytes()


# The run and what people see of it.


def test_the_command_says_what_it_compared(tmp_path, tiny, capsys, monkeypatch):
    out = str(tmp_path / "run")
    small = ["--epochs", "2", "--set", "model.hidden=8", "--out", out]
    assert main(["train", str(tiny), "--method", "auto", *small]) == 0
    printed = capsys.readouterr().out
    choice = Run(tmp_path / "run").choice
    assert choice is not None
    for name, score in choice.scores.items():
        line = next(line for line in printed.splitlines() if f" {name} " in line)
        assert f"{score:.2f}" in line
        assert ("taken" in line) is (name == choice.chosen)
    assert "given labels of 18 training rows" in " ".join(printed.split())
    assert f"{choice.chosen} was taken: {choice.reason}" in " ".join(printed.split())
    metrics = Run(tmp_path / "run").metrics
    assert metrics["auto"] == choice.scores
    for words in (
        ["evaluate", out],
        ["audit", out],
        ["predict", out, str(tiny), "--out", str(tmp_path / "p.csv")],
    ):
        assert main(words) == 0, words

    assert main(["report", out, "--out", str(tmp_path / "page.html")]) == 0
    page = Page((tmp_path / "page.html").read_text(encoding="utf-8"))
    cells = {row[0]: row[1] for row in page.tables["Choice of the method"][1:]}
    assert cells == {name: f"{score:.2f}" for name, score in choice.scores.items()}

    monkeypatch.setattr(choosing, "choose", lambda *_: pytest.fail("chosen again"))
    (tmp_path / "run" / "metrics.json").unlink()
    capsys.readouterr()
    assert main(["train", "--resume", "--json", "--out", out]) == 0
    resumed = json.loads(capsys.readouterr().out)
    assert resumed["auto"] == choice.scores
    assert resumed["last"] == metrics["last"]


@pytest.mark.parametrize("damage", ["", "{}", '{"chosen": "bce", "scores": {}}'])
def test_a_damaged_choice_is_made_again_and_comes_out_the_same(tmp_path, tiny, damage):
    plan = auto(tiny, candidates=["bce", "mixup"])
    run = Run.create(tmp_path / "run", plan)
    load_experiment(plan).fit(run)
    before = run.path_of("auto").read_bytes()
    run.path_of("auto").write_text(damage)
    load_experiment(plan).fit(Run(run.path))
    assert run.path_of("auto").read_bytes() == before


def test_a_choice_imports_nothing(tmp_path, tiny):
    plan = auto(tiny, candidates=["bce", "mixup"])
    run = Run.create(tmp_path / "run", plan)
    facts = vars(choose(load_experiment(plan).train, plan))
    run.write_json("auto", {**facts, "settings": {"name": "tests.toys:Echo"}})
    with pytest.raises(InputError, match=r"tests\.toys:Echo is not part of balancemix"):
        load_experiment(plan).fit(run)


# Settings.


def test_every_mean_is_of_candidates():
    assert all(part in CANDIDATES for name in MEANS for part in (name, *MEANS[name]))


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"alpha": 1.0}, "alpha is each candidate's own"),
        ({"holdout": 0.0}, "holdout must be between 0 and 1"),
        ({"candidates": ["bce", "mixupp"]}, "'mixupp': did you mean 'mixup'"),
        ({"candidates": ["bce", "bce"]}, "at least two"),
    ],
)
def test_settings_that_leave_no_choice_are_refused(settings, problem):
    with pytest.raises(ValueError, match=problem):
        Auto(**settings)


def test_on_images_candidates_train_the_network_unless_others_are_named():
    trained = ["bce", "mixup", "second-opinion-trained", "balancemix"]
    assert Auto().among(features=False) == trained
    assert Auto().among(features=True) == list(CANDIDATES)
    named = Auto(candidates=["bce", "kernel-ridge"])
    assert named.among(features=False) == ["kernel-ridge", "bce"]
    with pytest.raises(InputError, match="second-opinion-mean is for features"):
        Auto(candidates=["bce", "second-opinion-mean"]).among(features=False)


def test_the_reduction_is_every_trained_candidate_s():
    method = Auto(reduction="mean")
    reductions = {name: method.candidate(name).reduction for name in CANDIDATES}
    assert {name for name, each in reductions.items() if each == "mean"} == {
        name for name in CANDIDATES if not method.candidate(name).closed
    }


def test_auto_cannot_be_started_by_itself():
    with pytest.raises(InputError, match="has to choose a method first"):
        Auto().start(torch.zeros(3, 2), 1)


# Images, and several processes.


@pytest.mark.filterwarnings("ignore:the best penalty")  # of random images
def test_images_are_compared_as_features_and_the_network_is_trained(photos, monkeypatch):
    plan = auto(photos, ["bce", "kernel-ridge", "second-opinion-trained"])
    plan.model.backbone, plan.model.pretrained, plan.data.size = "test_resnet", False, 32
    compared, scores = [], Comparison.class_scores

    def remember(self, names, bar):
        compared.append((self.plan.model, type(self.seen)))
        each = scores(self, names, bar)
        return each | {"second-opinion-trained": torch.full_like(each["bce"], 101.0)}

    monkeypatch.setattr(Comparison, "class_scores", remember)
    experiment = load_experiment(plan)
    trained = experiment.fit()
    assert compared == [(ModelPlan(), FeatureRows)]
    assert sum(p.numel() for p in trained.model.parameters()) == sum(
        p.numel() for p in experiment.make_model().parameters()
    )
    assert trained.metrics["auto"]["kernel-ridge"] > 0
    assert trained.metrics["epochs"] == 3


@pytest.mark.launches
def test_two_processes_take_the_same(tmp_path, tiny):
    small = ["--set", "model.hidden=8", "--epochs", "2", "--batch-size", "16", "--device", "cpu"]
    call = ["-m", "balancemix", "train", str(tiny), "--method", "auto", *small]
    launch(*two(*call, "--out", "two", "--json"), cwd=tmp_path)
    launch(sys.executable, *call, "--out", "one", "--json", cwd=tmp_path)
    one, both = Run(tmp_path / "one"), Run(tmp_path / "two")
    assert one.choice is not None
    assert both.choice is not None
    assert both.choice.chosen == one.choice.chosen
    assert both.choice.scores == pytest.approx(one.choice.scores, abs=1.0)
    for name, weight in one.load_model().items():
        torch.testing.assert_close(both.load_model()[name], weight, rtol=1e-2, atol=1e-2)
