"""`balancemix embed`: images in, a file of features and of augmented views out."""

from __future__ import annotations

import argparse
from pathlib import Path

from balancemix.commands.arguments import add_reading, add_skip_bad, read_options
from balancemix.options import BACKBONE, STORED_VIEWS, View
from balancemix.plan.sections import SEED, TrainPlan, help_of

DESCRIPTION = """\
embed images once, so that training on them takes minutes without a GPU

DATA is a folder of images with labels.csv, or of COCO, VOC or DeepFashion, or a table by itself
(--images names the folder of its images). The .npz holds the
backbone's features of every image and of --views augmented views of it, which `train` uses wherever
a method asks for an augmented view; also labels, classes, split, and the folder and the names of
the images. With --map the features are a small map, for the heads ml-decoder and query2label.

If it is interrupted, the same command continues.

examples:
  balancemix embed photos/ --out photos.npz
  balancemix train photos.npz --out runs/photos
  balancemix embed photos/ --backbone resnet50 --map --image-size 160 --out maps.npz
  balancemix train maps.npz --head ml-decoder --out runs/maps"""


def stopped(arguments: argparse.Namespace) -> str:
    """Say what an interruption leaves."""
    return "the same command continues where it was"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("data", type=Path, metavar="DATA", help="see above")
    parser.add_argument("--out", type=Path, help=".npz to write (default DATA-BACKBONE.npz)")
    parser.add_argument("--backbone", default=BACKBONE, help="any timm name (default %(default)s)")
    parser.add_argument(
        "--views", type=int, default=STORED_VIEWS, help="of each image (default %(default)s)"
    )
    parser.add_argument("--map", action="store_true", help="keep the map, do not pool it")
    parser.add_argument("--image-size", type=int, help="side in pixels (default: the backbone's)")
    parser.add_argument("--augment", default=View.augment, help=help_of("data.augment"))
    parser.add_argument("--seed", type=int, default=SEED, help="of the views (default %(default)s)")
    parser.add_argument("--batch-size", type=int, help="images at once, each with its views")
    parser.add_argument("--workers", type=int, help="loading processes")
    parser.add_argument(
        "--device",
        default=TrainPlan.device,
        help=help_of("train.device", "auto, cpu, cuda or mps"),
    )
    parser.add_argument("--limit", type=int, metavar="N", help="only the first N rows, to try it")
    parser.add_argument("--force", action="store_true", help="replace --out, and start over")
    parser.add_argument("--no-pretrained", action="store_true", help="random weights, to try it")
    add_skip_bad(parser)
    add_reading(parser)


def run(arguments: argparse.Namespace) -> None:
    """Embed."""
    from balancemix.errors import printable
    from balancemix.training.embed import embed_data

    backbone, data = arguments.backbone, arguments.data.resolve()
    name = data.stem if data.is_file() else data.name
    out = arguments.out or Path(f"{name}-{backbone}.npz")
    shape = embed_data(
        arguments.data,
        out,
        backbone,
        pretrained=not arguments.no_pretrained,
        pooled=not arguments.map,
        size=arguments.image_size,
        augment=arguments.augment,
        views=arguments.views,
        seed=arguments.seed,
        batch_size=arguments.batch_size,
        workers=arguments.workers,
        device=arguments.device,
        limit=arguments.limit,
        options=read_options(arguments, skip_bad=arguments.skip_bad),
        force=arguments.force,
    )
    features = " × ".join(f"{side:,}" for side in shape[1:])
    counts = f"{shape[0]:,} images and {arguments.views} views of each, {features} features"
    print(f"{printable(str(out))}: {counts}")
