"""Time of a step without its model, on COCO's labels: `python benchmarks/label_work.py`.

Looking labels up among 82,081 × 80, mixing them and comparing them with logits that are already
there. What a step does must not grow with the rows of the data: ROLE and EM-APL, which know more of
a label than a target, are held to twice Mixup's time.
"""

from __future__ import annotations

import json
import time
from statistics import median

import torch
from torch import Tensor, nn

from balancemix.methods import METHODS, Method

ROWS, CLASSES, SIZE, STEPS = 82_081, 80, 64, 400
NAMES = ("mixup", "role", "em-apl")
MOST = 2  # times Mixup


class Known(nn.Module):
    """A model that has its logits at hand."""

    def __init__(self) -> None:
        super().__init__()
        self.logits = torch.randn(SIZE, CLASSES, generator=torch.Generator().manual_seed(0))

    def forward(self, x: Tensor) -> Tensor:
        """Return them, whatever is shown."""
        return self.logits


def milliseconds(methods: dict[str, Method]) -> dict[str, float]:
    """Measure the median step of each method, in turns: what else runs disturbs all alike."""
    generator, model, x = torch.Generator().manual_seed(1), Known(), torch.zeros(SIZE, 1)
    times: dict[str, list[float]] = {name: [] for name in methods}
    for _ in range(STEPS):
        index = torch.randint(ROWS, (SIZE,), generator=generator)
        for name, method in methods.items():
            begin = time.perf_counter()
            method.loss(model, x, index)
            times[name].append(time.perf_counter() - begin)
    return {name: 1000 * median(each) for name, each in times.items()}


def main() -> None:
    """Print one line a method."""
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(0)
    given = (torch.rand(ROWS, CLASSES, generator=generator) < 0.036).to(torch.int8)
    measured = milliseconds({name: METHODS[name]().start(given, 50) for name in NAMES})
    for name, each in measured.items():
        ratio = each / measured["mixup"]
        facts = {"ms_per_step": round(each, 3), "times_mixup": round(ratio, 2)}
        line = {"benchmark": "label_work", "case": f"{name}, {ROWS}x{CLASSES}", **facts}
        if name != "mixup":
            line |= {"requirement": f"at most {MOST} times Mixup's", "met": ratio <= MOST}
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
