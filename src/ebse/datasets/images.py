"""Labeled images, split as the paper does: many for learning without labels, the others for episodes."""

from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn import datasets

from ebse._validation import option
from ebse.datasets._download import FASHION_MNIST, FILES, MNIST, Source, files_of, found_in
from ebse.datasets.idx import read_idx
from ebse.preprocessing import sample_binary, threshold

N_UNLABELED, N_DIGITS_UNLABELED = 50_000, 1_000
"""Images that are learned from without labels: of MNIST as in the paper, and of the small digits."""

SOURCES: dict[str, Source] = {source.name: source for source in (MNIST, FASHION_MNIST)}
NAMES = ("digits", *SOURCES)

Binarization = Literal["gray", "threshold", "sampled"]
BINARIZATIONS = ("gray", "threshold", "sampled")


class Images(NamedTuple):
    """Images as rows of gray values X (N, D), with labels y (N,)."""

    name: str
    X: npt.NDArray[Any]
    """Unsigned bytes, or float32 in [0, 1]."""
    y: npt.NDArray[np.int64]
    shape: tuple[int, int]
    """Height and width."""
    n_unlabeled: int
    """The first so many are learned from without labels; episodes are made of the others."""

    @property
    def unlabeled(self) -> npt.NDArray[Any]:
        """Rows that are learned from without labels."""
        return self.X[: self.n_unlabeled]

    @property
    def episodes(self) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
        """Rows and labels that episodes are made of."""
        return self.X[self.n_unlabeled :], self.y[self.n_unlabeled :]


def load_digits() -> Images:
    """scikit-learn's 1,797 digits of 8 × 8 pixels, which come with it: 1,000 unlabeled, 797 for episodes.

    >>> digits = load_digits()
    >>> digits.X.shape, digits.unlabeled.shape, float(digits.X.max())
    ((1797, 64), (1000, 64), 1.0)
    """
    X, y = datasets.load_digits(return_X_y=True)
    gray = (X / 16).astype(np.float32)
    return Images("digits", gray, y.astype(np.int64), (8, 8), N_DIGITS_UNLABELED)


def load_mnist(folder: str | Path | None = None, *, download: bool = True) -> Images:
    """MNIST's 70,000 digits of 28 × 28 pixels: 50,000 unlabeled, 20,000 for episodes.

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


def binarize(X: Any, how: Binarization = "threshold", *, random_state: Any = None) -> npt.NDArray[np.float32]:
    """Gray rows as binary ones: "threshold" at half, "sampled" once as probabilities; "gray" in [0, 1] as is.

    For samples of their own in every epoch call it with "sampled" before each ``partial_fit``.

    >>> binarize(np.array([[0, 100, 255]], dtype=np.uint8))
    array([[0., 0., 1.]], dtype=float32)
    """
    option("how", how, BINARIZATIONS)
    if how == "threshold":
        return threshold(X)
    if how == "sampled":
        return sample_binary(X, random_state=random_state)
    X = np.asarray(X)
    gray: npt.NDArray[np.float32] = X.astype(np.float32)
    return gray / np.float32(255) if X.dtype == np.uint8 else gray


def _read(name: str, paths: list[Path]) -> Images:
    images, labels, more_images, more_labels = (read_idx(path) for path in paths)
    for x, y, path in ((images, labels, paths[0]), (more_images, more_labels, paths[2])):
        if x.ndim != 3 or y.ndim != 1 or not x.size or len(x) != len(y) or x.shape[1:] != images.shape[1:]:
            raise ValueError(
                f"{path} must hold images (n, height, width) with a label for each, got shapes {x.shape} and "
                f"{y.shape}; are these files of one data set?"
            )
    X, y = np.concatenate([images, more_images]), np.concatenate([labels, more_labels])
    n_unlabeled = N_UNLABELED * len(X) // 70_000
    height, width = images.shape[1:]
    return Images(name, X.reshape(len(X), -1), y.astype(np.int64), (height, width), n_unlabeled)
