"""Real processes, joined by gloo on the CPU: what they make together is what one makes alone.

A launch costs two imports of torch; together.py does many trainings in one.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from balancemix import cli
from balancemix.labels import LabelTable
from balancemix.prediction import predict_logits
from balancemix.run import Run

from . import together
from .conftest import tiny_arrays

ROOT = Path(__file__).resolve().parents[1]
TORCHRUN = [sys.executable, "-m", "torch.distributed.run"]
pytestmark = pytest.mark.xdist_group("processes")  # launched once, by one worker
STATES = ("target", "status", "given")


def free_port() -> str:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return str(found.getsockname()[1])


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), **more}


def launch(*command: str, cwd: Path) -> subprocess.CompletedProcess:
    done = subprocess.run(
        command, env=environment(), cwd=cwd, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done


def two(*what: str) -> list[str]:
    return [*TORCHRUN, "--nproc-per-node", "2", "--master-port", free_port(), *what]


def matrices(end: dict) -> dict[str, torch.Tensor]:
    return LabelTable(**end["method"]["table"]).matrices()


@pytest.fixture(scope="module")
def ends(tmp_path_factory):
    """Run all of together.py in two processes; what each ended with, by case."""
    out = tmp_path_factory.mktemp("together")
    launch(*two(str(ROOT / "tests" / "together.py"), str(out)), cwd=out)
    cases = [*together.EXACT, *together.LIKE, *together.OWN]
    return {c: [torch.load(out / f"{c}-{rank}.pt") for rank in (0, 1)] for c in cases}


@pytest.fixture(scope="module")
def alone():
    """Train each exact case in this process, once."""
    return {case: together.train(case) for case in together.EXACT}


@pytest.mark.parametrize("case", together.EXACT)
def test_two_processes_end_where_one_does(ends, alone, case):
    one, two = alone[case], ends[case][0]
    for name, weight in one["weights"].items():
        torch.testing.assert_close(two["weights"][name], weight, rtol=1e-5, atol=1e-5)
    here, there = matrices(one), matrices(two)
    for name in STATES:
        assert torch.equal(there[name], here[name]), name
    for name in ("clean", "weight"):  # to a step of the log-odds that the table keeps
        torch.testing.assert_close(there[name], here[name], rtol=0, atol=2e-3)
    assert torch.equal(two["method"]["generator"], one["method"]["generator"])
    assert two["scores"] == pytest.approx(one["scores"], abs=1e-6)


@pytest.mark.parametrize("case", together.OWN)
def test_a_loop_of_ones_own_is_shared_by_wrapping_the_model(ends, case):
    first, second = ends[case]
    for name, weight in first["weights"].items():
        if "running" not in name:  # each process's own, as everywhere
            assert torch.equal(weight, second["weights"][name])
    one = together.own_loop(case)
    assert torch.equal(first["method"]["generator"], one["method"]["generator"])
    if "BatchNorm" not in case:
        for name, weight in one["weights"].items():
            torch.testing.assert_close(first["weights"][name], weight, rtol=1e-5, atol=1e-5)
        for name in STATES:
            assert torch.equal(matrices(first)[name], matrices(one)[name]), name


def test_what_is_compared_has_labels_of_every_kind(alone):
    """Were nothing decided, equal tables would say nothing."""
    table = matrices(alone["uneven"])
    assert set(table["status"].unique().tolist()) == {0, 1, 2}
    assert (table["target"] != table["given"]).any()


@pytest.mark.parametrize("case", together.EXACT)
def test_the_stream_of_rows_is_one_processes_dealt_out(ends, alone, case):
    parts = 1 if alone[case]["method"]["odds"] is None else 2  # uniform rows, and drawn ones
    streams = [alone[case]["seen"], *(end["seen"] for end in ends[case])]
    for batch, *shares in zip(*streams, strict=True):
        whole = np.array(batch).reshape(parts, -1)
        for rank, share in enumerate(shares):
            # A process without rows of its own looks at the first one's.
            mine = whole[:, rank::2] if whole.shape[1] > rank else whole[:, :1]
            assert share == mine.flatten().tolist()


@pytest.mark.parametrize("case", {**together.EXACT, **together.LIKE})
def test_both_processes_hold_the_same(ends, case):
    first, second = ends[case]
    assert all(weight.isfinite().all() for weight in first["weights"].values())
    for name, weight in first["weights"].items():
        assert torch.equal(weight, second["weights"][name]), name
    other = matrices(second)
    for name, state in matrices(first).items():
        assert torch.equal(state, other[name]), name
    assert torch.equal(first["method"]["generator"], second["method"]["generator"])
    assert first["scores"] == second["scores"]


@pytest.mark.parametrize("case", ["uneven", "own BatchNorm"])
def test_prediction_is_that_of_one_process_to_the_bit(ends, case):
    model = together.make_model(case)
    model.load_state_dict(ends[case][0]["weights"])
    for name, rows in (("logits", together.make_rows(37, seed=1)), ("one", together.make_rows(1))):
        assert torch.equal(predict_logits(model, rows.plain, 16), ends[case][1][name])


TRAIN = [
    "--noise",
    "mislabel:0.3",
    "--epochs",
    "4",
    "--batch-size",
    "32",
    "--warmup",
    "1",
    "--json",
]
TRAIN += ["--lr", "0.05", "--set", "model.hidden=16"]
FILES = ("labels.npz", "model.safetensors", "truth.npz", "plan.json")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("command")
    np.savez(path / "tiny.npz", **tiny_arrays(rows=270))
    return path


@pytest.fixture(scope="module")
def whole(folder):
    """A run of the command by `accelerate launch`, and what it printed."""
    shape = ["--num_processes", "2", "--num_machines", "1", "--mixed_precision", "no"]
    shape += ["--dynamo_backend", "no", "--main_process_port", free_port()]
    # On CPUs it starts several processes only if it takes them for GPUs.
    call = [sys.executable, "-m", "accelerate.commands.launch", "--multi_gpu", *shape]
    call += ["-m", "balancemix", "train", "tiny.npz", "--out", "whole", *TRAIN]
    return Run(folder / "whole"), launch(*call, cwd=folder).stdout


def without_time(run: Run) -> list[dict]:
    return [{k: v for k, v in line.items() if k != "seconds"} for line in run.log()]


def test_the_command_prints_and_writes_once(whole, folder, monkeypatch, capsys):
    run, printed = whole
    assert json.loads(printed) == run.read_json("metrics.json")
    monkeypatch.chdir(folder)
    assert cli.main(["train", "tiny.npz", "--out", "alone", *TRAIN]) == 0
    capsys.readouterr()
    alone = Run(folder / "alone")
    for name, weight in alone.load_model().items():
        torch.testing.assert_close(run.load_model()[name], weight, rtol=1e-5, atol=1e-5)
    tables = run.read_arrays("labels.npz"), alone.read_arrays("labels.npz")
    for name in STATES:
        assert np.array_equal(tables[0][name], tables[1][name]), name
    assert [line["loss"] for line in run.log()] == pytest.approx(
        [line["loss"] for line in alone.log()], abs=1e-5
    )


def test_a_process_killed_in_an_epoch_is_started_again_and_ends_with_the_same_bits(whole, folder):
    script = str(ROOT / "tests" / "together.py")
    call = two("--max-restarts", "1", script, "--killed")
    launch(*call, "train", "tiny.npz", "--out", "killed", *TRAIN, cwd=folder)
    assert (folder / "was killed").exists()
    killed = Run(folder / "killed")
    for name in FILES:
        assert (killed.path / name).read_bytes() == (whole[0].path / name).read_bytes(), name
    assert without_time(killed) == without_time(whole[0])


def test_a_machine_without_the_runs_files_goes_on_with_it(whole, folder):
    shutil.copytree(whole[0].path, folder / "moved")
    (folder / "moved" / "labels.npz").unlink()
    (folder / "elsewhere").mkdir()
    shutil.copy(folder / "tiny.npz", folder / "elsewhere")
    script = str(ROOT / "tests" / "together.py")
    launch(*two(script, "--elsewhere", "train", "--resume", "--out", "moved"), cwd=folder)
    written = [(folder / run / "labels.npz").read_bytes() for run in ("whole", "moved")]
    assert written[0] == written[1]
    assert not (folder / "elsewhere" / "moved").exists()


def in_namespace(name: str, *command: str) -> list[str]:
    return ["ip", "netns", "exec", name, *command]


@pytest.fixture
def hosts():
    """Two network namespaces joined by a cable: their names, interfaces and addresses."""
    tag = f"bm{os.getpid() % 10**6}"
    names = [f"{tag}a", f"{tag}b"]
    try:
        if shutil.which("ip") is None:
            pytest.skip("needs the command ip")
        for name in names:
            if subprocess.run(["ip", "netns", "add", name], capture_output=True).returncode:
                pytest.skip("network namespaces may not be made here")
        calls = [["ip", "link", "add", names[0], "type", "veth", "peer", "name", names[1]]]
        for number, name in enumerate(names, 1):
            calls.append(["ip", "link", "set", name, "netns", name])
            inside = [["addr", "add", f"10.77.0.{number}/24", "dev", name]]
            inside += [["link", "set", name, "up"], ["link", "set", "lo", "up"]]
            calls += [in_namespace(name, "ip", *call) for call in inside]
        for call in calls:
            if subprocess.run(call, capture_output=True).returncode:
                pytest.skip("network namespaces cannot be joined here")
        yield list(zip(names, ("10.77.0.1", "10.77.0.2"), strict=True))
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)


def test_two_hosts_end_with_the_same_bits_as_two_processes_on_one(whole, folder, hosts):
    shape = ["--nnodes", "2", "--nproc-per-node", "1", "--rdzv-backend", "c10d"]
    shape += ["--rdzv-endpoint", f"{hosts[0][1]}:29500", "--rdzv-id", "hosts"]
    nodes = []
    for number, (name, address) in enumerate(hosts):
        # Both have the machine's one name, by which torchrun would tell which of them is the host.
        host = f"is_host={1 - number}"
        here = [
            "--local-addr",
            address,
            "--rdzv-conf",
            host,
            "-m",
            "balancemix",
            "train",
            "tiny.npz",
        ]
        call = [*TORCHRUN, *shape, *here, "--out", "hosts", *TRAIN]
        node = subprocess.Popen(
            in_namespace(name, *call),
            env=environment(GLOO_SOCKET_IFNAME=name),
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        nodes.append(node)
    try:
        said = [node.communicate(timeout=600) for node in nodes]
    finally:
        for node in nodes:
            node.kill()
    assert [node.returncode for node in nodes] == [0, 0], said[0][1][-2000:] + said[1][1][-2000:]
    assert sorted(bool(out) for out, _ in said) == [False, True]
    for name in FILES:
        own = folder / "hosts" / name
        assert own.read_bytes() == (whole[0].path / name).read_bytes(), name
