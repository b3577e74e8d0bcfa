"""Tables: rows of good files."""

from pathlib import Path

import numpy as np
import pytest

from ebse.io import read_rows, word


def written(folder: Path, text: str, name: str = "x.csv", encoding: str = "utf-8") -> Path:
    path = folder / name
    path.write_bytes(text.encode(encoding))
    return path


def test_names_and_numbers(tmp_path: Path) -> None:
    rows = read_rows(written(tmp_path, "a, b ,c\n0,1.5,-2e1\n1, 0 ,+3\n"))
    assert rows.names == ("a", "b", "c")
    np.testing.assert_array_equal(rows.X, [[0, 1.5, -20], [1, 0, 3]])
    assert (rows.labels, rows.shape, rows.notes) == (None, None, ())


def test_labels_where_there_are_some(tmp_path: Path) -> None:
    rows = read_rows(written(tmp_path, "a,kind,b\n0, red ,1\n1,,0\n1,NA,0\n0,3,1\n"), label="kind")
    assert rows.labels is not None
    assert rows.labels.tolist() == ["red", None, None, "3"]
    assert rows.names == ("a", "b")


@pytest.mark.parametrize("quote", ["", '"'])
def test_labels_of_tables_and_arrays_are_missing_alike(quote: str, tmp_path: Path) -> None:
    """Read by pandas, line by line, and from an array of texts."""
    words = ["red", "none", "None", "nan", "NA", "<NA>", "NaT", "n/a", "NULL", "?", " ", "-1"]
    cells = "".join(f"{i},{quote}{cell}{quote}\n" for i, cell in enumerate(words))
    table = read_rows(written(tmp_path, f"a,kind\n{cells}"), label="kind").labels
    np.savez(tmp_path / "x.npz", X=np.eye(len(words)), kind=np.array(words))
    array = read_rows(tmp_path / "x.npz", label="kind").labels
    assert table is not None
    assert array is not None
    assert table.tolist() == array.tolist() == ["red", "none", *[None] * 9, "-1"]


@pytest.mark.parametrize("mark", ["-1", "-1.0"])
def test_a_label_marks_unlabeled_rows(mark: str, tmp_path: Path) -> None:
    path = written(tmp_path, "a,kind\n0,-1\n1,x\n2,\n3,1\n")
    marked = read_rows(path, label="kind", unlabeled_label=mark).labels
    assert marked is not None
    assert marked.tolist() == [None, "x", None, "1"]


def test_columns_are_dropped(tmp_path: Path) -> None:
    rows = read_rows(written(tmp_path, "id,a,note\nx,0,red\ny,1,\n"), drop=("id", "note"))
    assert rows.names == ("a",)


def test_truth_values(tmp_path: Path) -> None:
    np.testing.assert_array_equal(
        read_rows(written(tmp_path, "a,b\nTrue,false\nFALSE,true\n")).X, [[1, 0], [0, 1]]
    )


@pytest.mark.parametrize("gap", ["", " ", "NaN", "NA", "n/a", "null", "None", "?"])
def test_missing_entries(gap: str, tmp_path: Path) -> None:
    rows = read_rows(written(tmp_path, f"a,b\n0,{gap}\n1,1\n"), missing=True)
    np.testing.assert_array_equal(rows.X, [[0, np.nan], [1, 1]])


def test_what_spreadsheets_write(tmp_path: Path) -> None:
    text = '"a","b, in ""m""\nor ft"\r\n"0","1"\r\n\r\n1,0\r\n'
    rows = read_rows(written(tmp_path, text, encoding="utf-8-sig"))
    assert rows.names == ("a", 'b, in "m"\nor ft')
    np.testing.assert_array_equal(rows.X, [[0, 1], [1, 0]])


@pytest.mark.parametrize(
    ("name", "delimiter", "given"),
    [
        ("x.tsv", "\t", None),
        ("x.TSV", "\t", None),
        ("x.csv", ";", ";"),
        ("x.csv", "\t", "tab"),
        ("x.tsv", " ", " "),
    ],
)
def test_delimiters(name: str, delimiter: str, given: str | None, tmp_path: Path) -> None:
    path = written(tmp_path, "a,b\n0,1\n1,0\n".replace(",", delimiter), name)
    assert read_rows(path, delimiter=given).names == ("a", "b")


@pytest.mark.parametrize("quote", ["", '"'])
def test_a_table_without_column_names(quote: str, tmp_path: Path) -> None:
    """Also read line by line, where there are quotes."""
    path = written(tmp_path, f"0.5,1,{quote}7{quote}\n1,0,8")
    rows = read_rows(path, header=False, label="2")
    assert rows.names == ("0", "1")
    np.testing.assert_array_equal(rows.X, [[0.5, 1], [1, 0]])
    assert rows.labels is not None
    assert rows.labels.tolist() == ["7", "8"]
    with pytest.raises(ValueError, match=r"got numbers \(0.5, 1, 7\); .* pass --no-header"):
        read_rows(path)


@pytest.mark.parametrize("start", [0, 1])
def test_consecutive_numbers_are_column_names(start: int, tmp_path: Path) -> None:
    rows = read_rows(written(tmp_path, f"{start},{start + 1}\n5,6\n7,8\n"))
    assert rows.names == (str(start), str(start + 1))
    assert len(rows.X) == 2


def test_row_numbers_are_left_out(tmp_path: Path) -> None:
    rows = read_rows(written(tmp_path, ",0,1\nfirst,5,6\nsecond,7,8\n"))
    assert rows.names == ("0", "1")
    np.testing.assert_array_equal(rows.X, [[5, 6], [7, 8]])
    assert "row numbers and left out" in rows.notes[0]


def test_columns_of_the_run_in_any_order(tmp_path: Path) -> None:
    path = written(tmp_path, ",c,other,a,kind\n1,3,red,1,x\n2,4,blue,2,\n")
    rows = read_rows(path, only=("a", "c"), label="kind")
    assert rows.names == ("a", "c")
    np.testing.assert_array_equal(rows.X, [[1, 3], [2, 4]])
    assert rows.labels is not None
    assert rows.labels.tolist() == ["x", None]
    for label in (None, "lacking"):
        assert read_rows(path, only=("a", "c"), label=label).labels is None


def test_one_row_is_enough_for_a_prediction(tmp_path: Path) -> None:
    assert read_rows(written(tmp_path, "a\n1\n"), only=("a",)).X.shape == (1, 1)


def test_many_rows(tmp_path: Path) -> None:
    n = 2 * 4096 + 3
    rows = read_rows(written(tmp_path, "a,k\n" + "".join(f"{i},{i % 3}\n" for i in range(n))), label="k")
    np.testing.assert_array_equal(rows.X[:, 0], np.arange(n))
    assert rows.labels is not None
    assert rows.labels.tolist() == [str(i % 3) for i in range(n)]


def test_words() -> None:
    assert [word(x) for x in (3, 3.0, np.float32(3), " 3 ", 3.5, np.int8(3))] == [
        "3",
        "3",
        "3",
        "3",
        "3.5",
        "3",
    ]
