"""Models: a timm backbone, or standardised features, under one of four heads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, nn

from balancemix.errors import InputError, suggest
from balancemix.models.backbones import fetchable, lite0_state
from balancemix.models.ml_decoder import MLDecoder
from balancemix.models.query2label import Query2Label

if TYPE_CHECKING:
    from timm.models import PretrainedCfg

LITE0 = "tf_efficientnet_lite0"
HEADS = ("linear", "mlp", "ml-decoder", "query2label")
UNPOOLED = ("ml-decoder", "query2label")

Statistics = tuple[Tensor, Tensor]
Channels = tuple[float, float, float]


class Classifier(nn.Module):
    """A backbone and the head that turns its output into logits (B, K)."""

    def __init__(self, backbone: nn.Module, head: nn.Module) -> None:
        super().__init__()
        self.backbone = backbone
        self.head = head
        self.channels_last = _channels_last(backbone)

    def forward(self, x: Tensor) -> Tensor:
        """Return logits, not probabilities."""
        features: Tensor = self.backbone(x)
        if self.channels_last and features.ndim == 4:
            features = features.movedim(3, 1)  # (B, D, H, W)
        logits: Tensor = self.head(features)
        return logits


class Standardise(nn.Module):
    """Subtract a mean and divide by a standard deviation per feature; at first 0 and 1.

    Both are saved with the model, so a trained one takes raw features. A constant feature, whose
    deviation is 0, is only shifted. Maps (B, D, H, W) become their means where they are `pooled`.

    >>> Standardise(2, (torch.tensor([1.0, 5.0]), torch.tensor([2.0, 0.0])))(torch.ones(1, 2))
    tensor([[ 0., -4.]])
    """

    mean: Tensor
    std: Tensor

    def __init__(
        self, features: int, statistics: Statistics | None = None, *, pooled: bool = True
    ) -> None:
        super().__init__()
        self.pooled = pooled
        mean, std = statistics or (torch.zeros(features), torch.ones(features))
        if mean.shape != (features,) or std.shape != (features,):
            raise InputError(
                f"standardise: give a mean and a standard deviation of {features} values each, "
                f"not of shapes {tuple(mean.shape)} and {tuple(std.shape)}"
            )
        self.register_buffer("mean", mean.float())
        self.register_buffer("std", torch.where(std > 0, std, 1).float())

    def forward(self, x: Tensor) -> Tensor:
        """Return features of about zero mean and unit deviation."""
        if x.ndim == 4 and self.pooled:
            x = x.mean((2, 3))
        if x.ndim == 4:
            return (x - self.mean.view(-1, 1, 1)) / self.std.view(-1, 1, 1)
        return (x - self.mean) / self.std


def build_model(
    *,
    classes: int,
    features: int | None = None,
    backbone: str = LITE0,
    head: str | None = None,
    pretrained: bool = True,
    image_size: int | None = None,
    hidden: int = 2048,
    dropout: float = 0.5,
    standardise: Statistics | None = None,
) -> Classifier:
    """Build a model for rows of so many `features`, or for images when there are none.

    The head is "mlp" for features and "linear" for images unless named. On images "linear" and
    "mlp" take timm's own pooling (the mean over a convolutional map; the class token, the mean or
    an attention pool for a transformer, whichever it was trained with), "ml-decoder" and
    "query2label" take the map or all tokens. Maps of features are pooled by their mean, or taken as
    they are, likewise. `hidden` belongs to "mlp" and is the width of "query2label", `dropout`
    belongs to "mlp"; `standardise`, the mean and standard deviation of each column, to features.
    Transformers are built for `image_size`; other backbones are only tried at that size.

    >>> build_model(classes=3, features=8, hidden=16)(torch.zeros(2, 8)).shape
    torch.Size([2, 3])
    """
    head = head or ("linear" if features is None else "mlp")
    if head not in HEADS:
        raise InputError(f"unknown head {head!r}: {suggest(head, HEADS)}")
    if classes < 1 or (features is not None and features < 1):
        raise InputError(f"classes={classes}, features={features}: give at least one of each")
    if features is None:
        body, width = _backbone(backbone, head not in UNPOOLED, pretrained, image_size)
    else:
        body = Standardise(features, standardise, pooled=head not in UNPOOLED)
        width = features
    return Classifier(body, _head(head, width, classes, hidden, dropout))


def build_embedder(
    backbone: str = LITE0,
    *,
    pooled: bool = True,
    pretrained: bool = True,
    image_size: int | None = None,
) -> nn.Module:
    """Build a backbone that gives features (B, D), or with `pooled` off a map (B, D, H, W)."""
    body, _ = _backbone(backbone, pooled, pretrained, image_size)
    return Classifier(body, nn.Identity())


def input_size(backbone: str) -> int:
    """Return the side of the images, in pixels, that a backbone was trained with.

    >>> input_size("tf_efficientnet_lite0")
    224
    """
    return int(_config(backbone).input_size[-1])


def start_at_frequencies(model: Classifier, share: Tensor) -> None:
    """Let the head say at first, of every row, how often each class is there (K shares).

    The first steps of a random head would move all of a pretrained backbone's weights by a large
    and useless loss; from here on they only learn what tells rows apart.

    >>> model = build_model(classes=2, features=3)
    >>> start_at_frequencies(model, torch.tensor([0.5, 0.1]))
    >>> model(torch.randn(1, 3)).sigmoid()
    tensor([[0.5000, 0.1000]], grad_fn=<SigmoidBackward0>)
    """
    last: Any = model.head[-1] if isinstance(model.head, nn.Sequential) else model.head
    with torch.no_grad():
        last.weight.zero_()
        last.bias.copy_(share.logit(eps=1e-6))


def normalisation(backbone: str) -> tuple[Channels, Channels]:
    """Return the mean and standard deviation of R, G and B, in units of 0 to 1, to feed it with.

    >>> normalisation("tf_efficientnet_lite0")[0][0] * 255
    127.0
    """
    if backbone == LITE0:
        return (127 / 255,) * 3, (128 / 255,) * 3
    config = _config(backbone)
    return cast(Channels, config.mean), cast(Channels, config.std)


def _head(head: str, width: int, classes: int, hidden: int, dropout: float) -> nn.Module:
    if head == "ml-decoder":
        return MLDecoder(width, classes)
    if head == "query2label":
        return Query2Label(width, classes, width=hidden, feedforward=4 * hidden)
    if head == "linear":
        return nn.Linear(width, classes)
    return nn.Sequential(
        nn.Linear(width, hidden), nn.ReLU(), nn.Dropout(dropout), nn.Linear(hidden, classes)
    )


def _backbone(
    name: str, pooled: bool, pretrained: bool, image_size: int | None
) -> tuple[nn.Module, int]:
    """Build a backbone and measure the width of what it gives."""
    import timm

    config = _config(name)
    installed = pretrained and name == LITE0
    fetched = pretrained and not installed
    if fetched and not config.has_weights:
        raise InputError(f"timm has no weights for {name}: pass --no-pretrained")
    unreached = InputError(
        f"the weights of {name} could not be fetched (no network?): pass --no-pretrained, "
        f"or use {LITE0}, whose weights are installed"
    )
    if fetched and not fetchable(config.hf_hub_id, config.url):
        raise unreached

    options: dict[str, Any] = {} if pooled else {"global_pool": ""}
    if image_size is not None and config.fixed_input_size:
        options["img_size"] = image_size
    height, width = (image_size, image_size) if image_size else config.input_size[-2:]
    try:
        body = timm.create_model(name, pretrained=fetched, num_classes=0, **options)
        channels = _channels(body, pooled, height, width)
    except OSError as error:
        raise unreached from error
    # What timm and torch raise when a head, a window or a patch does not fit.
    except (AssertionError, RuntimeError, ValueError) as error:
        kind = "pooled features" if pooled else "a map or tokens"
        raise InputError(
            f"{name} does not give {kind} at {height} × {width} pixels: choose another "
            "--backbone, --image-size or --head"
        ) from error
    if installed:
        body.load_state_dict(lite0_state())  # strict: every name and every shape must agree
    return body, channels


def _channels(body: nn.Module, pooled: bool, height: int, width: int) -> int:
    """Try a blank image; timm's `num_features` is not the width of every family's output."""
    body.eval()  # normalisation layers must not learn from the blank
    with torch.no_grad():
        features: object = body(torch.zeros(1, 3, height, width))
    body.train()
    if not isinstance(features, Tensor) or (features.ndim == 2) != pooled:
        raise ValueError("the output is of another kind")
    return features.shape[1 if features.ndim == 4 and not _channels_last(body) else -1]


def _channels_last(body: nn.Module) -> bool:
    """Say whether maps come as (B, H, W, D), as from Swin and its relatives in timm."""
    return getattr(body, "output_fmt", None) == "NHWC"


def _config(backbone: str) -> PretrainedCfg:
    """Look up what timm knows of a backbone, plain or with a tag of its weights."""
    import timm

    names = [*timm.list_models(), *timm.list_models(pretrained=True)]
    config = timm.get_pretrained_cfg(backbone) if backbone in names else None
    if config is None:
        near = get_close_matches(backbone, names)
        hint = f"did you mean {', '.join(near)}?" if near else "timm.list_models() lists them all"
        raise InputError(f"unknown backbone {backbone!r}: {hint}")
    return config


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Switch to evaluation without gradients, and back to each module's own mode after."""
    modes = {module: module.training for module in model.modules()}
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module, mode in modes.items():
            module.training = mode
