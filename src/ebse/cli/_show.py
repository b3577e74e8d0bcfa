"""Output of the command line: sentences, one line of JSON, and progress with the time that is left."""

import json
import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, final

from rich.console import Console

from ebse._stages import Stage, listening
from ebse.workflow.run_folder import Step

SHORTEST = 0.05
"""Seconds of a stage that has a line of its own in a log."""
SECONDS = 5.0
"""Between lines of progress where there is no terminal."""


def tolerate_encodings() -> None:
    """Print characters that the terminal cannot show as escapes: output never fails after all the work."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def say(text: str) -> None:
    """Print a result."""
    print(_printable(text))


def say_json(facts: dict[str, Any]) -> None:
    """Print a result for programs: one object on one line, in ASCII; null for what is not a number."""
    print(json.dumps(_plain(facts), allow_nan=False))


def note(text: str) -> None:
    """Print a warning to standard error."""
    print(f"ebse: {_line(text)}", file=sys.stderr)


def fail(text: str) -> None:
    """Print an error in one line; red on a terminal."""
    Console(stderr=True, highlight=False, markup=False, soft_wrap=True).print(
        f"ebse: {_line(text)}", style="red"
    )


@contextmanager
def stages_shown(*, quiet: bool = False) -> Iterator[None]:
    """Show the stages that are announced within: bars on a terminal, lines every few seconds elsewhere."""
    if quiet:
        yield
    elif sys.stderr.isatty():
        with _bars():
            yield
    else:
        with listening(_Lines().show):
            yield


@contextmanager
def _bars() -> Iterator[None]:
    """A bar for each stage, with the time so far and the time that is left."""
    from rich import progress

    with progress.Progress(
        progress.TextColumn("  {task.description:<15}"),
        progress.BarColumn(),
        progress.TaskProgressColumn(),
        progress.TimeElapsedColumn(),
        progress.TextColumn("left"),
        progress.TimeRemainingColumn(),
        console=Console(stderr=True),
    ) as shown:
        bars: dict[str, progress.TaskID] = {}

        def show(at: Stage) -> None:
            if at.name not in bars:
                bars[at.name] = shown.add_task(at.name, total=at.total or None)
            bar = bars[at.name]
            shown.update(bar, completed=at.done)
            if at.finished:
                # Stages of unknown length, and those that end early, are complete, too.
                shown.update(bar, total=at.done or 1, completed=at.done or 1)
                del bars[at.name]

        with listening(show):
            yield


@final
class _Lines:
    """Lines of progress for a log."""

    def __init__(self) -> None:
        self._began: dict[str, tuple[float, float | None]] = {}
        """When each stage began, and its first count: a resumed run begins in the middle."""
        self._said = 0.0

    def show(self, at: Stage) -> None:
        """A line when a stage ends, and every few seconds while it lasts."""
        now = time.monotonic()
        began, first = self._began.setdefault(at.name, (now, None))
        if first is None and at.done:
            first = at.done
            self._began[at.name] = (began, first)
        elapsed = now - began
        if at.finished:
            del self._began[at.name]
            if elapsed >= SHORTEST:
                self._print(f"{at.name}: done in {elapsed:.1f} s")
        elif at.done and now - max(self._said, began) >= SECONDS:
            total = f" of {at.total:.0f}" if at.total else ""
            done = at.done - (first or 0.0)
            rest = elapsed * (at.total - at.done) / done if at.total and done > 0 else None
            left = "" if rest is None else f", about {rest:.0f} s left"
            self._print(
                f"{at.name}: {at.done:.0f}{total}{f' {at.unit}' * bool(at.unit)}, {elapsed:.0f} s{left}"
            )

    def _print(self, line: str) -> None:
        self._said = time.monotonic()
        print(f"  {line}", file=sys.stderr, flush=True)


@final
class Progress:
    """Progress of an experiment: its last step, on one line of a terminal or on lines elsewhere."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._began, self._open, self._quiet = time.monotonic(), False, quiet
        self._first: float | None = None
        self._said = -math.inf

    def at(self, step: Step) -> None:
        """Show a step, the time so far, and an estimate of the rest."""
        if self._quiet:
            return
        now = time.monotonic()
        if self._first is None:
            self._first = step.done
        elapsed, done = now - self._began, step.done - self._first
        left = f", about {elapsed * (step.total - step.done) / done:.0f} s left" if done > 0 else ""
        share = f"{100 * step.done / step.total:3.0f} %" if step.total else "done"
        rate = f", {done / elapsed:.1f} {step.unit}/s" if step.unit and done > 0 and elapsed > 0 else ""
        line = f"  {share}  {elapsed:4.0f} s{left}{rate}  {step.text}"
        if sys.stderr.isatty():
            print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)
            self._open = True
        elif not step.unit or now - self._said >= SECONDS or step.done >= step.total:
            # Small steps come many times a second: a log needs few of them.
            self._said = now
            print(line, file=sys.stderr, flush=True)

    def close(self) -> None:
        """End the line."""
        if self._open:
            print(file=sys.stderr)
            self._open = False


def _printable(text: str) -> str:
    """Text without control characters, which a file may hold and which must not reach the terminal."""
    return "".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in text)


def _line(text: str) -> str:
    return " ".join(_printable(text).split())


def _plain(x: Any) -> Any:
    if isinstance(x, dict):
        return {str(name): _plain(value) for name, value in x.items()}
    if isinstance(x, (list, tuple)):
        return [_plain(value) for value in x]
    if hasattr(x, "item"):
        x = x.item()
    return None if isinstance(x, float) and not math.isfinite(x) else x
