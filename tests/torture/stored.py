"""The bench.json of a bench, damaged, then read again or continued with the plan it came from."""

import json
from pathlib import Path
from typing import Any

from balancemix.bench.plan import BenchPlan, read_bench
from balancemix.bench.runner import grown
from balancemix.plan.settings import read_into
from tests.torture import seeds
from tests.torture.draw import Draw
from tests.torture.mutate import mutate_tree, write_json
from tests.torture.seeds import Files
from tests.torture.settings import jobs_by_hand, jobs_of, tree_of


def make(draw: Draw) -> Any:
    """Make a bench plan with all that it is stored with."""
    return read_into(BenchPlan, seeds.bench(draw, odd=False)).tree()


def damage(tree: Any, draw: Draw) -> Files:
    """Damage the bench.json of a bench; beside it is the plan that the bench is given again."""
    damaged = mutate_tree(tree, draw) if draw.chance(0.8) else tree
    return {"bench.json": write_json(damaged, draw), "plan.json": json.dumps(tree).encode()}


def read(folder: Path) -> dict[str, Any]:
    """Read a bench.json: its runs and, if the plan goes on with them, those that it would mix up.

    Runs that both plans have must be the same, or the plan refused.
    """
    stored, plan = read_bench(str(folder / "bench.json")), read_bench(str(folder / "plan.json"))
    runs, again = jobs_of(stored), jobs_of(plan)
    both = [] if grown(stored.tree(), plan.tree()) else [key for key in runs if key in again]
    return {"runs": runs, "mixed up": [key for key in both if runs[key] != again[key]]}


def literal(folder: Path) -> dict[str, Any]:
    """Say which runs a bench.json lists."""
    return {"runs": jobs_by_hand(tree_of(folder / "bench.json")), "mixed up": []}
