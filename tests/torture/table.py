"""All that is tried, in one table: every reader, the commands, runs that are hurt."""

from functools import partial
from typing import Any

from tests.torture import (
    answers,
    decided,
    exchanged,
    noises,
    page,
    pictures,
    seeds,
    settings,
    sheets,
    stored,
)
from tests.torture.changed import ChangedFeatures, ChangedImages
from tests.torture.commands import Commands
from tests.torture.damage import Flips
from tests.torture.damage_data import damage_text
from tests.torture.kept import KEPT
from tests.torture.kills import HURT
from tests.torture.people import FindingsFile
from tests.torture.readers import LABEL_READERS, Reader
from tests.torture.run_files import CHOSEN, JUDGED, RUN_READERS

# What reads plans, in whatever form they come: their readers share one count of branches.
PLANS = ("balancemix.plan.plan", "balancemix.plan.settings", "balancemix.bench.plan")
SHEETS = {
    ".json": ("records", sheets.damage_json),
    ".jsonl": ("records", sheets.damage_lines),
    ".parquet": ("parquet", sheets.damage_parquet),
    ".xlsx": ("worksheet", sheets.damage_xlsx),
}
EXCHANGE = "balancemix.exchange"
READERS: list[Any] = [
    *LABEL_READERS,
    *(
        Reader(
            name=f"labels{ending}",
            modules=(f"{sheets.TABLES}.{module}",),
            make=sheets.rows,
            damage=damage,
            read=sheets.read(ending),
            literal=partial(sheets.literal_in, ending),
            exact=False,
        )
        for ending, (module, damage) in SHEETS.items()
    ),
    Reader(
        name="decisions.csv",
        modules=("balancemix.data.decisions.file", "balancemix.data.small_table"),
        make=decided.decisions,
        damage=damage_text(",\n"),
        read=decided.read_decided,
        literal=decided.literal_decided,
        fixed={f"photos/{name}": LABEL_READERS[0].fixed[name] for name in decided.GIVEN}
        | {"photos/labels.csv": decided.TABLE.encode()},
        exact=False,
    ),
    Reader(
        name="filled-in tables",
        modules=("balancemix.data.decisions.filled", "balancemix.data.decisions.table_file"),
        make=answers.filled,
        damage=damage_text(",|"),
        read=answers.read_filled_table,
        literal=answers.literal_filled,
    ),
    Reader(
        name="Label Studio export",
        modules=(f"{EXCHANGE}.label_studio_export", f"{EXCHANGE}.known"),
        make=exchanged.export,
        damage=exchanged.damage("export.json"),
        read=exchanged.read("export"),
        literal=exchanged.literal("export.json", exchanged.walk_export),
        exact=False,
    ),
    Reader(
        name="FiftyOne samples",
        modules=(f"{EXCHANGE}.fiftyone",),
        make=exchanged.samples,
        damage=exchanged.damage("samples.json"),
        read=exchanged.read("samples"),
        literal=exchanged.literal("samples.json", exchanged.walk_samples),
        exact=False,
    ),
    Reader(
        name="corrected labels",
        modules=(f"{EXCHANGE}.cleanlab", f"{EXCHANGE}.reading"),
        make=exchanged.corrected,
        damage=exchanged.damage_corrected,
        read=exchanged.read("fixed"),
        literal=exchanged.literal_corrected,
        exact=False,
    ),
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
        modules=PLANS,
        make=seeds.plan,
        damage=settings.damage_plan,
        read=settings.read_plan,
        literal=settings.literal_plan,
        exact=False,
        words=settings.words,
    ),
    Reader(
        name="bench plan",
        modules=PLANS,
        make=seeds.bench,
        damage=settings.damage_plan,
        read=settings.read_jobs,
        literal=settings.literal_jobs,
        exact=False,
        words=lambda folder: ("[[methods]]",),  # a row, whose method is not ours
    ),
    Reader(
        name="bench: bench.json",
        modules=PLANS,
        make=stored.make,
        damage=stored.damage,
        read=stored.read,
        literal=stored.literal,
        exact=False,
    ),
    Reader(
        name="train --set",
        modules=PLANS,
        make=settings.make_assignments,
        damage=settings.damage_assignments,
        read=settings.read_assignments,
        literal=settings.literal_assignments,
        exact=False,
        words=settings.words,
    ),
    Reader(
        name="noise",
        modules=("balancemix.labels.noise",),
        make=noises.make_noise,
        damage=noises.damage_noise,
        read=noises.read_noise,
        literal=noises.literal_noise,
        words=lambda folder: ("noise",),
    ),
    *RUN_READERS,
    FindingsFile(),
    page.Page(),
]

DAMAGED = [
    Flips("flips", "flips", 50),
    Flips("flips: second opinion", "flips", 50, JUDGED),
    Flips("flips: auto", "flips", 50, CHOSEN),
    *KEPT,
    answers.StoreFile(),
    answers.StoreKills(),
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
