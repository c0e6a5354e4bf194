"""The script behind the documents' tables: which benches it runs, and in which order."""

import json

import pytest

from balancemix.bench.plan import read_bench
from benchmarks import results
from benchmarks.results import BENCHES, JUDGE, LEDGER

PLAN = """
data = ["tiny.npz"]
noises = ["none"]
seeds = [0, 1]
[[methods]]
name = "bce"
"""


@pytest.fixture
def called(tmp_path, monkeypatch) -> list[list[str]]:
    """Go to a folder with a plan for each bench of the judge, and note what would be run."""
    calls: list[list[str]] = []
    (tmp_path / "benchmarks" / "plans").mkdir(parents=True)
    for name in JUDGE:
        (tmp_path / "benchmarks" / "plans" / f"{name}.toml").write_text(PLAN)
    monkeypatch.setattr(results, "ROOT", tmp_path)
    monkeypatch.setattr(results, "DOCUMENTS", [])
    monkeypatch.setattr(results, "balancemix", calls.append)
    monkeypatch.chdir(tmp_path)
    return calls


def test_every_bench_reads_the_ledger():
    for name, bench in BENCHES.items():
        assert bench.command(name)[-len(bench.flags) - 2 :][:2] == ["--ledger", LEDGER]


def test_the_first_seed_of_every_bench_of_the_judge_comes_first(called, tmp_path):
    results.main(["judge"])
    names = [call[1].removeprefix("benchmarks/plans/").removesuffix(".toml") for call in called]
    assert names == JUDGE + JUDGE
    assert [call[-2:] == ["--seeds", "0"] for call in called] == [True] * 4 + [False] * 4
    called.clear()
    for name in JUDGE[:3]:  # killed in the second round
        out = tmp_path / "bench" / name
        out.mkdir(parents=True)
        tree = read_bench(f"benchmarks/plans/{name}.toml").tree()
        seeds = [0] if name == JUDGE[1] else [0, 1]
        (out / "bench.json").write_text(json.dumps({**tree, "seeds": seeds}))
    results.main(["judge"])
    first = [call[1] for call in called if call[-2:] == ["--seeds", "0"]]
    assert first == [f"benchmarks/plans/{name}.toml" for name in (JUDGE[1], JUDGE[3])]


def test_without_training_only_what_has_ended_is_written(called, tmp_path):
    results.main(["judge", "--tables"])
    assert called == []
    (tmp_path / "bench" / JUDGE[0]).mkdir(parents=True)
    results.main(["judge", "--tables"])
    assert [call[1] for call in called] == [f"benchmarks/plans/{JUDGE[0]}.toml"]
    assert called[0][-1] == "--tables"


def test_an_unknown_bench_is_refused(called):
    with pytest.raises(SystemExit, match="unknown bench jugde; use some of: coco, "):
        results.main(["jugde"])
