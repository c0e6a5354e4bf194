"""All that is tried, in one table: every reader, the commands, runs that are hurt."""

from typing import Any

from tests.torture import pictures, seeds, settings
from tests.torture.changed import ChangedFeatures, ChangedImages
from tests.torture.commands import Commands
from tests.torture.damage import Flips
from tests.torture.kills import HURT
from tests.torture.readers import LABEL_READERS, Reader
from tests.torture.run_files import RUN_READERS

READERS: list[Any] = [
    *LABEL_READERS,
    Reader(
        name="images",
        modules=("balancemix.data.images",),
        make=pictures.make,
        damage=pictures.damage,
        read=pictures.read,
        literal=pictures.literal,
        exact=False,  # Pillow decodes some of what it finds damaged
    ),
    Reader(
        name="plan TOML and JSON",
        modules=("balancemix.plan.plan", "balancemix.plan.settings"),
        make=seeds.plan,
        damage=settings.damage_plan,
        read=settings.read_plan,
        literal=settings.literal_plan,
        exact=False,
        named=False,  # settings of several places are judged together
    ),
    Reader(
        name="bench plan",
        modules=("balancemix.bench.plan",),
        make=seeds.bench,
        damage=settings.damage_plan,
        read=settings.read_jobs,
        literal=settings.literal_jobs,
        exact=False,
    ),
    Reader(
        name="train --set",
        modules=("balancemix.plan.settings",),
        make=settings.make_assignments,
        damage=settings.damage_assignments,
        read=settings.read_assignments,
        literal=settings.literal_assignments,
        exact=False,
        named=False,
    ),
    Reader(
        name="noise",
        modules=("balancemix.labels.noise",),
        make=settings.make_noise,
        damage=settings.damage_noise,
        read=settings.read_noise,
        literal=settings.literal_noise,
        named=False,
    ),
    *RUN_READERS,
]

DAMAGED = [
    Flips("flips", "flips", 50),
    ChangedFeatures("changed features", "changed data", 20),
    ChangedImages("changed images", "changed data", 5),
]
PARTS: dict[str, Any] = {part.name: part for part in [*READERS, Commands(), *DAMAGED, *HURT]}
# Cases of each part of a group.
COUNTS = {
    "readers": 50_000,
    "commands": 2_000,
    "flips": 2_000,
    "changed data": 200,
    "kills": 200,
    "signals": 60,
    "full disks": 60,
}
