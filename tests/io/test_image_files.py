"""Images: folders of them, and idx files."""

import gzip
import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

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
    rows = read_rows(tmp_path)
    np.testing.assert_array_equal(rows.X, FLAT)
    assert (str(rows.X.dtype), rows.shape, rows.files) == ("uint8", (4, 3), tuple(names))
    assert rows.labels is None
    assert "6 images of 3 × 4 pixels" in rows.notes[0]


def test_photos_and_colors(tmp_path: Path) -> None:
    (tmp_path / "a.jpg").write_bytes(image(np.full((4, 3), 200, np.uint8), "JPEG"))
    (tmp_path / "b.png").write_bytes(image(np.full((4, 3, 3), 200, np.uint8)))
    assert (abs(read_rows(tmp_path).X.astype(int) - 200) <= 2).all()


def test_images_of_several_sizes_are_scaled(tmp_path: Path) -> None:
    """Each to 32 × 32, the mean of the pixels that fall on each; those of a run are scaled in `predict`, too."""
    large = np.kron(np.arange(32 * 32).reshape(32, 32) % 251, np.ones((2, 3))).astype(np.uint8)
    (tmp_path / "a.png").write_bytes(image(np.full((5, 9), 7, np.uint8)))
    (tmp_path / "b.png").write_bytes(image(large))
    rows = read_rows(tmp_path)
    assert (rows.X.shape, rows.shape, str(rows.X.dtype)) == ((2, 1024), (32, 32), "uint8")
    assert (rows.X[0] == 7).all()
    np.testing.assert_array_equal(rows.X[1], np.arange(1024) % 251)
    assert "2 images scaled to 32 × 32 pixels" in rows.notes[0]
    (tmp_path / "a.png").unlink()
    new = read_rows(tmp_path, only=tuple(map(str, range(1024))))
    np.testing.assert_array_equal(new.X[0], rows.X[1])
    # Alone it has a size of its own.
    assert read_rows(tmp_path, only=tuple(map(str, range(64 * 96)))).X.shape == (1, 64 * 96)


def test_large_images_are_scaled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pictures(tmp_path, "1.png", "2.png")
    monkeypatch.setattr("ebse.io.image_files.LARGEST", 11)
    assert read_rows(tmp_path).shape == (32, 32)


def test_subfolders_are_labels(tmp_path: Path) -> None:
    pictures(tmp_path, "cat/1.png", "cat/old/2.png", "dog/1.png", "unknown.png")
    rows = read_rows(tmp_path, label="folder")
    assert rows.labels is not None
    assert rows.labels.tolist() == ["cat", "cat", "dog", None]
    assert rows.files == ("cat/1.png", "cat/old/2.png", "dog/1.png", "unknown.png")
    assert read_rows(tmp_path).labels is None


def test_images_of_the_size_of_the_run(tmp_path: Path) -> None:
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
    """Also one with the name of a data set of ebse, given by a relative path."""
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


@pytest.mark.parametrize(("suffix", "kind"), [("webp", "WEBP"), ("tif", "TIFF"), ("TIFF", "TIFF")])
def test_other_formats(suffix: str, kind: str, tmp_path: Path) -> None:
    for i in range(2):
        file = io.BytesIO()
        options = {"lossless": True} if kind == "WEBP" else {}
        Image.fromarray(GRAY[i]).save(file, kind, **options)
        (tmp_path / f"{i}.{suffix}").write_bytes(file.getvalue())
    # WebP stores colors, from which gray values are computed: rounded, not lossy.
    assert (abs(read_rows(tmp_path).X.astype(int) - FLAT[:2]) <= 1).all()


def test_other_files_of_a_folder_are_counted(tmp_path: Path) -> None:
    pictures(tmp_path, "1.png", "2.png")
    for name in ("a.gif", "b.gif", "notes.txt", "LICENSE", ".hidden"):
        (tmp_path / name).touch()
    with pytest.warns(UserWarning, match=r"not read as images: 2 \.gif, 1 no suffix, 1 \.txt") as caught:
        assert len(read_rows(tmp_path).X) == 2
    assert len(caught) == 1


def test_photos_are_turned_upright(tmp_path: Path) -> None:
    """EXIF orientation 6: the camera was turned, and the picture is shown rotated by 90 degrees clockwise."""
    exif = Image.Exif()
    exif[0x0112] = 6
    for name in ("1.png", "2.png"):
        Image.fromarray(GRAY[0]).save(tmp_path / name, exif=exif)
    rows = read_rows(tmp_path)
    assert rows.shape == (3, 4)
    np.testing.assert_array_equal(rows.X[0].reshape(3, 4), np.rot90(GRAY[0], -1))


@pytest.mark.parametrize("mode", ["LA", "RGBA", "P"])
def test_transparent_parts_are_white(mode: str, tmp_path: Path) -> None:
    """Left half black and opaque, right half black and transparent."""
    alpha = np.tile(np.array([255, 255, 0, 0], np.uint8), (3, 1))
    image = Image.merge("LA", (Image.new("L", (4, 3)), Image.fromarray(alpha)))
    image = image.convert("RGBA").quantize(2) if mode == "P" else image.convert(mode)
    for name in ("1.png", "2.png"):
        image.save(tmp_path / name)
    np.testing.assert_array_equal(read_rows(tmp_path).X[0].reshape(3, 4), 255 - alpha)
