import pytest

from balancemix.cli import main
from balancemix.methods import BalanceMix
from balancemix.plan.plan import Plan, read_tree
from balancemix.plan.shipped import presets, summary

NAMES = ["coco2014", "coco2017", "deepfashion", "voc0712"]


def test_the_paper_s_four_experiments_are_there():
    assert list(presets()) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_preset_is_a_plan_that_says_command_cost_and_result(name):
    plan = Plan.from_tree(read_tree(presets()[name]))
    head = "\n".join(summary(presets()[name]))
    assert f"--plan {name}" in head
    assert "Cost:" in head
    assert "Paper" in head
    assert plan.data.groups == "paper"
    assert plan.data.size == 448


@pytest.mark.parametrize(("name", "epochs", "batch", "warmup"), [
    ("voc0712", 20, 32, 5), ("coco2017", 50, 64, 10), ("deepfashion", 40, 64, 5),
])  # fmt: skip
def test_the_main_experiments_have_the_paper_s_settings(name, epochs, batch, warmup):
    plan = Plan.from_tree(read_tree(presets()[name]))
    train, method = plan.train, plan.method
    assert isinstance(method, BalanceMix)
    assert (train.epochs, train.batch_size, method.warmup) == (epochs, batch, warmup)
    assert (train.lr, train.momentum, train.weight_decay) == (0.01, 0.9, 1e-4)
    assert (train.optimizer, train.schedule, train.ema) == ("sgd", "cosine", 0)
    assert (method.alpha, method.epsilon) == (4.0, 0.975)


@pytest.mark.parametrize("name", NAMES)
def test_a_preset_starts_on_small_images(name, capsys):
    assert main(["train", "--plan", name, "--image-size", "64", "--dry-run"]) == 0
    assert "2 short epochs on random images" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_preset_starts_at_full_size(name, capsys):
    assert main(["train", "--plan", name, "--dry-run"]) == 0


def test_presets_are_listed_and_shown(capsys):
    assert main(["presets"]) == 0
    listed = capsys.readouterr().out
    assert all(f"{name}: " in listed for name in NAMES)
    assert main(["presets", "voc0712"]) == 0
    assert capsys.readouterr().out == presets()["voc0712"].read_text()
    assert main(["presets", "voc"]) == 2
