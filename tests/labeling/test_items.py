"""Rows as a person sees them: images by Pillow alone, files of the data's folder alone."""

import io
import os
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from ebse.io.image_files import MOST
from ebse.labeling.items import LONG, LONGEST, MOST_CELLS, WIDEST, Files, Numbers, Pixels, Table, inside, png
from ebse.labeling.opening import session_on_file
from ebse.workflow.fit_config import FitConfig

RED = (255, 0, 0)


def decoded(image: bytes) -> Any:
    assert image.startswith(b"\x89PNG")
    return np.asarray(Image.open(io.BytesIO(image)))


def picture(path: Path, color: Any = RED, *, mode: str = "RGB", size: tuple[int, int] = (4, 3)) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, size, color).save(path)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of the data, with images in it, beside it, and links between them."""
    data = tmp_path / "data"
    picture(data / "a.png")
    picture(data / "sub" / "b.png")
    picture(tmp_path / "secret.png")
    picture(tmp_path / "data-too" / "c.png")
    (data / "file-link.png").symlink_to(tmp_path / "secret.png")
    (data / "inner-link.png").symlink_to(data / "a.png")
    (data / "folder-link").symlink_to(tmp_path / "data-too")
    (data / "loop.png").symlink_to(data / "loop.png")
    return data


HOSTILE = [
    "../secret.png",
    "sub/../../secret.png",
    "./../secret.png",
    "../data-too/c.png",
    "file-link.png",
    "inner-link.png",
    "folder-link/c.png",
    "folder-link/../a.png",
    "loop.png",
    "missing.png",
    "a.png/x",
    "sub",
    ".",
    "..",
    "",
    "nan",
    "~/secret.png",
    "file:a.png",
    "a.png\0",
    "\0",
    "a\n.png",
    "x" * 5_000 + ".png",
    "x/" * 3_000 + "a.png",
    "..\\secret.png",
]


@pytest.mark.parametrize("name", [*HOSTILE, "ABSOLUTE", "ABSOLUTE INSIDE"])
def test_hostile_names_are_refused(name: str, folder: Path) -> None:
    outside = str(folder.parent / "secret.png")
    name = {"ABSOLUTE": outside, "ABSOLUTE INSIDE": f"{folder}/../secret.png"}.get(name, name)
    with pytest.raises(LookupError):
        png(inside(folder, name))
    table = Table(pd.DataFrame({"file": ["a.png", name]}), None, (), "file", folder)
    with pytest.raises(LookupError):
        table.image(1)
    with pytest.raises(LookupError):
        Files(folder, ("a.png", name)).image(1)


def test_names_of_the_folder_are_read(folder: Path) -> None:
    """The twin, also where the folder itself is behind a link."""
    link = folder.parent / "link"
    link.symlink_to(folder)
    for name in ("a.png", "sub/b.png", "./a.png", "sub/../a.png"):
        for place in (folder, link):
            assert (decoded(png(inside(place, name))) == RED).all()


def test_hard_to_spell_names_are_read(folder: Path) -> None:
    for name in ("ä ö.png", "<img src=x>.png", "'\"&.png", "%2e%2e.png", "a\\b.png"):
        picture(folder / name)
        assert (decoded(Files(folder, (name,)).image(0)) == RED).all()


def claims(width: int, height: int) -> bytes:
    """A PNG that says it has this size, and holds almost nothing."""

    def chunk(kind: bytes, held: bytes) -> bytes:
        return struct.pack(">I", len(held)) + kind + held + struct.pack(">I", zlib.crc32(kind + held))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(b"0" * 99))
        + chunk(b"IEND", b"")
    )


SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'


@pytest.mark.parametrize(
    "held",
    [
        b"",
        b"\x89PNG\r\n\x1a\n",
        b"\xff\xd8\xff",
        b"GIF89a" + bytes(40),
        b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 1 1\n",
        b"<html><script>alert(1)</script></html>",
        SVG,
        claims(100_000, 100_000),
        claims(60_000, 5_000),
        claims(2**31 - 1, 1),
        claims(0, 5),
    ],
)
@pytest.mark.parametrize("suffix", [".png", ".svg", ".jpg"])
def test_damaged_and_other_files_are_refused(held: bytes, suffix: str, tmp_path: Path) -> None:
    (tmp_path / f"x{suffix}").write_bytes(held)
    with pytest.raises(LookupError):
        png(inside(tmp_path, f"x{suffix}"))


def test_cut_files_are_refused(tmp_path: Path) -> None:
    """Cut anywhere: never the bytes of the file, and never another error."""
    path = tmp_path / "x.png"
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (20, 20, 3), dtype=np.uint8)).save(path)
    whole = path.read_bytes()
    assert decoded(png(path)).shape == (20, 20, 3)
    for n in range(0, len(whole) - 100, 53):
        path.write_bytes(whole[:n])
        with pytest.raises(LookupError):
            png(path)


def test_the_limit_of_pixels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = picture(tmp_path / "x.png", size=(40, 30))
    assert decoded(png(path)).shape == (30, 40, 3)
    monkeypatch.setattr("ebse.labeling.items.MOST", 40 * 30 - 1)
    with pytest.raises(LookupError, match="too large"):
        png(path)
    assert MOST < 2**27


def test_what_is_sent_is_never_the_file(tmp_path: Path) -> None:
    """Text in a file, or after it, does not reach the browser."""
    path = tmp_path / "x.png"
    from PIL.PngImagePlugin import PngInfo

    more = PngInfo()
    more.add_text("Comment", "<script>secret</script>")
    Image.new("RGB", (3, 3), RED).save(path, pnginfo=more)
    path.write_bytes(path.read_bytes() + SVG)
    sent = png(path)
    assert b"secret" not in sent
    assert b"script" not in sent
    assert (decoded(sent) == RED).all()


@pytest.mark.parametrize("suffix", [".png", ".jpg", ".bmp", ".ppm", ".tif", ".webp"])
def test_formats(suffix: str, tmp_path: Path) -> None:
    found = decoded(png(picture(tmp_path / f"x{suffix}", size=(16, 8))))
    assert found.shape == (8, 16, 3)
    assert abs(found.astype(int) - RED).max() <= 5


def test_large_images_are_made_smaller(tmp_path: Path) -> None:
    assert decoded(png(picture(tmp_path / "x.png", size=(3 * WIDEST, WIDEST)))).shape == (
        round(WIDEST / 3),
        WIDEST,
        3,
    )


def test_photos_stand_upright(tmp_path: Path) -> None:
    """As the model sees them: cameras store the turn beside the pixels."""
    turned = Image.Exif()
    turned[0x0112] = 6
    Image.new("RGB", (40, 20), RED).save(tmp_path / "x.jpg", exif=turned)
    assert decoded(png(tmp_path / "x.jpg")).shape == (40, 20, 3)


def test_transparent_and_gray_images(tmp_path: Path) -> None:
    clear = decoded(png(picture(tmp_path / "x.png", (1, 2, 3, 4), mode="RGBA")))
    assert clear.shape == (3, 4, 4)
    assert clear[0, 0].tolist() == [1, 2, 3, 4]
    assert (decoded(png(picture(tmp_path / "y.png", 77, mode="L"))) == 77).all()


def test_bytes_are_shown_as_they_are() -> None:
    X = np.random.default_rng(0).integers(0, 256, (5, 12), dtype=np.uint8)
    items = Pixels.of(X, (3, 4))
    for row in range(5):
        np.testing.assert_array_equal(decoded(items.image(row)), X[row].reshape(3, 4))
    color = Pixels.of(X, (2, 2, 3))
    np.testing.assert_array_equal(decoded(color.image(1)), X[1].reshape(2, 2, 3))
    assert items.shown(2) == {"row": 2, "name": "row 3", "image": True, "cells": [], "text": []}


@pytest.mark.parametrize("scale", [1.0, 16.0, 255.0, 1e-6])
def test_numbers_are_shown_from_black_to_white(scale: float) -> None:
    X = np.linspace(0, scale, 24).reshape(2, 12)
    shown = [decoded(Pixels.of(X, (3, 4)).image(row)).ravel() for row in range(2)]
    np.testing.assert_allclose(np.concatenate(shown), np.linspace(0, 255, 24), atol=0.51)


def test_odd_numbers_have_an_image() -> None:
    """Below zero, missing, infinite, all the same: white, black, or between, and no warning."""
    X = np.array([[-1.0, 0.0, 1.0, np.nan], [np.inf, -np.inf, 0, 0]])
    first, second = (decoded(Pixels.of(X, (2, 2)).image(row)).ravel().tolist() for row in range(2))
    assert first == [0, 128, 255, 0]
    assert second == [255, 0, 128, 128]
    for value in (0.0, 5.0, -5.0, np.nan):
        assert decoded(Pixels.of(np.full((3, 4), value), (2, 2)).image(0)).shape == (2, 2)
    flags = np.array([[True, False], [False, False]])
    assert decoded(Pixels.of(flags, (1, 2)).image(0)).tolist() == [[255, 0]]


def test_numbers_are_cells() -> None:
    items = Numbers(np.array([[1.0, np.nan, 1 / 3], [1e300, -0.0, 2.5]]))
    assert items.shown(0)["cells"] == [["0", "1"], ["1", ""], ["2", "0.3333333333"]]
    assert len(Numbers(np.zeros((2, 500))).shown(0)["cells"]) == MOST_CELLS
    with pytest.raises(LookupError):
        items.image(0)


def test_columns_of_a_table(folder: Path) -> None:
    words = "word " * (LONG // 5)
    frame = pd.DataFrame(
        {
            "review": [words, None, words * 10_000],
            "photo": ["a.png", "sub/b.png", None],
            "stars": [1, 2, 3],
            "price": [1.5, np.nan, 3.0],
            "city": ["Rome", pd.NA, "Oslo"],
            "day": pd.to_datetime(["2020-01-02", None, "2020-01-03"]),
        }
    )
    items = Table.of(frame, ("first", "second", "third"), folder)
    assert (items.texts, items.pictures) == (("review",), "photo")
    one = items.shown(0)
    assert one["name"] == "first"
    assert one["image"]
    assert one["text"] == [["review", words]]
    assert dict(one["cells"]) == {"stars": "1", "price": "1.5", "city": "Rome", "day": "2020-01-02 00:00:00"}
    empty = items.shown(1)
    assert empty["text"] == [["review", ""]]
    assert dict(empty["cells"]) == {"stars": "2", "price": "", "city": "", "day": ""}
    assert len(items.shown(2)["text"][0][1]) == LONGEST
    assert (decoded(items.image(1)) == RED).all()
    with pytest.raises(LookupError):
        items.image(2)


def test_a_table_without_a_folder_has_no_images() -> None:
    """A frame in memory has no folder, so that no name of a file is followed."""
    items = Table.of(pd.DataFrame({"photo": ["/etc/x.png"] * 3, "n": [1, 2, 3]}), None, None)
    assert items.pictures is None
    assert items.shown(0)["cells"] == [["photo", "/etc/x.png"], ["n", "1"]]
    with pytest.raises(LookupError):
        items.image(0)


def test_numbers_of_tables_keep_their_digits() -> None:
    """A whole number beside a column of fractions is whole, and a missing one is empty in any precision."""
    frame = pd.DataFrame(
        {
            "id": np.array([123_456_789_012, 7], dtype=np.int64),
            "x": np.array([0.5, np.nan], dtype=np.float32),
            "y": np.array([0.1, np.nan]),
        }
    )
    items = Table.of(frame, None, None)
    assert dict(items.shown(0)["cells"]) == {"id": "123456789012", "x": "0.5", "y": "0.1"}
    assert dict(items.shown(1)["cells"]) == {"id": "7", "x": "", "y": ""}
    narrow = Table.of(frame[["x"]], None, None)
    assert narrow.shown(0)["cells"] == [["x", "0.5"]]
    assert narrow.shown(1)["cells"] == [["x", ""]]


def test_cells_are_words_whatever_they_hold() -> None:
    """The page shows them as text; here nothing is lost."""
    bad = '<img src=x onerror="alert(1)">'
    shown = Table.of(pd.DataFrame({bad: [bad, "&amp;"]}), None, None).shown(0)
    assert shown["cells"] == [[bad, bad]]


def test_classes_of_subfolders(tmp_path: Path) -> None:
    for name in ("cat/1.png", "cat/deep/2.png", "dog/3.PNG", "4.png", ".hidden.png", "dog/notes.txt"):
        if name.lower().endswith("png"):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            Image.new("L", (2, 2)).save(tmp_path / name, "PNG")
        else:
            (tmp_path / name).write_text("x")
    files = Files.of(tmp_path)
    assert files.names == ("4.png", "cat/1.png", "cat/deep/2.png", "dog/3.PNG")
    assert files.folders() == {1: "cat", 2: "cat", 3: "dog"}
    assert files.name(1) == "cat/1.png"


def test_rows_of_a_folder_are_those_of_the_reader(tmp_path: Path) -> None:
    """The model and the page number them alike, also where names sort in an unusual way."""
    data = tmp_path / "data"
    gray = np.random.default_rng(0).permutation(200)[:14]
    names = ["a/10.png", "a/9.png", "a.png", "B.png", "a-b.png", "a/ä.png", "a b/1.png", "Z/1.png"]
    names += [f"{i}.png" for i in range(6)]
    for name, value in zip(names, gray, strict=True):
        picture(data / name, int(value), mode="L", size=(5, 5))
    session = session_on_file(FitConfig(data=str(data)), folder=tmp_path / "run")
    rows = session._read()
    assert len(rows.X) == len(session.items) == 14
    for row in range(14):
        assert (
            decoded(session.items.image(row))[0, 0, 0]
            == rows.X[row][0]
            == gray[names.index(session.items.name(row))]
        )


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes on this system")
def test_pipes_are_no_images(tmp_path: Path) -> None:
    """To open one would wait forever."""
    os.mkfifo(tmp_path / "x.png")
    assert Files.of(tmp_path).names == ()
    with pytest.raises(LookupError):
        png(inside(tmp_path, "x.png"))
