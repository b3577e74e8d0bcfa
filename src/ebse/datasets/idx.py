"""The idx format of MNIST: a header with the number of axes and their lengths, then the bytes."""

import gzip
import math
import zlib
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]

UNSIGNED_BYTE, MOST_AXES = 0x08, 4
"""The only type that images and labels come in, and more axes than any image has."""
MOST_TIMES = 100
"""How much a file may be compressed: images are by ten or twenty."""
BLOCK = 2**20
"""Bytes that are read at once."""


def read_idx(path: str | Path) -> Bytes:
    """The array of an idx file of unsigned bytes, plain or compressed (.gz).

    No more is read than the header claims, and no more than a hundred times what the file holds.
    """
    path = Path(path)
    try:
        with _opened(path) as file:
            return _array(path, file)
    except FileNotFoundError:
        raise FileNotFoundError(f"path must be an idx file, got {path}, which does not exist") from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise _refused(path, f"one that cannot be decompressed ({error})") from None


def _opened(path: Path) -> AbstractContextManager[IO[bytes]]:
    with path.open("rb") as file:
        compressed = file.read(2) == b"\x1f\x8b"
    return gzip.open(path) if compressed else path.open("rb")  # type: ignore[return-value]


def _array(path: Path, file: IO[bytes]) -> Bytes:
    magic = file.read(4)
    if len(magic) < 4 or magic[:2] != b"\0\0" or not 1 <= magic[3] <= MOST_AXES:
        raise _refused(path, f"one that begins with {magic!r}")
    if magic[2] != UNSIGNED_BYTE:
        raise _refused(path, f"one of type 0x{magic[2]:02x}, and only unsigned bytes (0x08) are read")
    header = file.read(4 * magic[3])
    if len(header) < 4 * magic[3]:
        raise _refused(path, "one that ends within its header")
    shape = tuple(int(n) for n in np.frombuffer(header, ">u4"))
    claimed, held = math.prod(shape), path.stat().st_size
    if claimed > MOST_TIMES * held:
        raise _refused(path, f"one of {held} bytes whose header claims {claimed}")
    found = bytearray()
    while len(found) <= claimed and (block := file.read(min(BLOCK, claimed + 1 - len(found)))):
        found += block
    if len(found) != claimed:
        said = "more" if len(found) > claimed else f"{len(found)}"
        raise _refused(path, f"one whose header claims {claimed} bytes and that holds {said}")
    array: Any = np.frombuffer(found, np.uint8).reshape(shape)
    return array  # type: ignore[no-any-return]


def _refused(path: Path, what: str) -> ValueError:
    return ValueError(f"path must be an idx file, got {path}, {what}; get the file again")
