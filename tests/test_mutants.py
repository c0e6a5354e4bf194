"""The faults of scripts/mutants can be planted: each names what stands in the source once."""

import tomllib

from tests.conftest import ROOT


def test_every_fault_can_be_planted_and_has_tests():
    faults = tomllib.loads((ROOT / "tests" / "mutants.toml").read_text(encoding="utf-8"))
    assert len(faults) >= 40
    for name, fault in faults.items():
        source = (ROOT / fault["file"]).read_text(encoding="utf-8")
        assert source.count(fault["old"]) == 1, name
        assert fault["new"] != fault["old"], name
        assert all((ROOT / test.partition("::")[0]).is_file() for test in fault["tests"]), name
