"""Commands drawn from the parser itself, so that a new flag is tried without being listed here."""

import argparse

from balancemix.cli import build_parser
from tests.torture.draw import Draw
from tests.torture.mutate import ODD_TEXT

# Commands that wait for somebody, or train for minutes whatever they are told.
LEFT_OUT = {"demo"}
NEVER = {"--open", "--help", "--version", "--dry-run", "--track", "--cache", "-h"}
ALWAYS = {
    "train": ["--no-pretrained", "--set", "model.hidden=4", "--set", "train.epochs=1"],
    "embed": ["--no-pretrained", "--views", "1", "--image-size", "32"],
    "bench": ["--tables"],
    "review": ["--status"],  # without it, a page waits for somebody
}
# Numbers of these may be as large as any: nothing is made of that size.
HARMLESS = {"seed", "limit", "threshold", "above", "lr", "alpha", "epsilon", "clip", "ema"}
RARE = {"report": 0.15, "embed": 0.3, "train": 0.7}  # the slow ones
WORDS = {
    "noise": ["flip:0.2", "mislabel:0.4", "single", "drop:0.5", "none", "flip:1", "flip:2", "flip"],
    "method": ["bce", "balancemix", "asl", "nobody", "os:path", "evilmod:Evil"],
    "split": ["train", "test", "val"],
    "ap": ["sklearn", "raw", "voc", "x"],
    "backbone": ["test_resnet", "test_vit", "nobody"],
    "device": ["cpu"],
    "workers": ["0"],
    "jobs": ["1"],
    "set": ["train.lr=0.1", "method.alpha=1", "model.hidden=-1", "data.path=x", "seed=-1", "=",
            "a.b=1"],
    "seeds": ["0", "0,1", "0,x", ",", "-1"],
    "only": ["bce", "nobody"],
    "paper": ["coco", "nobody"],
    "name": ["coco2014", "nobody"],
    "precision": ["no", "bf16"],
    "augment": ["none", "uda", "x"],
    "head": ["mlp", "linear", "ml-decoder", "x"],
    "relabel": ["epoch", "off", "x"],
    "optimizer": ["sgd", "adamw", "x"],
    "groups": ["auto", "paper", "x"],
    "image_size": ["32", "0", "-1"],
    "tool": ["label-studio", "fiftyone", "cleanlab", "x"],
    "issues": ["flags.npy", "notes.txt", "missing.npy"],
    "confidence": ["p.npy", "flags.npy", "missing.npy"],
    "read": ["export.json", "flags.npy", "filled.csv", "filled.csv", "run/findings.csv",
             "notes.txt", "missing.csv", "photos"],
}  # fmt: skip
DATA = ["x.npz", "photos", "photos", "digits", "missing", "notes.txt", "run", "link.npz"]
RUNS = ["run", "run", "run", "run", "empty", "photos", "missing", "x.npz", "old"]
PLANS = [
    "plan.toml",
    "bench.toml",
    "quick",
    "coco2014",
    "notes.txt",
    "missing.toml",
    "run/plan.json",
]
OUTS = [
    "new.csv", "new.json", "new.xlsx", "new.npz", "new.html", "new", "new/deep/x.csv", "x.npz",
    "photos/labels.csv",
    "photos", "notes.txt", "run", "run/findings.csv", "run/metrics.json", "empty", "link.npz",
    "dangling.csv", "", ".", "..", "null", "~nobody/x.csv", "a" * 300 + ".csv", "notes.txt/x.csv",
    "é.csv", "other.csv", "other.npz", "full.csv", "d", "d",
]  # fmt: skip


def parsers() -> dict[str, argparse.ArgumentParser]:
    """Look up the parser of each command."""
    actions = build_parser()._actions
    found = next(each for each in actions if isinstance(each, argparse._SubParsersAction))
    return {name: parser for name, parser in found.choices.items() if name not in LEFT_OUT}


def arguments(draw: Draw) -> list[str]:
    """Draw a command: its positional arguments, mostly, and some of its flags."""
    known = parsers()
    name = draw.pick(sorted(known))
    while not draw.chance(RARE.get(name, 1.0)):
        name = draw.pick(sorted(known))
    argv = [name, *ALWAYS.get(name, [])]
    for action in known[name]._actions:
        if not action.option_strings:
            if action.nargs != "?" or draw.chance(0.7):
                argv.append(value_of(action, draw))
            continue
        flag = action.option_strings[-1]
        share = 0.5 if flag == "--out" or action.required else 0.12
        if flag in NEVER or not draw.chance(share):
            continue
        argv.append(flag)
        if action.nargs != 0:
            argv.append(value_of(action, draw))
    if draw.chance(0.05):
        argv.insert(draw.below(len(argv)) + 1, odd_word(draw))
    return argv


def value_of(action: argparse.Action, draw: Draw) -> str:
    """Draw a value: mostly one that fits, now and then an odd one."""
    dest = action.dest.rpartition(".")[2]
    metavar = str(action.metavar or "")
    if dest in ("out", "figures"):
        return draw.pick(OUTS)
    if "DATA" in metavar or dest == "data":
        return draw.pick(DATA) if draw.chance(0.9) else odd_word(draw)
    if "RUN" in metavar or dest == "directory":
        return draw.pick(RUNS) if draw.chance(0.9) else odd_word(draw)
    if dest == "plan":
        return draw.pick(PLANS)
    if dest in WORDS:
        safe = dest in ("device", "workers", "jobs")
        return draw.pick(WORDS[dest]) if safe or draw.chance(0.8) else odd_word(draw)
    if action.type in (int, float):
        small = ["0", "1", "2", "-1", "0.5", "nan", "x", "", "1e3"]
        large = [str(2**31), str(2**63), "1" + "0" * 400, "inf", "1e400"]
        return draw.pick(small + large if dest in HARMLESS else small)
    return odd_word(draw)


def odd_word(draw: Draw) -> str:
    """Draw an odd word that a shell can pass on, and that names nothing outside the folder."""
    words = [word for word in ODD_TEXT if "\0" not in word and "/" not in word]
    return draw.pick([word for word in words if word != "\ud800"])
