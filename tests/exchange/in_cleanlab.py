"""Run in the environment of cleanlab: find issues in the arrays that `audit --for cleanlab` wrote.

    python in_cleanlab.py FOLDER

FOLDER holds x.npz. Written are cleanlab's own results: mask.npy, ranked.npy, issues.npy, scores.npy
and labels.json, its labels as lists.
"""

import json
import sys
from pathlib import Path

import numpy as np


def main(folder: Path) -> None:
    """Call what cleanlab offers for several labels a row."""
    from cleanlab.multilabel_classification.filter import (
        find_label_issues,
        find_multilabel_issues_per_class,
    )
    from cleanlab.multilabel_classification.rank import get_label_quality_scores

    arrays = np.load(folder / "x.npz")
    labels = [np.flatnonzero(row == 1).tolist() for row in arrays["labels"]]
    probabilities = arrays["pred_probs"]
    by = {"return_indices_ranked_by": "self_confidence", "n_jobs": 1}
    results = {
        "mask": find_label_issues(labels, probabilities, n_jobs=1),
        "ranked": find_label_issues(labels, probabilities, **by),
        "issues": np.array(find_multilabel_issues_per_class(labels, probabilities, n_jobs=1)),
        "scores": get_label_quality_scores(labels, probabilities),
    }
    for name, result in results.items():
        np.save(folder / f"{name}.npy", result, allow_pickle=False)
    (folder / "labels.json").write_text(json.dumps(labels))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
