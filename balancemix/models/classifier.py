"""Models: a timm backbone, or standardised features, under one of four heads."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from balancemix.errors import InputError, suggest
from balancemix.models.backbones import build_backbone, is_channels_last
from balancemix.models.layers import perceptron
from balancemix.models.ml_decoder import MLDecoder
from balancemix.models.query2label import Query2Label
from balancemix.options import BACKBONE, DROPOUT, HIDDEN

HEADS = ("linear", "mlp", "ml-decoder", "query2label")
UNPOOLED = ("ml-decoder", "query2label")

FeatureStats = tuple[Tensor, Tensor]  # mean and standard deviation of each feature


class Classifier(nn.Module):
    """A backbone and the head that turns its output into logits (B, K)."""

    def __init__(self, backbone: nn.Module, head: nn.Module) -> None:
        super().__init__()
        self.backbone = backbone
        self.head = head
        self.channels_last = is_channels_last(backbone)

    def forward(self, x: Tensor) -> Tensor:
        """Return logits, not probabilities."""
        features: Tensor = self.backbone(x)
        if self.channels_last and features.ndim == 4:
            features = features.movedim(3, 1)  # (B, D, H, W)
        logits: Tensor = self.head(features)
        return logits


class Standardise(nn.Module):
    """Subtract each feature's mean and divide by its standard deviation; by default 0 and 1.

    Both are saved with the model, so a trained model takes raw features. A constant feature
    (deviation 0) is only shifted. Maps (B, D, H, W) are averaged over their places if `pooled`.

    >>> Standardise(2, (torch.tensor([1.0, 5.0]), torch.tensor([2.0, 0.0])))(torch.ones(1, 2))
    tensor([[ 0., -4.]])
    """

    mean: Tensor
    std: Tensor

    def __init__(
        self, features: int, statistics: FeatureStats | None = None, *, pooled: bool = True
    ) -> None:
        super().__init__()
        self.pooled = pooled
        mean, std = statistics or (torch.zeros(features), torch.ones(features))
        if mean.shape != (features,) or std.shape != (features,):
            raise InputError(
                f"standardise: give {features} means and as many standard deviations, "
                f"not shapes {tuple(mean.shape)} and {tuple(std.shape)}"
            )
        self.register_buffer("mean", mean.float())
        self.register_buffer("std", torch.where(std > 0, std, 1).float())

    def forward(self, x: Tensor) -> Tensor:
        """Return features of about zero mean and unit variance."""
        if x.ndim == 4 and self.pooled:
            x = x.mean((2, 3))
        if x.ndim == 4:
            return (x - self.mean.view(-1, 1, 1)) / self.std.view(-1, 1, 1)
        return (x - self.mean) / self.std


def build_model(
    *,
    classes: int,
    features: int | None = None,
    backbone: str = BACKBONE,
    head: str | None = None,
    pretrained: bool = True,
    image_size: int | None = None,
    hidden: int = HIDDEN,
    dropout: float = DROPOUT,
    standardise: FeatureStats | None = None,
) -> Classifier:
    """Build a model for rows of `features` numbers, or for images if `features` is None.

    The default head is "mlp" for features and "linear" for images. On images "linear" and "mlp" use
    timm's pooling (the mean over a convolutional map; the class token, the mean or an attention
    pool for a transformer, whichever it was trained with); "ml-decoder" and "query2label" read the
    map or all tokens. Stored maps are likewise averaged, or read as they are. `hidden` is the
    width of "mlp" and "query2label", `dropout` applies to "mlp", `standardise` to features.
    Transformers are built for `image_size`; other backbones are only tried at that size.

    >>> build_model(classes=3, features=8, hidden=16)(torch.zeros(2, 8)).shape
    torch.Size([2, 3])
    """
    head = head or ("linear" if features is None else "mlp")
    if head not in HEADS:
        raise InputError(f"unknown head {head!r}: {suggest(head, HEADS)}")
    if classes < 1 or (features is not None and features < 1):
        raise InputError(f"classes={classes}, features={features}: give at least one of each")
    for name, size in (("hidden", hidden), ("image_size", image_size)):
        if size is not None and size < 1:
            raise InputError(f"{name}={size}: must be at least 1")
    if not 0 <= dropout <= 1:
        raise InputError(f"dropout={dropout}: must be between 0 and 1")
    if features is None:
        body, width = build_backbone(backbone, head not in UNPOOLED, pretrained, image_size)
    else:
        body = Standardise(features, standardise, pooled=head not in UNPOOLED)
        width = features
    return Classifier(body, _head(head, width, classes, hidden, dropout))


def build_embedder(
    backbone: str = BACKBONE,
    *,
    pooled: bool = True,
    pretrained: bool = True,
    image_size: int | None = None,
) -> nn.Module:
    """Build a backbone with output (B, D) or, with `pooled` off, a map (B, D, H, W)."""
    body, _ = build_backbone(backbone, pooled, pretrained, image_size)
    return Classifier(body, nn.Identity())


def start_at_frequencies(model: Classifier, share: Tensor) -> None:
    """Make the head predict each class's frequency (K shares) for every row, as a start.

    The large loss of a random head would disturb a pretrained backbone's weights in the first
    steps; this way they only learn what distinguishes rows.

    >>> model = build_model(classes=2, features=3)
    >>> start_at_frequencies(model, torch.tensor([0.5, 0.1]))
    >>> model(torch.randn(1, 3)).sigmoid()
    tensor([[0.5000, 0.1000]], grad_fn=<SigmoidBackward0>)
    """
    last: Any = model.head[-1] if isinstance(model.head, nn.Sequential) else model.head
    with torch.no_grad():
        last.weight.zero_()
        last.bias.copy_(share.logit(eps=1e-6))


def _head(head: str, width: int, classes: int, hidden: int, dropout: float) -> nn.Module:
    if head == "ml-decoder":
        return MLDecoder(width, classes)
    if head == "query2label":
        return Query2Label(width, classes, width=hidden, feedforward=4 * hidden)
    if head == "linear":
        return nn.Linear(width, classes)
    return perceptron(width, hidden, dropout, classes)


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Switch to evaluation without gradients; afterwards restore each module's mode."""
    modes = {module: module.training for module in model.modules()}
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module, mode in modes.items():
            module.training = mode
