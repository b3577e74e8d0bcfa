"""Progress on a terminal, in a log, and for programs."""

import io
import sys
import time
from collections.abc import Callable

import pytest

from ebse._stages import stage
from ebse.cli import _show
from ebse.cli._show import fail, note, say, stages_shown


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def work() -> None:
    with stage("clustering", total=4) as done:
        for _ in range(4):
            done(1)
    with stage("report"):
        pass


def test_a_bar_for_each_stage_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with stages_shown():
        work()
    last = terminal.getvalue().rsplit("clustering", 1)[1]
    assert "100%" in last
    assert "report" in last


def test_lines_every_few_seconds_in_a_log(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each unit of work takes two seconds of a clock of our own; a line comes after five."""
    seconds = iter(range(0, 1000, 2))
    monkeypatch.setattr(time, "monotonic", lambda: float(next(seconds)))
    with stages_shown():
        work()
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(":")[0] for line in lines] == ["  clustering", "  clustering", "  report"]
    assert lines[0].endswith("s left")
    assert " of 4, " in lines[0]
    assert "clustering: done in" in lines[1]


def test_nothing_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    with stages_shown(quiet=True):
        work()
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("show", [say, note, fail])
def test_control_characters_do_not_reach_the_terminal(
    show: Callable[[str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    """Names in a file may hold any: a line that clears the screen, or one in another color."""
    show("a\x1b[2Jb\x07 \x9b31mc")
    output = capsys.readouterr()
    assert (output.out + output.err).removeprefix("ebse: ") == "a\ufffd[2Jb\ufffd \ufffd31mc\n"


def test_a_resumed_stage_estimates_from_what_it_did_itself(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Fifty of sixty epochs were done before: one more in ten seconds leaves ninety, not two."""
    clock = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(_show, "SECONDS", 5.0)
    with stages_shown(), stage("training", total=60, unit="epochs") as done:
        done(50)
        clock[0] = 10.0
        done(1)
    assert "training: 51 of 60 epochs, 10 s, about 90 s left" in capsys.readouterr().err
