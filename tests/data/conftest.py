"""Six small photographs, and a record of which files are decoded."""

import numpy as np
import pytest
import torch
from PIL import Image

from balancemix.data import ImageRows, View, images

CLASSES = ["cat", "dog"]


@pytest.fixture
def photos(tmp_path) -> ImageRows:
    generator = np.random.default_rng(0)
    (tmp_path / "photos").mkdir()
    paths = [tmp_path / "photos" / f"{i}.jpg" for i in range(6)]
    for path in paths:
        noise = generator.integers(0, 256, (5, 9, 3), dtype=np.uint8)
        Image.fromarray(noise).resize((60, 40)).save(path)
    return ImageRows(paths, torch.zeros(6, 2, dtype=torch.uint8), CLASSES, view=View(size=16))


@pytest.fixture
def decoded(monkeypatch) -> list:
    """Record which files are decoded."""
    files, original = [], images.decode

    def decode(path):
        files.append(path.name)
        return original(path)

    monkeypatch.setattr(images, "decode", decode)
    return files
