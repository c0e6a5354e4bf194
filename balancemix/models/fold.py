"""Fold BatchNorm and padding into convolutions, for passes without gradient.

It makes a pass of EfficientNet-Lite0 on a CPU a quarter faster (docs/performance.md).
"""

import copy
from collections import Counter
from collections.abc import Mapping
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import pad
from torch.nn.utils.fusion import fuse_conv_bn_weights

# The largest change of a logit, as a share of the largest logit: rounding, and nothing else.
TOLERANCE = 1e-3


def folded(model: nn.Module, x: Tensor) -> nn.Module:
    """Return a copy that gives the same logits in evaluation, faster; or the model itself.

    The model is run on `x`, some rows, to learn which BatchNorm follows which convolution, and to
    check that the copy's logits are the same. If they are not, or if the model cannot be copied,
    the model itself is returned.
    """
    if not any(isinstance(module, nn.BatchNorm2d) for module in model.modules()):
        return model
    try:
        quick = copy.deepcopy(model).eval()
    except (RuntimeError, TypeError):  # a model may hold what cannot be copied
        return model
    with torch.inference_mode(False), torch.no_grad():  # see `_pairs` for the first
        logits = quick(x)
        _fold_norms(quick, x)
        _fold_padding(quick)
        same = (quick(x) - logits).abs().max() <= TOLERANCE * logits.abs().max()
    return quick if bool(same) else model


def _fold_norms(model: nn.Module, x: Tensor) -> None:
    by: dict[nn.Module, nn.Module] = {}
    for convolution, norm in _pairs(model, x):
        if isinstance(norm, nn.BatchNorm2d) and norm.running_mean is not None:
            convolution.weight, convolution.bias = fuse_conv_bn_weights(
                convolution.weight,
                convolution.bias,
                norm.running_mean,
                cast(Tensor, norm.running_var),
                norm.eps,
                norm.weight,
                norm.bias,
            )
            # timm's BatchNorm includes the activation.
            by[norm] = cast(nn.Module, getattr(norm, "act", nn.Identity()))
    _replace(model, by)


def _fold_padding(model: nn.Module) -> None:
    convolutions = [module for module in model.modules() if isinstance(module, nn.Conv2d)]
    fitting = [module for module in convolutions if SamePaddingConv.fits(module)]
    _replace(model, {module: SamePaddingConv(module) for module in fitting})


class SamePaddingConv(nn.Conv2d):
    """A convolution of stride 2 that pads as TensorFlow does, without copying its input.

    TensorFlow pads an even size by one more after than before, which torch cannot do. A zero in
    front of the kernel makes both paddings equal, and adds nothing to any sum.
    """

    def __init__(self, origin: nn.Conv2d) -> None:
        size, channels = origin.kernel_size[0], (origin.in_channels, origin.out_channels)
        with torch.device("meta"):  # no weights are drawn
            super().__init__(*channels, size + 1, 2, size // 2, groups=origin.groups, bias=False)
        weight = pad(origin.weight.detach(), (1, 0, 1, 0))
        self.weight = nn.Parameter(weight.contiguous(memory_format=torch.channels_last))
        self.bias, self.origin = origin.bias, origin

    @staticmethod
    def fits(convolution: nn.Conv2d) -> bool:
        """Return whether a convolution pads that way, with stride 2 and an odd kernel."""
        from timm.layers.conv2d_same import Conv2dSame  # noqa: TID251 - checks a type, builds nothing

        if not isinstance(convolution, Conv2dSame):
            return False
        height, width = convolution.kernel_size
        square = height == width and height > 1 and height % 2 == 1
        return square and convolution.stride == (2, 2) and convolution.dilation == (1, 1)

    @staticmethod
    def even(x: Tensor) -> bool:
        """Return whether both sizes are even; odd ones are padded differently."""
        return x.shape[-1] % 2 == x.shape[-2] % 2 == 0

    def forward(self, x: Tensor) -> Tensor:
        """Convolve; leave odd sizes to the original."""
        return super().forward(x) if self.even(x) else cast(Tensor, self.origin(x))


def _pairs(model: nn.Module, x: Tensor) -> list[tuple[nn.Conv2d, nn.Module]]:
    """Find each convolution and the module that it feeds directly, where both are used once."""
    # A tensor changed in place is the same object, but no longer the convolution's output. torch
    # counts such changes, except in inference mode.
    outputs: list[tuple[nn.Conv2d, Tensor, int]] = []
    pairs: list[tuple[nn.Conv2d, nn.Module]] = []
    used: Counter[nn.Module] = Counter()

    def keep(module: nn.Module, inputs: Any, output: Tensor) -> None:
        if isinstance(module, nn.Conv2d):
            outputs.append((module, output, output._version))

    def look(module: nn.Module, inputs: Any) -> None:
        used[module] += 1
        for convolution, output, version in outputs:
            if inputs and inputs[0] is output and output._version == version:
                pairs.append((convolution, module))

    hooks = [module.register_forward_hook(keep) for module in model.modules()]
    hooks += [module.register_forward_pre_hook(look) for module in model.modules()]
    try:
        model(x)
    finally:
        for hook in hooks:
            hook.remove()
    return [pair for pair in pairs if all(used[module] == 1 for module in pair)]


def _replace(model: nn.Module, by: Mapping[nn.Module, nn.Module]) -> None:
    """Replace modules by others, wherever they are used."""
    for name, module in list(model.named_modules(remove_duplicate=False)):
        if module in by:
            model.set_submodule(name, by[module])
