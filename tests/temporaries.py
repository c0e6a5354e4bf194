"""The tensors that an operation makes, to hold its memory without measuring a process."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten


class Temporaries(TorchDispatchMode):
    """Within `Temporaries(least) as made`, `made.large` lists the new tensors of `least` bytes."""

    def __init__(self, least: int) -> None:
        super().__init__()
        self.least = least
        self.large = list[str]()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        before = {
            storage(x) for x in tree_flatten((args, kwargs))[0] if isinstance(x, torch.Tensor)
        }
        for x in tree_flatten(result)[0]:
            if isinstance(x, torch.Tensor) and storage(x) not in before and x.nbytes >= self.least:
                self.large.append(f"{function}: {x.dtype} {tuple(x.shape)}")
        return result


def storage(tensor: torch.Tensor) -> int:
    """Tell apart the memory of tensors; a view has that of the tensor it is taken from."""
    return tensor.untyped_storage().data_ptr()
