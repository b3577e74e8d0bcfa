"""Whatever a file holds, reading it gives finite rows or an error in words."""

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cli.bad_files import BITS, GRAY, idx, npy, npz
from ebse.io import read_rows
from ebse.io.cells import escaped, is_number, unescaped
from ebse.io.tables import _Table

Test = Callable[..., None]
LINES = ["a,b,c", "0,1,1", "1,0,0.5", '"1",0,x', "0,,nan", "\ufeff"]


def often(test: Test) -> Test:
    """A hundred examples, the same ones every time."""
    return settings(
        max_examples=100,
        deadline=None,
        derandomize=True,
        suppress_health_check=[HealthCheck.too_slow],
    )(test)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One for all examples: each writes the files that it reads."""
    return tmp_path_factory.mktemp("fuzz")


def assert_read_or_refused(path: Path, content: bytes, **options: Any) -> None:
    """Rows of the shape claimed, or an error that a command line can show."""
    path.write_bytes(content)
    try:
        rows = read_rows(path, **options)
    except (ValueError, OSError) as error:
        said = str(error)
        assert path.name in said or "--" in said
        return
    n, d = rows.X.shape
    assert n >= 2
    assert d == len(rows.names) >= 1
    assert rows.X.dtype.kind in "uf"
    allowed = ~np.isinf(rows.X) if options.get("missing") else np.isfinite(rows.X)
    assert allowed.all()
    assert rows.shape is None or rows.shape[0] * rows.shape[1] == d
    assert rows.labels is None or rows.labels.shape == (n,)


@st.composite
def damaged(draw: st.DrawFn, whole: bytes) -> bytes:
    """The same file with a few bytes changed, and perhaps cut."""
    content = bytearray(whole)
    for at, value in draw(
        st.lists(st.tuples(st.integers(0, len(whole) - 1), st.integers(0, 255)), max_size=4)
    ):
        content[at] = value
    return bytes(content[: draw(st.one_of(st.just(len(whole)), st.integers(0, len(whole))))])


WORDS = st.text(st.sampled_from('ab01.,;\t\n\r" eE+-_x\0?é'), max_size=80)


@often
@given(st.one_of(st.text(max_size=80), WORDS), st.booleans(), st.sampled_from([None, "a", "0", ""]))
def test_any_text(folder: Path, text: str, missing: bool, label: str | None) -> None:
    for name in ("x.csv", "x.tsv"):
        assert_read_or_refused(
            folder / name, text.encode(errors="surrogatepass"), missing=missing, label=label
        )


@often
@given(
    st.lists(st.sampled_from(LINES), max_size=6),
    st.sampled_from([",", ";", "tab", " ", '"', "\n", "\r", "0"]),
)
def test_lines_and_delimiters(folder: Path, lines: list[str], delimiter: str) -> None:
    assert_read_or_refused(folder / "x.csv", "\n".join(lines).encode(), delimiter=delimiter)


CELLS = st.sampled_from(
    [
        "0",
        "1",
        "2.5",
        "-3",
        "1e5",
        "+4",
        " 0 ",
        "0x1",
        "1_0",
        "nan",
        "NA",
        "",
        "?",
        "inf",
        "1e30",
        "true",
        "FALSE",
        "x",
        "None",
        "12345678901234567890",
        "1e400",
        ".5",
        "5.",
        "1e",
        "1 2",
        "1\t",
        "²",
        "1.5E+3",
        "+inf",
        "5%",
    ]
)


@often
@given(
    st.lists(st.lists(CELLS, min_size=1, max_size=4), max_size=6),
    st.sampled_from(["\n", "\r\n", "\n\n", "\r", "\n \n"]),
    st.sampled_from(["a,b,c", "0,1", "a,k"]),
    st.booleans(),
    st.sampled_from([None, "a", "c"]),
)
def test_pandas_and_the_line_reader_agree(
    folder: Path, cells: list[list[str]], end: str, names: str, missing: bool, label: str | None
) -> None:
    """The fast reader gives the rows of the line reader, or leaves the table to it."""
    text = end.join([names, *(",".join(line) for line in cells)])
    found = []
    with pytest.MonkeyPatch.context() as patch:
        path = folder / "x.csv"
        path.write_bytes(text.encode())
        for fast in (True, False):
            if not fast:
                patch.setattr(_Table, "_by_pandas", lambda *_: None)
            try:
                rows = read_rows(path, missing=missing, label=label)
                labels = None if rows.labels is None else rows.labels.tolist()
                found.append((repr(rows.X.tolist()), labels, rows.names, rows.notes))
            except ValueError as error:
                found.append((str(error), None, (), ()))
    assert found[0] == found[1]


def test_plain_tables_are_read_by_pandas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin of the test above: it would also hold if pandas never read anything."""
    monkeypatch.setattr(_Table, "_by_line", lambda *_: pytest.fail("read line by line"))
    (tmp_path / "x.csv").write_text("a,b,k\n1,2.5,x\n0,1e5,\n")
    rows = read_rows(tmp_path / "x.csv", label="k")
    np.testing.assert_array_equal(rows.X, [[1, 2.5], [0, 1e5]])


TEXTS = st.text(st.sampled_from("=+-@\t\r'\"a1., "), max_size=6)


@often
@given(st.one_of(st.text(max_size=6), TEXTS))
def test_escaped_cells_survive(text: str) -> None:
    cell = escaped(text)
    assert unescaped(cell) == text
    assert not cell.startswith(("=", "+", "@", "\t"))
    assert not cell.startswith("-") or is_number(cell)


@often
@given(st.binary(max_size=80))
def test_any_bytes(folder: Path, content: bytes) -> None:
    for name in ("x.csv", "x.npy", "x.npz", "x.idx"):
        assert_read_or_refused(folder / name, content)
    assert_read_or_refused(folder / "x.idx", b"\0\0\x08" + content)
    assert_read_or_refused(folder / "x.npz", b"PK\x05\x06" + content)


@often
@given(damaged(npy(BITS[:9].astype(float))), damaged(npy(GRAY)))
def test_damaged_arrays(folder: Path, rows: bytes, images: bytes) -> None:
    assert_read_or_refused(folder / "x.npy", rows)
    assert_read_or_refused(folder / "x.npy", images, missing=True)


@often
@given(st.text(st.sampled_from("{}()[]',:<>|fiuOUVMm48 0123-+*#\n\\x\"descrfortran_ordershape"), max_size=80))
def test_any_header(folder: Path, text: str) -> None:
    header = text.encode() + b"\n"
    assert_read_or_refused(
        folder / "x.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
    )


@often
@given(
    st.one_of(
        st.sampled_from(["<f8", ">f4", "|b1", "<U3", "<U0", "|V0", "<c8", "<M8[D]", "|O", "(2,)f8"]),
        st.text(max_size=5),
    ),
    st.lists(st.integers(-2, 2**40), max_size=4),
    st.booleans(),
    st.integers(0, 400),
)
def test_claims_of_headers(folder: Path, kind: str, shape: list[int], fortran: bool, held: int) -> None:
    header = repr({"descr": kind, "fortran_order": fortran, "shape": tuple(shape)}).encode() + b"\n"
    content = b"\x93NUMPY\x02\x00" + len(header).to_bytes(4, "little") + header + bytes(held)
    assert_read_or_refused(folder / "x.npy", content)


@often
@given(
    damaged(npz(X=BITS[:5], y=np.arange(5))), st.sampled_from([None, "X", "y"]), st.sampled_from([None, "y"])
)
def test_damaged_archives(folder: Path, content: bytes, array: str | None, label: str | None) -> None:
    assert_read_or_refused(folder / "x.npz", content, array=array, label=label)


@often
@given(damaged(idx(GRAY)), damaged(gzip.compress(idx(GRAY), mtime=0)))
def test_damaged_images(folder: Path, plain: bytes, compressed: bytes) -> None:
    assert_read_or_refused(folder / "x-idx3-ubyte", plain)
    assert_read_or_refused(folder / "x-idx3-ubyte.gz", compressed)
