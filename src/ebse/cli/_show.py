"""What the command line shows: lines, one JSON object, and progress with the time that is left."""

import json
import math
import sys
import time
from typing import Any, final

from rich.console import Console

from ebse.workflow.run_folder import Step

SECONDS = 5.0
"""Between lines of progress where there is no terminal."""


def say(text: str) -> None:
    """A result; control characters, which a file may hold, do not reach the terminal."""
    print("".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in text))


def say_json(facts: dict[str, Any]) -> None:
    """A result for machines: one object on one line; what is no number is null."""
    print(json.dumps(_plain(facts), ensure_ascii=False, allow_nan=False))


def note(text: str) -> None:
    """Something the user should know, beside the results."""
    print(f"ebse: {_line(text)}", file=sys.stderr)


def fail(text: str) -> None:
    """What went wrong, in one line; red on a terminal."""
    Console(stderr=True, highlight=False, markup=False, soft_wrap=True).print(
        f"ebse: {_line(text)}", style="red"
    )


@final
class Progress:
    """The step under way, on one line of a terminal or on lines of its own elsewhere."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._began, self._open, self._quiet = time.monotonic(), False, quiet
        self._first: float | None = None
        self._said = -math.inf

    def at(self, step: Step) -> None:
        """Show a step, how long it took so far, and a guess at the rest."""
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
            # Small steps come many a second: a log needs few of them.
            self._said = now
            print(line, file=sys.stderr, flush=True)

    def close(self) -> None:
        """End the line."""
        if self._open:
            print(file=sys.stderr)
            self._open = False


def _line(text: str) -> str:
    return " ".join(text.split())


def _plain(x: Any) -> Any:
    if isinstance(x, dict):
        return {str(name): _plain(value) for name, value in x.items()}
    if isinstance(x, (list, tuple)):
        return [_plain(value) for value in x]
    if hasattr(x, "item"):
        x = x.item()
    return None if isinstance(x, float) and not math.isfinite(x) else x
