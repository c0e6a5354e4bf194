"""Plans of benches: what they say, what they cost, which jobs they make, what is refused."""

import json
from dataclasses import replace

import pytest

from balancemix.bench.paper import paper_scores
from balancemix.bench.plan import BenchPlan, distinct, jobs, read_bench
from balancemix.bench.runner import grown, remember
from balancemix.cli import main
from balancemix.errors import InputError
from balancemix.methods import METHODS
from balancemix.plan.settings import read_into
from balancemix.plan.shipped import bench_plans, summary
from tests.bench.plans import PLAN
from tests.conftest import ROOT

PLANS = sorted((ROOT / "benchmarks" / "plans").glob("*.toml"))


def small(**changes) -> BenchPlan:
    tree = {"data": ["a.npz"], "methods": [{"name": "bce"}, {"name": "mixup", "label": "Mix up"}]}
    return read_into(BenchPlan, {**tree, **changes})


@pytest.mark.parametrize(
    ("name", "listed", "trained"),
    [
        ("ablation", 84, 84),
        ("paper-tables", 288, 288),
        ("quick", 3, 3),
        ("search", 48, 45),  # α = 4 is the run of ε = 0.975
        ("selection", 6, 6),
    ],
)
def test_a_shipped_plan_is_valid_and_says_what_it_costs(name, listed, trained):
    plan = read_bench(name)
    plan.data = plan.data or ["features.npz"]
    all_ = jobs(plan)
    assert len(all_) == listed
    assert len(distinct(all_)) == trained
    head = "\n".join(summary(bench_plans()[name]))
    assert f"balancemix bench {name}" in head
    assert f"Cost: {trained} runs" in head
    assert all(job.plan.data.workers == 0 for job in all_)
    if plan.paper:
        labels = {variant.label for variant in plan.methods}
        assert labels & set(paper_scores(plan.paper))


def test_the_paper_s_tables_have_every_method_and_their_rows_have_numbers():
    plan = read_bench("paper-tables")
    ours = {"ridge", "kernel-ridge", "second-opinion", "auto"}
    assert sorted(variant.name for variant in plan.methods) == sorted(set(METHODS) - ours)
    assert set(paper_scores("coco")) < {variant.label for variant in plan.methods}
    assert set(paper_scores("ablation")) == {v.label for v in read_bench("ablation").methods}
    assert set(paper_scores("search")) == {v.label for v in read_bench("search").methods}


def test_the_search_never_sees_the_test_rows():
    plan = read_bench("search")
    plan.data = ["features.npz"]
    assert {job.plan.data.score for job in jobs(plan)} == {"held-out"}


def test_a_plan_of_before_is_understood(tmp_path):
    old = PLAN.replace(
        "seeds", 'beside = { "none" = "single" }\ntables = ["paper", "beside"]\nseeds'
    )
    (tmp_path / "old.toml").write_text(old)
    plan = read_bench(str(tmp_path / "old.toml"))
    assert plan.versus_paper == {"none": "single"}
    assert plan.tables == ["paper", "versus_paper"]


def test_a_bench_of_before_a_setting_was_renamed_is_continued(tmp_path):
    plan = replace(read_bench("ablation"), data=["tiny.npz"])
    old = json.loads(json.dumps(plan.tree()))
    (clean,) = (v for v in old["methods"] if v["label"] == "+ Clean Labels")
    clean["settings"] = {"relabel": False, "mode": "epoch", "reweight": False}
    (tmp_path / "bench.json").write_text(json.dumps(old))
    remember(tmp_path, plan)
    assert json.loads((tmp_path / "bench.json").read_text()) == plan.tree()
    clean["settings"] = {"mode": "paper", "reweight": False}
    (tmp_path / "bench.json").write_text(json.dumps(old))
    with pytest.raises(InputError, match="Clean Labels: settings was"):
        remember(tmp_path, plan)


def test_jobs_are_a_product_with_names_that_a_growing_plan_keeps():
    plan = small(noises=["none", "flip:0.2"], seeds=[0, 1])
    names = [job.name for job in jobs(plan)]
    assert names[:4] == ["bce-none-0", "mix-up-none-0", "bce-flip-0.2-0", "mix-up-flip-0.2-0"]
    assert len(names) == 8
    more = small(noises=["none", "flip:0.2"], seeds=[0, 1], data=["a.npz", "sets/B.npz"])
    assert set(names) < {job.name for job in jobs(more)}
    assert "bce-none-1-b" in [job.name for job in jobs(more)]


def test_settings_reach_their_runs_and_no_others():
    plan = small(
        noises=["none", "single"],
        settings={"train": {"epochs": 7}, "model": {"hidden": 4}},
        methods=[
            {"name": "bce"},
            {"name": "mixup", "settings": {"alpha": 2}, "set": ["train.lr=0.5"]},
            {"name": "balancemix", "on": {"single": {"epsilon": 0.55}}, "noises": ["single"]},
        ],
    )
    found = {job.name: job.plan for job in jobs(plan)}
    assert {p.train.epochs for p in found.values()} == {7}
    assert (found["mixup-none-0"].train.lr, found["bce-none-0"].train.lr) == (0.5, 0.01)
    assert found["mixup-none-0"].method.alpha == 2
    assert vars(found["balancemix-single-0"].method)["epsilon"] == 0.55
    assert "balancemix-none-0" not in found
    assert [job.name for job in jobs(plan, ["mixup"])] == ["mixup-none-0", "mixup-single-0"]


def test_a_row_s_set_reaches_the_method_and_gives_way_to_its_settings_under_a_noise():
    row = {"name": "balancemix", "settings": {"alpha": 3, "power": 2}}
    row |= {"set": ["method.alpha=0.5"], "on": {"single": {"alpha": 8}}}
    listed = jobs(small(noises=["none", "single"], methods=[row]))
    methods = [job.plan.tree()["method"] for job in listed]
    assert [(method["alpha"], method["power"]) for method in methods] == [(0.5, 2), (8, 2)]


@pytest.mark.parametrize(
    "assignment", ["noise=flip:0.2", "seed=3", "data.path=b.npz", "method.name=asl"]
)
def test_a_row_cannot_set_what_the_plan_s_lists_fill_in(assignment):
    name = assignment.split("=")[0]
    with pytest.raises(InputError, match=f"bce: set {name} is filled in for each run"):
        jobs(small(methods=[{"name": "bce", "set": [assignment]}]))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"nosies": []}, "unknown setting nosies; did you mean 'noises'?"),
        ({"noises": ["flop:0.1"]}, "unknown kind 'flop'; did you mean 'flip'?"),
        ({"noises": "none"}, "noises must be a list, it is 'none'"),
        ({"seeds": ["0"]}, r"seeds\[0\] must be a whole number"),
        ({"seeds": [1, 1]}, "seeds must differ: 1 is listed twice"),
        ({"data": ["a/x.npz", "b/x.npz"]}, "names of data must differ: x is listed twice"),
        ({"methods": []}, r"no \[\[methods\]\] to compare"),
        ({"methods": [{"nam": "bce"}]}, r"methods\[0\].nam; did you mean 'name'"),
        ({"methods": [{"label": "BCE"}]}, r"methods\[0\]: name the method"),
        ({"methods": [{"name": "bce"}, {"name": "bce"}]}, "bce is listed twice"),
        ({"methods": [{"name": "bce", "noises": ["single"]}]}, "'single' is not planned"),
        ({"methods": [{"name": "bce", "over": "BCE"}]}, "over = 'BCE'; "),
        ({"settings": {"data": 3}}, "settings.data is a section, not the value 3"),
        ({"settings": {"seed": 3}}, "settings.seed is filled in for each run"),
        ({"tables": ["papers"]}, "did you mean 'paper'?"),
    ],
)
def test_a_wrong_plan_is_refused_with_what_is_wrong(changes, said):
    with pytest.raises(InputError, match=said):
        small(**changes)


def test_a_wrong_setting_of_a_row_names_the_row():
    plan = small(methods=[{"name": "mixup", "label": "Mine", "settings": {"alhpa": 2}}])
    with pytest.raises(InputError, match=r"Mine: unknown setting method.alhpa; did you mean"):
        jobs(plan)


def test_a_plan_may_grow_but_not_change():
    old = small(seeds=[0])
    assert grown(old.tree(), old.tree()) == ""
    assert grown(small(data=[]).tree(), old.tree()) == ""  # a bench.json that somebody emptied
    assert grown(old.tree(), small(seeds=[0, 1], noises=["none", "single"]).tree()) == ""
    assert grown(old.tree(), small(data=["b.npz"]).tree()) == "data: a.npz is gone"
    assert "must stay the first" in grown(old.tree(), small(data=["b.npz", "a.npz"]).tree())
    assert "settings were {}" in grown(old.tree(), small(settings={"train": {"lr": 1}}).tree())
    changed = small(methods=[{"name": "bce"}, {"name": "asl", "label": "Mix up"}]).tree()
    assert grown(old.tree(), changed) == "Mix up: name was mixup, is asl"


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.stem)
def test_the_plans_of_the_results_are_valid(plan):
    """A plan that is named in benchmarks/results.py must not fail after hours of others."""
    found = read_bench(str(plan))
    assert jobs(found if found.data else replace(found, data=["digits"]))


def test_the_plans_are_listed(capsys):
    assert main(["bench", "--list"]) == 0
    listed = capsys.readouterr().out
    assert all(f"{name}: " in listed for name in bench_plans())
