"""bf16 on CPUs that have it, have it once AMX is left alone, or only announce it."""

import os
from functools import cache

import pytest
import torch

from balancemix.cli import main
from balancemix.errors import InputError
from balancemix.plan.plan import Plan
from balancemix.training import devices
from balancemix.training.devices import LIMIT, WITHOUT_AMX, check_precision, prepare_bf16
from balancemix.training.experiment import load_experiment
from balancemix.training.fit import fit
from tests.conftest import DYING

# A copy of this process has pytest loaded, a new one has not.
WANTS_LIMIT = f"import os, sys\nif {LIMIT!r} not in os.environ:\n    {DYING}\n"
DIES_HERE = f"{WANTS_LIMIT}if 'pytest' in sys.modules:\n    {DYING}"
FAILS_HERE = f"{WANTS_LIMIT}if 'pytest' in sys.modules:\n    raise RuntimeError('no primitive')"
SLEEPS_HERE = f"{WANTS_LIMIT}if 'pytest' in sys.modules:\n    import time; time.sleep(60)"

UNAVAILABLE = (
    "--precision bf16 is not available on this machine (a bf16 product {}); "
    "leave --precision out, or train on a GPU"
)
TOO_LATE = (
    "bf16 works on this machine only with ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 set before torch is "
    "used: set it and start again, or leave --precision out"
)


@pytest.fixture
def probe(monkeypatch):
    """Begin with no variable set and nothing known, and return what replaces the probe."""
    monkeypatch.setattr(devices, "_bf16_problem", cache(devices._bf16_problem.__wrapped__))
    for name in (LIMIT, "DNNL_MAX_CPU_ISA"):
        monkeypatch.setenv(name, "")  # or what the test sets would stay
        monkeypatch.delenv(name)
    return lambda code: monkeypatch.setattr(devices, "PROBE", code)


def refusal() -> str:
    with pytest.raises(InputError) as caught:
        prepare_bf16()
    return str(caught.value)


def test_the_probe_runs_on_any_cpu_but_for_bf16(probe, request):
    if request.config.getoption("--without-bf16"):
        pytest.skip("the probe is replaced")
    probe(devices.PROBE.replace("bfloat16", "float32"))
    assert devices._probe_failure() == ""
    assert devices._works_in_fork()


@pytest.mark.bf16
def test_the_limit_takes_no_product_away(probe):
    assert devices._probe_failure(**{LIMIT: WITHOUT_AMX}) == ""


def test_nothing_is_set_where_the_probe_lives(probe):
    probe("")
    prepare_bf16()
    assert LIMIT not in os.environ


def test_the_probe_sees_our_modules_and_not_those_of_the_working_directory(
    probe, tmp_path, monkeypatch
):
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "colorsys.py").write_text("raise RuntimeError('not this one')")
    (tmp_path / "path").mkdir()
    (tmp_path / "path" / "only_on_our_path.py").write_text("")
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.syspath_prepend(tmp_path / "path")
    probe("import only_on_our_path, colorsys")
    prepare_bf16()


def test_amx_is_left_alone_where_that_helps(probe):
    probe(WANTS_LIMIT)
    prepare_bf16()
    assert os.environ[LIMIT] == WITHOUT_AMX


@pytest.mark.parametrize("code", [DIES_HERE, FAILS_HERE, SLEEPS_HERE])
def test_it_is_said_where_the_limit_comes_too_late(probe, monkeypatch, capfd, code):
    monkeypatch.setattr(devices, "FORK_TIMEOUT", 0.5)
    probe(code)
    assert refusal() == TOO_LATE
    assert LIMIT not in os.environ
    assert capfd.readouterr() == ("", "")


def test_it_is_said_where_no_process_can_be_copied(probe, monkeypatch):
    monkeypatch.delattr(os, "fork", raising=False)
    probe(WANTS_LIMIT)
    assert refusal() == TOO_LATE
    assert LIMIT not in os.environ


@pytest.mark.parametrize(
    ("code", "how"),
    [
        (DYING, "ended with SIGILL"),
        (
            "raise RuntimeError('could not create a primitive')",
            "ended with RuntimeError: could not create a primitive",
        ),
        ("import os; os._exit(3)", "ended with exit code 3"),
    ],
)
def test_a_machine_without_bf16_is_one_line(probe, code, how):
    probe(code)
    assert refusal() == UNAVAILABLE.format(how)
    assert LIMIT not in os.environ


def test_a_probe_that_does_not_end_counts_as_dead(probe, monkeypatch):
    monkeypatch.setattr(devices, "PROBE_TIMEOUT", 0.3)
    probe("import time; time.sleep(60)")
    assert refusal() == UNAVAILABLE.format("took more than 0.3 s")


@pytest.mark.parametrize("name", [LIMIT, "DNNL_MAX_CPU_ISA"])
def test_a_limit_that_somebody_set_stays(probe, monkeypatch, name):
    monkeypatch.setenv(name, "AVX2")
    probe(f"import os\nif os.environ.get({LIMIT!r}) != {WITHOUT_AMX!r}:\n    {DYING}")
    assert refusal() == UNAVAILABLE.format(f"ended with SIGILL under {name}=AVX2")
    assert os.environ[name] == "AVX2"
    assert os.environ.get(LIMIT) in (None, "AVX2")


@pytest.mark.parametrize("last", ["", DYING])
def test_the_probe_runs_once_a_process(probe, tmp_path, last):
    runs = tmp_path / "runs"
    probe(f"with open({str(runs)!r}, 'a') as file:\n    file.write('|')\n{last}")
    answers = []
    for _ in range(3):
        try:
            prepare_bf16()
        except InputError as error:
            answers.append(str(error))
    assert len(set(answers)) == (1 if last else 0)
    assert runs.read_text() == ("||" if last else "|")  # without a limit and with one


def test_only_a_cpu_that_trains_in_bf16_is_asked(probe, monkeypatch):
    probe(DYING)
    check_precision("no", "cpu")
    check_precision("fp16", "auto")
    check_precision("bf16", "cuda")
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    check_precision("bf16", "auto")
    with pytest.raises(InputError, match="not available"):
        check_precision("bf16", "cpu")
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)
    with pytest.raises(InputError, match="not available"):
        check_precision("bf16", "auto")


@pytest.mark.parametrize("device", ["auto", "cpu"])
def test_the_command_says_so_before_it_reads_or_writes(
    probe, tiny, tmp_path, capsys, monkeypatch, device
):
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)
    monkeypatch.setattr("balancemix.training.experiment.load", lambda *_, **__: 1 / 0)
    probe(DYING)
    before = sorted(tmp_path.rglob("*"))
    call = ["train", str(tiny), "--precision", "bf16", "--device", device]
    assert main([*call, "--out", str(tmp_path / "run")]) == 2
    said = capsys.readouterr()
    assert said.err == f"balancemix: {UNAVAILABLE.format('ended with SIGILL')}\n"
    assert said.out == ""
    assert sorted(tmp_path.rglob("*")) == before


def test_fit_says_so_as_well(probe, tiny):
    probe(DYING)
    plan = Plan.from_tree(
        {"data": {"path": str(tiny)}, "train": {"precision": "bf16", "device": "cpu"}}
    )
    experiment = load_experiment(plan)
    with pytest.raises(InputError, match="bf16 is not available on this machine"):
        fit(experiment.make_model, experiment.train, experiment.test, plan)
