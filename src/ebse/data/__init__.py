"""Data sets: curves in the plane with known answers, and labelled images."""

from ebse.data.idx import read_idx
from ebse.data.images import Images, binarise, load_digits, load_fashion_mnist, load_images, load_mnist
from ebse.data.manifolds import MANIFOLDS, Manifold, Projection

__all__ = [
    "MANIFOLDS",
    "Images",
    "Manifold",
    "Projection",
    "binarise",
    "load_digits",
    "load_fashion_mnist",
    "load_images",
    "load_mnist",
    "read_idx",
]
