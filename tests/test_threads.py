"""Numbers of threads: the faster one is chosen, and results do not depend on it."""

from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest
import torch
from threadpoolctl import threadpool_info, threadpool_limits
from torch import Tensor

from ebse import _threads
from ebse._threads import (
    FastestThreads,
    one_thread,
    same_on_threads,
    threads,
    threads_for,
    threads_for_entries,
)
from ebse.kernels import products
from ebse.laws import Bernoulli, Gaussian, Law, Point
from ebse.training import ContrastiveDivergence, EffectiveAscent, Training, initial_ensemble


class Machine:
    """A clock that steps move on: so many seconds a step on one thread and on more."""

    def __init__(self, one: float, more: float) -> None:
        self.now, self.one, self.more = 0.0, one, more
        self.used: list[int] = []

    def clock(self) -> float:
        return self.now

    def step(self) -> None:
        self.used.append(torch.get_num_threads())
        self.now += self.one if self.used[-1] == 1 else self.more


def run(machine: Machine, chosen: FastestThreads, n_steps: int) -> list[int]:
    """The numbers of threads of so many steps."""
    machine.used = []
    for _ in range(n_steps):
        chosen.run(machine.step, work=1)
    return machine.used


@pytest.mark.parametrize(("one", "more", "expected"), [(0.01, 0.007, 2), (0.01, 0.03, 1), (0.01, 0.3, 1)])
def test_the_faster_number_of_threads_is_used(one: float, more: float, expected: int) -> None:
    machine = Machine(one, more)
    chosen = FastestThreads(2, machine.clock)
    run(machine, chosen, 20)
    used = run(machine, chosen, 1000)
    # At most four trials of the other number within ten seconds, of at most four steps each and one back.
    assert used.count(expected) >= 1000 - 4 * 5
    assert torch.get_num_threads() == 1


def test_trials_of_spinning_threads_cost_little() -> None:
    """With threads that are thirty times as slow, all trials together take a tenth of the time."""
    machine = Machine(0.003, 0.09)
    chosen = FastestThreads(2, machine.clock)
    run(machine, chosen, 2000)
    assert machine.now < 1.1 * 2000 * machine.one


def test_the_choice_follows_the_load() -> None:
    machine = Machine(0.003, 0.002)
    chosen = FastestThreads(2, machine.clock)
    run(machine, chosen, 100)
    machine.more = 0.02
    used = run(machine, chosen, 100)
    assert used.count(2) <= 6
    machine.more = 0.002
    # The longest pause between two trials, and the trial.
    n_steps = int(2 * _threads.LONGEST / machine.one)
    assert run(machine, chosen, n_steps + 100)[-50:] == [2] * 50


def test_one_thread_is_never_exceeded() -> None:
    machine = Machine(0.01, 0.001)
    assert set(run(machine, FastestThreads(1, machine.clock), 50)) == {1}


def test_an_error_restores_the_number_of_threads() -> None:
    def fail() -> None:
        raise RuntimeError

    with threads(2):
        with pytest.raises(RuntimeError):
            FastestThreads(2).run(fail, work=1)
        assert torch.get_num_threads() == 2
    assert torch.get_num_threads() == 1


def test_results_that_depend_on_threads_are_noticed() -> None:
    def depends() -> list[Tensor]:
        return [torch.ones(2) / (1 + torch.get_num_threads())]

    assert not same_on_threads(depends, 2)
    assert same_on_threads(lambda: [torch.ones(2)], 2)


def test_small_models_run_on_one_thread() -> None:
    with threads(2):
        with threads_for(_threads.SMALL - 1):
            assert torch.get_num_threads() == 1
        with threads_for(_threads.SMALL):
            assert torch.get_num_threads() == 2
        with one_thread():
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 2


D, K, N = 131, 30, 170


def trained(
    law: type[Law], e_step: ContrastiveDivergence, density: float, momentum: float
) -> dict[str, Tensor]:
    """Everything that a run of two epochs holds in the end; the last batch of each is smaller."""
    u = torch.frac(torch.arange(N * D).reshape(N, D) * 0.6180339887)
    v, g = (u < density).float(), torch.Generator().manual_seed(0)
    start = initial_ensemble(v, K, law=law, generator=g)
    m_step = EffectiveAscent(0.2, momentum=momentum, settle_every=2)
    run = Training(start, e_step=e_step, m_step=m_step, batch_size=80, generator=g).fit(v, 2)
    assert run._engine._fused is not None
    return {**run._engine.ascent.tensors(), **run._engine.memory}


@pytest.mark.parametrize("law", [Point, Bernoulli, Gaussian])
@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("density", [0.06, 0.6])
def test_a_run_does_not_depend_on_threads(
    law: type[Law],
    persistent: bool,
    density: float,
    two_threads: Callable[[], AbstractContextManager[None]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Bit for bit, with lists of units and with dense products, on two threads in every step."""
    monkeypatch.setattr(products, "NARROW", 1)
    e_step, momentum = ContrastiveDivergence(persistent=persistent), 0.5 * persistent
    expected = trained(law, e_step, density, momentum)
    monkeypatch.setattr(FastestThreads, "run", lambda self, step, *, work: on_all(self, step))
    with two_threads():
        found = trained(law, e_step, density, momentum)
    for name, value in expected.items():
        assert torch.equal(value, found[name]), name


def on_all(chosen: FastestThreads, step: Callable[[], None]) -> None:
    with threads(chosen.n_threads):
        step()


def test_a_difference_in_the_last_bits_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: v W with weights that are off by one part in ten million."""
    monkeypatch.setattr(products, "NARROW", 1)
    expected = trained(Point, ContrastiveDivergence(), 0.06, 0.0)
    kernel = products._hidden

    def inexact(work: int, v: Tensor, listed: Tensor, n_listed: Tensor, W: Tensor, *rest: object) -> None:
        kernel(work, v, listed, n_listed, W * (1 + 1e-7), *rest)

    monkeypatch.setattr(products, "_hidden", inexact)
    found = trained(Point, ContrastiveDivergence(), 0.06, 0.0)
    assert not torch.equal(expected["W/x"], found["W/x"])


def test_the_last_python_thread_restores_the_limit() -> None:
    """Libraries have one limit for the process: it lasts until all that wanted it have left."""

    def counts() -> set[int]:
        return {pool["num_threads"] for pool in threadpool_info()}

    limit = _threads._Limit()
    with threadpool_limits(2):
        before = counts()
        assert max(before) == 2
        limit.enter()
        limit.enter()
        limit.leave()
        assert counts() == {1}
        limit.leave()
        assert counts() == before


@pytest.mark.parametrize(("n", "expected"), [(_threads.FEW_ENTRIES - 1, 1), (_threads.FEW_ENTRIES, 2)])
def test_small_tables_are_handled_on_one_thread(n: int, expected: int) -> None:
    with threadpool_limits(2), threads_for_entries(n):
        assert max(pool["num_threads"] for pool in threadpool_info()) == expected
