"""Images: idx files, downloads, splits, and the MNIST sample."""

import gzip
import hashlib
import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ebse.datasets import (
    _download,
    binarize,
    images,
    load_digits,
    load_fashion_mnist,
    load_images,
    load_mnist,
    load_mnist_sample,
    read_idx,
)
from ebse.datasets._download import FILES, Source

SHARED = Path(__file__).parents[3] / "shared" / "data" / "mnist"
RNG = np.random.default_rng(0)
PICTURES = RNG.integers(0, 256, (14, 3, 2), dtype=np.uint8)
LABELS = np.arange(14, dtype=np.uint8) % 5


def idx(x: Any, kind: int = 8) -> bytes:
    x = np.asarray(x)
    header = bytes([0, 0, kind, x.ndim]) + struct.pack(f">{x.ndim}I", *x.shape)
    return header + bytes(x.tobytes())


def parts() -> dict[str, bytes]:
    """Ten images for training and four for testing, as the four files."""
    arrays = (PICTURES[:10], LABELS[:10], PICTURES[10:], LABELS[10:])
    return {name: idx(x) for name, x in zip(FILES, arrays, strict=True)}


def written(folder: Path, others: dict[str, bytes] | None = None, *, compressed: bool = False) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in (parts() | (others or {})).items():
        if compressed:
            (folder / f"{name}.gz").write_bytes(gzip.compress(content))
        else:
            (folder / name).write_bytes(content)
    return folder


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Source:
    """A data set with mirrors and a cache of its own."""
    checksums = {name: hashlib.sha256(content).hexdigest() for name, content in parts().items()}
    source = Source("small", ("http://one/", "http://two/"), checksums, "copy them from a colleague")
    monkeypatch.setenv(_download.CACHE, str(tmp_path / "cache"))
    return source


@pytest.mark.parametrize("shape", [(3,), (2, 3), (4, 3, 2), (0, 3)])
@pytest.mark.parametrize("compressed", [False, True])
def test_idx_files_are_read(shape: tuple[int, ...], compressed: bool, tmp_path: Path) -> None:
    x = RNG.integers(0, 256, shape, dtype=np.uint8)
    content = idx(x)
    path = tmp_path / "x"
    path.write_bytes(gzip.compress(content) if compressed else content)
    np.testing.assert_array_equal(read_idx(path), x)


WHOLE = idx(np.arange(6, dtype=np.uint8).reshape(2, 3))
BAD = {
    "empty": (b"", "begins with b''"),
    "text": (b"id,label\n1,2\n", "begins with"),
    "another type": (idx(np.zeros(3, np.float32), kind=0x0D), "one of type 0x0d, and only unsigned bytes"),
    "no axes": (b"\0\0\x08\0", "begins with"),
    "many axes": (b"\0\0\x08\x09", "begins with"),
    "a torn header": (WHOLE[:6], "ends within its header"),
    "too short": (WHOLE[:-1], "claims 6 bytes and that holds 5"),
    "too long": (WHOLE + b"x", "claims 6 bytes and that holds more"),
    "a claim of terabytes": (
        b"\0\0\x08\x02" + b"\xff" * 8 + b"1",
        "whose header claims 18446744065119617025",
    ),
    "much made of little": (
        gzip.compress(b"\0\0\x08\x01\0\x10\0\0" + bytes(2**20)),
        "whose header claims 1048576",
    ),
    "torn gzip": (gzip.compress(WHOLE)[:-4], "cannot be decompressed"),
    "broken gzip": (b"\x1f\x8b" + b"1234567890", "cannot be decompressed"),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_idx_files_are_refused(kind: str, tmp_path: Path) -> None:
    content, said = BAD[kind]
    path = tmp_path / "bad"
    path.write_bytes(content)
    with pytest.raises(
        ValueError, match=rf"path must be an idx file, got .*bad, .*{said}.*get the file again"
    ):
        read_idx(path)


def test_a_missing_idx_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"path must be an idx file, got .*nothing, which does not"):
        read_idx(tmp_path / "nothing")


@pytest.mark.parametrize("compressed", [False, True])
def test_a_folder_of_images(compressed: bool, tmp_path: Path) -> None:
    found = load_images(written(tmp_path / "letters", compressed=compressed))
    assert (found.name, found.shape, found.n_unlabeled) == ("letters", (3, 2), 10)
    np.testing.assert_array_equal(found.X, PICTURES.reshape(14, 6))
    X, y = found.episodes
    np.testing.assert_array_equal(X, PICTURES.reshape(14, 6)[10:])
    np.testing.assert_array_equal(y, LABELS[10:])
    np.testing.assert_array_equal(found.unlabeled, PICTURES.reshape(14, 6)[:10])


def test_other_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(
        FileNotFoundError,
        match=r"data must be one of 'digits', 'mnist-sample', 'mnist', .*got 'mnits', which",
    ):
        load_images("mnits")
    with pytest.raises(FileNotFoundError, match=r"data must be a folder that holds train-images-idx3-ubyte"):
        load_images(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"folder must hold train-images.*dataset-fashion-mnist"):
        load_fashion_mnist(tmp_path)
    mixed = written(tmp_path / "mixed", {FILES[1]: idx(LABELS[:9])})
    with pytest.raises(
        ValueError, match=r"must hold images .* with a label for each, got shapes \(10, 3, 2\)"
    ):
        load_images(mixed)


def served(content: dict[str, bytes], requests: list[str], broken: tuple[str, ...] = ()) -> Any:
    """A download function that has these files; mirrors in ``broken`` fail."""

    def retrieve(url: str, *, known_hash: None, fname: str, path: Path) -> str:
        requests.append(url)
        if url.startswith(broken):
            raise OSError("no route")
        target = Path(path) / fname
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(gzip.compress(content[fname.removesuffix(".gz")]))
        return str(target)

    return retrieve


def test_files_come_from_the_cache_after_one_download(small: Source) -> None:
    requests: list[str] = []
    first = _download.files_of(small, None, retrieve=served(parts(), requests, broken=("http://one",)))
    assert [url for url in requests if url.startswith("http://two")] == [f"http://two/{n}.gz" for n in FILES]
    again = _download.files_of(small, None, retrieve=served(parts(), requests))
    assert again == first
    assert len(requests) == 8
    assert _download.cache_folder("small") in first[0].parents


def test_a_failed_download_names_the_alternatives(small: Source) -> None:
    broken = served({}, [], broken=("http",))
    with pytest.raises(
        ConnectionError, match=r"small cannot be downloaded \(http://one/: OSError; .*from a colleague"
    ):
        _download.files_of(small, None, retrieve=broken)
    with pytest.raises(
        FileNotFoundError, match=r"small is not in .*allow the download, give a folder .*colleague"
    ):
        _download.files_of(small, None, download=False)


def test_wrong_checksums_are_refused(small: Source) -> None:
    other = parts() | {FILES[0]: idx(PICTURES[:10] ^ 1)}
    with pytest.raises(ConnectionError, match=r"http://one/: wrong checksum; http://two/"):
        _download.files_of(small, None, retrieve=served(other, []))
    # Nothing of it stays in the cache, so that the next call downloads again.
    assert not list(_download.cache_folder("small").glob("*images*"))
    _download.files_of(small, None, retrieve=served(parts(), []))
    path = _download.cache_folder("small") / f"{FILES[0]}.gz"
    whole = path.read_bytes()
    flipped = whole[:20] + bytes([whole[20] ^ 255]) + whole[21:]
    for content in (b"not gzip", flipped, whole[:-9]):
        path.write_bytes(content)
        with pytest.raises(
            ValueError, match=r"must hold the file train-images.*got a damaged file; delete it"
        ):
            _download.files_of(small, None, retrieve=served(other, []))
    path.write_bytes(gzip.compress(other[FILES[0]]))
    with pytest.raises(ValueError, match=r"must hold the file train-images-idx3-ubyte of small .*delete it"):
        _download.files_of(small, None, retrieve=served(other, []))


def test_names_select_data_sets(small: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in images.SOURCES:
        monkeypatch.setitem(images.SOURCES, name, small)
        _download.files_of(small, None, retrieve=served(parts(), []))
        assert load_images(name, download=False).name == name


def test_digits_are_split() -> None:
    digits = load_digits()
    X, y = digits.episodes
    assert len(X) == len(y) == 797
    assert np.bincount(y).min() >= 70
    assert digits.X.dtype == np.float32


def test_binarizations() -> None:
    gray = np.full((2000, 3), 51, dtype=np.uint8)
    np.testing.assert_array_equal(binarize(gray, "threshold"), 0)
    np.testing.assert_allclose(binarize(gray, "gray"), 0.2, rtol=1e-6)
    sampled = binarize(gray, "sampled", random_state=0)
    assert set(np.unique(sampled)) == {0.0, 1.0}
    np.testing.assert_array_equal(sampled, binarize(gray, "sampled", random_state=0))
    assert (sampled != binarize(gray, "sampled", random_state=1)).any()
    with pytest.raises(ValueError, match=r"how must be one of 'gray', 'threshold', 'sampled', got 'half'"):
        binarize(gray, "half")  # type: ignore[arg-type]


@pytest.mark.skipif(not SHARED.is_dir(), reason="MNIST is not beside the project")
def test_mnist_has_the_known_checksums(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The files of the folder are the ones whose checksums are known: as a cache they are accepted."""
    found = load_mnist(SHARED)
    assert found.X.shape == (70_000, 784)
    assert found.unlabeled.shape == (50_000, 784)
    assert np.bincount(found.episodes[1]).sum() == 20_000
    (tmp_path / "mnist").symlink_to(SHARED)
    monkeypatch.setenv(_download.CACHE, str(tmp_path))
    np.testing.assert_array_equal(load_images("mnist", download=False).y, found.y)


def test_the_mnist_sample_is_balanced() -> None:
    sample = load_mnist_sample()
    assert (sample.X.shape, sample.shape) == ((6_000, 784), (28, 28))
    assert sample.X.dtype == np.uint8
    np.testing.assert_array_equal(sample.y, np.tile(np.arange(10), 600))
    assert len(np.unique(sample.X, axis=0)) == 6_000
    np.testing.assert_array_equal(load_images("mnist-sample").X, sample.X)
    assert images.SAMPLE.stat().st_size <= 1.2e6


@pytest.mark.skipif(not SHARED.is_dir(), reason="MNIST is not beside the project")
def test_the_mnist_sample_is_the_first_600_of_each_digit() -> None:
    X, y = read_idx(SHARED / f"{FILES[0]}.gz")[:50_000], read_idx(SHARED / f"{FILES[1]}.gz")[:50_000]
    sample = load_mnist_sample()
    for digit in range(10):
        first = X[np.flatnonzero(y == digit)[:600]].reshape(600, 784)
        np.testing.assert_array_equal(sample.X[sample.y == digit], first)


def test_the_mnist_sample_names_its_source_and_license() -> None:
    text = images.SAMPLE.with_suffix(".txt").read_text(encoding="utf-8")
    for part in ("LeCun", "Cortes", "Burges", "Attribution-ShareAlike 3.0 Unported", "8. Miscellaneous"):
        assert part in text


def test_downloads_name_the_extra_that_they_need(small: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(ImportError, match=r"downloading small needs the package pooch.*'ebse\[download\]'"):
        _download.files_of(small, None)
    # Files that are in the cache need no library.
    _download.files_of(small, None, retrieve=served(parts(), []))
    assert len(_download.files_of(small, None)) == 4


def test_pooch_downloads(small: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    requests: list[str] = []
    monkeypatch.setattr("pooch.retrieve", served(parts(), requests))
    _download.files_of(small, None)
    assert requests == [f"http://one/{name}.gz" for name in FILES]
