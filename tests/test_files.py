"""Atomic writes and JSON Lines files."""

from pathlib import Path

import numpy as np
import pytest

from ebse import _jsonl
from ebse._atomic import in_place, write_npz


def test_arrays_are_read_back(tmp_path: Path) -> None:
    path = tmp_path / "new folder" / "x.npz"
    write_npz(path, X=np.arange(6).reshape(2, 3), y=np.array(["a", "b"]))
    with np.load(path) as found:
        np.testing.assert_array_equal(found["X"], np.arange(6).reshape(2, 3))
        assert list(found["y"]) == ["a", "b"]
    assert [file.name for file in path.parent.iterdir()] == ["x.npz"]


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_text("old")

    def fail() -> None:
        with in_place(path) as temporary:
            temporary.write_text("half of the new")
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_appended_rows_are_read_back(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    assert _jsonl.read(path) == []
    _jsonl.append(path, [{"a": 1}, [2]])
    _jsonl.append(path, ["three"])
    assert _jsonl.read(path) == [{"a": 1}, [2], "three"]


@pytest.mark.parametrize("torn", [b"{", b'{"b": 2}', b"\xff"])
def test_an_incomplete_last_line_is_ignored_and_removed(torn: bytes, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    _jsonl.append(path, [{"a": 1}])
    with path.open("ab") as file:
        file.write(torn)
    assert _jsonl.read(path) == [{"a": 1}]
    _jsonl.drop_incomplete_line(path)
    _jsonl.append(path, [{"b": 2}])
    assert _jsonl.read(path) == [{"a": 1}, {"b": 2}]


def test_appending_to_an_incomplete_line_damages_the_file(tmp_path: Path) -> None:
    """The twin: without the cut the new row continues the incomplete line."""
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"a": 1}\n{')
    _jsonl.append(path, [{"b": 2}])
    with pytest.raises(ValueError, match=r"rows.jsonl must hold one JSON value per line, got a damaged line"):
        _jsonl.read(path)


def test_complete_files_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    _jsonl.drop_incomplete_line(path)
    assert not path.exists()
    _jsonl.append(path, [1])
    _jsonl.drop_incomplete_line(path)
    assert path.read_bytes() == b"1\n"
