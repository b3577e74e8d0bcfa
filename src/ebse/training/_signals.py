"""Signals that wait for the end of a mini-batch."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import final


@final
class Signals:
    """Which signal has come, if one has."""

    def __init__(self) -> None:
        self.received: int | None = None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Remember the signal; the second one acts at once."""
        if self.received is not None:
            raise KeyboardInterrupt
        self.received = number


@contextmanager
def deferred(*numbers: signal.Signals) -> Iterator[Signals]:
    """Hold back the signals until the caller looks; elsewhere than in the main thread they never come."""
    signals = Signals()
    if threading.current_thread() is not threading.main_thread():
        yield signals
        return
    before = {number: signal.getsignal(number) for number in numbers}
    # A program that ignores a signal, or handles it outside Python, means to.
    mine = [n for n, handler in before.items() if handler not in (signal.SIG_IGN, None)]
    for number in mine:
        signal.signal(number, signals)
    try:
        yield signals
    finally:
        for number in mine:
            signal.signal(number, before[number])
