"""What the command line shows: lines, and progress with the time that is left."""

import sys
import time
from typing import final

from ebse.runs import Step


def say(text: str) -> None:
    """A result."""
    print(text)


def fail(text: str) -> None:
    """What went wrong, in one line."""
    print(f"ebse: {' '.join(text.split())}", file=sys.stderr)


@final
class Progress:
    """The step under way, on one line of a terminal or on lines of its own elsewhere."""

    def __init__(self) -> None:
        self._began, self._open = time.monotonic(), False
        self._first: float | None = None

    def at(self, step: Step) -> None:
        """Show a step, how long it took so far, and a guess at the rest."""
        if self._first is None:
            self._first = step.done
        elapsed, done = time.monotonic() - self._began, step.done - self._first
        left = f", about {elapsed * (step.total - step.done) / done:.0f} s left" if done > 0 else ""
        share = f"{100 * step.done / step.total:3.0f} %" if step.total else "done"
        line = f"  {share}  {elapsed:4.0f} s{left}  {step.text}"
        if sys.stderr.isatty():
            print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)
            self._open = True
        else:
            print(line, file=sys.stderr, flush=True)

    def close(self) -> None:
        """End the line."""
        if self._open:
            print(file=sys.stderr)
            self._open = False
