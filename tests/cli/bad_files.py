"""Bad files, as bytes."""

import functools
import io
import pickle
import struct
import zipfile
import zlib
from typing import Any

import numpy as np
from PIL import Image

RNG = np.random.default_rng(0)
BITS = RNG.integers(0, 2, (40, 6))
GRAY = RNG.integers(0, 256, (6, 4, 3), dtype=np.uint8)
NAMES = ("a", "b", "c", "d", "e", "f")


def table(*lines: str, names: str = "a,b,c", more: tuple[str, ...] = ("0,1,1", "1,0,1")) -> bytes:
    """A table of three columns, with lines of its own after good ones."""
    return ("\n".join((names, *more, *lines)) + "\n").encode()


def labeled(labels: list[str], *, names: tuple[str, ...] = NAMES, label: str = "kind") -> bytes:
    """Forty rows of six binary columns, the label in a seventh."""
    lines = [",".join((*names, label))]
    for row, word in zip(BITS, labels, strict=True):
        lines.append(",".join([*(str(x) for x in row[: len(names)]), word]))
    return ("\n".join(lines) + "\n").encode()


def few_labels() -> list[str]:
    """Labels of two classes for half of forty rows."""
    return [("odd", "even", "", "")[i % 4] for i in range(40)]


def npy(array: Any) -> bytes:
    """An npy file."""
    file = io.BytesIO()
    np.save(file, np.asarray(array), allow_pickle=True)
    return file.getvalue()


def npy_claiming(header: str, body: bytes = b"", *, version: int = 1) -> bytes:
    """An npy file with any header."""
    text = header.encode() + b"\n"
    length = struct.pack("<H" if version == 1 else "<I", len(text))
    return b"\x93NUMPY" + bytes((version, 0)) + length + text + body


def described(shape: str, kind: str = "<f8") -> str:
    """The header of an array."""
    return f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}"


def npz(**arrays: Any) -> bytes:
    """An npz file."""
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def zipped(**members: bytes) -> bytes:
    """A zip file of anything."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def encrypted() -> bytes:
    """An npz file whose member is marked as encrypted."""
    content = bytearray(npz(X=BITS))
    for magic, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(magic) + flags] |= 1
    return bytes(content)


def changed(content: bytes, at: int) -> bytes:
    """The same bytes except one."""
    found = bytearray(content)
    found[at] ^= 0xFF
    return bytes(found)


@functools.cache
def bomb() -> bytes:
    """An npz file of few bytes whose array of zeros has more than 64 MiB."""
    n = 9 * 2**10
    file = io.BytesIO()
    with (
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("X.npy", "w") as member,
    ):
        member.write(npy_claiming(described(f"({n}, 1024)")))
        for _ in range(n // 1024):
            member.write(bytes(8 * 2**20))
    return file.getvalue()


def image(array: Any, kind: str = "PNG") -> bytes:
    """An image file."""
    file = io.BytesIO()
    Image.fromarray(np.asarray(array)).save(file, kind)
    return file.getvalue()


def several(array: Any, kind: str) -> bytes:
    """An image file that holds two images."""
    file = io.BytesIO()
    first, second = Image.fromarray(np.asarray(array)), Image.fromarray(255 - np.asarray(array))
    first.save(file, kind, save_all=True, append_images=[second])
    return file.getvalue()


def png_claiming(width: int, height: int) -> bytes:
    """A PNG of a few bytes whose header claims any size."""
    begin = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    parts = ((b"IHDR", begin), (b"IDAT", zlib.compress(bytes(100))), (b"IEND", b""))
    chunks = [
        struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
        for name, content in parts
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def idx(array: Any, kind: int = 8) -> bytes:
    """An idx file."""
    x = np.asarray(array)
    return bytes([0, 0, kind, x.ndim]) + struct.pack(f">{x.ndim}I", *x.shape) + x.tobytes()


PICKLE = pickle.dumps({"X": [[0, 1], [1, 0]]})
