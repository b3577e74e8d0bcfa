"""Progress of long work: stages that code announces, and a listener that shows them.

Code that works for seconds announces its stages:

    with stage("clustering", total=6) as done:
        for _ in range(6):
            ...
            done(1)

Nobody hears it unless a caller listens: ``verbose=1`` shows tqdm bars, the command line its own. Stages
within a stage are not announced.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple


class Stage(NamedTuple):
    """A stage: ``done`` of ``total`` units of work; a total of 0 is not known."""

    name: str
    done: float
    total: float
    unit: str = ""
    finished: bool = False


Listener = Callable[[Stage], None]

_LISTENER: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def stage(name: str, total: float = 0, unit: str = "") -> Iterator[Callable[[float], None]]:
    """Announce a stage; the function it gives counts units of work as they are done."""
    listener = _LISTENER.get()
    if listener is None:
        yield _ignore
        return
    done: float = 0

    def count(n: float) -> None:
        nonlocal done
        done += n
        listener(Stage(name, done, total, unit))

    listener(Stage(name, 0, total, unit))
    # Stages within this one are parts of it, and its own units are what is counted.
    token = _LISTENER.set(None)
    try:
        yield count
    finally:
        _LISTENER.reset(token)
    listener(Stage(name, done, total, unit, finished=True))


def _ignore(n: float) -> None:
    pass


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Every stage that is announced within goes to the listener."""
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


@contextmanager
def shown(verbose: int) -> Iterator[None]:
    """A tqdm bar for each stage where ``verbose`` is positive and nobody listens yet."""
    if not verbose or _LISTENER.get() is not None:
        yield
        return
    from tqdm import tqdm

    bars: dict[str, Any] = {}

    def show(at: Stage) -> None:
        bar = bars.get(at.name)
        if bar is None:
            bar = bars[at.name] = tqdm(desc=at.name, total=at.total or None, unit=at.unit or "it")
        bar.update(at.done - bar.n)
        if at.finished:
            bars.pop(at.name).close()

    try:
        with listening(show):
            yield
    finally:
        for bar in bars.values():
            bar.close()
