"""NumPy files: rows of good files."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ebse.io import read_arrays, read_rows

RNG = np.random.default_rng(0)
X = RNG.integers(0, 2, (8, 6))


def saved(folder: Path, x: Any) -> Path:
    np.save(folder / "x.npy", x)
    return folder / "x.npy"


@pytest.mark.parametrize("kind", ["f2", "f4", "f8", ">f8", "i1", "i8", ">i4", "u2", "u8", "?"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_types_and_orders(kind: str, order: Any, tmp_path: Path) -> None:
    rows = read_rows(saved(tmp_path, np.array(X, dtype=kind, order=order)))
    np.testing.assert_array_equal(rows.X, X)
    assert rows.X.dtype.kind == "f"
    assert rows.X.dtype.isnative
    assert rows.names == ("0", "1", "2", "3", "4", "5")


def test_bytes_stay_bytes(tmp_path: Path) -> None:
    assert read_rows(saved(tmp_path, X.astype(np.uint8))).X.dtype == np.uint8


def test_images(tmp_path: Path) -> None:
    rows = read_rows(saved(tmp_path, X.reshape(8, 2, 3).astype(np.uint8)))
    np.testing.assert_array_equal(rows.X, X)
    assert rows.shape == (2, 3)


def test_missing_entries(tmp_path: Path) -> None:
    holes = np.where(X, 1.0, np.nan)
    np.testing.assert_array_equal(read_rows(saved(tmp_path, holes), missing=True).X, holes)


def test_a_column_of_labels(tmp_path: Path) -> None:
    y = np.array([0, 1, 2, np.nan] * 2)
    rows = read_rows(saved(tmp_path, np.column_stack([X, y])), label="6", drop=("0",))
    assert rows.names == ("1", "2", "3", "4", "5")
    assert rows.labels is not None
    assert rows.labels.tolist() == ["0", "1", "2", None] * 2


def test_columns_of_the_run_in_any_order(tmp_path: Path) -> None:
    rows = read_rows(saved(tmp_path, X), only=("3", "1"))
    np.testing.assert_array_equal(rows.X, X[:, [3, 1]])
    assert rows.labels is None


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize(
    ("y", "words"),
    [
        (np.arange(8) % 2, ["0", "1"] * 4),
        (np.array([1.0, np.nan] * 4), ["1", None] * 4),
        (np.array(["red", ""] * 4), ["red", None] * 4),
        (np.array(["none", "None", "nan", "<NA>"] * 2), ["none", None, None, None] * 2),
        (np.array([True, False] * 4), ["True", "False"] * 4),
    ],
)
def test_an_array_of_labels(save: Any, y: Any, words: list[str | None], tmp_path: Path) -> None:
    save(tmp_path / "x.npz", images=np.asfortranarray(X), y=y)
    rows = read_rows(tmp_path / "x.npz", label="y")
    np.testing.assert_array_equal(rows.X, X)
    assert rows.labels is not None
    assert rows.labels.tolist() == words


def test_one_of_several_arrays(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", train=X, test=1 - X, y=X[:, 0])
    np.testing.assert_array_equal(read_rows(tmp_path / "x.npz", array="test").X, 1 - X)


def test_arrays_of_a_run_folder(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", a=X, b=X[0])
    assert list(read_arrays(tmp_path / "x.npz", "b")) == ["b"]
    with pytest.raises(ValueError, match="restore it from a copy"):
        read_arrays(tmp_path / "x.npz", "c")
    np.savez(tmp_path / "empty.npz", shape=np.array([], dtype=np.int64), word=np.array("a"))
    held = read_arrays(tmp_path / "empty.npz", "shape", "word")
    assert held["shape"].shape == (0,)
    assert str(held["word"]) == "a"
