"""Binary rows to train on: MNIST where a folder is given, else smooth blobs of the same density."""

from pathlib import Path

import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d

from ebse.datasets import read_idx

IMAGES = "train-images-idx3-ubyte.gz"
SIDE = 28
DENSITY = 0.13
"""Fraction of MNIST's pixels above one half."""


def binary_rows(n: int, folder: Path | None) -> tuple[Tensor, str]:
    """n rows (n, 784) of zeros and ones, and a description of them."""
    if folder is None:
        return blobs(n), f"synthetic blobs, {DENSITY:.0%} of pixels on (--mnist FOLDER for MNIST)"
    return mnist(folder, "train")[:n], "MNIST, thresholded at 0.5"


def blobs(n: int, seed: int = 0) -> Tensor:
    """Smooth noise around the center of the image, thresholded so that DENSITY of the pixels are on."""
    noise = torch.randn(n, 1, SIDE, SIDE, generator=torch.Generator().manual_seed(seed))
    for _ in range(2):
        noise = avg_pool2d(noise, 5, stride=1, padding=2)
    place = torch.linspace(-1, 1, SIDE)
    height = (noise / noise.std()).flatten(1) - 3 * (place[:, None] ** 2 + place**2).flatten()
    # A quantile of all pixels would have to sort them: that of some rows serves for all.
    return (height > height[:200].quantile(1 - DENSITY)).float()


def mnist(folder: Path, part: str) -> Tensor:
    """All images of MNIST's "train" or "t10k", thresholded at 0.5."""
    pixels = read_idx(folder / f"{part}-images-idx3-ubyte.gz")
    return torch.from_numpy(pixels.reshape(-1, SIDE**2) > 127).float()
