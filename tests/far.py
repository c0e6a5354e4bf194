"""A device for machines that have none: tensors on it may not meet tensors on the CPU.

`Far` wraps a tensor and says that it is on the device "meta". Within `Distance()` every operation
is done on what is wrapped, once it is sure that a GPU would have done it: no operand on the CPU but
numbers and indices, nothing written from there to the CPU except by a copy.
"""

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

FAR = torch.device("meta")
aten = torch.ops.aten
COPIES = {aten._to_copy.default, aten.copy_.default}
INDEXED = {
    aten.index.Tensor,
    aten.index_put.default,
    aten.index_put_.default,
    aten._index_put_impl_.default,
}


class MixedError(RuntimeError):
    """Two devices met."""


class Far(torch.Tensor):
    """A tensor that is not here."""

    @staticmethod
    def __new__(cls, near):
        shape = {"strides": near.stride(), "storage_offset": near.storage_offset()}
        return torch.Tensor._make_wrapper_subclass(
            cls, near.shape, dtype=near.dtype, device=FAR, **shape
        )

    def __init__(self, near):
        self.near = near

    def numpy(self, **_):
        raise MixedError("NumPy cannot see it")

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):  # type: ignore[override]
        return _do(function, args, kwargs or {})


class Distance(TorchDispatchMode):
    """Makes also those tensors far that are made on the device."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        return _do(function, args, kwargs or {})


def moved(model: nn.Module) -> nn.Module:
    """Put a model's weights far away."""
    for module in model.modules():
        for name, weight in module._parameters.items():
            if weight is not None:
                module._parameters[name] = nn.Parameter(Far(weight.detach().clone()))
        for name, buffer in module._buffers.items():
            if buffer is not None:
                module._buffers[name] = Far(buffer.clone())
    return model


def _do(function, args, kwargs):
    tensors = [x for x in tree_flatten((args, kwargs))[0] if isinstance(x, torch.Tensor)]
    far = [x for x in tensors if isinstance(x, Far)]
    wanted = kwargs.get("device")
    wanted = None if wanted is None else torch.device(wanted)
    if wanted == FAR:
        kwargs = {**kwargs, "device": torch.device("cpu")}
    if far and function not in COPIES:
        _refuse_mixing(function, args, [x for x in tensors if not isinstance(x, Far)])
    near = [
        tree_map(lambda x: x.near if isinstance(x, Far) else x, part) for part in (args, kwargs)
    ]
    result = function(*near[0], **near[1])
    name = function._schema.name
    if function is aten._local_scalar_dense.default:
        return result
    if "out" in kwargs:
        return kwargs["out"]
    if name.endswith("_") and not name.endswith("__") and isinstance(result, torch.Tensor):
        return args[0]
    if wanted == FAR or (far and wanted is None):
        return tree_map(lambda x: Far(x) if type(x) is torch.Tensor else x, result)
    return result


def _refuse_mixing(function, args, near):
    alien = [x for x in near if x.ndim]
    if function in INDEXED:
        if not isinstance(args[0], Far):
            raise MixedError(f"{function}: a far index of a near tensor")
        index = {id(x) for x in tree_flatten(args[1])[0]}
        alien = [x for x in alien if id(x) not in index]
    if alien:
        raise MixedError(f"{function}: near are {[tuple(x.shape) for x in alien]}")
    if function._schema.name.endswith("_") and not isinstance(args[0], Far):
        raise MixedError(f"{function}: writes far values to a near tensor")
