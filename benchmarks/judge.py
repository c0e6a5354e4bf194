"""Measure the judge: `python benchmarks/judge.py [scale] [large] [folds] …`.

scale: time and memory by the number of rows, 512 features, 100 classes, two threads: all pairs, and
landmarks whose scores are refined. Each case runs in a process of its own, to have its peak memory.
large: the same of more rows, with landmarks alone.
folds: against five-fold cross-validation of the default head, 5,000 rows of 80 classes: the usual
way to predict rows that a model has not seen.
unknown: the same rows with half of the labels unknown, so that every class has its own rows.
agreement: landmarks against all pairs, on all rows of birds (../shared, else skipped); minutes. For
comparison, all pairs with a penalty that is a tenth larger, and landmarks alone, not refined.
rates: modelled against true rates of errors, on COCO and captions (../shared, else skipped).
targets: test mAP of kernel ridge on T, by how it is penalised (../shared, else skipped).
The first four have random features with classes that depend on all of them.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from unittest.mock import patch

import numpy as np
import torch
from photos import report
from torch import Tensor

from balancemix.data import FeatureRows
from balancemix.evaluation.metrics import average_precision
from balancemix.judge import Opinion, judge, refine
from balancemix.judge.penalty import Penalty
from balancemix.judge.ridge import Ridge
from balancemix.labels import noise
from balancemix.methods import Mixup
from balancemix.plan.plan import Plan
from balancemix.training.fit import fit
from balancemix.training.models import make_model

ROWS = (1_000, 10_000, 20_000, 30_000)
MORE, MOST, MINUTES = 100_000, 1_000_000, 15
MANY = 8192  # landmarks: as many as the judge takes by itself
SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


def main(names: list[str]) -> None:
    """Measure what is named, or all of it."""
    torch.set_num_threads(2)
    for name in names or CASES:
        CASES[name]()


def make(rows: int, features: int, classes: int) -> tuple[Tensor, Tensor]:
    """Draw features, and labels of which one in ten is wrong; float16, so that a million fit."""
    generator = torch.Generator().manual_seed(0)
    directions = torch.randn(features, classes, generator=generator) / features**0.5
    x = torch.empty(rows, features, dtype=torch.float16)
    given = torch.empty(rows, classes, dtype=torch.int8)
    for part, labels in zip(torch.split(x, 10_000), torch.split(given, 10_000), strict=True):
        drawn = torch.randn(len(part), features, generator=generator)
        present = drawn @ directions > 1.5
        flipped = torch.rand(present.shape, generator=generator) < 0.01
        part.copy_(drawn)
        labels.copy_(present ^ flipped)
    return x, given


def scale() -> None:
    """Report minutes and bytes by the number of rows."""
    for rows in ROWS:
        _report_rows(rows)


def large() -> None:
    """Report minutes and bytes of more rows, up to a million."""
    _report_rows(MORE)
    _report_rows(MOST, f"<= {MINUTES}")


def _report_rows(rows: int, required: str = "") -> None:
    """Judge so many rows in another process."""
    code = f"import judge; judge.one({rows})"
    output = subprocess.run(
        [sys.executable, "-c", code], cwd=Path(__file__).parent, text=True, check=True,
        stdout=subprocess.PIPE,
    ).stdout  # fmt: skip
    facts = json.loads(output.splitlines()[-1])
    case = f"{rows}x100, 512 features, {facts['landmarks']} landmarks, minutes"
    report("judge", case, facts["seconds"] / 60, required,
           minutes_of_one_core=facts["processor"] / 60, bytes_more_than_data=facts["bytes"],
           )  # fmt: skip


def one(rows: int) -> None:
    """Judge a number of rows, and print what it took."""
    torch.set_num_threads(2)
    x, given = make(rows, 512, 100)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    start, busy = time.perf_counter(), time.process_time()
    ridge = Ridge.of(x)
    judge(given, ridge)
    facts = {
        "seconds": time.perf_counter() - start,
        "processor": time.process_time() - busy,
        "bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before,
        "landmarks": len(ridge.basis.landmarks),
    }
    print(json.dumps(facts))


def folds() -> None:
    """Report how many times longer five-fold cross-validation of the head takes."""
    x, given = make(5000, 1280, 80)
    start = time.perf_counter()
    judge(given, x.float())
    judged = time.perf_counter() - start
    rows = FeatureRows(x.float(), given.to(torch.uint8), [str(k) for k in range(80)])
    plan = Plan(method=Mixup())
    plan.train.device = "cpu"
    start = time.perf_counter()
    for fold in range(5):
        held = torch.arange(5000) % 5 == fold
        seen, kept = rows.subset((~held).nonzero()[:, 0]), rows.subset(held.nonzero()[:, 0])
        fit(lambda seen=seen: make_model(plan, seen, pretrained=False), seen, kept, plan)
    crossed = time.perf_counter() - start
    report("judge", "five-fold cross-validation of the head against the judge, 5000x80",
           crossed / judged, ">= 10", judge_seconds=judged, folds_seconds=crossed)  # fmt: skip


def unknown() -> None:
    """Report what half of the labels unknown cost."""
    x, given = make(5000, 1280, 80)
    start = time.perf_counter()
    judge(given, x.float())
    known = time.perf_counter() - start
    hidden = torch.rand(given.shape, generator=torch.Generator().manual_seed(1)) < 0.5
    start = time.perf_counter()
    judge(given.masked_fill(hidden, -1), x.float())
    taken = time.perf_counter() - start
    report("judge", "half of the labels unknown against none, 5000x80", taken / known,
           seconds=taken)  # fmt: skip


def agreement() -> None:
    """Report how far landmarks agree with all pairs."""
    path = SHARED / "real-noise" / "birds.npz"
    if not path.exists():
        print(f"agreement: skipped, {path} is not there", file=sys.stderr)
        return
    with np.load(path) as file:
        x, given, truth = (torch.from_numpy(file[n]) for n in ("features", "labels", "truth"))
    ridge = Ridge.of(x, landmarks=len(x))
    exact = judge(given, ridge)
    larger = _at(ridge, given, 1.1 * exact.penalty.best)
    del ridge  # its memory
    compare = partial(_compare, given, given != truth, exact)
    compare("all pairs, penalty a tenth larger", larger)
    for landmarks in (2048, 4096, MANY):
        ridge = Ridge.of(x, landmarks=landmarks)
        start = time.process_time()
        with patch.object(refine, "MOST", 0):
            alone = judge(given, ridge)
        middle = time.process_time()
        near = judge(given, ridge)
        seconds = {"not refined": middle - start, "refined": time.process_time() - middle}
        print(f"{landmarks} landmarks, seconds of one core: {seconds}", file=sys.stderr)
        compare(f"{landmarks} landmarks alone", alone)
        compare(f"{landmarks} landmarks", near, required=landmarks == MANY)


def _at(ridge: Ridge, given: Tensor, penalty: float) -> Opinion:
    """Judge with a penalty that is not chosen."""
    with patch.object(Ridge, "choose", return_value=Penalty(penalty, [], [])):
        return judge(given, ridge)


def _compare(
    given: Tensor,
    wrong: Tensor,
    exact: Opinion,
    what: str,
    near: Opinion,
    *,
    required: bool = False,
) -> None:
    """Report how far an opinion agrees with the exact one."""
    case = f"birds, {len(given)} rows, {what} against all pairs"
    flagged, also = _flagged(exact, given), _flagged(near, given)
    overlap = float((flagged & also).sum() / (flagged | also).sum())
    order = (_ranks(exact.score) * _ranks(near.score)).mean(0)
    precision = [_ap(opinion, given, wrong) for opinion in (exact, near)]
    results = (
        ("Jaccard of flagged labels", overlap, ">= 0.95"),
        ("Spearman of scores, least class", float(order.min()), ">= 0.99"),
        ("AP of findings, difference in points", abs(precision[0] - precision[1]), "<= 0.5"),
    )
    for measure, value, bound in results:
        report("judge", f"{case}: {measure}", value, bound if required else "")


def rates() -> None:
    """Report modelled and true shares of wrong and missing labels."""
    cases = [("coco160-features", text) for text in
             ("none", "mislabel:0.2", "mislabel:0.4", "flip:0.2", "single")]  # fmt: skip
    factored: dict[str, Ridge] = {}
    for name, text in [*cases, ("real-noise/coco-captions", "real"), ("real-noise/birds", "real")]:
        path = SHARED / f"{name}.npz"
        if not path.exists():
            print(f"rates: skipped, {path} is not there", file=sys.stderr)
            continue
        with np.load(path) as file:
            train = torch.from_numpy(file["split"] == "train")
            x, given = (torch.from_numpy(file[n])[train] for n in ("features", "labels"))
            truth = torch.from_numpy(file["truth"])[train] if "truth" in file else given
        if text != "real":
            given = noise.parse(text).apply(truth.to(torch.uint8), 0).given
        if name not in factored:
            factored[name] = Ridge.of(x)
        opinion = judge(given, factored[name])
        present, positive = truth > 0, given > 0
        wrong = float((opinion.rho0 * (~present).sum(0)).sum() / positive.sum())
        missing = float((opinion.rho1 * present.sum(0)).sum() / present.sum())
        report("judge", f"{name}, {text}: modelled share of wrong positives", wrong,
               true=float((positive & ~present).sum() / positive.sum()),
               modelled_missing=missing,
               true_missing=float((~positive & present).sum() / present.sum()))  # fmt: skip


def targets() -> None:
    """Report the test mAP of kernel ridge on T: by its penalty, and if some classes keep given."""
    path = SHARED / "coco160-features.npz"
    if not path.exists():
        print(f"targets: skipped, {path} is not there", file=sys.stderr)
        return
    with np.load(path) as file:
        train = torch.from_numpy(file["split"] == "train")
        x, labels = (torch.from_numpy(file[n]) for n in ("features", "labels"))
    ridge, test = Ridge.of(x[train]), x[~train].float()
    for text in ("none", "mislabel:0.4", "flip:0.2", "single"):
        given = noise.parse(text).apply(labels[train].to(torch.uint8), 0).given
        opinion = judge(given, ridge)
        target = opinion.targets(given)
        kept = torch.where(opinion.judged, target, given.float())
        solved = {
            "at penalty 0.5": ridge.solve(target, 0.5),
            "at the penalty of leave-one-out": ridge.solve(target, ridge.choose(target).best),
            "given where not judged": ridge.solve(kept, 0.5),
        }
        for how, machine in solved.items():
            ap = average_precision(labels[~train], machine(test))
            report("judge", f"coco160-features, {text}: mAP on T {how}", 100 * float(ap.nanmean()))


def _flagged(opinion: Opinion, given: Tensor) -> Tensor:
    return (opinion.posterior - given).abs() > 0.5


def _ranks(scores: Tensor) -> Tensor:
    """Rank each class's rows; of mean 0 and variance 1."""
    ranks = scores.argsort(0).argsort(0).double()
    return (ranks - ranks.mean(0)) / ranks.std(0, correction=0)


def _ap(opinion: Opinion, given: Tensor, wrong: Tensor) -> float:
    """Compute the average precision of doubt for wrong labels, in percent."""
    order = (opinion.posterior - given).abs().flatten().argsort(descending=True)
    hits = wrong.flatten()[order].double()
    precision = hits.cumsum(0) / torch.arange(1, len(hits) + 1)
    return 100 * float((precision * hits).sum() / hits.sum())


CASES = {
    "scale": scale, "large": large, "folds": folds, "unknown": unknown,
    "agreement": agreement, "rates": rates, "targets": targets,
}  # fmt: skip

if __name__ == "__main__":
    main(sys.argv[1:])
