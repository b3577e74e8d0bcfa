"""Command lines that tests run in this process, and what must hold for every refusal."""

import shlex
import sys
from pathlib import Path

import pytest

from ebse.cli.app import main
from ebse.workflow.run_folder import LOCK

SMALL = "--n-components 4 --n-epochs 2"


def ran(line: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """The exit code of a command line, quoted as in a shell."""
    monkeypatch.setattr(sys, "argv", ["ebse", *shlex.split(line)])
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def held(folder: Path) -> dict[str, bytes | None]:
    """Contents of a folder: bytes of files, None for folders."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
        if path.name != LOCK
    }


def assert_refused(
    line: str,
    piece: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Exit code 2, one line of error, and an unchanged folder."""
    monkeypatch.chdir(folder)
    before = held(folder)
    capsys.readouterr()
    code = ran(line, monkeypatch)
    said = capsys.readouterr()
    assert (code, said.err.count("\n")) == (2, 1), said.err
    assert said.err.startswith("ebse: "), said.err
    assert piece in said.err, said.err
    assert "Errno" not in said.err or "--config" in line, said.err
    assert held(folder) == before, "something was left behind"
