"""What makes a pass without gradient cheaper: `python benchmarks/passes.py`, on two free cores.

A pass of 64 images of 128 pixels through EfficientNet-Lite0, the best of several, in units of a
training step on as many; the candidates and the step take turns.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from photos import report
from turns import fastest

from balancemix.models.classifier import build_model
from balancemix.models.fold import folded
from balancemix.training.devices import keep_freed_memory, prepare_bf16

ROUNDS = 8


def main() -> None:
    """Measure, and print a line for each candidate."""
    prepare_bf16()
    torch.set_num_threads(2)
    keep_freed_memory()
    torch.manual_seed(0)
    model = build_model(classes=80, pretrained=False).to(memory_format=torch.channels_last)
    x = torch.randn(64, 3, 128, 128).to(memory_format=torch.channels_last)
    optimiser = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9, fused=True)

    @torch.enable_grad()
    def step() -> None:
        model.train()
        model(x).square().mean().backward()
        optimiser.step()
        optimiser.zero_grad()
        model.eval()

    def half() -> None:
        with torch.autocast("cpu", torch.bfloat16):
            model(x)

    step()
    quick, rows = folded(model, x[:1]), x.contiguous()
    compiled = torch.compile(model)
    candidates: dict[str, Callable[[], object]] = {
        "as it is": lambda: model(x),
        "BatchNorm and padding folded": lambda: quick(x),
        "in pieces of 8 images": lambda: [model(piece) for piece in x.split(8)],
        "channels first": lambda: model(rows),
        "bf16": half,
        "torch.compile": lambda: compiled(x),
        "step": step,
    }
    with torch.no_grad():
        compiling = fastest({"once": lambda: compiled(x)}, 1)["once"]
        seconds = fastest(candidates, ROUNDS)
    unit = seconds.pop("step")
    for name, taken in seconds.items():
        report("passes", f"{name}, against a training step", taken / unit)
    report("passes", "compiling, against a training step", compiling / unit)


if __name__ == "__main__":
    main()
