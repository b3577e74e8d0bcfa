"""The fused step of contrastive divergence: products in preallocated buffers, and one pass beside each.

The plain version is :meth:`ebse.training.ContrastiveDivergence.counted_phases` followed by ``step`` of the
ascent; given the same key both compute the same.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import NamedTuple, final

import torch
from torch import Tensor

from ebse import rng
from ebse._threads import FastestThreads, same_on_threads, threads
from ebse.kernels.products import Array, Products
from ebse.sampling.state import START
from ebse.training.optim.effective_ascent import EffectiveState, PhaseStack
from ebse.training.phases import ContrastiveDivergence, Memory


# Cached for the process: the answer is the same for every run of these sizes, and costs as much as some
# steps.
@lru_cache(maxsize=1_024)
def _same_products(D: int, K: int, n: int, m: int, dtype: torch.dtype, n_threads: int) -> bool:
    """Whether products of n and m rows of D and K units are the same bits on one thread and on n_threads.

    The order in which a library adds up depends on shapes, not on values, so that random values show it. The
    kernels of :mod:`ebse.kernels` do not depend on the number of threads for any shape.
    """
    rows, g = n + m + 2, torch.Generator().manual_seed(0)
    v, h, W = (torch.empty(s, dtype=dtype).normal_(generator=g) for s in ((rows, D), (rows, K), (D, K)))
    mu, lam = v[0], h[0]

    def compute() -> list[Tensor]:
        products = [v[:n] @ W, v[n : n + m] @ W, h[:m] @ W.T, torch.addmm(W, v.T, h)]
        centering = [h @ lam, v @ mu, v.T @ v[:, 0], h.T @ h[:, 0], W @ lam, W.T @ mu]
        return products + centering

    return same_on_threads(compute, n_threads)


@final
class FusedDivergence:
    """Buffers for batches of up to ``n_rows`` rows, and the step that uses them.

    Both phases are in one array each, v = [v; v′] and h = [h/n; −h′/m], with two more rows for the terms of
    centering, so that the gradient is one product.
    """

    def __init__(self, settings: ContrastiveDivergence, ascent: EffectiveState, n_rows: int) -> None:
        self.settings, self.ascent = settings, ascent
        D, K = ascent.W.shape
        new = ascent.W.new_empty
        self._v, self._h = new(2 * n_rows + 2, D), new(2 * n_rows + 2, K)
        self._down, self._drawn = new(n_rows, D), new(n_rows, K)
        self._b, self._c = ascent.b.numpy(), ascent.c.numpy()
        self._products = Products(self._v, ascent.W, n_rows)
        self._views: dict[int, _Views] = {}
        self._threads = FastestThreads(torch.get_num_threads())

    @property
    def batch(self) -> Tensor:
        """A buffer for the rows of a mini-batch, so that they need not be copied."""
        return self._v[: len(self._down)]

    def step(self, v: Tensor, memory: Memory, factor: float, key: int) -> None:
        """E-step and M-step on the batch v (n, D); persistent chains in ``memory`` are updated in place.

        On one thread or on all, whichever is faster at present; the results are the same bits.
        """
        n = len(v)
        if self._any_threads(n, len(memory["v"]) if self.settings.persistent else n):
            self._threads.run(lambda: self._step(v, memory, factor, key), work=n)
        else:
            with threads(1):
                self._step(v, memory, factor, key)

    @contextmanager
    def threads(self) -> Iterator[None]:
        """One thread outside the steps; each step chooses one thread or as many as torch uses now."""
        if self._threads.n_threads != torch.get_num_threads():
            self._threads = FastestThreads(torch.get_num_threads())
        with threads(1):
            yield

    def _step(self, v: Tensor, memory: Memory, factor: float, key: int) -> None:
        products, persistent = self._products, self.settings.persistent
        n = v.shape[0]
        m = memory["v"].shape[0] if persistent else n
        x = self._views.get(n) or self._viewed(n, m)
        # With persistent chains the sample of h at the data is not used.
        h = memory["h"] if persistent else x.drawn
        h_array = h.numpy()
        if v.data_ptr() != x.v.data_ptr():
            x.v.copy_(v)
        products.take(0, n)
        products.hidden(0, self._c, rng.subkey(key, START), 1 / n, mean=x.h_data, drawn=x.drawn_array)
        for sweep in range(self.settings.k):
            products.down(h, out=x.down)
            products.draw(n, x.down_array, self._b, rng.subkey(key, 2 * sweep))
            h_key = rng.subkey(key, 2 * sweep + 1)
            products.hidden(n, self._c, h_key, -1 / m, mean=x.h_model, drawn=h_array)
        if persistent:
            memory["v"].copy_(x.v_model)
        self.ascent.update(x.stack, factor)

    def _any_threads(self, n: int, m: int) -> bool:
        """Whether the library's products of a step on n and m rows do not depend on the number of threads."""
        n_threads = self._threads.n_threads
        D, K = self.ascent.W.shape
        return n_threads == 1 or _same_products(D, K, n, m, self.ascent.W.dtype, n_threads)

    def _viewed(self, n: int, m: int) -> "_Views":
        stack = PhaseStack(self._v[: n + m + 2], self._h[: n + m + 2], n, self._products)
        drawn, down = self._drawn[:n], self._down[:m]
        views = _Views(
            stack,
            v=stack.v_rows[:n],
            v_model=stack.v_rows[n:],
            h_data=stack.h_rows[:n].numpy(),
            h_model=stack.h_rows[n:].numpy(),
            drawn=drawn,
            drawn_array=drawn.numpy(),
            down=down,
            down_array=down.numpy(),
        )
        self._views[n] = views
        return views


class _Views(NamedTuple):
    """Parts of the buffers for one batch size."""

    stack: PhaseStack
    v: Tensor
    v_model: Tensor
    h_data: Array
    h_model: Array
    drawn: Tensor
    drawn_array: Array
    down: Tensor
    down_array: Array
