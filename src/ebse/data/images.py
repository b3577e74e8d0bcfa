"""Labelled images, split as the paper does: many for learning without labels, the others for episodes."""

from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn import datasets

from ebse.arguments import option
from ebse.data.fetching import FASHION_MNIST, FILES, MNIST, Source, files_of, found_in
from ebse.data.idx import read_idx
from ebse.preprocessing import sample_binary, threshold

N_UNLABELLED, N_DIGITS_UNLABELLED = 50_000, 1_000
"""Images that are learned from without labels: of MNIST as in the paper, and of the small digits."""

SOURCES: dict[str, Source] = {source.name: source for source in (MNIST, FASHION_MNIST)}
NAMES = ("digits", *SOURCES)

Binarisation = Literal["grey", "threshold", "sampled"]
BINARISATIONS = ("grey", "threshold", "sampled")


class Images(NamedTuple):
    """Images as rows of grey values X (N, D), with labels y (N,)."""

    name: str
    X: npt.NDArray[Any]
    """Unsigned bytes, or float32 in [0, 1]."""
    y: npt.NDArray[np.int64]
    shape: tuple[int, int]
    """Height and width."""
    n_unlabelled: int
    """The first so many are learned from without labels; episodes are made of the others."""

    @property
    def unlabelled(self) -> npt.NDArray[Any]:
        """Rows that are learned from without labels."""
        return self.X[: self.n_unlabelled]

    @property
    def episodes(self) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
        """Rows and labels that episodes are made of."""
        return self.X[self.n_unlabelled :], self.y[self.n_unlabelled :]


def load_digits() -> Images:
    """scikit-learn's 1,797 digits of 8 × 8 pixels, which come with it: 1,000 unlabelled, 797 for episodes.

    >>> digits = load_digits()
    >>> digits.X.shape, digits.unlabelled.shape, float(digits.X.max())
    ((1797, 64), (1000, 64), 1.0)
    """
    X, y = datasets.load_digits(return_X_y=True)
    grey = (X / 16).astype(np.float32)
    return Images("digits", grey, y.astype(np.int64), (8, 8), N_DIGITS_UNLABELLED)


def load_mnist(folder: str | Path | None = None, *, download: bool = True) -> Images:
    """MNIST's 70,000 digits of 28 × 28 pixels: 50,000 unlabelled, 20,000 for episodes.

    From the four idx files (also .gz) in ``folder``, or else from the cache, where they are downloaded to and
    checked if they are not there.
    """
    return _read("mnist", files_of(MNIST, folder, download=download))


def load_fashion_mnist(folder: str | Path | None = None, *, download: bool = True) -> Images:
    """Fashion-MNIST, pieces of clothing in the form of MNIST, from the same places."""
    return _read("fashion-mnist", files_of(FASHION_MNIST, folder, download=download))


def load_images(data: str | Path, *, download: bool = True) -> Images:
    """Images by name ("digits", "mnist", "fashion-mnist"), or in a folder with idx files named as MNIST's."""
    name = str(data)
    if name == "digits":
        return load_digits()
    if name in SOURCES:
        return _read(name, files_of(SOURCES[name], None, download=download))
    folder = Path(data)
    if not folder.is_dir():
        raise FileNotFoundError(
            f"data must be one of {', '.join(map(repr, NAMES))} or a folder, got {name!r}, which does "
            "not exist"
        )
    paths = found_in(folder)
    if paths is None:
        raise FileNotFoundError(
            f"data must be a folder that holds {', '.join(FILES)} (each may end in .gz), got {folder}"
        )
    return _read(folder.resolve().name, paths)


def binarise(X: Any, how: Binarisation = "threshold", *, random_state: Any = None) -> npt.NDArray[np.float32]:
    """Grey rows as binary ones: "threshold" at half, "sampled" once as probabilities; "grey" in [0, 1] as is.

    For samples of their own in every epoch call it with "sampled" before each ``partial_fit``.

    >>> binarise(np.array([[0, 100, 255]], dtype=np.uint8))
    array([[0., 0., 1.]], dtype=float32)
    """
    option("how", how, BINARISATIONS)
    if how == "threshold":
        return threshold(X)
    if how == "sampled":
        return sample_binary(X, random_state=random_state)
    X = np.asarray(X)
    grey: npt.NDArray[np.float32] = X.astype(np.float32)
    return grey / np.float32(255) if X.dtype == np.uint8 else grey


def _read(name: str, paths: list[Path]) -> Images:
    images, labels, more_images, more_labels = (read_idx(path) for path in paths)
    for x, y, path in ((images, labels, paths[0]), (more_images, more_labels, paths[2])):
        if x.ndim != 3 or y.ndim != 1 or not x.size or len(x) != len(y) or x.shape[1:] != images.shape[1:]:
            raise ValueError(
                f"{path} must hold images (n, height, width) with a label for each, got shapes {x.shape} and "
                f"{y.shape}; are these files of one data set?"
            )
    X, y = np.concatenate([images, more_images]), np.concatenate([labels, more_labels])
    n_unlabelled = N_UNLABELLED * len(X) // 70_000
    height, width = images.shape[1:]
    return Images(name, X.reshape(len(X), -1), y.astype(np.int64), (height, width), n_unlabelled)
