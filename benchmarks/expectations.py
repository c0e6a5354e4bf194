"""The table of the README's "What to expect": last mAP, the mean over the seeds in the ledger."""

from __future__ import annotations

import os
from pathlib import Path
from statistics import mean

from results import BENCHES, LEDGER, ROOT, put

from balancemix.bench.finished import Finished
from balancemix.bench.ledger import Ledger
from balancemix.bench.plan import data_slug, jobs

# A bench, its data and noise, and the heading of the column.
COLUMNS = [
    ("judge-lite0", "coco160-features", "none", "COCO, clean"),
    ("judge-lite0", "coco160-features", "mislabel:0.4", "mislabel 40 %"),
    ("judge-lite0", "coco160-features", "flip:0.2", "flip 20 %"),
    ("judge-lite0", "coco160-features", "single", "single positive"),
    ("judge-resnet50", "coco160-resnet50", "mislabel:0.4", "ResNet-50, mislabel 40 %"),
    ("judge-resnet50", "coco160-resnet50", "flip:0.2", "flip 20 %"),
    ("judge-deepfashion", "deepfashion", "mislabel:0.4", "DeepFashion, mislabel 40 %"),
    ("judge-real", "coco-captions", "none", "captions"),
    ("judge-real", "birds", "none", "birds"),
]
ROWS = {
    "bce": "BCE",
    "mixup": "Mixup",
    "role": "ROLE",
    "balancemix": "BalanceMix",
    "kernel-ridge": "kernel ridge, the control",
    "second-opinion": "**second opinion**",
    "auto": "**auto**",
}


def main() -> None:
    """Write the table."""
    os.chdir(ROOT)
    scores: dict[tuple[str, str, str, str], list[float]] = {}
    for name in dict.fromkeys(bench for bench, *_ in COLUMNS):
        finished = Finished(Ledger(Path(LEDGER)), name)
        for job in jobs(BENCHES[name].read()):
            entry = finished.find(job)
            if entry is not None:
                place = (name, data_slug(job.data), job.noise, job.variant.name)
                scores.setdefault(place, []).append(entry.last["mAP"])
    lines = ["| " + " | ".join(["", *(heading for *_, heading in COLUMNS)]) + " |"]
    lines.append("|---" * (len(COLUMNS) + 1) + "|")
    for method, label in ROWS.items():
        cells = [f"{mean(scores[*place, method]):.1f}" for *place, _ in COLUMNS]
        lines.append("| " + " | ".join([label, *cells]) + " |")
    put("readme/expect", "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
