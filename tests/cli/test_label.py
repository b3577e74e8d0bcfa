"""``ebse label``: its help, and everything that it refuses before a page is opened."""

import importlib
import socket
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import ebse.labeling
from cli.conftest import Copy
from cli.lines import assert_refused, ran

Captured = pytest.CaptureFixture[str]
Refused = Callable[[str, str], None]


@pytest.fixture(autouse=True)
def never_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that goes too far ends instead of waiting for Control-C."""
    monkeypatch.setattr("ebse.cli.label._stop_on_signals", lambda stopped: pytest.fail("a page was opened"))


@pytest.fixture
def refused(tmp_path: Path, copied: Copy, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> Refused:
    """Asserts that a command is refused beside a table and an array, and leaves nothing behind."""
    copied("few.csv", tmp_path)
    copied("few", tmp_path)
    np.save(tmp_path / "rows.npy", np.random.default_rng(0).random((20, 6)))

    def check(line: str, piece: str) -> None:
        assert_refused(f"{line} --no-browser", piece, tmp_path, monkeypatch, capsys)

    return check


def test_help(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    assert ran("label --help", monkeypatch) == 0
    said = " ".join(capsys.readouterr().out.split())
    for piece in (
        "Label rows in the browser while predictions for all rows follow",
        "--classes",
        "--target",
        "--port",
        "--no-browser",
        "--shape",
        "--out",
        "ssh -L",
        "ebse label digits.npy --shape 28x28",
        "pip install 'ebse[label]'",
    ):
        assert piece in said
    # No option binds another address.
    assert "--host" not in said


@pytest.mark.parametrize(
    ("line", "piece"),
    [
        ("label nothing.csv", "nothing.csv"),
        ("label", "--data requires an argument"),
        ("label few.csv --target 1", "target must be from 0.5 to below 1, got 1"),
        ("label few.csv --target 0.2", "target must be from 0.5 to below 1, got 0.2"),
        ("label few.csv --target nan", "target must be from 0.5 to below 1, got nan"),
        ("label few.csv --target high", "target"),
        ("label rows.npy --shape 28", "shape must be like 28x28"),
        ("label rows.npy --shape 2x3x9", "shape must be like 28x28"),
        ("label rows.npy --shape=-2x-3", "shape must be like 28x28"),
        ("label few.csv --column nothing=text", "nothing"),
        ("label rows.npy --shape 0x0", "shape must have 6 pixels"),
        ("label rows.npy --shape 5x5", "shape must have 6 pixels, as a row has entries, got 5 × 5"),
        ("label few.csv --shape 2x3", "shape must be for arrays of pixels"),
        ("label few.csv --label nobody", "nobody"),
        ("label few.csv --id nobody", "nobody"),
        ("label few.csv --out few", "folder must be a run of label"),
        ("label few.csv --out few.csv", "few.csv"),
        ("label few.csv --out .", "folder must be new"),
        ("label few.csv --host 0.0.0.0", "--host"),
    ],
)
def test_refused(line: str, piece: str, refused: Refused) -> None:
    refused(line, piece)


def test_ports(copied: Copy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    """The folder of the session is there by then, and free for the next try."""
    copied("few.csv", tmp_path)
    monkeypatch.chdir(tmp_path)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        for given, piece in (
            (port, f"port must be free, got {port}"),
            (65_536, "port must be from 0 to 65535, got 65536"),
            (-1, "port must be from 0 to 65535, got -1"),
            (port, f"port must be free, got {port}"),
        ):
            assert ran(f"label few.csv --no-browser --port={given}", monkeypatch) == 2
            assert piece in capsys.readouterr().err


def test_folders_of_images(refused: Refused, tmp_path: Path) -> None:
    from PIL import Image

    for i in range(12):
        (tmp_path / "photos").mkdir(exist_ok=True)
        Image.new("L", (4, 4), i).save(tmp_path / "photos" / f"{i}.png")
    refused("label photos --shape 4x4", "shape must be for arrays of pixels")
    refused("label photos --label kind", "label must be 'folder' for a folder of images")
    (tmp_path / "empty").mkdir()
    refused("label empty", "empty")
    for i in range(9, 12):
        (tmp_path / "photos" / f"{i}.png").unlink()
    refused("label photos", "at least 10 rows")


@pytest.mark.parametrize("name", ["starlette", "uvicorn"])
def test_the_extra_is_not_installed(name: str, refused: Refused, monkeypatch: pytest.MonkeyPatch) -> None:
    """As after ``pip install ebse`` alone; everything else works without it."""
    for module in [m for m in sys.modules if m.partition(".")[0] == name or m.startswith("ebse.labeling.")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.delattr(ebse.labeling, "handle", raising=False)
    monkeypatch.setitem(sys.modules, name, None)
    refused("label few.csv", f"needs {name}, which is not installed; run: pip install 'ebse[label]'")
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'ebse\[label\]'"):
        importlib.import_module("ebse").label  # noqa: B018
