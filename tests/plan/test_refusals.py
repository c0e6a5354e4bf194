"""Settings that no run can have are refused in one line that names them."""

import json

import pytest

from balancemix.cli import main
from balancemix.errors import InputError
from balancemix.labels import noise
from balancemix.plan.plan import Plan, find_method, read_tree
from balancemix.plan.settings import parse_assignment

DEEP = 3000


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--set", "train.lr=1\nseed = 3"], "--set train.lr: has more than one value"),
        (["--set", "method.fewest=3", "--set", "method.min_labels=4"], "give one of them"),
        (["--workers", "-1"], "data: workers must be at least 0, it is -1"),
        (["--set", "model.hidden=-1"], "model: hidden must be at least 1, it is -1"),
        (["--set", "model.dropout=1"], "model: dropout must be in [0, 1), it is 1.0"),
        (["--set", "data.holdout=0"], "data: holdout must be between 0 and 1, it is 0.0"),
        (["--image-size", "0"], "data: size must be at least 1, it is 0"),
        (["--seed", str(2**31)], "seed must be"),
        (["--seed", "9" * 400], "seed must be"),
        (["--epochs", "9" * 20], "train.epochs must be less than 2³¹"),
        (["--lr", "nan"], "train.lr must be a finite number, it is nan"),
        (["--lr", "inf"], "train.lr must be a finite number, it is inf"),
        (["--set", f"train.lr={'9' * 400}"], "train.lr must be less than 2³¹"),
        (["--set", f"train.lr=0x{'f' * 5000}"], "train.lr must be less than 2³¹"),
        (["--set", f"model.pretrained=0x{'f' * 5000}"], "model.pretrained must be true or false"),
        (["--epsilon", "nan"], "method.epsilon must be a finite number, it is nan"),
        (["--alpha", "inf"], "method.alpha must be a finite number, it is inf"),
        (["--set", "data.feature_noise=-0.5"], "data: feature_noise must be at least 0"),
        (["--backbone", ""], "model: backbone must not be empty"),
        (["--device", " "], "train: device must not be empty"),
        (["--set", "data.path="], "data: path must not be empty"),
        (["--method", ""], "unknown method ''"),
        (["--method", ":"], "--method :: cannot be imported"),
        (["--method", "..x:Y"], "--method ..x:Y: cannot be imported"),
        (["--noise", ""], "noise: unknown kind ''"),
    ],
)
def test_a_flag_that_no_run_can_have_is_refused_by_name(tiny, tmp_path, capsys, flags, said):
    assert main(["train", str(tiny), *flags, "--out", str(tmp_path / "run")]) == 2
    message = capsys.readouterr().err
    assert said in message
    assert message.count("\n") == 1
    assert len(message) < 600
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "text",
    [
        "flip:nan", "mislabel:1e400", "flip:0.1,0.2,0.3", "drop:0.1,0.2", "none:0.1", "single:",
        "flip:", "flip:,", "flip", "mislabel:-0.1", "mislabel:1_0", "flip:0.25\n,0.5", "flip:٠.٥",
        "flip:0x1", "flip:inf", "mislabel:0.4:0.2",
    ],
)  # fmt: skip
def test_a_noise_that_is_not_a_kind_and_rates_is_refused(text):
    with pytest.raises(InputError, match="noise"):
        noise.parse(text)


@pytest.mark.parametrize("rate", ["flip:1", "mislabel:1", "drop:1", "flip:0,1"])
def test_all_labels_may_be_made_wrong(tiny, tmp_path, rate):
    call = ["train", str(tiny), "--noise", rate, "--epochs", "1", "--out", str(tmp_path / "run")]
    assert main([*call, "--set", "model.hidden=4"]) == 0


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("plan.json", '{"train": ' + "[" * DEEP + "]" * DEEP + "}"),
        ("plan.json", '{"a":' * DEEP + "1" + "}" * DEEP),
        ("plan.json", '{"a":' * 100 + "1" + "}" * 100),
        ("plan.toml", "x = " + "[" * DEEP + "]" * DEEP),
        ("plan.toml", "x = " + "{a = " * DEEP + "1" + "}" * DEEP),
        ("plan.toml", "[" + ".".join("a" * 100) + "]"),
    ],
)
def test_a_deeply_nested_plan_is_refused(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=f"{name}: not a valid plan .*nested too deeply"):
        read_tree(tmp_path / name)


def test_a_deeply_nested_assignment_is_a_word_or_refused():
    assert parse_assignment("train.lr=" + "[" * DEEP)[1] == "[" * DEEP
    with pytest.raises(InputError, match=r"--set train.lr: its value is nested too deeply"):
        parse_assignment("train.lr=" + "[" * 100 + "]" * 100)


def test_a_module_that_fails_on_import_is_named(tmp_path, monkeypatch):
    (tmp_path / "broken_method.py").write_text("1 / 0")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InputError, match=r"broken_method:X: cannot be imported \(ZeroDivision"):
        find_method("broken_method:X")


def test_a_plan_with_the_largest_numbers_survives():
    tree = Plan.from_tree({"seed": 2**31 - 1, "train": {"epochs": 2**31 - 1}}).tree()
    assert json.loads(json.dumps(tree)) == tree


def test_a_key_that_is_given_twice_is_refused(tmp_path):
    (tmp_path / "plan.json").write_text('{"train": {"lr": 0.1, "lr": 0.2}}')
    with pytest.raises(InputError, match=r"plan\.json: .*the key 'lr' is given twice"):
        read_tree(tmp_path / "plan.json")
