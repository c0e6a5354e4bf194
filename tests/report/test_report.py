"""The report: whole pages from real runs, that load nothing and open anywhere."""

import html
import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from balancemix.bench.plan import jobs
from balancemix.cli import main
from tests.conftest import tiny_arrays
from tests.page import Page, planned

SMALL = ["--epochs", "3", "--batch-size", "16", "--set", "model.hidden=16", "--lr", "0.05"]
SECTIONS = [
    "Results", "Plan", "Imbalance", "Noise", "Learning", "Classes", "Mixtures", "Selection",
    "Findings", "Commands",
]  # fmt: skip


@pytest.fixture(scope="module")
def benchmark(tmp_path_factory) -> Path:
    """Train two methods under three noises with one seed, and one run of the second."""
    folder = tmp_path_factory.mktemp("bench")
    arrays = tiny_arrays()
    arrays["classes"] = np.array(["<b>bold</b>", *arrays["classes"][1:]])
    np.savez(folder / "tiny.npz", **arrays)
    plan = planned(
        data=[str(folder / "tiny.npz")],
        noises=["none", "mislabel:0.3", "single"],
        seeds=[0, 1],
        methods=[
            {"name": "bce", "label": "BCE Loss", "category": "Default"},
            {"name": "balancemix", "label": "BalanceMix", "category": "Proposed"},
        ],
    )
    (folder / "bench.json").write_text(json.dumps(plan.tree()))
    for job in jobs(plan):
        if job.seed and job.name != "balancemix-mislabel-0.3-1":
            continue
        call = ["train", job.data, "--method", job.variant.name, "--noise", job.noise, *SMALL]
        out = folder / "runs" / job.name
        assert main([*call, "--seed", str(job.seed), "--out", str(out)]) == 0
    return folder


@pytest.fixture(scope="module")
def run(benchmark) -> Path:
    return benchmark / "runs" / "balancemix-mislabel-0.3-0"


def report(capsys, folder: Path, *flags: str) -> str:
    capsys.readouterr()
    assert main(["report", str(folder), *flags]) == 0
    return Path(capsys.readouterr().out.strip()).read_text(encoding="utf-8")


def test_training_stores_the_ap_of_each_class(run, capsys):
    facts = json.loads((run / "per_class.json").read_text())["classes"]
    with np.load(run / "label_table.npz") as record:
        assert [fact["name"] for fact in facts] == record["classes"].tolist()
        assert [fact["positives"] for fact in facts] == record["given"].sum(0).tolist()
    mean = json.loads((run / "metrics.json").read_text())["last"]["mAP"]
    assert np.mean([fact["AP"] for fact in facts]) == pytest.approx(mean)
    capsys.readouterr()
    assert main(["evaluate", str(run), "--per-class", "--json"]) == 0
    measured = json.loads(capsys.readouterr().out)["per_class"]
    assert {fact["name"]: fact["AP"] for fact in facts} == pytest.approx(measured)


def test_a_run_resumed_after_its_last_epoch_writes_what_is_missing(run, tmp_path):
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    (copy / "per_class.json").unlink()
    assert main(["train", "--resume", "--out", str(copy)]) == 0
    assert (copy / "per_class.json").read_text() == (run / "per_class.json").read_text()


def test_the_page_of_a_run_is_whole_and_needs_nothing_else(run, capsys):
    text = report(capsys, run)
    page = Page(text)
    assert page.headings == SECTIONS
    assert page.loaded == []
    assert len(page.ids) == len(set(page.ids))
    assert not re.search(r"@import|url\((?!#)|https?://", text)
    assert "<b>bold" not in text
    assert "&lt;b&gt;bold" in text
    assert page.tags.count("svg") == 4 + 2 * 5  # five classes, fewer than the six that are chosen
    assert "AP on test rows" in text
    assert "mislabel:0.3 with seed 0" in text
    assert "balancemix train" in text
    assert (run / "report.html").is_file()
    assert report(capsys, run) == text  # the same bytes again


def test_a_run_without_selection_or_noise_or_class_scores_has_a_page(benchmark, tmp_path, capsys):
    copy = tmp_path / "run"
    shutil.copytree(benchmark / "runs" / "bce-loss-none-0", copy)
    (copy / "per_class.json").unlink()
    text = report(capsys, copy)
    page = Page(text)
    assert page.headings == [name for name in SECTIONS if name != "Selection"]
    assert "AP on training rows" in text
    assert "The run is of an older version" in text


def test_figures_are_stored_too(run, tmp_path, capsys):
    report(capsys, run, "--out", str(tmp_path / "page.html"), "--figures", str(tmp_path / "f"))
    assert (tmp_path / "page.html").is_file()
    names = {path.name for path in (tmp_path / "f").iterdir()}
    assert {"learning.svg", "learning.png", "frequency.svg", "losses-c1-positive.png"} <= names


def test_the_page_of_a_benchmark(benchmark, capsys):
    text = report(capsys, benchmark)
    page = Page(text)
    assert page.headings == ["Tables", "Ranks", "Learning", "Runs", "Settings", "Commands"]
    assert page.loaded == []
    assert page.tags.count("svg") == 1 + 3
    assert "7 of 12 runs have finished: 2 methods, 3 noises, 2 seeds; data tiny." in text
    assert "Not in the plan: Rand. Flip." in text
    assert len(page.tables["Runs"]) == 1 + 12
    assert f"--seeds 0,1 --out {benchmark}" in text
    assert report(capsys, benchmark) == text  # the same bytes again


def test_what_cannot_be_reported_on_is_said_in_a_line(run, tmp_path, capsys):
    empty, idle = tmp_path / "empty", tmp_path / "idle"
    for folder, tree in ((empty, {}), (idle, planned(methods=[{"name": "bce"}]).tree())):
        folder.mkdir()
        (folder / "bench.json").write_text(json.dumps(tree))
    for call, line in (
        ([tmp_path / "absent"], "is not a directory"),
        ([run.parent], "holds no run"),
        ([empty], "bench.json: settings: no [[methods]] to compare"),
        ([idle], "holds no finished run"),
        ([run, "--out", tmp_path], "name the page to write"),
    ):
        capsys.readouterr()
        assert main(["report", *map(str, call)]) == 2
        assert line in capsys.readouterr().err


def chromium() -> str | None:
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((path for path in map(shutil.which, names) if path), None)


# Appended to a copy of the page: unfolds, sorts, chooses, and says how wide the page came out.
PROBE = """<script>
document.querySelectorAll("details").forEach(details => { details.open = true; });
document.querySelectorAll("table.sortable th button").forEach(button => button.click());
const rows = document.querySelector("table.sortable").tBodies[0].rows.length;
const shown = [...document.querySelectorAll(".choice")].filter(f => f.offsetParent).length;
const root = document.documentElement;
console.log("PROBE " + [rows, shown, root.scrollWidth <= innerWidth, innerWidth].join(" "));
</script></body>"""


@pytest.mark.skipif(chromium() is None, reason="no Chromium on the PATH to open the page in")
@pytest.mark.parametrize("width", [1200, 400])
@pytest.mark.parametrize(("kind", "told"), [("run", "5 1 true"), ("bench", "12 0 true")])
def test_the_page_opens_in_a_browser(benchmark, run, tmp_path, capsys, width, kind, told):
    text = report(capsys, run if kind == "run" else benchmark)
    page = tmp_path / "page.html"
    # In a frame, since the browser's own window is never narrower than 500 pixels.
    inside = html.escape(text.replace("</body>", PROBE))
    frame = f'<iframe srcdoc="{inside}" style="border: 0; width: {width}px; height: 1500px">'
    page.write_text(f"<!doctype html><body>{frame}</iframe></body>", encoding="utf-8")
    done = subprocess.run(
        [
            chromium(), "--headless", "--no-sandbox", "--disable-gpu",
            f"--user-data-dir={tmp_path / 'profile'}", "--window-size=1300,1600",
            "--enable-logging=stderr", "--v=0", "--virtual-time-budget=2000",
            f"--screenshot={tmp_path / 'page.png'}", page.as_uri(),
        ],
        capture_output=True, text=True,
    )  # fmt: skip
    said = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    assert len(said) == 1, said or done.stderr[-2000:]
    assert f"PROBE {told} {width}" in said[0]
    assert (tmp_path / "page.png").stat().st_size > 10_000
