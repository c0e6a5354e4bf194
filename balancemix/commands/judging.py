"""Judge what the arguments of a command name: data, a run, or the arrays of another model."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from balancemix.commands.arguments import read_options
from balancemix.options import BACKBONE, View
from balancemix.plan.sections import TrainPlan, help_of

if TYPE_CHECKING:
    from balancemix.auditing.judged import Factors, Judged
    from balancemix.options import ReadOptions
    from balancemix.plan.plan import Plan
    from balancemix.run import Run


def add_embedding(parser: argparse.ArgumentParser) -> None:
    """Declare how images are embedded, for `planned`."""
    embedding = parser.add_argument_group("how images of DATA are embedded")
    embedding.add_argument("--backbone", help=f"any timm name (default {BACKBONE})")
    embedding.add_argument("--no-pretrained", action="store_true", help="random weights, to try it")
    embedding.add_argument("--image-size", type=int, help=f"in pixels (default {View.size})")
    embedding.add_argument("--workers", type=int, help="loading processes")
    embedding.add_argument(
        "--device",
        default=TrainPlan.device,
        help=help_of("train.device", "auto, cpu, cuda or mps"),
    )


def judge_arguments(
    arguments: argparse.Namespace,
    run_: Run | None,
    *,
    verified: bool = True,
    factors: Factors | None = None,
) -> Judged:
    """Judge the run, the data or the arrays; unless `verified`, without what people decided."""
    from balancemix.auditing.data import judge_data, judge_run

    verified = verified and not arguments.no_verified
    if run_ is not None:
        return judge_run(run_, verified=verified, factors=factors)
    if arguments.data is None:
        return judge_arrays(arguments.labels, arguments.confidence)
    options = replace(read_options(arguments, skip_bad=arguments.skip_bad), verified=verified)
    if arguments.confidence is not None:
        return judge_rows(arguments.data, options, arguments.confidence)
    return judge_data(arguments.data, options, planned(arguments), factors=factors)


def judge_arrays(labels: Path, confidence: Path) -> Judged:
    """Judge the labels of a file by the confidence in another one."""
    from balancemix.auditing.judged import judge_confidence
    from balancemix.data.arrays import read_array
    from balancemix.errors import InputError
    from balancemix.exchange.cleanlab import read_lists
    from balancemix.labels.table import as_given

    scores = read_array(confidence)
    if labels.suffix.lower() == ".json":
        given = read_lists(labels, scores)
    else:
        try:
            given = as_given(read_array(labels))
        except ValueError as error:
            raise InputError(f"{labels}: {error}") from None
    try:
        return judge_confidence(given, scores)
    except ValueError as error:
        raise InputError(f"{confidence}: {error}") from None


def judge_rows(data: str, options: ReadOptions, confidence: Path) -> Judged:
    """Judge the labels of DATA by another model's confidence in them, row by row."""
    from balancemix.auditing.judged import judge_confidence
    from balancemix.data import read
    from balancemix.data.arrays import read_array
    from balancemix.errors import InputError

    source = read(data, options)
    try:
        return judge_confidence(
            source.given,
            read_array(confidence),
            verified=source.verified,
            before=source.before,
            names=source.names,
            classes=source.classes,
            split=source.split,
            source=source,
            truth=source.truth,
        )
    except ValueError as error:
        raise InputError(f"{confidence}: {error}") from None


def planned(arguments: argparse.Namespace) -> Plan:
    """Make the plan that says how images are embedded."""
    from balancemix.plan.plan import Plan

    model = {"backbone": arguments.backbone, "pretrained": not arguments.no_pretrained}
    data = {"size": arguments.image_size, "workers": arguments.workers}
    sections = {"model": model, "data": data, "train": {"device": arguments.device}}
    return Plan.from_tree(
        {
            name: {key: value for key, value in section.items() if value is not None}
            for name, section in sections.items()
        }
    )
