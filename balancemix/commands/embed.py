"""`balancemix embed`: images in, a file of features and of augmented views out."""

from __future__ import annotations

import argparse
from pathlib import Path

DESCRIPTION = """\
embed images once, so that training on them takes minutes without a GPU

DATA is a folder of images with labels.csv, or of COCO, VOC or DeepFashion. The .npz holds the
backbone's features of every image, and of --views augmented views of it, which `train` uses
wherever a method wants an augmented view; labels, classes, split and names of the images as well.
With --map the features are a small map, which the heads ml-decoder and query2label look at.

Killed and started again it goes on where it was.

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
    parser.add_argument(
        "--backbone", default="tf_efficientnet_lite0", help="any timm name (default %(default)s)"
    )
    parser.add_argument("--views", type=int, default=5, help="of each image (default 5)")
    parser.add_argument("--map", action="store_true", help="keep the map, do not pool it")
    parser.add_argument("--image-size", type=int, help="side in pixels (default: the backbone's)")
    parser.add_argument("--augment", default="randaugment", help="randaugment (default) or uda")
    parser.add_argument("--seed", type=int, default=0, help="of the views (default 0)")
    parser.add_argument("--batch-size", type=int, help="images at once, each with its views")
    parser.add_argument("--workers", type=int, help="loading processes")
    parser.add_argument("--device", default="auto", help="auto (default), cpu, cuda, mps")
    parser.add_argument("--limit", type=int, metavar="N", help="only the first N rows, to try it")
    parser.add_argument("--force", action="store_true", help="begin anew over what is there")
    parser.add_argument("--no-pretrained", action="store_true", help="random weights, to try it")
    parser.add_argument(
        "--skip-bad", action="store_true", help="go on without images that cannot be read"
    )


def run(arguments: argparse.Namespace) -> None:
    """Embed."""
    import torch

    from balancemix.data import ReadOptions, View, read_images
    from balancemix.errors import InputError
    from balancemix.models.backbones import input_size, normalisation
    from balancemix.models.classifier import build_embedder
    from balancemix.training.devices import check_device
    from balancemix.training.embed import embed, partial_file
    from balancemix.training.partial import note_of, remove

    name = arguments.backbone
    out = arguments.out or Path(f"{arguments.data.resolve().name}-{name}.npz")
    if out.suffix != ".npz":
        raise InputError(f"--out {out}: must end in .npz")
    if out.exists() and not note_of(partial_file(out)).exists() and not arguments.force:
        raise InputError(f"{out}: is there already; pass --force to write it anew")
    if arguments.limit is not None and arguments.limit < 1:
        raise InputError(f"--limit {arguments.limit}: must be at least 1")
    check_device(arguments.device)
    size = arguments.image_size or input_size(name)
    mean, std = normalisation(name)
    view = View(size=size, augment=arguments.augment, mean=mean, std=std)
    rows, split = read_images(arguments.data, view, ReadOptions(skip_bad=arguments.skip_bad))
    if arguments.limit is not None:
        rows = rows.subset(torch.arange(min(arguments.limit, len(rows))))
        split = split and split[: len(rows)]
    pretrained = not arguments.no_pretrained
    torch.manual_seed(arguments.seed)  # of random weights, which must be the same when it goes on
    body = build_embedder(name, pooled=not arguments.map, pretrained=pretrained, image_size=size)
    if arguments.force:
        remove(partial_file(out))
    shape = embed(
        rows,
        body,
        out,
        split=split,
        views=arguments.views,
        seed=arguments.seed,
        batch_size=arguments.batch_size,
        workers=arguments.workers,
        device=_device(arguments.device),
        about={"backbone": name, "pretrained": pretrained, "augment": arguments.augment},
    )
    features = " × ".join(f"{side:,}" for side in shape[1:])
    print(f"{out}: {shape[0]:,} images and {arguments.views} views of each, {features} features")


def _device(wanted: str) -> str:
    import torch

    if wanted != "auto":
        return wanted
    found = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    return str(found or "cpu")
