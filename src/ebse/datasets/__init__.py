"""Data sets: curves in the plane with known answers, and labeled images."""

from ebse.datasets.idx import read_idx
from ebse.datasets.images import Images, binarize, load_digits, load_fashion_mnist, load_images, load_mnist
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
    "read_idx",
]
