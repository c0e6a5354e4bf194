import json
from typing import Any

import pytest

from balancemix.errors import InputError
from balancemix.methods import METHODS, BalanceMix
from balancemix.plan.plan import Plan, make_method, read_tree
from balancemix.plan.settings import parse_assignment, put


def test_a_plan_survives_json_whole():
    plan = Plan.from_tree({"method": {"name": "mixup", "alpha": 2}, "noise": "flip:0.1", "seed": 3})
    again = Plan.from_tree(json.loads(json.dumps(plan.tree())))
    assert again == plan
    assert again.tree()["method"] == {"name": "mixup", "alpha": 2.0, "reduction": "sum"}


@pytest.mark.parametrize("name", METHODS)
def test_every_method_can_be_named_and_its_defaults_are_written_out(name):
    tree = Plan(method=make_method({"name": name})).tree()
    assert tree["method"]["name"] == name
    assert Plan.from_tree(tree).tree() == tree


@pytest.mark.parametrize(
    ("tree", "said"),
    [
        ({"trian": {}}, "unknown setting trian; did you mean 'train'?"),
        ({"train": {"epoch": 3}}, "unknown setting train.epoch; did you mean 'epochs'?"),
        ({"train": {"epochs": "3"}}, "train.epochs must be a whole number, it is '3'"),
        ({"train": {"epochs": True}}, "train.epochs must be a whole number, it is True"),
        ({"train": {"epochs": 0}}, "train: epochs must be at least 1, it is 0"),
        ({"train": {"ema": 1.0}}, "train: ema must be in [0, 1), it is 1.0"),
        ({"train": {"lr": -1}}, "train: lr must be at least 0, it is -1"),
        ({"train": {"optimizer": "sdg"}}, "train.optimizer is 'sdg'; did you mean 'sgd'?"),
        ({"train": 3}, "train is a section, not the value 3"),
        ({"method": "bce"}, "method must be a section with a name"),
        ({"method": {"name": "balancemx"}}, "unknown method 'balancemx'; did you mean"),
        ({"method": {"alhpa": 3}}, "unknown setting method.alhpa; did you mean 'alpha'?"),
        ({"method": {"epsilon": 0.2}}, "method: epsilon must be between 0.5 and 1, it is 0.2"),
        ({"method": {"epsilon": "aut"}}, "method.epsilon must be a number or auto, it is 'aut'"),
        ({"method": {"trust_positives": 2}}, "trust_positives must be true or false, it is 2"),
        ({"noise": "mislable:0.4"}, "mislabel"),
        ({"seed": -1}, "seed must be between"),
    ],
)
def test_a_wrong_plan_is_refused_by_name(tree, said):
    with pytest.raises(InputError) as refused:
        Plan.from_tree(tree)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_assignments_are_read_as_toml_or_words():
    tree: dict[str, Any] = {}
    for text in ("method.warmup=none", "train.lr=1e-2", "model.pretrained=false", "noise=single"):
        put(tree, *parse_assignment(text))
    assert tree == {
        "method": {"warmup": "none"},
        "train": {"lr": 0.01},
        "model": {"pretrained": False},
        "noise": "single",
    }
    plan = Plan.from_tree(tree)
    assert isinstance(plan.method, BalanceMix)
    assert plan.method.warmup is None
    assert plan.train.lr == 0.01


@pytest.mark.parametrize(
    "text", ["alpha", "=3", " =3", "\u2028=:", "\r.reduction=sum", "method.=3"]
)
def test_an_assignment_without_both_sides_is_refused(text):
    with pytest.raises(InputError, match=r"write it as section.key=value"):
        parse_assignment(text)


def test_a_section_cannot_be_put_under_a_value():
    with pytest.raises(InputError, match="seed is a value, not a section"):
        put({"seed": 3}, ["seed", "x"], 1)


def test_plans_are_read_from_toml_and_json(tmp_path):
    toml = tmp_path / "plan.toml"
    toml.write_text('noise = "single"\n[method]\nname = "mixup"\n')
    assert read_tree(toml) == {"noise": "single", "method": {"name": "mixup"}}
    broken = tmp_path / "broken.toml"
    broken.write_text("noise = ")
    with pytest.raises(InputError, match="not a valid plan"):
        read_tree(broken)
    with pytest.raises(InputError, match="cannot be read"):
        read_tree(tmp_path / "absent.toml")


@pytest.mark.parametrize(
    ("old", "relabel"),
    [
        ({"mode": "paper"}, "paper"),
        ({"mode": "online", "relabel": True}, "online"),
        ({"mode": "paper", "relabel": False}, "off"),
        ({"relabel": False}, "off"),
        ({"relabel": True}, "epoch"),
        ({"relabel": "epoch", "mode": "paper"}, "paper"),  # a preset, and --set method.mode=paper
    ],
)
def test_older_settings_of_re_labelling_are_understood(old, relabel):
    tree = Plan.from_tree({"method": {"name": "balancemix", **old}}).tree()
    assert tree["method"]["relabel"] == relabel
    assert "mode" not in tree["method"]


def test_a_setting_is_understood_by_its_older_name():
    tree = Plan.from_tree({"method": {"name": "coteaching", "fewest": 7}}).tree()
    assert tree["method"]["min_labels"] == 7


def test_re_labelling_names_a_place():
    with pytest.raises(InputError, match=r"method.relabel is 'epcoh'; did you mean 'epoch'"):
        make_method({"mode": "epcoh"})
    with pytest.raises(ValueError, match="relabel=False: use one of: epoch, online, paper, off"):
        BalanceMix(relabel=False)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"unknown setting method.mode"):
        make_method({"name": "bce", "mode": "paper"})
