"""RandAugment is torchvision's, image for image; UDA's does what it should."""

import numpy as np
import pytest
import torch
from PIL import Image
from torchvision.transforms import v2

from balancemix.data.augment import OPERATIONS, augment, randaugment, uda


def photo(width: int, height: int, seed: int = 0) -> Image.Image:
    coarse = np.random.default_rng(seed).integers(0, 256, (3, 4, 3), dtype=np.uint8)
    return Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)


@pytest.mark.parametrize("size", [(32, 32), (97, 60), (1, 1)])
def test_views_and_draws_are_torchvision_s(size: tuple[int, int]):
    reference = v2.RandAugment(2, 9)
    for seed in range(300):
        image = photo(*size, seed)
        torch.manual_seed(seed)
        want = reference(image)
        (view,) = augment([image], randaugment, [seed])
        assert view.tobytes() == want.tobytes()


def test_the_global_generator_stays_as_it_was():
    torch.manual_seed(3)
    before = torch.get_rng_state()
    augment([photo(8, 8)] * 3, uda, [0, 1, 2])
    assert torch.equal(torch.get_rng_state(), before)


def test_uda_leaves_a_quarter_alone_and_never_changes_the_original():
    image = Image.effect_noise((24, 24), 60).convert("RGB")
    before = image.tobytes()
    views = augment([image] * 800, uda, range(800))
    assert image.tobytes() == before
    assert {(view.size, view.mode) for view in views} == {((24, 24), "RGB")}
    untouched = sum(view.tobytes() == before for view in views) / 800
    assert 0.2 < untouched < 0.36  # a quarter, and what weak operations do not change


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("level", [1, 9])
def test_every_uda_operation(name, level):
    assert len(OPERATIONS) == 15
    image = Image.effect_noise((48, 32), 20).convert("RGB")
    view = OPERATIONS[name](image, -level / 9, (0.9, 0.1))
    assert (view.size, view.mode) == (image.size, image.mode)
    assert level == 1 or view.tobytes() != image.tobytes() or name == "color"  # grey stays grey


def test_cutout_covers_what_it_should():
    image = Image.new("RGB", (64, 32))
    cut = np.asarray(OPERATIONS["cutout"](image, 1.0, (0.5, 0.5)))[..., 0]
    assert (cut == 128).sum() == round(64 * 20 / 32) * round(32 * 20 / 32)
