"""A bench plan that cannot be trained is refused by its file's name."""

import pytest

from balancemix.bench.plan import jobs, read_bench
from balancemix.errors import InputError
from tests.bench.plans import PLAN


def test_a_wrong_setting_of_a_row_names_the_file_and_the_row(tmp_path):
    plan = tmp_path / "mine.toml"
    plan.write_text(PLAN.replace("warmup", "wramup"))
    with pytest.raises(InputError, match=r"mine\.toml, .*: unknown setting method\.wramup"):
        jobs(read_bench(str(plan), {"data": ["digits"]}))


def test_where_a_plan_was_read_is_not_stored_with_it(tmp_path):
    (tmp_path / "mine.toml").write_text(PLAN)
    assert "source" not in read_bench(str(tmp_path / "mine.toml")).tree()


def test_a_label_that_names_no_directory_is_refused(tmp_path):
    (tmp_path / "mine.toml").write_text('[[methods]]\nname = "bce"\nlabel = "---"\n')
    with pytest.raises(InputError, match=r"mine\.toml: .*'---' needs a letter or a digit"):
        read_bench(str(tmp_path / "mine.toml"))


def test_a_wrong_setting_of_another_s_method_names_the_row(tmp_path):
    row = '[[methods]]\nname = "tests.torture.people:Mine"\nsettings = { alpha = "x" }\n'
    (tmp_path / "mine.toml").write_text(f'data = ["digits"]\n{row}')
    (job,) = jobs(read_bench(str(tmp_path / "mine.toml")))
    with pytest.raises(InputError, match=r"\[\[methods\]\] tests.*Mine: method\.alpha must be"):
        job.plan  # noqa: B018
