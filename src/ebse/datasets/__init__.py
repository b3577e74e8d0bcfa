"""Data sets: curves in the plane with known geometry, and labeled images (digits, MNIST, Fashion-MNIST)."""

from ebse.datasets.idx import read_idx
from ebse.datasets.images import (
    Images,
    binarize,
    load_digits,
    load_fashion_mnist,
    load_images,
    load_mnist,
    load_mnist_sample,
)
from ebse.datasets.manifolds import MANIFOLDS, Manifold, Projection

__all__ = [
    "MANIFOLDS",
    "Images",
    "Manifold",
    "Projection",
    "binarize",
    "load_digits",
    "load_fashion_mnist",
    "load_images",
    "load_mnist",
    "load_mnist_sample",
    "read_idx",
]
