"""Each command through main(argv): what it prints, writes and returns."""

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest

from balancemix.cli import main
from tests.conftest import tiny_arrays

SMALL = ["--epochs", "4", "--batch-size", "16", "--set", "model.hidden=16"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    """Train once on noisy features for all commands that need a run."""
    folder = tmp_path_factory.mktemp("trained")
    np.savez(folder / "tiny.npz", **tiny_arrays())
    call = ["train", str(folder / "tiny.npz"), "--noise", "mislabel:0.3", "--lr", "0.05"]
    assert main([*call, *SMALL, "--out", str(folder / "run")]) == 0
    return folder / "run"


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def refused(capsys, *argv: str) -> str:
    assert main([str(word) for word in argv]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    lines = [line for line in said.err.splitlines() if not line.startswith("warning: ")]
    assert len(lines) == 1, said.err
    assert lines[0].startswith("balancemix: ")
    return lines[0]


def test_train_prints_a_table_or_metrics(tiny, tmp_path, capsys):
    assert (
        main(["train", str(tiny), *SMALL, "--method", "mixup", "--out", str(tmp_path / "a")]) == 0
    )
    assert "mixup" in capsys.readouterr().out
    call = ["train", str(tiny), *SMALL, "--noise", "flip:0.1", "--out", str(tmp_path / "b")]
    assert main([*call, "--json"]) == 0
    metrics = json.loads(capsys.readouterr().out)
    assert metrics == json.loads((tmp_path / "b" / "metrics.json").read_text())
    assert {"mAP", "mAP_many", "mAP_medium", "mAP_few", "CF1_mean", "OF1"} <= metrics["last"].keys()
    wanted = "clean_precision clean_recall relabel_proportion"
    assert set(wanted.split()) <= metrics["selection"].keys()
    assert metrics["seconds_per_epoch"] > 0


def test_a_run_in_the_default_place_is_named_by_what_it_is(tiny, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["train", str(tiny), *SMALL, "--method", "bce", "--noise", "drop:0.5"]) == 0
    assert (tmp_path / "runs" / "tiny-bce-drop-0.5-0" / "metrics.json").exists()


def test_plan_files_flags_and_assignments_are_laid_over_each_other(tiny, tmp_path):
    toml = tmp_path / "plan.toml"
    toml.write_text('seed = 5\n[train]\nepochs = 9\nlr = 0.5\n[method]\nname = "mixup"\n')
    call = ["train", str(tiny), "--plan", str(toml), "--epochs", "2", "--set", "train.lr=0.01"]
    assert main([*call, "--batch-size", "16", "--out", str(tmp_path / "run")]) == 0
    plan = json.loads((tmp_path / "run" / "plan.json").read_text())
    assert (plan["seed"], plan["train"]["epochs"], plan["train"]["lr"]) == (5, 2, 0.01)
    assert plan["method"]["name"] == "mixup"


def test_where_to_re_label_is_understood_by_its_old_flag_too(tiny, tmp_path):
    for flag, run in (("--relabel", "new"), ("--mode", "old")):
        call = ["train", str(tiny), *SMALL, flag, "paper", "--out", str(tmp_path / run)]
        assert main(call) == 0
    plans = [json.loads((tmp_path / run / "plan.json").read_text()) for run in ("new", "old")]
    assert plans[0] == plans[1]
    assert plans[0]["method"]["relabel"] == "paper"


def test_evaluate_repeats_the_last_score(trained, capsys):
    assert main(["evaluate", str(trained), "--json"]) == 0
    scores = json.loads(capsys.readouterr().out)
    last = json.loads((trained / "metrics.json").read_text())["last"]
    assert scores == pytest.approx(last)
    assert main(["evaluate", str(trained), "--per-class", "--ap", "voc", "--split", "train"]) == 0
    assert "c4" in capsys.readouterr().out


def test_evaluate_takes_other_data_with_classes_in_another_order(trained, tmp_path, capsys):
    arrays = tiny_arrays()
    order = [4, 2, 0, 1, 3]
    arrays["labels"], arrays["classes"] = arrays["labels"][:, order], arrays["classes"][order]
    np.savez(tmp_path / "other.npz", **arrays)
    assert main(["evaluate", str(trained), str(tmp_path / "other.npz"), "--json"]) == 0
    last = json.loads((trained / "metrics.json").read_text())["last"]
    assert json.loads(capsys.readouterr().out) == pytest.approx(last)


def test_predict_writes_csv_and_npz(trained, tmp_path, capsys):
    features = tmp_path / "new.npz"
    np.savez(features, features=tiny_arrays()["features"][:7])
    assert main(["predict", str(trained), str(features), "--out", str(tmp_path / "p.csv")]) == 0
    assert "7 rows" in capsys.readouterr().out
    lines = read(tmp_path / "p.csv")
    assert list(lines[0]) == ["image", "labels", "c0", "c1", "c2", "c3", "c4"]
    for line in lines:
        over = [name for name in list(line)[2:] if float(line[name]) >= 0.5]
        assert line["labels"] == "|".join(over)
    assert main(["predict", str(trained), str(features), "--out", str(tmp_path / "p.npz")]) == 0
    with np.load(tmp_path / "p.npz") as arrays:
        assert arrays["confidence"].shape == (7, 5)


@pytest.mark.parametrize("flag", ["--above", "--threshold"])  # the second is the old name
def test_the_threshold_of_predictions_can_be_set(trained, tiny, tmp_path, capsys, flag):
    call = ["predict", str(trained), str(tiny), "--out", str(tmp_path / "p.csv"), flag, "0"]
    assert main(call) == 0
    assert {line["labels"] for line in read(tmp_path / "p.csv")} == {"c0|c1|c2|c3|c4"}
    capsys.readouterr()
    assert main(["evaluate", str(trained), "--json", flag, "0"]) == 0
    assert json.loads(capsys.readouterr().out)["OR"] == 100


def test_stats_counts(tiny, capsys):
    assert main(["stats", str(tiny), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    labels = tiny_arrays()["labels"][:90]
    assert facts["rows"] == 90
    assert facts["positives"] == {f"c{k}": int(labels[:, k].sum()) for k in range(5)}
    assert facts["class_ratio"] == labels.sum(0).max() / labels.sum(0).min()
    assert facts["positive_negative_ratio"] == pytest.approx((labels == 0).sum() / labels.sum())
    assert main(["stats", str(tiny)]) == 0
    assert "█" in capsys.readouterr().out


def test_noise_writes_what_it_did(tiny, tmp_path, capsys):
    for name in ("a.npz", "b.npz"):
        call = ["noise", str(tiny), "--noise", "mislabel:0.4", "--seed", "3"]
        assert main([*call, "--out", str(tmp_path / name), "--json"]) == 0
    measured = json.loads(capsys.readouterr().out.split("}")[0] + "}")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    with np.load(tmp_path / "a.npz") as arrays:
        given, truth, facts = arrays["labels"], arrays["truth"], json.loads(str(arrays["facts"]))
        train = arrays["split"] == "train"
    assert facts == {"noise": "mislabel:0.4", "seed": 3, "measured": measured}
    assert (given != truth)[train].mean() == pytest.approx(measured["wrong"])
    assert (given == truth)[~train].all()
    assert main(["noise", str(tiny), "--noise", "single", "--out", str(tmp_path / "c.csv")]) == 0
    lines = read(tmp_path / "c.csv")
    assert len(lines) == 120
    assert all("|" not in line["labels"] for line in lines if line["split"] == "train")


def test_audit_lists_the_worst_first_and_export_applies_the_same(trained, tmp_path, capsys):
    assert main(["audit", str(trained), "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    findings = read(trained / "findings.csv")
    assert len(findings) == summary["findings"] > 0
    for problem in ("wrong", "missing"):
        rated = [float(line["probability"]) for line in findings if line["problem"] == problem]
        assert len(rated) == summary[problem]
        assert rated == sorted(rated, reverse=True)
    assert 0 <= summary["precision"] <= 1
    out = str(tmp_path / "labels.csv")
    assert "not measured" in refused(capsys, "export", trained, "--above", "0.5", "--out", out)
    assert main(["export", str(trained), "--above", "0.5", "--force", "--out", out]) == 0
    with np.load(trained / "label_table.npz") as record:
        given, names = record["given"], record["names"].tolist()
        classes = record["classes"].tolist()
    given = np.concatenate([given, tiny_arrays()["labels"][90:]])
    names += [f"row {i}" for i in range(90, 120)]
    for line in findings:
        row, column = names.index(line["image"]), classes.index(line["class"])
        assert given[row, column] == int(line["given"])
        if line["split"] == "train":  # what is scored on stays
            given[row, column] = int(line["suggested"])
    exported = read(tmp_path / "labels.csv")
    assert len(exported) == 120
    for row, line in enumerate(exported):
        assert line["image"] == names[row]
        there = [name for name, value in zip(classes, given[row], strict=True) if value]
        assert line["labels"] == "|".join(there)
    assert main(["audit", str(trained)]) == 0
    assert "against the truth" in capsys.readouterr().out


def test_a_run_of_a_method_without_selection_can_be_audited(tiny, tmp_path, capsys):
    call = ["train", str(tiny), *SMALL, "--method", "bce", "--noise", "mislabel:0.3"]
    assert main([*call, "--out", str(tmp_path / "run")]) == 0
    assert main(["audit", str(tmp_path / "run")]) == 0


def test_images_are_trained_scored_predicted_and_exported(photos, tmp_path, capsys):
    run = str(tmp_path / "run")
    call = ["train", str(photos), "--backbone", "mobilenetv3_small_050", "--no-pretrained"]
    call += ["--image-size", "32", "--epochs", "2", "--batch-size", "8", "--workers", "0"]
    assert main([*call, "--warmup", "1", "--out", run]) == 0
    assert main(["evaluate", run]) == 0
    assert main(["predict", run, str(photos / "images"), "--out", str(tmp_path / "p.csv")]) == 0
    assert {line["image"] for line in read(tmp_path / "p.csv")} == {f"{i}.png" for i in range(40)}
    out = tmp_path / "labels.csv"
    assert main(["export", run, "--above", "1.0", "--force", "--out", str(out)]) == 0
    given = {line["image"]: set(line["labels"].split("|")) for line in read(photos / "labels.csv")}
    assert {line["image"]: set(line["labels"].split("|")) for line in read(out)} == given
    capsys.readouterr()


def test_demo_ends_with_a_table_and_a_page(tmp_path, capsys):
    assert main(["demo", "--out", str(tmp_path / "demo"), "--epochs", "2"]) == 0
    said = capsys.readouterr().out
    assert "balancemix" in said
    assert f"balancemix review {tmp_path / 'demo' / 'seed-0' / 'digits.npz'}" in said
    page = (tmp_path / "demo" / "index.html").read_text(encoding="utf-8")
    assert "<svg" in page
    assert "data:image/jpeg;base64" in page
    assert not re.search(r"(src|href)=.?https?:|@import|url\(http", page)  # needs no network


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--method", "balancemx"], "unknown method 'balancemx'; did you mean 'balancemix'?"),
        (["--noise", "mislable:0.4"], "did you mean 'mislabel'"),
        (["--noise", "flip:1.5"], "1.5"),
        (["--set", "method.alhpa=2"], "unknown setting method.alhpa; did you mean 'alpha'?"),
        (["--device", "cuda"], "--device cuda is not available on this machine"),
        (["--plan", "absent.toml"], "absent.toml: cannot be read"),
    ],
)
def test_a_mistake_is_one_line_and_leaves_nothing(tiny, tmp_path, capsys, flags, said):
    out = tmp_path / "run"
    assert said in refused(capsys, "train", tiny, *SMALL, "--out", out, *flags)
    assert not out.exists()


def test_fewer_rows_than_a_batch_are_trained_on_with_a_word(tiny, tmp_path, capsys):
    call = ["train", str(tiny), *SMALL, "--batch-size", "500", "--out", str(tmp_path / "run")]
    assert main(call) == 0
    said = capsys.readouterr().err
    assert "--batch-size 500 is more than the 90 training rows: an epoch is one batch" in said


def test_an_unknown_backbone_names_the_nearest_and_leaves_nothing(photos, tmp_path, capsys):
    out = tmp_path / "run"
    said = refused(
        capsys, "train", photos, "--backbone", "resnet5O", "--batch-size", "8", "--out", out
    )
    assert "resnet50" in said
    assert not out.exists()


def test_bad_images_are_listed_and_can_be_skipped(photos, tmp_path, capsys):
    (photos / "images" / "3.png").write_bytes(b"not an image")
    (photos / "images" / "5.png").unlink()
    said = refused(capsys, "stats", photos)
    assert "3.png" in said
    assert "5.png" in said
    assert "--skip-bad" in said
    assert main(["stats", str(photos), "--skip-bad", "--json"]) == 0
    told = capsys.readouterr()
    assert json.loads(told.out)["rows"] == 26
    assert told.err.startswith("warning: ")


def test_a_used_directory_is_refused(trained, capsys):
    data = str(trained.parent / "tiny.npz")
    assert "--resume to continue it, or --force" in refused(capsys, "train", data, "--out", trained)
    for command in ("audit", "export", "evaluate"):
        assert "holds no run" in refused(capsys, command, trained.parent / "nothing")


def test_resuming_nothing_needs_data(tmp_path, capsys):
    assert "name the DATA" in refused(capsys, "train", "--resume", "--out", tmp_path / "run")
    assert "--resume needs --out" in refused(capsys, "train", "--resume")


def test_other_classes_and_splits_are_refused(trained, tmp_path, capsys):
    arrays = tiny_arrays()
    arrays["classes"] = np.array(["zebra", "c1", "c2", "c3", "c4"])
    np.savez(tmp_path / "other.npz", **arrays)
    assert "zebra" in refused(capsys, "evaluate", trained, tmp_path / "other.npz")
    assert "--split dev" in refused(capsys, "evaluate", trained, "--split", "dev")
    wide = tmp_path / "wide.npz"
    np.savez(wide, features=np.zeros((3, 99), np.float32))
    assert "does not fit" in refused(capsys, "predict", trained, wide, "--out", tmp_path / "p.csv")


def test_a_class_without_positives_is_a_warning(tmp_path, capsys):
    arrays = tiny_arrays()
    arrays["labels"][:, 2] = 0
    np.savez(tmp_path / "empty.npz", **arrays)
    assert main(["train", str(tmp_path / "empty.npz"), *SMALL, "--out", str(tmp_path / "run")]) == 0
    assert "no training row has the class 'c2'" in capsys.readouterr().err
