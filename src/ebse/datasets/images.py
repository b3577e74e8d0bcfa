"""Labeled images (digits, MNIST, Fashion-MNIST), split into unlabeled rows and rows for few-shot episodes."""

from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn import datasets

from ebse._validation import option
from ebse.datasets._download import FASHION_MNIST, FILES, MNIST, Source, files_of, found_in
from ebse.datasets.idx import read_idx
from ebse.preprocessing import sample_binary, threshold

N_UNLABELED, N_DIGITS_UNLABELED, N_SAMPLE_UNLABELED = 50_000, 1_000, 5_000
"""Rows for training without labels: of MNIST as in the paper, of the 8 × 8 digits, of the MNIST sample."""
SAMPLE = Path(__file__).with_name("mnist_sample.npz")

SOURCES: dict[str, Source] = {source.name: source for source in (MNIST, FASHION_MNIST)}
NAMES = ("digits", "mnist-sample", *SOURCES)

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
    """How many of the first rows are for training without labels; the other rows are for episodes."""

    @property
    def unlabeled(self) -> npt.NDArray[Any]:
        """Rows for training without labels."""
        return self.X[: self.n_unlabeled]

    @property
    def episodes(self) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
        """Rows and labels for few-shot episodes; disjoint from ``unlabeled``."""
        return self.X[self.n_unlabeled :], self.y[self.n_unlabeled :]


def load_digits() -> Images:
    """scikit-learn's 1,797 handwritten digits of 8 × 8 pixels: 1,000 unlabeled rows, 797 for episodes.

    Returns
    -------
    Images
        Gray values in [0, 1].

    Examples
    --------
    >>> digits = load_digits()
    >>> digits.X.shape, digits.unlabeled.shape, float(digits.X.max())
    ((1797, 64), (1000, 64), 1.0)
    """
    X, y = datasets.load_digits(return_X_y=True)
    gray = (X / 16).astype(np.float32)
    return Images("digits", gray, y.astype(np.int64), (8, 8), N_DIGITS_UNLABELED)


def load_mnist_sample() -> Images:
    """6,000 MNIST digits of 28 × 28 pixels in the package: 5,000 unlabeled rows, 1,000 for episodes.

    The first 600 images of each digit among the first 50,000 training images, gray values unchanged, so that
    no test image and no episode row of :func:`load_mnist` is among them. The rows repeat the digits 0 to 9:
    both parts have the same number of each.

    Returns
    -------
    Images
        Gray values as unsigned bytes.

    References
    ----------
    Y. LeCun, C. Cortes, C. J. C. Burges, "The MNIST database of handwritten digits", 1998. License:
    CC BY-SA 3.0; ``mnist_sample.txt`` beside this file has its text and how the sample was made.

    Examples
    --------
    >>> sample = load_mnist_sample()
    >>> sample.X.shape, sample.X.dtype, sample.unlabeled.shape
    ((6000, 784), dtype('uint8'), (5000, 784))
    >>> np.bincount(sample.episodes[1]).tolist()
    [100, 100, 100, 100, 100, 100, 100, 100, 100, 100]
    """
    with np.load(SAMPLE, allow_pickle=False) as arrays:
        X, y = arrays["X"], arrays["y"]
    return Images("mnist-sample", X, y.astype(np.int64), (28, 28), N_SAMPLE_UNLABELED)


def load_mnist(folder: str | Path | None = None, *, download: bool = True) -> Images:
    """MNIST's 70,000 handwritten digits of 28 × 28 pixels: 50,000 unlabeled rows, 20,000 for episodes.

    Parameters
    ----------
    folder : path, default=None
        Folder with the four idx files (also .gz). None: the cache, which a download fills.
    download : bool, default=True
        Whether missing files may be downloaded; needs ``pip install 'ebse[download]'``. Their SHA-256
        checksums are verified.

    Returns
    -------
    Images
        Gray values as unsigned bytes.

    References
    ----------
    Y. LeCun, C. Cortes, C. J. C. Burges, "The MNIST database of handwritten digits", 1998.
    """
    return _read("mnist", files_of(MNIST, folder, download=download))


def load_fashion_mnist(folder: str | Path | None = None, *, download: bool = True) -> Images:
    """Fashion-MNIST: 70,000 images of clothing in the format of MNIST, split in the same way.

    Parameters
    ----------
    folder, download
        As in :func:`load_mnist`.

    References
    ----------
    H. Xiao, K. Rasul, R. Vollgraf, "Fashion-MNIST: a novel image dataset for benchmarking machine learning
    algorithms", 2017.
    """
    return _read("fashion-mnist", files_of(FASHION_MNIST, folder, download=download))


def load_images(data: str | Path, *, download: bool = True) -> Images:
    """Labeled images by name, or from a folder with idx files.

    Parameters
    ----------
    data : str or path
        "digits", "mnist-sample", "mnist", "fashion-mnist", or a folder with four idx files named as MNIST's.
    download : bool, default=True
        As in :func:`load_mnist`.
    """
    name = str(data)
    if name == "digits":
        return load_digits()
    if name == "mnist-sample":
        return load_mnist_sample()
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
    """Gray images as binary rows.

    Parameters
    ----------
    X : array (N, D)
        Unsigned bytes, or numbers in [0, 1].
    how : {"threshold", "sampled", "gray"}, default="threshold"
        "threshold": 1 from half of the range on. "sampled": 1 with the gray value as its probability; for new
        samples in every epoch call it before each ``partial_fit``. "gray": only scaled to [0, 1].
    random_state : int or None
        Seed of "sampled".

    Examples
    --------
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
