"""`balancemix train`: data and settings in, a run directory out."""

from __future__ import annotations

import argparse
import copy
import json
from pathlib import Path
from typing import Any

from balancemix.commands.arguments import READING, add_reading, add_skip_bad
from balancemix.plan.sections import METHOD, SECTIONS, SEED, help_of, type_of

DESCRIPTION = """\
train a classifier on noisy, imbalanced labels

DATA is one of
  digits        built-in strips of handwritten digits (digits:pixels for raw pixels)
  a folder      of images with labels.csv: image,labels[,split], labels separated by |;
                or COCO (2014, 2017), VOCdevkit (2007, 2012) or DeepFashion as they come
  labels.csv    or another table by itself; --images names the folder of its images.
                `balancemix stats` says how it is read
  file.npz      with features (N×D), labels (N×K of 0/1) and, if known, classes and split;
                made by you, or from images by `balancemix embed`

examples:
  balancemix train photos/ --out runs/photos
  balancemix train features.npz --noise mislabel:0.4 --method bce --seed 1
  balancemix train photos/ --backbone resnet50 --head ml-decoder --epochs 20 --precision bf16
  balancemix train --resume --out runs/photos     # continue after an interruption

methods: bce, mixup, focal, asl, hill, splc, ll-r, ll-ct, ll-cp, an-ls, epr, role, em-apl,
  coteaching, t-estimator, balancemix, ridge, kernel-ridge, second-opinion, auto

Every setting can be given by --set section.key=value or in a TOML file (--plan); the sections are
data, model, train and method, and plan.json in the run directory shows them all."""


def number(text: str) -> float | str:
    """Read a number, or leave a word for the plan to check."""
    try:
        return float(text)
    except ValueError:
        return text


# A flag, the setting that it stands for, and what it is; choices and defaults are added.
FLAGS = [
    ("--method", "method.name", f"one of the above (default {METHOD}), or package.module:Class"),
    ("--noise", "noise", "add noise to the training labels: mislabel:0.4, flip:0.2, flip:POS,NEG, "
                         "single, drop:0.5, unknown:0.5, keep:0.1; + joins several"),
    ("--seed", "seed", f"of everything random (default {SEED})"),
    ("--epochs", "train.epochs", ""),
    ("--batch-size", "train.batch_size", "of all processes together"),
    ("--lr", "train.lr", "learning rate"),
    ("--optimizer", "train.optimizer", ""),
    ("--weight-decay", "train.weight_decay", ""),
    ("--backbone", "model.backbone", "any timm name, for images"),
    ("--head", "model.head", ""),
    ("--image-size", "data.size", "side in pixels"),
    ("--augment", "data.augment", ""),
    ("--cache", "data.cache", "where to keep resized images"),
    ("--workers", "data.workers", "loading processes"),
    ("--groups", "data.groups", "class groups, by thirds or as in the paper"),
    ("--warmup", "method.warmup", "epochs before labels are managed"),
    ("--alpha", "method.alpha", "of Mixup's Beta distribution"),
    ("--epsilon", "method.epsilon", "threshold of re-labelling: a number or auto"),
    ("--relabel", "method.relabel", "where to re-label: epoch, online, paper or off"),
    ("--clip", "train.clip", "largest gradient norm; 0: no limit"),
    ("--accumulate", "train.accumulate", "batches per step"),
    ("--ema", "train.ema", "decay of averaged weights, e.g. 0.9997; 0: none"),
    ("--precision", "train.precision", ""),
    ("--device", "train.device", "auto, cpu, cuda or mps"),
    ("--track", "train.track", ""),
]  # fmt: skip
# Settings that are in no section: those of methods have defaults that differ by method.
TYPES: dict[str, Any] = {
    "seed": int,
    "method.warmup": int,
    "method.alpha": float,
    "method.epsilon": number,
}
OLD_FLAGS = {"--mode": "method.relabel"}  # still understood, no longer listed


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("data", nargs="?", metavar="DATA", help="see above")
    parser.add_argument("--out", type=Path, help="run directory (default runs/DATA-METHOD-…)")
    parser.add_argument("--resume", action="store_true", help="continue the run in --out")
    parser.add_argument(
        "--force", action="store_true", help="start over, replacing the run in --out"
    )
    parser.add_argument("--json", action="store_true", help="print only the metrics, as JSON")
    parser.add_argument(
        "--plan", metavar="TOML", help="settings from a file, or a name of `balancemix presets`"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="try the plan for two steps on random images"
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="any setting, repeatable"
    )
    for flag, setting, what in FLAGS:
        planned = setting.split(".")[0] in SECTIONS
        parser.add_argument(
            flag,
            dest=setting,
            metavar=flag.strip("-").upper().replace("-", "_"),
            type=type_of(setting) if planned else TYPES.get(setting, str),
            help=help_of(setting, what) if planned else what,
        )
    add_reading(parser)
    for flag, setting in OLD_FLAGS.items():
        parser.add_argument(flag, dest=setting, help=argparse.SUPPRESS)
    parser.add_argument("--no-pretrained", action="store_true", help="start with random weights")
    add_skip_bad(parser)


def run(arguments: argparse.Namespace) -> None:
    """Train."""
    from balancemix import processes
    from balancemix.errors import InputError
    from balancemix.files import to_json
    from balancemix.plan.plan import Plan
    from balancemix.progress import progress
    from balancemix.training.devices import check_device, check_precision
    from balancemix.training.experiment import dry_run, train_plan

    stored = stored_plan(arguments)
    how = Plan.from_tree(settings(arguments, stored)).train
    check_device(how.device)
    check_precision(how.precision, how.device)
    processes.start(cpu=how.device == "cpu")
    first = processes.rank() == 0  # of several processes, the one that reads, writes and prints
    # Other machines may not have the run's files.
    stored = json.loads(processes.broadcast(json.dumps(stored).encode()) or b"{}")
    tree = settings(arguments, stored)
    if "path" not in tree.get("data", {}) and not arguments.dry_run:
        raise InputError(
            "name the DATA to train on: digits, a folder with labels.csv, a table or an .npz"
        )
    plan = Plan.from_tree(tree)
    if plan.method.closed and "epochs" in settings(arguments, {}).get("train", {}):
        name = tree["method"]["name"]
        raise InputError(f"{name} is solved in closed form, without epochs: leave --epochs out")
    if arguments.dry_run:
        summary = dry_run(plan)
        if first:
            print(summary)
        return
    out = arguments.out or default_out(plan)
    run_, experiment, metrics = train_plan(
        plan, out, progress, resume=arguments.resume, force=arguments.force
    )
    if not first:
        return
    if arguments.json:
        print(to_json(metrics, indent=2))
    else:
        from balancemix.commands.show import show_training
        from balancemix.commands.verified import say_verified

        say_verified(experiment.splits.source)
        show_training(run_, experiment, metrics)


def stopped(arguments: argparse.Namespace) -> str:
    """Say what an interruption leaves."""
    if arguments.dry_run:
        return "a dry run saves nothing"
    out = f"--out {arguments.out}" if arguments.out else "--out RUN"
    return f"all finished epochs are saved: `balancemix train --resume {out}` continues"


def stored_plan(arguments: argparse.Namespace) -> dict[str, Any]:
    """Read the plan of the run to resume, if there is one."""
    from balancemix.errors import InputError
    from balancemix.run import Run

    if not arguments.resume:
        return {}
    if arguments.out is None:
        raise InputError("--resume needs --out, the directory of the run to continue")
    run_ = Run(arguments.out)
    stored = run_.plan.tree() if run_.has("plan") else {}
    foreign = stored.get("method", {}).get("name", "")
    if ":" in foreign and settings(arguments, {}).get("method", {}).get("name") != foreign:
        raise InputError(
            f"{arguments.out}: its method {foreign} is not part of balancemix; if you trust it, "
            f"pass --method {foreign} again"
        )
    return stored


def settings(arguments: argparse.Namespace, stored: dict[str, Any]) -> dict[str, Any]:
    """Merge the plan of a run to resume, --plan, flags and --set, each over the ones before."""
    from balancemix.plan.plan import read_tree
    from balancemix.plan.settings import parse_assignment, put
    from balancemix.plan.shipped import presets

    tree = copy.deepcopy(stored)
    if arguments.plan:
        path = presets().get(arguments.plan, Path(arguments.plan))
        for key, value in read_tree(path).items():
            if isinstance(value, dict) and isinstance(tree.get(key), dict):
                tree[key] |= value
            else:
                tree[key] = value
    for _, setting, _ in (*FLAGS, *READING):
        value = getattr(arguments, setting)
        if value is not None:
            put(tree, setting.split("."), value)
    if arguments.data is not None:
        put(tree, ["data", "path"], arguments.data)
    if arguments.no_pretrained:
        put(tree, ["model", "pretrained"], False)
    if arguments.skip_bad:
        put(tree, ["data", "skip_bad"], True)
    if arguments.no_verified:
        put(tree, ["data", "verified"], False)
    for assignment in arguments.set:
        put(tree, *parse_assignment(assignment))
    return tree


def default_out(plan: Any) -> Path:
    """Name a run by its data, method, noise and seed."""
    tree = plan.tree()
    parts = [Path(tree["data"]["path"]).stem, tree["method"]["name"], plan.noise, str(plan.seed)]
    name = "-".join(part for part in parts if part != "none")
    return Path("runs") / name.replace(":", "-").replace(",", "-")
