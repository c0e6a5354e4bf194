"""Where the files of a command go, and which it may write."""

from pathlib import Path

import pytest

from balancemix.commands.target import Target, is_run
from balancemix.errors import InputError


def test_data_is_no_run_and_what_is_missing_counts_as_one(tmp_path):
    assert not is_run(Path("digits"))
    assert is_run(tmp_path / "nowhere")


def test_without_a_run_files_go_here(tmp_path):
    target = Target.of(None, [tmp_path], force=False)
    assert target.file("findings.csv") == Path("findings.csv")
    target.remember(tmp_path / "findings.csv")  # by nobody


@pytest.mark.parametrize("force", [False, True])
def test_what_a_command_reads_is_never_written(tmp_path, force):
    data, other = tmp_path / "labels.csv", tmp_path / "other.csv"
    data.write_text("image,labels\n")
    target = Target.of(None, [data], force=force)
    target.check(other)
    with pytest.raises(InputError, match="part of what this command reads"):
        target.check(other, data)
