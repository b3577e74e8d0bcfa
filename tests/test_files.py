"""Atomic writes and JSON Lines files."""

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import numpy as np
import pytest

from ebse import _jsonl
from ebse._atomic import in_place, write_npz
from ebse.io import read_arrays


def test_arrays_are_read_back(tmp_path: Path) -> None:
    path = tmp_path / "new folder" / "x.npz"
    write_npz(path, X=np.arange(6).reshape(2, 3), y=np.array(["a", "b"]))
    with np.load(path) as found:
        np.testing.assert_array_equal(found["X"], np.arange(6).reshape(2, 3))
        assert list(found["y"]) == ["a", "b"]
    assert [file.name for file in path.parent.iterdir()] == ["x.npz"]


def test_arrays_of_few_values_are_read_back(tmp_path: Path) -> None:
    """69 MiB of one-hot rows; compressed, they look like an attack."""
    X = np.zeros((9000, 1000))
    X[np.arange(9000), np.arange(9000) % 1000] = 1
    write_npz(tmp_path / "x.npz", X=X)
    np.testing.assert_array_equal(read_arrays(tmp_path / "x.npz", "X")["X"], X)
    np.savez_compressed(tmp_path / "dense.npz", X=X)
    with pytest.raises(ValueError, match=r"dense.npz must be as ebse wrote it"):
        read_arrays(tmp_path / "dense.npz", "X")


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


def test_threads_write_the_same_file(tmp_path: Path) -> None:
    """Both have their temporary file open at the same time; with one shared name a rename would fail."""
    path, both = tmp_path / "x.txt", Barrier(2, timeout=60)

    def write(text: str) -> Path:
        with in_place(path) as temporary:
            both.wait()
            temporary.write_text(text)
            both.wait()
            assert temporary.read_text() == text
            return temporary

    with ThreadPoolExecutor(2) as threads:
        first, second = threads.map(write, ["a" * 1000, "b" * 1000])
    assert first != second
    assert path.read_text() in ("a" * 1000, "b" * 1000)
    assert list(tmp_path.iterdir()) == [path]


def test_symbolic_links_in_place_of_the_temporary_file_are_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even where somebody knows the name in advance."""
    monkeypatch.setattr("secrets.token_hex", lambda n: "known")
    path, other = tmp_path / "x.txt", tmp_path / "other"
    other.write_text("kept")
    (tmp_path / f".x.txt.{os.getpid()}.known.partial").symlink_to(other)
    with pytest.raises(FileExistsError), in_place(path) as temporary:
        temporary.write_text("new")
    assert other.read_text() == "kept"


@pytest.mark.skipif(sys.platform == "win32", reason="modes are those of POSIX")
@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600)])
def test_the_umask_sets_the_mode(umask: int, mode: int, tmp_path: Path) -> None:
    before = os.umask(umask)
    try:
        with in_place(tmp_path / "x") as temporary:
            temporary.write_text("x")
    finally:
        os.umask(before)
    assert (tmp_path / "x").stat().st_mode & 0o777 == mode


def test_names_of_the_greatest_length_are_written(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 255)
    with in_place(path) as temporary:
        temporary.write_text("x")
    assert path.read_text() == "x"


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
