"""Signals that take effect at the end of a mini-batch."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import final


@final
class Signals:
    """The signal received, if any."""

    def __init__(self) -> None:
        self.received: int | None = None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Record the first signal; the second one acts at once."""
        if self.received is not None:
            raise KeyboardInterrupt
        self.received = number


@contextmanager
def deferred(*numbers: signal.Signals) -> Iterator[Signals]:
    """Record signals until the caller checks for them; only the main thread of Python receives any."""
    signals = Signals()
    if threading.current_thread() is not threading.main_thread():
        yield signals
        return
    before = {number: signal.getsignal(number) for number in numbers}
    # A program that ignores a signal, or handles it outside Python, keeps its handler.
    mine = [n for n, handler in before.items() if handler not in (signal.SIG_IGN, None)]
    for number in mine:
        signal.signal(number, signals)
    try:
        yield signals
    finally:
        for number in mine:
            signal.signal(number, before[number])
