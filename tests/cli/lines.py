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
    said = capsys.readouterr().err
    # Lines of progress, of the file that was read before a setting was refused, are indented.
    lines = [row for row in said.splitlines() if not row.startswith("  reading: done in ")]
    assert (code, len(lines)) == (2, 1), said
    assert lines[0].startswith("ebse: "), said
    assert piece in lines[0], said
    assert "Errno" not in said or "--config" in line, said
    assert held(folder) == before, "something was left behind"
