"""The four idx files of a data set: in a given folder, in the cache, or downloaded with pooch."""

import gzip
import hashlib
import importlib
import os
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

FILES = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)
"""Images and labels of the training part, then of the test part."""

BLOCK, MOST_BLOCKS = 2**20, 100
"""Bytes read at once, and the number of reads: no file of these data sets is larger."""

CACHE = "EBSE_CACHE"
"""Environment variable that names another folder for downloads."""

Retrieve = Callable[..., str]


@final
@dataclass(frozen=True)
class Source:
    """A data set that can be downloaded: its mirrors, and the SHA-256 of its decompressed files."""

    name: str
    mirrors: tuple[str, ...]
    checksums: Mapping[str, str]
    hint: str
    """Another way to get the files."""


MNIST = Source(
    "mnist",
    (
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
        "https://storage.googleapis.com/cvdf-datasets/mnist/",
    ),
    dict(
        zip(
            FILES,
            (
                "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
                "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
                "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
                "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
            ),
            strict=True,
        )
    ),
    "copy the four idx files there from any other place",
)
FASHION_MNIST = Source(
    "fashion-mnist",
    ("http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",),
    dict(
        zip(
            FILES,
            (
                "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
                "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
                "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
                "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
            ),
            strict=True,
        )
    ),
    "install Debian's package dataset-fashion-mnist and give its folder, /usr/share/datasets/fashion-mnist",
)


def cache_folder(name: str) -> Path:
    """Folder of a data set's downloads: below ``EBSE_CACHE``, or in the user's cache folder."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ebse"
    return Path(os.environ.get(CACHE) or base) / name


def found_in(folder: Path) -> list[Path] | None:
    """The four files in a folder, each compressed or not; None if one is missing."""
    paths = [next((p for p in (folder / name, folder / f"{name}.gz") if p.is_file()), None) for name in FILES]
    return None if None in paths else [path for path in paths if path is not None]


def files_of(
    source: Source, folder: str | Path | None, *, download: bool = True, retrieve: Retrieve | None = None
) -> list[Path]:
    """The four files: in ``folder`` if given, else in the cache, which a download fills."""
    if folder is not None:
        found = found_in(Path(folder))
        if found is None:
            raise FileNotFoundError(
                f"folder must hold {', '.join(FILES)} (each may end in .gz), got {folder}; {source.hint}"
            )
        return found
    cache = cache_folder(source.name)
    found = found_in(cache)
    if found is None and download:
        retrieve = retrieve or _pooch(source, cache).retrieve
        found = [_downloaded(source, name, cache, retrieve) for name in FILES]
    if found is None:
        raise FileNotFoundError(
            f"{source.name} is not in {cache}: allow the download, give a folder that holds its four idx "
            f"files, or {source.hint}"
        )
    for name, path in zip(FILES, found, strict=True):
        _require_whole(source, name, path)
    return found


def _pooch(source: Source, cache: Path) -> Any:
    """The library that downloads, which is optional: files in a folder need none."""
    try:
        return importlib.import_module("pooch")
    except ImportError:
        raise ImportError(
            f"downloading {source.name} needs the package pooch, which is not installed; pip install "
            f"'ebse[download]', give a folder that holds its four idx files, or put them into {cache}"
        ) from None


def _downloaded(source: Source, name: str, cache: Path, retrieve: Retrieve) -> Path:
    """One file, from the first mirror that has it with the right checksum."""
    failures = []
    for mirror in source.mirrors:
        try:
            got = Path(retrieve(f"{mirror}{name}.gz", known_hash=None, fname=f"{name}.gz", path=cache))
        # Network libraries raise errors of many kinds; after any of them the next mirror is tried.
        except Exception as error:
            failures.append(f"{mirror}: {type(error).__name__}")
            continue
        try:
            _require_whole(source, name, got)
        except ValueError:
            # For example the login page of a hotel network: it must not stay in the cache.
            got.unlink()
            failures.append(f"{mirror}: wrong checksum")
        else:
            return got
    raise ConnectionError(
        f"{source.name} cannot be downloaded ({'; '.join(failures)}); give a folder that holds its four idx "
        f"files, put them into {cache}, or {source.hint}"
    )


def _require_whole(source: Source, name: str, path: Path) -> None:
    """Refuse a file whose decompressed bytes do not have the known SHA-256."""
    digest = hashlib.sha256()
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            for _ in range(MOST_BLOCKS):
                digest.update(file.read(BLOCK))
        found = digest.hexdigest()
    except (OSError, EOFError, zlib.error):
        found = "a damaged file"
    if found != source.checksums[name]:
        raise ValueError(
            f"{path} must hold the file {name} of {source.name} (SHA-256 {source.checksums[name][:12]}… once "
            f"decompressed), got {found[:14]}; delete it and try again"
        )
