"""Tables of words, categories, dates and missing values, read as they are."""

import codecs
import gzip
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ebse.io import read_rows

PEOPLE = """name,age,city,zip,member,since,kind
Ada,36,London,01234,true,1843-01-31,a
Kurt,,Brno,55555,FALSE,1906-04-28,b
Emmy,53,NA,99999,,1915-07-01,
"""


def saved(folder: Path, text: str | bytes, name: str = "x.csv") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def columns(path: Path, **options: Any) -> dict[str, list[Any]]:
    """Columns by name, with None for missing entries."""
    frame = read_rows(path, raw=True, **options).X
    return {name: [None if pd.isna(x) else x for x in frame[name]] for name in frame.columns}


def test_a_table_of_people(tmp_path: Path) -> None:
    rows = read_rows(saved(tmp_path, PEOPLE), raw=True, label="kind", id="name")
    expected = pd.DataFrame(
        {
            "age": [36.0, np.nan, 53.0],
            "city": pd.Series(["London", "Brno", None], dtype=object),
            "zip": pd.Series(["01234", "55555", "99999"], dtype=object),
            "member": [1.0, 0.0, np.nan],
            "since": pd.Series(["1843-01-31", "1906-04-28", "1915-07-01"], dtype=object),
        }
    )
    pd.testing.assert_frame_equal(rows.X, expected)
    assert rows.names == tuple(expected.columns)
    assert rows.labels is not None
    assert rows.labels.tolist() == ["a", "b", None]
    assert rows.files == ("Ada", "Kurt", "Emmy")
    assert rows.notes == ()


def test_numbers_are_not_python_objects(tmp_path: Path) -> None:
    text = "a,b,c\n" + "".join(f"{i},{i / 7},{'' if i % 5 else 1}\n" for i in range(100))
    frame = read_rows(saved(tmp_path, text), raw=True).X
    assert set(frame.dtypes) == {np.dtype(np.float64)}
    assert frame["b"].tolist() == [i / 7 for i in range(100)]


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["1", "2.5", "-3e2"], [1.0, 2.5, -300.0]),
        (["1", "", "2"], [1.0, None, 2.0]),
        (["1", "nAn", "2"], [1.0, None, 2.0]),
        (["1", "<NA>", "#DIV/0!"], [1.0, None, None]),
        (["-", ".", "?"], [None, None, None]),
        (["red", " NA ", " blue "], ["red", None, "blue"]),
        (["true", "tRuE", "False"], [1.0, 1.0, 0.0]),
        (["true", "", "FALSE"], [1.0, None, 0.0]),
        (["true", "2", "maybe"], ["true", "2", "maybe"]),
        (["1", "2", "x"], ["1", "2", "x"]),
        (["1_000", "2", "3"], ["1_000", "2", "3"]),
        (["'=x", "'tis", "'-a"], ["=x", "'tis", "-a"]),
        (["0", "0.5", "00"], ["0", "0.5", "00"]),
        (["0", "0.5", "-0"], [0.0, 0.5, 0.0]),
        (["2020-01-31", "31.1.2020", ""], ["2020-01-31", "31.1.2020", None]),
        (["18446744073709551616", "-1", "2"], [2.0**64, -1.0, 2.0]),
    ],
)
@pytest.mark.parametrize("quote", ["", '"'])
def test_entries(cells: list[str], expected: list[Any], quote: str, tmp_path: Path) -> None:
    """Read by pandas, and checked by the csv reader where there are quotes."""
    lines = "".join(f"{quote}{cell}{quote},0\n" for cell in cells)
    assert columns(saved(tmp_path, f"a,b\n{lines}"))["a"] == expected


def test_codes_are_numbers_where_numbers_are_wanted(tmp_path: Path) -> None:
    path = saved(tmp_path, "zip,b\n01234,1\n55555,2\n")
    np.testing.assert_array_equal(read_rows(path).X, [[1234, 1], [55555, 2]])


@pytest.mark.parametrize(
    ("name", "delimiter", "note"),
    [
        ("x.csv", ",", ()),
        ("x.tsv", "\t", ()),
        ("x.csv", ";", ("columns are separated by ';'",)),
        ("x.csv", "\t", ("columns are separated by tabs",)),
        ("x.csv", "|", ("columns are separated by '|'",)),
        ("x.tsv", ",", ("columns are separated by ','",)),
    ],
)
@pytest.mark.parametrize("raw", [True, False])
def test_delimiters_are_recognized(
    name: str, delimiter: str, note: tuple[str, ...], raw: bool, tmp_path: Path
) -> None:
    path = saved(tmp_path, f'a{delimiter}"b {delimiter} c"\n0{delimiter}1\n1{delimiter}0\n', name)
    rows = read_rows(path, raw=raw)
    assert rows.names == ("a", f"b {delimiter} c")
    np.testing.assert_array_equal(rows.X, [[0, 1], [1, 0]])
    assert rows.notes == note


def test_the_delimiter_of_the_suffix_is_preferred(tmp_path: Path) -> None:
    assert columns(saved(tmp_path, "a;x,b;y\n1;2,3;4\n5;6,7;8\n")) == {
        "a;x": ["1;2", "5;6"],
        "b;y": ["3;4", "7;8"],
    }


def test_a_single_column_stays_one(tmp_path: Path) -> None:
    path = saved(tmp_path, "text\nred; green\nblue\nwhite; black; gray\n")
    assert columns(path) == {"text": ["red; green", "blue", "white; black; gray"]}


def test_a_delimiter_that_is_named_is_used(tmp_path: Path) -> None:
    path = saved(tmp_path, "a;b\nx;y\nz;w\n")
    assert columns(path, delimiter=",") == {"a;b": ["x;y", "z;w"]}


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["1,5", "2", "-0,25"], [1.5, 2.0, -0.25]),
        (["1.234,5", "12.345.678", "7,0"], [1234.5, 12345678.0, 7.0]),
        (["1,5E+03", ",5", ""], [1500.0, 0.5, None]),
        (["1,5", "2.5", "3"], ["1,5", "2.5", "3"]),
        (["1,5", "x", "3"], ["1,5", "x", "3"]),
        (["1,234,567", "1,5", "3"], ["1,234,567", "1,5", "3"]),
        (["1,234,567", "1,234.5", "3"], ["1,234,567", "1,234.5", "3"]),
    ],
)
def test_decimal_commas(cells: list[str], expected: list[Any], tmp_path: Path) -> None:
    path = saved(tmp_path, "a;b\n" + "".join(f"{cell};0,5\n" for cell in cells))
    found = columns(path)
    assert found["a"] == expected
    assert found["b"] == [0.5] * 3


def test_decimal_commas_among_a_few_words(tmp_path: Path) -> None:
    """They mean the same as in a file without the word."""
    cells = [f"1,{267 + i}" for i in range(12)]
    path = saved(tmp_path, "a;b\n" + "".join(f"{cell};x\n" for cell in [*cells, "broken"]))
    *words, last = columns(path)["a"]
    assert last == "broken"
    assert list(map(float, words)) == [float(f"1.{267 + i}") for i in range(12)]
    assert (
        "numbers with decimal commas are read as numbers: 1,267 is 1.267" in read_rows(path, raw=True).notes
    )


def test_decimal_commas_are_noted_once(tmp_path: Path) -> None:
    for raw in (True, False):
        rows = read_rows(saved(tmp_path, "a;b;c\n1,5;0,25;1\n2;3;4\n"), raw=raw)
        np.testing.assert_array_equal(rows.X, [[1.5, 0.25, 1], [2, 3, 4]])
        assert rows.notes == (
            "columns are separated by ';'",
            "numbers with decimal commas are read as numbers: 1,5 is 1.5",
        )


@pytest.mark.parametrize(
    ("cells", "expected", "noted"),
    [
        (["1,234", "1,234.5", "7"], [1234.0, 1234.5, 7.0], "1,234 is 1234"),
        (["-12,345,678", "", "0.5"], [-12345678.0, None, 0.5], "-12,345,678 is -12345678"),
        (["1,234", "1,5", "7"], None, None),
        (["12,34", "1", "7"], None, None),
    ],
)
def test_thousands(cells: list[str], expected: list[Any] | None, noted: str | None, tmp_path: Path) -> None:
    """Words where the table is wanted raw: a classifier reads them as in its fit. Otherwise numbers."""
    path = saved(tmp_path, "a,b\n" + "".join(f'"{cell}",1\n' for cell in cells))
    assert columns(path)["a"] == [cell or None for cell in cells]
    if expected is None:
        with pytest.raises(ValueError, match="must hold numbers"):
            read_rows(path, missing=True)
        return
    rows = read_rows(path, missing=True)
    np.testing.assert_array_equal(rows.X[:, 0], np.array(expected, dtype=float))
    assert rows.notes == (f"commas between thousands are left out: {noted}",)


@pytest.mark.parametrize(
    ("content", "note"),
    [
        ("größe,b\nä,1\né,2\n".encode(), ()),
        (codecs.BOM_UTF8 + "größe,b\nä,1\né,2\n".encode(), ()),
        ("größe,b\nä,1\né,2\n".encode("cp1252"), ("read as Windows-1252 text",)),
        ("größe,b\nä,1\né,2\n".encode("utf-16"), ()),
        (codecs.BOM_UTF16_BE + "größe,b\nä,1\né,2\n".encode("utf-16-be"), ()),
    ],
)
@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz"])
def test_encodings(content: bytes, note: tuple[str, ...], name: str, tmp_path: Path) -> None:
    path = saved(tmp_path, gzip.compress(content) if name.endswith("gz") else content, name)
    assert columns(path) == {"größe": ["ä", "é"], "b": [1.0, 2.0]}
    assert read_rows(path, raw=True).notes == note


def test_empty_columns_at_the_end_are_left_out(tmp_path: Path) -> None:
    path = saved(tmp_path, "a;b;;\n1;x;;\n2;y; ;\n")
    rows = read_rows(path, raw=True)
    assert columns(path) == {"a": [1.0, 2.0], "b": ["x", "y"]}
    assert rows.notes[-1] == "2 empty columns at the end, without names, are left out"
    assert read_rows(path, drop=("b",)).names == ("a",)


def test_without_a_header(tmp_path: Path) -> None:
    path = saved(tmp_path, "x,01\ny,2\n")
    assert columns(path, header=False) == {"0": ["x", "y"], "1": ["01", "2"]}


def test_columns_that_may_be_absent(tmp_path: Path) -> None:
    path = saved(tmp_path, "a,b\n1,x\n")
    rows = read_rows(path, raw=True, lenient=True, label="kind", id="row", drop=("other", "b"))
    assert (rows.names, rows.labels, rows.files, len(rows.X)) == (("a",), None, None, 1)
    with pytest.raises(ValueError, match="have the column that --label names, got 'kind'"):
        read_rows(path, raw=True, label="kind")
    with pytest.raises(ValueError, match="at least 2 rows and one column, got 1 rows and 2 columns"):
        read_rows(path, raw=True)


def test_columns_in_the_order_wanted(tmp_path: Path) -> None:
    rows = read_rows(saved(tmp_path, PEOPLE), raw=True, only=("zip", "age"), label="kind")
    assert rows.names == tuple(rows.X.columns) == ("zip", "age")
    assert rows.labels is not None


def test_arrays_may_have_missing_entries(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", [[0.5, np.nan], [1.0, 2.0]])
    np.testing.assert_array_equal(read_rows(tmp_path / "x.npy", raw=True).X, [[0.5, np.nan], [1, 2]])
    with pytest.raises(ValueError, match="a missing one in row 0, column '1'"):
        read_rows(tmp_path / "x.npy")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,x\n2\n", "2 entries in every line, got 1 in line 3; correct the line"),
        ('a,b\n1,"x\ny"\n2,z,w\n', "2 entries in every line, got 3 in line 4; correct the line"),
        ('a,b\n1,"x\n', "unexpected end of data at line 2"),
        ('a,b\n1,"x"y\n', "at line 2; correct the line"),
        ("a,b\nx,1\ny,-inf\n", "hold finite numbers below 1e+20, got '-inf' in line 3, column 'b'; correct"),
        ('a,b\n"x\n",1\ny,1e20\n', "got '1e20' in line 4, column 'b'"),
        ("a,,b\n1,2,3\n4,5,6\n", "have a name for every column, got none for column 2"),
        ("a,b,\n1,2,3\n4,5,\n", "have a name for every column, got none for column 3"),
        ("a,a\n1,2\n3,4\n", "have a different name for every column, got 'a' twice"),
        ("0.5,1\n1,2\n3,4\n", "name its columns in the first line, got numbers (0.5, 1)"),
        ("a;b\n1;2\n3\n", "have columns separated by ',', got a first line that has only ';'"),
        (b"\x1f\x8b\x08\0\xff\xff\xff", "be text in UTF-8, got the byte 0x8b; save it as UTF-8"),
    ],
)
def test_what_is_refused(text: str | bytes, message: str, tmp_path: Path) -> None:
    path = saved(tmp_path, text)
    with pytest.raises(ValueError, match=f"^{re.escape(str(path))} must .*{re.escape(message)}"):
        read_rows(path, raw=True)


def test_words_among_numbers_are_refused_with_their_line(tmp_path: Path) -> None:
    path = saved(tmp_path, "a;b\n1,5;2,5\n\n2;x\n")
    with pytest.raises(ValueError, match="hold numbers, got 'x' in line 4, column 'b'"):
        read_rows(path)
    path = saved(tmp_path, "a;b\n1,5;2,5\n;3\n")
    with pytest.raises(ValueError, match="a missing one in line 3, column 'a'"):
        read_rows(path)


def test_bombs_are_not_unpacked(tmp_path: Path) -> None:
    path = saved(tmp_path, gzip.compress(b"0" * (2**26 + 1)), "x.csv.gz")
    with pytest.raises(
        ValueError, match="compressed 300 times at most, got more than 67108864 bytes made of"
    ):
        read_rows(path, raw=True)


def test_a_sheet_is_for_excel(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="--sheet must be for an Excel file, got"):
        read_rows(saved(tmp_path, PEOPLE), raw=True, sheet="1")


def test_readers_load_no_large_library() -> None:
    script = (
        "import sys, ebse.io; print({'pandas', 'sklearn', 'torch', 'pyarrow', 'openpyxl'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "set()\n"), done.stderr
