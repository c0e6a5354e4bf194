"""Fold BatchNorm, padding and activation into convolutions, for passes without gradient.

A pass of EfficientNet-Lite0 takes three tenths less time on a CPU then (docs/performance.md).
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import pad
from torch.nn.utils.fusion import fuse_conv_bn_weights

# What folding may change of a logit, as a share of the largest one: rounding, and nothing else.
TOLERANCE = 1e-3
# How oneDNN calls an activation, and its numbers.
ACTIVATIONS: dict[type[nn.Module], tuple[str, list[float]]] = {
    nn.ReLU: ("relu", []),
    nn.ReLU6: ("hardtanh", [0.0, 6.0]),
    nn.SiLU: ("swish", []),
}


def folded(model: nn.Module, x: Tensor) -> nn.Module:
    """Return a copy that says the same in evaluation, faster; or the model, if it cannot be made.

    What stands behind which convolution is seen by showing `x`, some rows, to the model; that both
    say the same is checked by them.
    """
    if not any(isinstance(module, nn.BatchNorm2d) for module in model.modules()):
        return model
    steps = (_fold_norms, _even_padding, _join_activations)
    for taken in (steps, steps[:2]):
        if (quick := _changed(model, x, taken)) is not None:
            return quick
    return model


def _changed(
    model: nn.Module, x: Tensor, steps: Sequence[Callable[[nn.Module, Tensor], None]]
) -> nn.Module | None:
    """Take the steps on a copy; return it if it still says the same."""
    try:
        quick = copy.deepcopy(model).eval()
    except (RuntimeError, TypeError):  # somebody's model may hold what cannot be copied
        return None
    with torch.inference_mode(False), torch.no_grad():  # see `_pairs` for the first
        said = quick(x)
        for step in steps:
            step(quick, x)
        alike = (quick(x) - said).abs().max() <= TOLERANCE * said.abs().max()
    return quick if bool(alike) else None


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
            # timm's BatchNorm brings the activation with it.
            by[norm] = cast(nn.Module, getattr(norm, "act", nn.Identity()))
    _replace(model, by)


def _even_padding(model: nn.Module, x: Tensor) -> None:
    convolutions = [module for module in model.modules() if isinstance(module, nn.Conv2d)]
    _replace(model, {module: Evened(module) for module in convolutions if Evened.fits(module)})


def _join_activations(model: nn.Module, x: Tensor) -> None:
    if torch.is_autocast_enabled("cpu") or not _joins():
        return
    by: dict[nn.Module, nn.Module] = {}
    for convolution, activation in _pairs(model, x):
        if type(activation) in ACTIVATIONS and Activated.fits(convolution):
            by[convolution], by[activation] = Activated(convolution, activation), nn.Identity()
    _replace(model, by)


class Activated(nn.Module):
    """A convolution that hands on its outcome through the activation, without writing it twice.

    On a CPU an activation costs the time of reading and writing all that it is given. The operator
    is the one that torch.compile uses; it has no public name.
    """

    def __init__(self, convolution: nn.Conv2d, activation: nn.Module) -> None:
        super().__init__()
        self.convolution, self.activation = convolution, activation

    @staticmethod
    def fits(convolution: nn.Conv2d) -> bool:
        """Is it one on a CPU, in float32, that pads with zeros, by numbers?"""
        usual = type(convolution) in (nn.Conv2d, Evened) and convolution.padding_mode == "zeros"
        weight = convolution.weight
        plain = weight.device.type == "cpu" and weight.dtype == torch.float32
        return usual and plain and not isinstance(convolution.padding, str)

    def forward(self, x: Tensor) -> Tensor:
        """Convolve and activate."""
        one = self.convolution
        if isinstance(one, Evened) and not one.even(x):
            return cast(Tensor, self.activation(one(x)))
        name, numbers = ACTIVATIONS[type(self.activation)]
        how = one.padding, one.stride, one.dilation, one.groups, name, numbers, ""
        return _joined()(x, one.weight, one.bias, *how)


def _joined() -> Callable[..., Tensor]:
    return cast(Callable[..., Tensor], torch.ops.mkldnn._convolution_pointwise)


@cache
def _joins() -> bool:
    """Does torch have that operator, for these activations?"""
    x = torch.linspace(-9, 9, 16).view(1, 1, 4, 4)
    convolution = nn.Conv2d(1, 1, 1, device="meta").to_empty(device="cpu")  # draws no weight
    for parameter in convolution.parameters():
        nn.init.ones_(parameter)
    try:
        for activation in (kind() for kind in ACTIVATIONS):
            joined = Activated(convolution, activation)(x)
            torch.testing.assert_close(joined, activation(convolution(x)))
    except (AttributeError, RuntimeError, TypeError, AssertionError):
        return False
    return True


class Evened(nn.Conv2d):
    """A convolution of stride 2 that need not copy its input to pad it as TensorFlow does.

    TensorFlow pads an even size by one more behind than before, for which torch has no setting. A
    zero in front of the kernel asks for one more before as well, and adds nothing to any sum.
    """

    def __init__(self, origin: nn.Conv2d) -> None:
        size, groups = origin.kernel_size[0], origin.groups
        channels = origin.in_channels, origin.out_channels
        how: dict[str, Any] = {"groups": groups, "bias": False, "device": "meta"}  # draws no weight
        super().__init__(*channels, size + 1, 2, size // 2, **how)
        weight = pad(origin.weight.detach(), (1, 0, 1, 0))
        self.weight = nn.Parameter(weight.contiguous(memory_format=torch.channels_last))
        self.bias, self.origin = origin.bias, origin

    @staticmethod
    def fits(convolution: nn.Conv2d) -> bool:
        """Is it one that pads so, of stride 2, with an odd kernel?"""
        from timm.layers.conv2d_same import Conv2dSame  # noqa: TID251 - asks for a kind, builds none

        if not isinstance(convolution, Conv2dSame):
            return False
        height, width = convolution.kernel_size
        square = height == width and height > 1 and height % 2 == 1
        return square and convolution.stride == (2, 2) and convolution.dilation == (1, 1)

    @staticmethod
    def even(x: Tensor) -> bool:
        """Are both sizes even? An odd one is padded otherwise."""
        return x.shape[-1] % 2 == x.shape[-2] % 2 == 0

    def forward(self, x: Tensor) -> Tensor:
        """Convolve; odd sizes are left to the original."""
        return super().forward(x) if self.even(x) else cast(Tensor, self.origin(x))


def _pairs(model: nn.Module, x: Tensor) -> list[tuple[nn.Conv2d, nn.Module]]:
    """Find convolutions and what their outcome goes to straight, where both are used once."""
    # A tensor that was changed in place is no longer what the convolution said, though the same
    # object: torch counts such changes, other than in inference mode.
    made: list[tuple[nn.Conv2d, Tensor, int]] = []
    pairs: list[tuple[nn.Conv2d, nn.Module]] = []
    used: Counter[nn.Module] = Counter()

    def keep(module: nn.Module, inputs: Any, output: Tensor) -> None:
        if isinstance(module, nn.Conv2d):
            made.append((module, output, output._version))

    def look(module: nn.Module, inputs: Any) -> None:
        used[module] += 1
        for convolution, output, version in made:
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
    """Put other modules in the places of some."""
    for name, module in list(model.named_modules(remove_duplicate=False)):
        if module in by:
            model.set_submodule(name, by[module])
