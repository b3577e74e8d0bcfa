"""Images: folders of them, and idx files."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from cli.bad_files import GRAY, idx, image
from ebse.datasets._download import FILES
from ebse.io import read_rows

FLAT = GRAY.reshape(6, 12)


def pictures(folder: Path, *places: str, kind: str = "PNG") -> Path:
    for gray, place in zip(GRAY, places, strict=False):
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / place).write_bytes(image(gray, kind))
    return folder


@pytest.mark.parametrize(("suffix", "kind"), [("png", "PNG"), ("bmp", "BMP"), ("pgm", "PPM"), ("PNG", "PNG")])
def test_a_folder(suffix: str, kind: str, tmp_path: Path) -> None:
    names = [f"{i}.{suffix}" for i in range(6)]
    pictures(tmp_path, *names, kind=kind)
    (tmp_path / "readme.txt").write_text("not an image")
    rows = read_rows(tmp_path)
    np.testing.assert_array_equal(rows.X, FLAT)
    assert (str(rows.X.dtype), rows.shape, rows.files) == ("uint8", (4, 3), tuple(names))
    assert rows.labels is None
    assert "6 images of 3 × 4 pixels" in rows.notes[0]


def test_photos_and_colors(tmp_path: Path) -> None:
    (tmp_path / "a.jpg").write_bytes(image(np.full((4, 3), 200, np.uint8), "JPEG"))
    (tmp_path / "b.png").write_bytes(image(np.full((4, 3, 3), 200, np.uint8)))
    assert (abs(read_rows(tmp_path).X.astype(int) - 200) <= 2).all()


def test_subfolders_are_labels(tmp_path: Path) -> None:
    pictures(tmp_path, "cat/1.png", "cat/old/2.png", "dog/1.png", "unknown.png")
    rows = read_rows(tmp_path, label="folder")
    assert rows.labels is not None
    assert rows.labels.tolist() == ["cat", "cat", "dog", None]
    assert rows.files == ("cat/1.png", "cat/old/2.png", "dog/1.png", "unknown.png")
    assert read_rows(tmp_path).labels is None


def test_images_like_those_learned_from(tmp_path: Path) -> None:
    pictures(tmp_path, "1.png")
    names = tuple(map(str, range(12)))
    assert read_rows(tmp_path, only=names, label="kind").labels is None
    assert read_rows(tmp_path, only=names).X.shape == (1, 12)


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("name", ["x.idx", "x-idx3-ubyte", "x.gz"])
def test_idx(name: str, compressed: bool, tmp_path: Path) -> None:
    content = idx(GRAY)
    (tmp_path / name).write_bytes(gzip.compress(content) if compressed else content)
    rows = read_rows(tmp_path / name)
    np.testing.assert_array_equal(rows.X, FLAT)
    assert rows.shape == (4, 3)


def test_idx_of_rows(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(idx(FLAT))
    rows = read_rows(tmp_path / "x", only=tuple(map(str, range(12))))
    assert (rows.X.shape, rows.shape) == ((6, 12), None)


@pytest.mark.parametrize("name", ["mine", "digits", "mnist"])
def test_a_folder_like_mnist(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one with the name of a data set that ebse knows, given from where it is."""
    monkeypatch.chdir(tmp_path)
    Path(name).mkdir()
    y = np.array([3, 1, 2, 3, 0, 1], dtype=np.uint8)
    for place, array in zip(FILES, (GRAY[:4], y[:4], GRAY[4:], y[4:]), strict=True):
        (Path(name) / f"{place}.gz").write_bytes(gzip.compress(idx(array)))
    rows = read_rows(name, label="labels")
    np.testing.assert_array_equal(rows.X, FLAT)
    assert rows.labels is not None
    assert rows.labels.tolist() == [str(k) for k in y]
    assert read_rows(name).labels is None
