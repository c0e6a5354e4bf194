"""Commands in several processes: launched by Accelerate, killed, without files, on two hosts."""

import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
import torch

from balancemix import cli
from balancemix.run import Run
from tests.conftest import tiny_arrays
from tests.launching import TOGETHER, TORCHRUN, environment, free_port, launch, two
from tests.processes.alike import DECIDED, assert_alike

pytestmark = pytest.mark.launches
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
FILES = ("label_table.npz", "model.safetensors", "truth.npz", "plan.json")


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
    return [{k: v for k, v in line.items() if k != "seconds"} for line in run.log]


def test_the_command_prints_and_writes_once(whole, folder, monkeypatch, capsys):
    run, printed = whole
    assert json.loads(printed) == run.metrics
    monkeypatch.chdir(folder)
    assert cli.main(["train", "tiny.npz", "--out", "alone", *TRAIN]) == 0
    capsys.readouterr()
    alone = Run(folder / "alone")
    tables = [
        {name: torch.from_numpy(each.read_arrays("table")[name]) for name in DECIDED}
        for each in (run, alone)
    ]
    assert_alike(tables[0], tables[1], run.load_model(), alone.load_model())
    assert [line["loss"] for line in run.log] == pytest.approx(
        [line["loss"] for line in alone.log], rel=1e-2
    )


def test_a_process_killed_in_an_epoch_is_started_again_and_ends_with_the_same_bits(whole, folder):
    call = two("--max-restarts", "1", TOGETHER, "--killed")
    launch(*call, "train", "tiny.npz", "--out", "killed", *TRAIN, cwd=folder)
    assert (folder / "was killed").exists()
    killed = Run(folder / "killed")
    for name in FILES:
        assert (killed.path / name).read_bytes() == (whole[0].path / name).read_bytes(), name
    assert without_time(killed) == without_time(whole[0])


def test_a_machine_without_the_runs_files_goes_on_with_it(whole, folder):
    shutil.copytree(whole[0].path, folder / "moved")
    (folder / "moved" / "label_table.npz").unlink()
    (folder / "elsewhere").mkdir()
    shutil.copy(folder / "tiny.npz", folder / "elsewhere")
    launch(*two(TOGETHER, "--elsewhere", "train", "--resume", "--out", "moved"), cwd=folder)
    written = [(folder / run / "label_table.npz").read_bytes() for run in ("whole", "moved")]
    assert written[0] == written[1]
    assert not (folder / "elsewhere" / "moved").exists()


@pytest.mark.parametrize(
    "how",
    [["second-opinion", "--epochs", "2", "--alpha", "0"], ["kernel-ridge"], ["ridge"]],
    ids=lambda how: how[0],
)
def test_processes_ask_one_judge_and_solve_together(folder, monkeypatch, how):
    call = ["tiny.npz", "--method", *how, "--noise", "mislabel:0.3", "--set", "model.hidden=16"]
    call += ["--device", "cpu"]
    launch(*two("-m", "balancemix", "train", *call, "--out", f"two-{how[0]}"), cwd=folder)
    monkeypatch.chdir(folder)
    assert cli.main(["train", *call, "--out", f"one-{how[0]}"]) == 0
    both, one = Run(folder / f"two-{how[0]}"), Run(folder / f"one-{how[0]}")
    torch.testing.assert_close(both.table.target, one.table.target, atol=2e-3, rtol=0)
    torch.testing.assert_close(both.confidence, one.confidence, atol=2e-3, rtol=0)
    assert both.metrics["last"] == pytest.approx(one.metrics["last"], abs=0.5)
    for name, weight in one.load_model().items():
        torch.testing.assert_close(both.load_model()[name], weight, atol=2e-3, rtol=1e-3)


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
