"""`balancemix train`: data and settings in, a run directory out."""

from __future__ import annotations

import argparse
import copy
import json
from pathlib import Path
from typing import Any

DESCRIPTION = """\
train a classifier on noisy, imbalanced labels

DATA is one of
  digits        built-in strips of handwritten digits (digits:pixels for raw pixels)
  a folder      of images with labels.csv: image,labels[,split], labels separated by |;
                or COCO (2014, 2017), VOCdevkit (2007, 2012) or DeepFashion as they come
  file.npz      with features (N×D), labels (N×K of 0/1), and classes, split if there are;
                `balancemix embed` makes one of images, with views and, if wanted, maps

examples:
  balancemix train photos/ --out runs/photos
  balancemix train features.npz --noise mislabel:0.4 --method bce --seed 1
  balancemix train photos/ --backbone resnet50 --head ml-decoder --epochs 20 --precision bf16
  balancemix train --resume --out runs/photos     # go on after an interruption

methods: bce, mixup, focal, asl, hill, splc, ll-r, ll-ct, ll-cp, an-ls, epr, role, em-apl,
  coteaching, t-estimator, balancemix

Every setting can be given by --set section.key=value or in a TOML file (--plan); the sections are
data, model, train and method, and plan.json in the run directory shows them all."""


def number(text: str) -> float | str:
    """Read a number, or leave a word to be judged with the other settings."""
    try:
        return float(text)
    except ValueError:
        return text


# A flag, the setting that it stands for, and what it says of itself.
FLAGS: list[tuple[str, str, dict[str, Any]]] = [
    ("--method", "method.name", {"help": "one of the above (default balancemix), "
                                         "or package.module:Class"}),
    ("--noise", "noise", {"help": "add noise to the training labels: mislabel:0.4, flip:0.2, "
                                  "flip:POS,NEG, single, drop:0.5"}),
    ("--seed", "seed", {"type": int, "help": "of everything random (default 0)"}),
    ("--epochs", "train.epochs", {"type": int, "help": "default 30"}),
    ("--batch-size", "train.batch_size", {"type": int, "help": "of all processes together "
                                                                "(default 64)"}),
    ("--lr", "train.lr", {"type": float, "help": "learning rate (default 0.01)"}),
    ("--optimizer", "train.optimizer", {"help": "sgd (default) or adamw"}),
    ("--weight-decay", "train.weight_decay", {"type": float, "help": "default 1e-4"}),
    ("--backbone", "model.backbone", {"help": "any timm name, for images"}),
    ("--head", "model.head", {"help": "linear, mlp, ml-decoder or query2label"}),
    ("--image-size", "data.size", {"type": int, "help": "side in pixels (default 224)"}),
    ("--augment", "data.augment", {"help": "randaugment (default), uda or none"}),
    ("--cache", "data.cache", {"help": "keep resized images in memory or on disk: auto (default), "
                                       "memory, disk, off"}),
    ("--workers", "data.workers", {"type": int, "help": "loading processes"}),
    ("--groups", "data.groups", {"help": "class groups: auto (thirds) or paper"}),
    ("--warmup", "method.warmup", {"type": int, "help": "epochs before labels are managed"}),
    ("--alpha", "method.alpha", {"type": float, "help": "of Mixup's Beta (default 4)"}),
    ("--epsilon", "method.epsilon", {"type": number, "help": "re-labelling threshold, "
                                                             "auto (0.975) or a number"}),
    ("--relabel", "method.relabel", {"help": "where to re-label: epoch (default), online, paper "
                                             "or off"}),
    ("--clip", "train.clip", {"type": float, "help": "largest gradient norm"}),
    ("--accumulate", "train.accumulate", {"type": int, "help": "batches a step"}),
    ("--ema", "train.ema", {"type": float, "help": "decay of averaged weights, e.g. 0.9997"}),
    ("--precision", "train.precision", {"help": "no (default), bf16 or fp16"}),
    ("--device", "train.device", {"help": "auto (default), cpu, cuda, mps"}),
    ("--track", "train.track", {"help": "tensorboard or wandb"}),
]  # fmt: skip
OLD_FLAGS = {"--mode": "method.relabel"}  # still understood, no longer listed


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("data", nargs="?", metavar="DATA", help="see above")
    parser.add_argument("--out", type=Path, help="run directory (default runs/DATA-METHOD-…)")
    parser.add_argument("--resume", action="store_true", help="go on with the run in --out")
    parser.add_argument("--force", action="store_true", help="begin anew over the run in --out")
    parser.add_argument("--json", action="store_true", help="print metrics.json, nothing else")
    parser.add_argument(
        "--plan", metavar="TOML", help="settings from a file, or a name of `balancemix presets`"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="try the plan for two steps on random images"
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="any setting, repeatable"
    )
    for flag, setting, options in FLAGS:
        metavar = flag.strip("-").upper().replace("-", "_")
        parser.add_argument(flag, dest=setting, default=None, metavar=metavar, **options)
    for flag, setting in OLD_FLAGS.items():
        parser.add_argument(flag, dest=setting, default=None, help=argparse.SUPPRESS)
    parser.add_argument("--no-pretrained", action="store_true", help="begin with random weights")
    parser.add_argument(
        "--skip-bad", action="store_true", help="go on without images that cannot be read"
    )


def run(arguments: argparse.Namespace) -> None:
    """Train."""
    from balancemix import processes
    from balancemix.errors import InputError
    from balancemix.plan.plan import Plan
    from balancemix.progress import progress
    from balancemix.training.devices import check_device, check_precision
    from balancemix.training.experiment import dry_run, train_plan

    stored = stored_plan(arguments)
    wanted = Plan.from_tree(settings(arguments, stored)).train
    check_device(wanted.device)
    check_precision(wanted.precision, wanted.device)
    processes.start(cpu=wanted.device == "cpu")
    first = processes.rank() == 0  # of several processes, the one that looks, writes and prints
    # Another machine may not have the run's files.
    stored = json.loads(processes.broadcast(json.dumps(stored).encode()) or b"{}")
    tree = settings(arguments, stored)
    if "path" not in tree.get("data", {}) and not arguments.dry_run:
        raise InputError("name the DATA to train on: digits, a folder with labels.csv, or an .npz")
    plan = Plan.from_tree(tree)
    if arguments.dry_run:
        said = dry_run(plan)
        if first:
            print(said)
        return
    out = arguments.out or default_out(plan)
    begin = {"resume": arguments.resume, "force": arguments.force}
    run_, experiment, metrics = train_plan(plan, out, progress, **begin)
    if not first:
        return
    if arguments.json:
        print(json.dumps(metrics, indent=2))
    else:
        from balancemix.commands.show import show_training

        show_training(run_, experiment, metrics)


def stopped(arguments: argparse.Namespace) -> str:
    """Say what an interruption leaves."""
    if arguments.dry_run:
        return "a dry run saves nothing"
    out = f"--out {arguments.out}" if arguments.out else "--out RUN"
    return f"all finished epochs are saved: `balancemix train --resume {out}` continues"


def stored_plan(arguments: argparse.Namespace) -> dict[str, Any]:
    """Read the plan of the run that is to be gone on with, if there is one."""
    from balancemix.errors import InputError
    from balancemix.run import Run

    if not arguments.resume:
        return {}
    if arguments.out is None:
        raise InputError("--resume needs --out, the directory of the run to go on with")
    run_ = Run(arguments.out)
    return run_.plan.tree() if run_.has("plan") else {}


def settings(arguments: argparse.Namespace, stored: dict[str, Any]) -> dict[str, Any]:
    """Merge, each over the last: a stored plan to resume, --plan, flags, --set."""
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
    for _, setting, _ in FLAGS:
        value = getattr(arguments, setting)
        if value is not None:
            put(tree, setting.split("."), value)
    if arguments.data is not None:
        put(tree, ["data", "path"], arguments.data)
    if arguments.no_pretrained:
        put(tree, ["model", "pretrained"], False)
    if arguments.skip_bad:
        put(tree, ["data", "skip_bad"], True)
    for assignment in arguments.set:
        put(tree, *parse_assignment(assignment))
    return tree


def default_out(plan: Any) -> Path:
    """Name a run by what it is."""
    tree = plan.tree()
    parts = [Path(tree["data"]["path"]).stem, tree["method"]["name"], plan.noise, str(plan.seed)]
    name = "-".join(part for part in parts if part != "none")
    return Path("runs") / name.replace(":", "-").replace(",", "-")
