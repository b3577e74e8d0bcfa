"""Commands in the pages: those of consoles are executed, all others are at least understood."""

import doctest
import re
import shlex
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from ebse.cli.app import app, main
from scripts import ROOT, start

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
"""Of models that were trained for a moment."""


def blocks(text: str, language: str) -> list[str]:
    return [body for kind, body in BLOCK.findall(text) if kind == language]


def commands(console: str) -> list[tuple[str, str]]:
    """(command, what it says) of a console; … stands for anything."""
    parts = re.split(r"^\$ ", console, flags=re.MULTILINE)[1:]
    return [(line, said) for line, _, said in (part.partition("\n") for part in parts)]


def said_as_expected(expected: str, got: str) -> bool:
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    return doctest.OutputChecker().check_output(expected.replace("…", "..."), got.replace("…", "..."), flags)


def executed(line: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> str:
    capsys.readouterr()
    program, *arguments = (
        str(ROOT / word) if word.startswith("examples/") else word for word in shlex.split(line)
    )
    if program == "python":
        start(Path(arguments[0]), *arguments[1:], monkeypatch=monkeypatch)
        return capsys.readouterr().out
    assert program == "ebse"
    monkeypatch.setattr(sys, "argv", [program, *arguments])
    with suppress(SystemExit):
        main()
    said = capsys.readouterr()
    assert not [row for row in said.err.splitlines() if row.startswith("ebse: ")]
    return said.out


@pytest.mark.parametrize("page", [p for p in PAGES if "```console" in p.read_text()], ids=lambda p: p.name)
def test_consoles(
    page: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for console in blocks(page.read_text(), "console"):
        assert commands(console)
        for line, expected in commands(console):
            got = executed(line, capsys, monkeypatch)
            assert said_as_expected(expected, got), f"{line}\n{got}"


def test_what_a_command_says_is_compared() -> None:
    assert said_as_expected("a …\nb\n", "a 12\nb\n")
    assert not said_as_expected("a …\nb\n", "a 12\nc\n")


def lines(page: Path) -> list[str]:
    """Calls of ebse in fenced blocks."""
    found = [line for _, body in BLOCK.findall(page.read_text()) for line in body.splitlines()]
    return [line.removeprefix("$ ") for line in found if line.removeprefix("$ ").startswith("ebse ")]


@pytest.mark.parametrize(
    ("page", "line"),
    [(page, line) for page in PAGES for line in lines(page)],
    ids=lambda x: getattr(x, "name", x),
)
def test_commands_are_understood(page: Path, line: str) -> None:
    tokens = [word for word in shlex.split(line, comments=True)[1:] if word != "--config"]
    app.parse_args([t for t in tokens if not t.endswith(".toml")], exit_on_error=False, print_error=False)


def test_commands_that_are_not_understood_are_found() -> None:
    with pytest.raises(Exception, match="Unknown option"):
        app.parse_args(["fit", "x.csv", "--color", "red"], exit_on_error=False, print_error=False)
