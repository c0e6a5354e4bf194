"""Commands with damaged files and odd flags: no traceback, a known exit code, nothing lost."""

import contextlib
import hashlib
import io
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from tests.torture import names, seeds
from tests.torture.damage_data import damage_arrays
from tests.torture.draw import Draw
from tests.torture.flags import arguments
from tests.torture.mutate import mutate_bytes, mutate_text, write_toml
from tests.torture.outcome import LOST, READ, REFUSED, TRACEBACK, UNTIDY, Outcome, attempt
from tests.torture.readers import LABEL_READERS, put
from tests.torture.run_files import call, whole_run

FINDINGS = "work/run/findings.csv"  # which people edit
EXPORT = (
    b'[{"data": {"name": "a.png", "given": ["cat"], "asked": ["dog"]}, "annotations": [{"result": '
    b'[{"type": "choices", "from_name": "labels", "value": {"choices": ["dog"]}}]}]}]'
)  # of Label Studio
BUG = re.compile(r"bug in balancemix[^:]*: (\w+)")


class Commands:
    """Damaged files and odd flags, given to `balancemix` in this process, some to a new one."""

    name, group, chunk = "commands", "commands", 20

    def prepare(self, folder: Path) -> None:
        """Make what every case begins with: data, a run, plans, and files of other people."""
        self.template = template()

    def case(self, draw: Draw, number: int, folder: Path) -> Outcome:
        """Copy the template, damage a file, run a command, compare what was there before."""
        place = Path(tempfile.mkdtemp(dir=folder)) / "home" / "work"
        shutil.copytree(self.template, place, symlinks=True)
        device(place / "null", 3)
        device(place / "full.csv", 7)
        argv = arguments(draw)
        edited = damage(place, argv, draw) if draw.chance(0.6) else None
        before = snapshot(place)
        try:
            code, err, outcome = run(argv, place, fresh=number % 50 == 0)
            return outcome or verdict(argv, code, err, before, snapshot(place), edited)
        finally:
            if not os.environ.get("TORTURE_KEEP"):
                shutil.rmtree(place.parent.parent, ignore_errors=True)
            else:
                sys.stdout.write(f"in {place}: balancemix {argv}\n")


def template() -> Path:
    """Make the folder that cases are copies of."""
    folder = Path(tempfile.mkdtemp(dir=names.scratch(), prefix="case-")) / "work"
    shutil.copytree(whole_run().parent, folder)
    photos, draw = folder / "photos", Draw("template", 0, 0)
    put(photos, LABEL_READERS[0].fixed | seeds.csv(draw))
    with_split = b"image,labels,split\na.png,cat,train\nb.png,dog,train\nc.png,cat|dog,test\n"
    put(photos, {"labels.csv": with_split})
    (photos / "classes.txt").unlink(missing_ok=True)
    (folder / "empty").mkdir()
    shutil.copytree(folder / "run", folder / "old")
    names.hide_manifest(folder / "old")
    put(
        folder,
        {
            "notes.txt": b"nobody may change this\n",
            "other.csv": b"image,labels\nprecious,work\n",
            "other.npz": b"precious",
            "plan.toml": b"seed = 1\n[train]\nepochs = 1\n",
            "filled.csv": b"image,class,verdict\na.png,dog,present\nb.png,dog,absent\nc.png,cat,\n",
            "export.json": EXPORT,
            "p.npy": array(np.full((3, 2), 0.5)),
            "flags.npy": array(np.eye(3, 2) > 0),
            "bench.toml": b'data = ["x.npz"]\n[[methods]]\nname = "bce"\n',
            "run/mine.txt": b"a person put this here\n",
            "d/labels.npz": b"precious",
            "d/checkpoint.pt": b"precious",
            "evilmod.py": b"open('stolen', 'w').close()\n",
        },
    )
    (folder / "link.npz").symlink_to("x.npz")
    (folder / "dangling.csv").symlink_to("nowhere.csv")
    return folder


def array(content: Any) -> bytes:
    """Write an .npy file."""
    out = io.BytesIO()
    np.save(out, content)
    return out.getvalue()


def device(path: Path, minor: int) -> None:
    """Make a device like /dev/null or /dev/full, where that is allowed."""
    with contextlib.suppress(OSError):
        os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, minor))


def damage(place: Path, argv: list[str], draw: Draw) -> str:
    """Damage a file that the command may read, and name it as a snapshot does."""
    run_files = sorted(path for path in (place / "run").iterdir() if path.is_file())
    choices = [
        place / "photos" / "labels.csv",
        place / "x.npz",
        place / "plan.toml",
        *run_files[:1],
    ]
    if "run" in argv:
        choices = [*choices, *run_files]
    path = draw.pick(choices)
    content = path.read_bytes()
    if path.name == "labels.csv":
        content = mutate_text(content, draw, ",|")
    elif path.name == "x.npz":
        content = damage_arrays(seeds.arrays(draw), draw)["x.npz"]
    elif path.name == "plan.toml":
        content = write_toml(seeds.plan(draw) | {"train": {"epochs": 1}}, draw)
    else:
        content = mutate_bytes(content, draw)
    path.write_bytes(content)
    return str(path.relative_to(place.parent))


def run(argv: list[str], place: Path, fresh: bool) -> tuple[int, str, Outcome | None]:
    """Run a command in a folder, in this process or in a new one."""
    environment = {"HOME": str(place.parent), "TMPDIR": str(place.parent), "HF_HUB_OFFLINE": "1"}
    if fresh:
        done = subprocess.run(
            [sys.executable, "-m", "balancemix", *argv],
            cwd=place,
            env={**os.environ, **environment, "PYTHONIOENCODING": "ascii"},
            capture_output=True,
            timeout=120,
        )
        return done.returncode, done.stderr.decode("utf-8", "replace"), None
    here, before = os.getcwd(), {key: os.environ.get(key) for key in environment}
    path = list(sys.path)
    os.environ.update(environment)
    tempfile.tempdir = None
    os.chdir(place)
    try:
        answer, outcome = attempt(lambda: call(*argv))
    finally:
        os.chdir(here)
        sys.path[:] = path
        tempfile.tempdir = None
        for key, value in before.items():
            os.environ.pop(key) if value is None else os.environ.update({key: value})
    if outcome.kind != READ:
        return 70, "", Outcome(TRACEBACK, f"{argv[0]}: {outcome.kind} {outcome.detail}")
    code, _, err = answer
    return code, err, None


def snapshot(place: Path) -> dict[str, str]:
    """Note what is in a folder and above it: kind and checksum of each file."""
    found = {}
    for path in sorted(place.parent.rglob("*")):
        kind = stat.S_IFMT(path.lstat().st_mode)
        mark = str(kind)
        if path.is_symlink():
            mark += os.readlink(path)
        elif stat.S_ISREG(kind):
            mark += hashlib.sha1(path.read_bytes()).hexdigest()
        found[str(path.relative_to(place.parent))] = mark
    return found


def verdict(
    argv: list[str],
    code: int,
    err: str,
    before: dict[str, str],
    after: dict[str, str],
    edited: str | None = None,
) -> Outcome:
    """Judge what a command did; the findings of a run that somebody `edited` stay."""
    last = err.strip().splitlines()[-1] if err.strip() else ""
    if code == 70 or ("Traceback (most recent" in err and "--debug" not in argv):
        bug = BUG.search(err)
        where = _recorded(err)
        return Outcome(TRACEBACK, f"{argv[0]}: {bug[1] if bug else last[:120]} {where}")
    if code not in (0, 2) and not (code == 1 and argv[0] == "bench"):
        return Outcome(TRACEBACK, f"{argv[0]}: exit code {code}")
    if "work/stolen" in after and not any("evilmod" in word for word in argv):
        return Outcome(LOST, f"{argv[0]}: imported a module that nobody named")
    lost = [name for name, mark in before.items() if after.get(name) != mark]
    kept = edited if edited == FINDINGS and "--force" not in argv[1:] else None
    kept = edited if edited == FINDINGS and argv[0] in ("train", "bench") else kept
    lost = [name for name in lost if name == kept or not allowed(name, argv, before, after)]
    if lost:
        how = "changed" if lost[0] in after else "removed"
        return Outcome(LOST, f"{argv[0]}: {how} {lost[0]}")
    if any(name.endswith(".draft") for name in after.keys() - before.keys()):
        return Outcome(UNTIDY, f"{argv[0]}: left a draft behind")
    if code == 2 and not re.search("balancemix[^:]*: ", last):
        return Outcome(UNTIDY, f"{argv[0]}: no line that says what is wrong: {last[:80]}")
    return Outcome(REFUSED if code == 2 else READ)


def _recorded(err: str) -> str:
    """Find the place of a bug in the traceback that was written to a file, or printed."""
    file = re.search(r"traceback: (\S+?)\)", err)
    text = err
    if file and Path(file[1]).exists():
        text = Path(file[1]).read_text(encoding="utf-8", errors="replace")
    places = re.findall(r'/balancemix/([\w/]+\.py)", line (\d+)', text)
    return f"at {places[-1][0]}:{places[-1][1]}" if places else ""


def allowed(name: str, argv: list[str], before: Any, after: Any) -> bool:
    """Whether a command may change a file: its own output, or what --force gives it."""
    path = Path(name).relative_to("work") if name.startswith("work") else Path(name)
    flag = "--csv" if argv[0] == "review" else "--out"
    out = argv[argv.index(flag) + 1] if flag in argv[:-1] else None
    if before[name].startswith(str(stat.S_IFDIR)):
        return name in after
    if path.parts[0] in ("run", "old", "empty") and argv[0] in ("audit", "export", "report"):
        default = {"audit": "findings.", "export": "labels.corrected."}.get(argv[0], "report.html")
        if path.name == names.OUTPUTS or (out is None and path.name.startswith(default)):
            return True
    again = {"--force", "--resume"} & set(argv)
    if out is None or not again:
        return False
    if argv[0] in ("train", "bench"):
        ours = path.parts[:1] == Path(out).parts[:1] and path.parts[0] in ("run", "old", "empty")
        return ours and path.name != "mine.txt"
    written = {Path(out), Path(f"{out}.changes.csv")}
    if out.endswith(".json"):
        written.add(Path(out).with_suffix(".xml"))
    return path in written and str(path) not in argv[1 : argv.index(flag)]
