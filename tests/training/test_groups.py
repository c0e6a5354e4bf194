"""Groups: the pilot, the judge and `auto` divide none."""

import warnings

import pytest
import torch

from balancemix.data import FeatureRows, load
from balancemix.errors import InputError
from balancemix.plan.plan import Plan
from balancemix.training import choose, opinion, pilot
from balancemix.training.experiment import load_experiment
from tests.data.test_groups import groups_of, saved


def test_the_pilot_divides_no_group(tmp_path):
    train = load(saved(tmp_path)).train
    kept, seen = pilot._split(train, 0)
    assert (len(kept), len(seen)) == (8, 88)
    assert not groups_of(kept) & groups_of(seen)
    alone = train.with_groups(torch.zeros(len(train), dtype=torch.long))
    assert [len(part) for part in pilot._split(alone, 0)] == [0, 96]


def test_the_judge_leaves_whole_groups_out(tmp_path):
    train = load(saved(tmp_path)).train
    assert torch.equal(opinion.make_ridge(Plan(), train).groups, train.groups)


def test_auto_holds_whole_groups_out(tmp_path):
    train = load(saved(tmp_path)).train
    assert isinstance(train, FeatureRows)
    seen, kept = choose.split(train, 0.2, 0)
    assert not groups_of(seen) & groups_of(kept)
    assert len(kept) == 16  # of 96 rows, 19 fit
    alone = train.with_groups(torch.zeros(len(train), dtype=torch.long))
    with pytest.raises(InputError, match="all training rows are of one group; name a --method"):
        choose.split(alone, 0.2, 0)


def test_auto_on_images_knows_the_groups(photos):
    lines = (photos / "labels.csv").read_text().splitlines()
    rows = [f"{line},{line.split('.')[0][0]}" for line in lines[1:]]
    (photos / "labels.csv").write_text("\n".join([f"{lines[0]},group", *rows]))
    model = {"backbone": "test_resnet", "pretrained": False}
    data = {"path": str(photos), "size": 32}
    plan = Plan.from_tree({"data": data, "model": model, "train": {"device": "cpu"}})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        train = load_experiment(plan).train
    assert torch.equal(choose._on_features(train, plan).groups, train.groups)
