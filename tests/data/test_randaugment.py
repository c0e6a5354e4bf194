"""RandAugment is torchvision's, image for image and draw for draw."""

import numpy as np
import pytest
import torch
from PIL import Image
from torchvision.transforms import v2

from balancemix.data.images import augment
from balancemix.data.randaugment import draw, operations


def photo(width: int, height: int, seed: int = 0) -> Image.Image:
    coarse = np.random.default_rng(seed).integers(0, 256, (3, 4, 3), dtype=np.uint8)
    return Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)


@pytest.mark.parametrize("size", [(32, 32), (97, 60), (1, 1)])
def test_views_and_draws_are_torchvision_s(size):
    reference = v2.RandAugment(2, 9)
    for seed in range(300):
        image = photo(*size, seed)
        torch.manual_seed(seed)
        want, after = reference(image), torch.get_rng_state()
        (view,) = augment([image], draw, [seed])
        assert view.tobytes() == want.tobytes()
        generator = torch.Generator().manual_seed(seed)
        draw(size, generator)
        assert torch.equal(generator.get_state(), after)


def test_there_are_as_many_operations_as_torchvision_has():
    assert len(operations(8, 8)) == len(v2.RandAugment._AUGMENTATION_SPACE)
