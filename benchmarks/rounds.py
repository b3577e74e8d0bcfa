"""Timing of contestants in turn: each at its best setting, compared round by round."""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import compress

import torch

Run = Callable[[int], int]
"""Runs a number of epochs (or of batches, where documented) and returns the number of rows done."""

N_SWEEPS = 20
"""Sweeps of a Gibbs chain."""

ENOUGH = 3
"""Rounds on free cores from which on rounds on busy ones are not counted."""

REST = 0.05
"""Seconds before each turn: threads of some libraries spin for a while after their work is done."""

FREE = 1.3
"""How much faster matrix products are on several threads than on one, at least, where the cores are free."""


EVERY = sorted({1, min(2, torch.get_num_threads()), torch.get_num_threads()})
"""Numbers of threads to try: one, two, and all."""


@dataclass
class Best:
    """The fastest setting on a number of threads."""

    rate: float = 0.0
    label: str = ""
    n_rows: int = 0
    """Of one epoch."""


@dataclass
class Contestant:
    """Something to be timed, in one or more settings; the fastest setting runs in the rounds.

    Parameters
    ----------
    name
        For tables.
    settings
        The name of each setting, and the function that runs it.
    threads
        The number of threads, where it is not to be chosen.
    """

    name: str
    settings: dict[str, Run]
    threads: int | None = None
    rates: list[float] = field(default_factory=list)
    """Rows per second in each round."""
    used: list[str] = field(default_factory=list)
    """The setting and the number of threads of each round."""

    def choose(self, allowed: Sequence[int], n_tries: int) -> None:
        """Warm up, which compiles, and find the fastest setting for each number of threads."""
        for run in self.settings.values():
            run(1)
        tried = allowed if self.threads is None else (self.threads,)
        self._best = {n: Best() for n in tried}
        for _ in range(n_tries):
            for label, run in self.settings.items():
                for n in tried:
                    rate, n_rows = timed(run, 1, n, allowed)
                    if rate > self._best[n].rate:
                        self._best[n] = Best(rate, label, n_rows)

    def race(self, allowed: Sequence[int], seconds: float) -> None:
        """Time one round of about the given length, in whole epochs."""
        possible = {n: best for n, best in self._best.items() if n in allowed or n == self.threads}
        threads, best = max(possible.items(), key=lambda item: item[1].rate)
        n_epochs = max(1, round(seconds * best.rate / best.n_rows))
        self.rates.append(timed(self.settings[best.label], n_epochs, threads, allowed)[0])
        words = [best.label] if best.label else []
        self.used.append(", ".join([*words, f"{threads} thread{'s' * (threads > 1)}"]))

    @property
    def rate(self) -> float:
        """Rows per second, the median of the rounds."""
        return statistics.median(self.rates)

    @property
    def setting(self) -> str:
        """The setting of most rounds."""
        return statistics.mode(self.used)


def timed(run: Run, n_epochs: int, threads: int, allowed: Sequence[int]) -> tuple[float, int]:
    """Rows per second, and their number.

    Where all contestants use one thread, the CPU time of the process counts, so that other programs do not.
    """
    clock = time.process_time if threads == 1 and list(allowed) == [1] else time.perf_counter
    torch.set_num_threads(threads)
    begin = clock()
    n = run(n_epochs)
    return n / (clock() - begin), n


@dataclass
class Pace:
    """How long everything may take.

    Parameters
    ----------
    n_rounds, seconds
        Rounds, and the length of each contestant's turn.
    n_tries
        Times that each setting is tried before the rounds.
    patience
        Seconds, in all, to wait for other programs to free the cores.
    deadline
        After it, each group makes one try and one round.
    """

    n_rounds: int
    seconds: float
    n_tries: int
    patience: float
    deadline: float = float("inf")
    n_busy: int = 0
    """Rounds in which other programs kept the cores busy, so that all used one thread."""
    n_done: int = 0
    """All rounds."""

    def race(self, *contestants: Contestant, threads: Sequence[int] | None = None) -> None:
        """Time the contestants in turn, forth and back, so that a drift affects all alike.

        Whether the cores are free is measured before each round. Rounds on busy cores are not counted, for
        any contestant, where there are enough others.
        """
        tried = self.useful_threads() if threads is None else threads
        for contestant in contestants:
            contestant.choose(tried, self.n_tries if time.perf_counter() < self.deadline else 1)
        free = []
        for number in range(self.n_rounds):
            if number and time.perf_counter() > self.deadline:
                break
            allowed = tried if threads is not None else [n for n in self.useful_threads() if n in tried]
            free.append(threads is not None or allowed == EVERY)
            for contestant in contestants[:: -1 if number % 2 else 1]:
                time.sleep(REST)
                contestant.race(allowed, self.seconds)
        self.n_done += len(free)
        self.n_busy += free.count(False)
        if free.count(True) >= ENOUGH:
            for contestant in contestants:
                contestant.rates = list(compress(contestant.rates, free))
                contestant.used = list(compress(contestant.used, free))

    def useful_threads(self) -> list[int]:
        """Numbers of threads on which matrix products are now faster than on fewer; one always is.

        Where other programs keep the cores busy, threads spin while they wait for each other, and what takes
        a tenth of a second on one thread may take ten on two.
        """
        while True:
            rates = [product_rate(n) for n in EVERY]
            useful = [n for n, rate in zip(EVERY, rates, strict=True) if n == 1 or rate > FREE * rates[0]]
            if useful == EVERY or self.patience <= 0:
                return useful
            time.sleep(1)
            self.patience -= 1


def product_rate(threads: int) -> float:
    """Matrix products of a batch per second, the median of five short measurements."""
    a, b = torch.rand(100, 784), torch.rand(784, 400)

    def run(n: int) -> int:
        for _ in range(n):
            torch.mm(a, b)
        return n

    return statistics.median(timed(run, 10, threads, EVERY)[0] for _ in range(5))


def ratios(ours: Contestant, theirs: Contestant) -> list[float]:
    """One speed over another, round by round."""
    return [a / b for a, b in zip(ours.rates, theirs.rates, strict=True)]


def ratio(ours: Contestant, theirs: Contestant) -> float:
    """The median of the rounds."""
    return statistics.median(ratios(ours, theirs))
