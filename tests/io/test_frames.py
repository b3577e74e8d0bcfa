"""Parquet, Feather and Excel tables: the same rows as those of text, and what is refused."""

import datetime
import decimal
import re
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ebse.io import read_rows

MIXED = pd.DataFrame(
    {
        "row": ["first", "second", "third", "fourth"],
        "size": [0.1, 1234.5, np.nan, -3e-7],
        "count": [1, 20, 300, -4],
        "color": ["red", None, "blue, dark", 'a "b"'],
        "zip": ["01234", "55555", "00001", None],
        "on": [True, False, True, True],
        "day": ["2020-01-31", "2021-02-28", None, "2022-03-31"],
        "empty": [None] * 4,
        "kind": ["x", "y", None, "x"],
    }
)


def with_commas(frame: pd.DataFrame, path: Path) -> None:
    frame.to_csv(path, index=False, sep=";", decimal=",")


WRITERS: dict[str, Callable[[pd.DataFrame, Path], None]] = {
    "x.csv": lambda frame, path: frame.to_csv(path, index=False),
    "x.tsv": lambda frame, path: frame.to_csv(path, index=False, sep="\t"),
    "x.csv.gz": lambda frame, path: frame.to_csv(path, index=False, compression="gzip"),
    "x.tsv.gz": lambda frame, path: frame.to_csv(path, index=False, sep="\t", compression="gzip"),
    "semicolons.csv": with_commas,
    "x.parquet": lambda frame, path: frame.to_parquet(path),
    "x.feather": lambda frame, path: frame.to_feather(path),
    "x.xlsx": lambda frame, path: frame.to_excel(path, index=False),
}
TYPED = ["x.parquet", "x.feather", "x.xlsx"]


@pytest.mark.parametrize("name", WRITERS)
def test_all_formats_give_the_same_frame(name: str, tmp_path: Path) -> None:
    WRITERS[name](MIXED, tmp_path / name)
    rows = read_rows(tmp_path / name, raw=True, label="kind", id="row")
    expected = pd.DataFrame(
        {
            "size": [0.1, 1234.5, np.nan, -3e-7],
            "count": [1.0, 20.0, 300.0, -4.0],
            "color": pd.Series(["red", None, "blue, dark", 'a "b"'], dtype=object),
            "zip": pd.Series(["01234", "55555", "00001", None], dtype=object),
            "on": [1.0, 0.0, 1.0, 1.0],
            "day": pd.Series(["2020-01-31", "2021-02-28", None, "2022-03-31"], dtype=object),
            "empty": [np.nan] * 4,
        }
    )
    pd.testing.assert_frame_equal(rows.X, expected, check_exact=True)
    assert rows.labels is not None
    assert rows.labels.tolist() == ["x", "y", None, "x"]
    assert rows.files == ("first", "second", "third", "fourth")


@pytest.mark.parametrize("name", WRITERS)
def test_all_formats_give_the_same_numbers(name: str, tmp_path: Path) -> None:
    WRITERS[name](MIXED, tmp_path / name)
    rows = read_rows(tmp_path / name, label="kind", id="row", drop=("color", "day", "empty"), missing=True)
    assert rows.names == ("size", "count", "zip", "on")
    np.testing.assert_array_equal(
        rows.X,
        [[0.1, 1, 1234, 1], [1234.5, 20, 55555, 0], [np.nan, 300, 1, 1], [-3e-7, -4, np.nan, 1]],
    )


@pytest.mark.parametrize(
    ("name", "place"),
    [("x.csv", "line 4"), ("x.parquet", "row 2"), ("x.feather", "row 2"), ("x.xlsx", "row 4 of the sheet")],
)
def test_what_is_not_a_number_is_named(name: str, place: str, tmp_path: Path) -> None:
    path = tmp_path / name

    def refused(frame: pd.DataFrame, message: str, **options: Any) -> None:
        WRITERS[name](frame, path)
        with pytest.raises(ValueError, match=re.escape(f"{path} must {message}")):
            read_rows(path, **options)

    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": ["1", "2", "three"]})
    refused(frame, f"hold numbers, got 'three' in {place}, column 'b'; leave out")
    frame = pd.DataFrame({"a": [1.0, 2.0, np.nan], "b": [1, 2, 3]})
    refused(frame, f"have a number everywhere, got a missing one in {place}, column 'a'; fill it in")
    frame = pd.DataFrame({"a": [1.0, 2.0, -1e20], "b": [1, 2, 3]})
    for raw in (True, False):
        refused(frame, "hold finite numbers below 1e+20, got '-1", raw=raw)
        with pytest.raises(ValueError, match=f"in {place}, column 'a'"):
            read_rows(path, raw=raw)


@pytest.mark.parametrize("name", TYPED)
def test_dates_stay_dates_and_are_no_numbers(name: str, tmp_path: Path) -> None:
    days = pd.to_datetime(["2020-01-31 00:00", None, "2022-03-31 12:30"])
    WRITERS[name](pd.DataFrame({"a": [1, 2, 3], "day": days}), tmp_path / name)
    found = read_rows(tmp_path / name, raw=True).X["day"]
    assert found.dtype.kind == "M"
    assert found.tolist()[::2] == days.tolist()[::2]
    assert found.isna().tolist() == [False, True, False]
    with pytest.raises(
        ValueError, match=r"the date '2020-01-31T00:00:00' in row .*, column 'day'; convert dates"
    ):
        read_rows(tmp_path / name, missing=True)


@pytest.mark.parametrize("name", TYPED)
def test_columns_that_are_named(name: str, tmp_path: Path) -> None:
    WRITERS[name](MIXED, tmp_path / name)
    with pytest.raises(
        ValueError, match="have the column that --label names, got 'sort'; it has 'row', 'size'"
    ):
        read_rows(tmp_path / name, raw=True, label="sort")
    rows = read_rows(tmp_path / name, raw=True, label="sort", drop=("row", "other"), lenient=True)
    assert (rows.labels, rows.names) == (None, tuple(MIXED.columns[1:]))
    assert read_rows(tmp_path / name, raw=True, only=("zip", "size")).names == ("zip", "size")


@pytest.mark.parametrize("name", TYPED[:2])
def test_types_of_arrow(name: str, tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "truth": pd.array([True, None, False], dtype="boolean"),
            "whole": pd.array([1, None, 3], dtype="Int64"),
            "exact": [decimal.Decimal("1.5"), None, decimal.Decimal("2.25")],
            "level": pd.Categorical([1, 2, 1]),
            "date": [datetime.date(2020, 1, 31), None, datetime.date(2021, 1, 31)],
            "time": [datetime.time(1, 30), datetime.time(2), None],
        }
    )
    WRITERS[name](frame, tmp_path / name)
    found = read_rows(tmp_path / name, raw=True).X
    np.testing.assert_array_equal(
        found[["truth", "whole", "exact"]].to_numpy(), [[1, 1, 1.5], [np.nan] * 3, [0, 3, 2.25]]
    )
    # Parquet has no categories of numbers.
    assert isinstance(found["level"].dtype, pd.CategoricalDtype) == (name == "x.feather")
    assert found["level"].tolist() == [1, 2, 1]
    assert found["date"].tolist() == frame["date"].tolist()
    assert found["time"].tolist() == ["01:30:00", "02:00:00", None]
    numbers = read_rows(tmp_path / name, missing=True, drop=("date", "time"))
    np.testing.assert_array_equal(numbers.X[:, 3], [1, 2, 1])


@pytest.mark.parametrize(
    ("index", "names", "first"),
    [
        (pd.Index(["u", "v"]), ("a",), [1]),
        (pd.Index(["u", "v"], name="key"), ("key", "a"), ["u", 1]),
        (pd.RangeIndex(5, 7), ("a",), [1]),
        (pd.RangeIndex(5, 7, name="key"), ("key", "a"), [5, 1]),
        (pd.MultiIndex.from_tuples([("u", 7), ("v", 8)], names=[None, "key"]), ("key", "a"), [7, 1]),
    ],
)
def test_an_index_is_a_column_if_it_has_a_name(
    index: Any, names: tuple[str, ...], first: list[Any], tmp_path: Path
) -> None:
    pd.DataFrame({"a": [1, 2]}, index=index).to_parquet(tmp_path / "x.parquet")
    rows = read_rows(tmp_path / "x.parquet", raw=True)
    assert rows.names == names
    assert rows.X.iloc[0].tolist() == first
    assert rows.X.index.equals(pd.RangeIndex(2))


@pytest.mark.parametrize(
    ("entries", "kind"),
    [([[1, 2], [3]], "ndarray"), ([{"x": 1}, {"x": 2}], "dict"), ([b"x", b"y"], "bytes")],
)
def test_nested_columns_are_refused_by_name(entries: list[Any], kind: str, tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"a": [1, 2], "odd": entries}), path)
    for raw in (True, False):
        with pytest.raises(
            ValueError, match=f"words, dates or truth values, got entries of type {kind} in column 'odd'"
        ):
            read_rows(path, raw=raw)
    assert read_rows(path, raw=True, drop=("odd",)).names == ("a",)


def test_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table([[1, 2], [3, 4]], names=["a", "a"]), path)
    with pytest.raises(ValueError, match="a different name for every column, got 'a' twice"):
        read_rows(path, raw=True)


def test_a_table_without_columns_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({}), path)
    with pytest.raises(ValueError, match="must have columns, got none"):
        read_rows(path, raw=True)


def test_folders_of_a_path_are_no_columns(tmp_path: Path) -> None:
    folder = tmp_path / "year=2020"
    folder.mkdir()
    MIXED.to_parquet(folder / "x.parquet")
    assert "year" not in read_rows(folder / "x.parquet", raw=True).names


def sheets(path: Path, **tables: list[list[Any]]) -> Path:
    with pd.ExcelWriter(path) as writer:
        for name, lines in tables.items():
            pd.DataFrame(lines).to_excel(writer, sheet_name=name, header=False, index=False)
    return path


def test_sheets(tmp_path: Path) -> None:
    path = sheets(tmp_path / "x.xlsx", one=[["a"], [1], [2]], two=[["b"], ["x"], ["y"]])
    assert read_rows(path, raw=True).names == ("a",)
    assert read_rows(path, raw=True, sheet="two").X["b"].tolist() == ["x", "y"]
    with pytest.raises(
        ValueError, match="the sheet that --sheet names, got 'three'; it has 'one', 'two'; correct"
    ):
        read_rows(path, raw=True, sheet="three")


def test_a_table_within_a_sheet(tmp_path: Path) -> None:
    """Empty rows and columns around it are left out, and errors of formulas are missing entries."""
    lines: list[list[Any]] = [
        [None, None, None, None],
        [None, "a", 2020, "c"],
        [None, 1, "#DIV/0!", True],
        [None, None, None, None],
        [None, 2.5, 7, None],
    ]
    path = sheets(tmp_path / "x.xlsx", one=lines)
    rows = read_rows(path, raw=True)
    assert rows.names == ("a", "2020", "c")
    np.testing.assert_array_equal(rows.X, [[1, np.nan, 1], [2.5, 7, np.nan]])
    with pytest.raises(ValueError, match="a missing one in row 3 of the sheet, column '2020'"):
        read_rows(path)


def test_a_sheet_without_names(tmp_path: Path) -> None:
    path = sheets(tmp_path / "x.xlsx", one=[[1, 0.5], [2, 1.5]])
    np.testing.assert_array_equal(read_rows(path, header=False).X, [[1, 0.5], [2, 1.5]])
    with pytest.raises(ValueError, match=r"name its columns in the first line, got numbers \(1, 0.5\)"):
        read_rows(path)


def test_a_column_of_several_types_is_words(tmp_path: Path) -> None:
    day = datetime.datetime(2020, 1, 31)
    lines: list[list[Any]] = [["a", "b"], [1, 1], [2.5, 2], ["x", 3], [day, 4], [True, 5]]
    path = sheets(tmp_path / "x.xlsx", one=lines)
    assert read_rows(path, raw=True).X["a"].tolist() == ["1", "2.5", "x", "2020-01-31T00:00:00", "True"]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "have rows, got an empty sheet; name another one with --sheet"),
        ([["a", None], [1, 2], [3, 4]], "have a name for every column, got none for column 2"),
        ([["a", "a"], [1, 2], [3, 4]], "a different name for every column, got 'a' twice"),
        ([["a"], [1]], "at least 2 rows and one column, got 1 rows"),
    ],
)
def test_sheets_that_are_refused(lines: list[list[Any]], message: str, tmp_path: Path) -> None:
    path = sheets(tmp_path / "x.xlsx", one=lines)
    with pytest.raises(ValueError, match=re.escape(message)):
        read_rows(path, raw=True)


def test_a_row_of_a_billion_is_not_awaited(tmp_path: Path) -> None:
    """Rows beyond those that Excel has are not read."""
    whole, path = sheets(tmp_path / "whole.xlsx", one=[["a"], [1], [2], [3]]), tmp_path / "x.xlsx"
    with zipfile.ZipFile(whole) as source, zipfile.ZipFile(path, "w") as target:
        for info in source.infolist():
            content = source.read(info)
            if info.filename.endswith("sheet1.xml"):
                assert b'r="4"' in content
                content = content.replace(b'r="4"', b'r="1000000000"').replace(b'r="A4"', b'r="A1000000000"')
            target.writestr(info, content)
    assert read_rows(path, raw=True).X["a"].tolist() == [1, 2]


def test_excel_bombs_are_not_unpacked(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.xlsx", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/workbook.xml", bytes(2**26 + 1))
    with pytest.raises(
        ValueError, match=r"be written by Excel, got xl/workbook\.xml of 67108865 bytes made of"
    ):
        read_rows(tmp_path / "x.xlsx", raw=True)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("x.parquet", "be a Parquet file, got one that cannot be read"),
        ("x.feather", "be a Feather file, got one that cannot be read"),
        ("x.xlsx", "be an Excel file, got one that cannot be read"),
        ("x.xls", "got an Excel file of the older kind (.xls); save it as .xlsx"),
        ("x.ods", "got a file of another kind (.ods); convert it"),
    ],
)
def test_other_files_are_refused(name: str, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"something else")
    with pytest.raises(ValueError, match=re.escape(message)):
        read_rows(tmp_path / name, raw=True)


@pytest.mark.parametrize(
    ("name", "package", "extra"),
    [
        ("x.parquet", "pyarrow", "parquet"),
        ("x.feather", "pyarrow", "parquet"),
        ("x.xlsx", "openpyxl", "excel"),
    ],
)
def test_an_extra_that_is_not_installed_is_named(
    name: str, package: str, extra: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    WRITERS[name](MIXED, tmp_path / name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=re.escape(f"not installed; run pip install 'ebse[{extra}]'")):
        read_rows(tmp_path / name, raw=True)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("x.parquet", {"delimiter": ";"}, "--delimiter must be for a table in text"),
        ("x.xlsx", {"delimiter": ";"}, "--delimiter must be for a table in text"),
        ("x.feather", {"header": False}, "--no-header must be for a table in text or Excel"),
        ("x.parquet", {"sheet": "one"}, "--sheet must be for an Excel file"),
        ("x.xlsx", {"array": "one"}, "--array must be for an npz file"),
    ],
)
def test_options_of_other_formats(name: str, options: dict[str, Any], message: str, tmp_path: Path) -> None:
    WRITERS[name](MIXED, tmp_path / name)
    with pytest.raises(ValueError, match=message):
        read_rows(tmp_path / name, raw=True, **options)
