"""Read idx files, the format of MNIST: a header with the number of axes and their lengths, then bytes."""

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
"""The only data type that is read, and the largest number of axes."""
MOST_TIMES = 100
"""Largest compression ratio that is accepted; images have ten to twenty."""
BLOCK = 2**20
"""Bytes read at once."""


def read_idx(path: str | Path) -> Bytes:
    """Read an idx file of unsigned bytes, plain or compressed (.gz).

    Parameters
    ----------
    path : path
        At most as many bytes are read as the header claims, and at most a hundred times the size of the file.

    Returns
    -------
    array of uint8
        In the shape that the header claims.
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
        held_bytes = "more" if len(found) > claimed else f"{len(found)}"
        raise _refused(path, f"one whose header claims {claimed} bytes and that holds {held_bytes}")
    array: Any = np.frombuffer(found, np.uint8).reshape(shape)
    return array  # type: ignore[no-any-return]


def _refused(path: Path, what: str) -> ValueError:
    return ValueError(f"path must be an idx file, got {path}, {what}; get the file again")
