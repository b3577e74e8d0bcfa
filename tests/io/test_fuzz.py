"""Whatever a file holds, reading it gives finite rows or an error in words."""

import csv
import datetime
import gzip
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cli.bad_files import BITS, GRAY, idx, npy, npz
from ebse._missing import MISSING_WORDS
from ebse.io import read_rows
from ebse.io.cells import escaped, is_number, unescaped
from ebse.io.entries import is_code, number
from ebse.io.text import _Text

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
    """Rows of the shape claimed, as numbers and raw, or an error that a command line can show."""
    path.write_bytes(content)
    assert_numbers_or_refused(path, options)
    assert_columns_or_refused(path, options)


def assert_columns_or_refused(path: Path, options: dict[str, Any]) -> None:
    try:
        rows = read_rows(path, raw=True, **options)
    except (ValueError, OSError) as error:
        said = str(error)
        assert path.name in said or "--" in said
        return
    n, d = rows.X.shape
    assert n >= 2
    assert d == len(rows.names) >= 1
    assert rows.labels is None or rows.labels.shape == (n,)
    if not isinstance(rows.X, pd.DataFrame):
        assert not np.isinf(rows.X).any()
        return
    assert tuple(rows.X.columns) == rows.names
    assert rows.X.index.equals(pd.RangeIndex(n))
    for at in range(d):
        column = rows.X.iloc[:, at]
        if column.dtype == np.float64:
            assert not np.isinf(column).any()
        elif column.dtype == object:
            assert all(x is None or isinstance(x, (str, datetime.date)) for x in column)
            assert all(x == x.strip() != "" for x in column if isinstance(x, str))
        else:
            assert column.dtype.kind in "mM" or isinstance(column.dtype, pd.CategoricalDtype)


def assert_numbers_or_refused(path: Path, options: dict[str, Any]) -> None:
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
        "007",
        '"1"',
        '"x y"',
        '"a""b"',
        '"a,b"',
        '"1,234"',
        '"a\nb"',
        '""',
        ' "x"',
        '"x" ',
        "tRue",
        "<na>",
        "nAn",
        "-",
        "'=x",
        "18446744073709551616",
        "-9223372036854775809",
    ]
)


@often
@given(
    st.lists(st.lists(CELLS, min_size=1, max_size=4), max_size=6),
    st.sampled_from(["\n", "\r\n", "\n\n", "\r", "\n \n"]),
    st.sampled_from(["a,b,c", "0,1", "a,k"]),
    st.booleans(),
    st.booleans(),
    st.sampled_from([None, "a", "c"]),
)
def test_pandas_and_the_line_reader_agree(
    folder: Path, cells: list[list[str]], end: str, names: str, missing: bool, raw: bool, label: str | None
) -> None:
    """The fast reader gives the rows of the line reader, or leaves the table to it."""
    text = end.join([names, *(",".join(line) for line in cells)])
    found = []
    with pytest.MonkeyPatch.context() as patch:
        path = folder / "x.csv"
        path.write_bytes(text.encode())
        for fast in (True, False):
            if not fast:
                patch.setattr(_Text, "_by_pandas", lambda *_: None)
            try:
                rows = read_rows(path, missing=missing, label=label, raw=raw)
                labels = None if rows.labels is None else rows.labels.tolist()
                X = rows.X.to_dict("list") if raw else rows.X.tolist()
                found.append((repr(X), labels, rows.names, rows.notes))
            except ValueError as error:
                found.append((str(error), None, (), ()))
    assert found[0] == found[1]


@pytest.mark.parametrize("quote", ["", '"'])
def test_plain_tables_are_read_by_pandas(quote: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin of the test above: it would also hold if pandas never read anything."""
    found = []
    read = _Text._by_pandas

    def by_pandas(text: _Text, n_rows: int | None) -> Any:
        found.append(read(text, n_rows))
        return found[-1]

    monkeypatch.setattr(_Text, "_by_pandas", by_pandas)
    (tmp_path / "x.csv").write_text(f"a,b,k\n1,2.5,{quote}x{quote}\n0,1e5,\n")
    rows = read_rows(tmp_path / "x.csv", label="k")
    assert [table.dtypes.tolist() for table in found] == [[np.int64, np.float64, object]]
    np.testing.assert_array_equal(rows.X, [[1, 2.5], [0, 1e5]])


WORD = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=6).map(str.strip)
ENTRY = st.one_of(
    WORD,
    st.sampled_from(
        ["red", "blue", 'a "b"', "c,d;e", "two\nlines", "01234", "1,5", "=x", "-x", "2020-01-31"]
    ),
)
NUMBER = st.floats(-1e19, 1e19)
FRAMES = st.integers(2, 8).flatmap(
    lambda n: st.lists(
        st.one_of(
            st.lists(st.none() | NUMBER, min_size=n, max_size=n),
            st.lists(st.none() | ENTRY, min_size=n, max_size=n),
        ),
        min_size=2,
        max_size=4,
    )
)


def expected(column: list[Any]) -> list[Any]:
    """The entries that a column is read as; no word here is a number with commas in each row."""
    texts = ["" if x is None else unescaped(str(x).strip()) for x in column]
    known = [x for x in texts if x.lower() not in MISSING_WORDS]
    numeric = all(number(x) is not None for x in known) and not any(map(is_code, known))
    missing = [x.lower() in MISSING_WORDS for x in texts]
    if numeric:
        return [None if none else number(x) for x, none in zip(texts, missing, strict=True)]
    return [None if none else x for x, none in zip(texts, missing, strict=True)]


@often
@given(FRAMES, st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]))
def test_what_is_written_is_read(folder: Path, columns: list[list[Any]], quoting: Any) -> None:
    """Numbers to the last bit, and words with quotes, delimiters and line ends."""
    file = io.StringIO()
    writer = csv.writer(file, quoting=quoting)
    names = [f"column {at}" for at in range(len(columns))]
    writer.writerow(names)
    for line in zip(*columns, strict=True):
        writer.writerow(["" if x is None else x for x in line])
    (folder / "x.csv").write_text(file.getvalue(), encoding="utf-8", newline="")
    found = read_rows(folder / "x.csv", raw=True, delimiter=",").X
    assert list(found.columns) == names
    for name, column in zip(names, columns, strict=True):
        read = [None if pd.isna(x) else x for x in found[name]]
        assert read == expected(column)


def written(frame: pd.DataFrame, suffix: str) -> bytes:
    file = io.BytesIO()
    if suffix == ".parquet":
        frame.to_parquet(file)
    elif suffix == ".feather":
        frame.to_feather(file)
    else:
        frame.to_excel(file, index=False)
    return file.getvalue()


MIXED = pd.DataFrame(
    {
        "a": [0.5, None, 3.0],
        "b": ["x", "NA", "01"],
        "c": [True, False, True],
        "d": pd.to_datetime(["2020-01-31", None, "2021-01-31"]),
        "e": pd.Categorical(["u", "v", "u"]),
    }
)


@pytest.mark.parametrize("suffix", [".parquet", ".feather", ".xlsx"])
def test_damaged_tables(suffix: str, folder: Path) -> None:
    whole = written(MIXED, suffix)

    @often
    @given(damaged(whole), st.sampled_from([None, "b", "e"]))
    def check(content: bytes, label: str | None) -> None:
        assert_read_or_refused(folder / f"x{suffix}", content, label=label)

    check()


@often
@given(damaged(gzip.compress(b"a,b\n1,x\n2,y\n", mtime=0)))
def test_damaged_compressed_tables(folder: Path, content: bytes) -> None:
    assert_read_or_refused(folder / "x.csv.gz", content)


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
    for name in ("x.csv", "x.csv.gz", "x.npy", "x.npz", "x.idx", "x.parquet", "x.feather", "x.xlsx"):
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
