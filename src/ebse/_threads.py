"""Numbers of threads: one where more would spend their time waiting for each other."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING, Any, final

from threadpoolctl import ThreadpoolController

if TYPE_CHECKING:
    import torch

SMALL = 2**16
"""Connections below which one thread is faster, and far faster where other programs keep a core busy."""

FEW_ENTRIES = 2**22
"""Entries of a table below which one thread of BLAS and OpenMP is enough."""

N_TRIAL, RATE = 4, 0.3
"""Steps after which two numbers of threads are compared, and the rate of their moving averages."""
HOPELESS = 3.0
"""A trial ends at its first step that takes this many times as long as before."""
SHORTEST, LONGEST = 0.5, 8.0
"""Seconds between two trials: doubled while trials change nothing."""


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit BLAS, OpenMP and torch, if it is loaded, to one thread; restore them afterwards."""
    _LIMIT.enter()
    try:
        if "torch" not in sys.modules:
            yield
            return
        with threads(1):
            yield
    finally:
        _LIMIT.leave()


@final
class _Limit:
    """The limit of BLAS and OpenMP, which holds for the whole process.

    The first Python thread sets it, and the last one to leave restores what was before.
    """

    def __init__(self) -> None:
        self._lock, self._n_inside = Lock(), 0
        self._held: Any = None

    def enter(self) -> None:
        """Set the limit, unless it is set."""
        with self._lock:
            if self._n_inside == 0:
                self._held = _pools(len(sys.modules)).limit(limits=1)
            self._n_inside += 1

    def leave(self) -> None:
        """Restore what was before, if this is the last one."""
        with self._lock:
            self._n_inside -= 1
            if self._n_inside == 0:
                self._held.restore_original_limits()
                self._held = None


_LIMIT = _Limit()


@contextmanager
def threads_for_entries(n_entries: int) -> Iterator[None]:
    """Limit to one thread where a table has so few entries that two would mostly wait for each other."""
    if n_entries >= FEW_ENTRIES:
        yield
        return
    with one_thread():
        yield


@lru_cache(maxsize=1)
def _pools(n_modules: int) -> ThreadpoolController:
    """The libraries with threads; searched for again, which takes milliseconds, after imports only."""
    return ThreadpoolController()


@contextmanager
def threads_for(n_connections: int) -> Iterator[None]:
    """Limit torch to one thread where a model is so small that two would mostly wait for each other.

    Torch holds one number of threads for every Python thread; so does this.
    """
    import torch

    with threads(1 if n_connections < SMALL else torch.get_num_threads()):
        yield


@contextmanager
def threads(n: int) -> Iterator[None]:
    """Limit torch, and the kernels, which follow it, to n threads."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(n)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@final
class FastestThreads:
    """Run steps on one thread or on all of torch's threads, whichever is faster at present.

    OpenMP's threads spin while they wait for each other. Where another program keeps a core busy, a thread
    that waits for its share of that core holds up all others, and two threads take several times as long as
    one. Both numbers are therefore timed, now and then again, and the faster one is used.

    Only for steps whose results are the same bits on any number of threads (:func:`same_on_threads`): the
    choice depends on the clock.

    Parameters
    ----------
    n_threads
        All threads.
    clock
        Seconds.

    Examples
    --------
    >>> FastestThreads(2).run(lambda: None, work=100)
    """

    def __init__(self, n_threads: int, clock: Callable[[], float] = time.perf_counter) -> None:
        self.n_threads, self._clock = n_threads, clock
        self._on_all = False
        # Seconds for one unit of work on one thread and on all; 0 is not known, and so worth a trial.
        self._seconds = {False: 0.0, True: 0.0}
        self._n_steps = 0
        self._preferred: bool | None = None
        self._pause = SHORTEST
        self._next_trial = 0.0

    def run(self, step: Callable[[], None], *, work: float) -> None:
        """Run one step of so many units of work, such as rows."""
        if self.n_threads == 1:
            with threads(1):
                step()
            return
        start = self._clock()
        with threads(self.n_threads if self._on_all else 1):
            step()
        end = self._clock()
        self._record((end - start) / work, end)

    def _record(self, seconds: float, now: float) -> None:
        """Take the time of a step into account, and choose the number of threads of the next one."""
        self._n_steps += 1
        other = self._seconds[not self._on_all]
        hopeless = 0 < other * HOPELESS < seconds and self._n_steps <= N_TRIAL
        # The first step on a number of threads wakes threads, or compiles.
        if self._n_steps == 1 and not hopeless:
            return
        average = self._seconds[self._on_all]
        known = self._n_steps > 2
        self._seconds[self._on_all] = average + RATE * (seconds - average) if known else seconds
        if hopeless or (self._n_steps >= N_TRIAL and self._seconds[self._on_all] > other):
            self._on_all, self._n_steps = not self._on_all, 0
        elif self._n_steps == N_TRIAL and self._on_all != self._preferred:
            # The load of the machine has changed, and may change again soon.
            self._preferred = self._on_all
            self._pause, self._next_trial = SHORTEST, now + SHORTEST
        elif self._n_steps > N_TRIAL and now >= self._next_trial:
            self._seconds[not self._on_all] = 0.0
            self._pause = min(2 * self._pause, LONGEST)
            self._next_trial = now + self._pause


def same_on_threads(compute: Callable[[], "list[torch.Tensor]"], n_threads: int) -> bool:
    """Whether tensors that are computed on one thread and on ``n_threads`` are equal bit for bit.

    Libraries of matrix products add up small products in another order on another number of threads.
    """
    import torch

    found = []
    for n in (1, n_threads):
        with threads(n):
            found.append(compute())
    return all(torch.equal(x, y) for x, y in zip(*found, strict=True))
