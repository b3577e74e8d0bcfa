"""Collapsed contrastive divergence in preallocated buffers: the products, and one pass beside each.

The plain twin is :meth:`ebse.training.ContrastiveDivergence.counted_phases` and then the M-step's ``step``;
given the same key both make the same numbers.
"""

from typing import NamedTuple, final

from torch import Tensor

from ebse import rng
from ebse.kernels.products import Array, Products
from ebse.sampling.state import START
from ebse.training.optim.effective_ascent import EffectiveClimb, Stack
from ebse.training.phases import ContrastiveDivergence, Memory


@final
class FusedDivergence:
    """Buffers for batches of up to ``n_rows`` rows, and the step that uses them.

    Both phases lie in one array each, v = [v; v′] and h = [h/n; −h′/m], and two more rows for the terms of
    centering, so that the gradient is one product.
    """

    def __init__(self, settings: ContrastiveDivergence, climb: EffectiveClimb, n_rows: int) -> None:
        self.settings, self.climb = settings, climb
        D, K = climb.W.shape
        new = climb.W.new_empty
        self._v, self._h = new(2 * n_rows + 2, D), new(2 * n_rows + 2, K)
        self._down, self._drawn = new(n_rows, D), new(n_rows, K)
        self._b, self._c = climb.b.numpy(), climb.c.numpy()
        self._products = Products(self._v, climb.W, n_rows)
        self._views: dict[int, _Views] = {}

    @property
    def batch(self) -> Tensor:
        """Where the rows of a mini-batch may be written, so that they need not be copied."""
        return self._v[: len(self._down)]

    def step(self, v: Tensor, memory: Memory, factor: float, key: int) -> None:
        """E-step and M-step on the batch v (n, D); persistent chains in ``memory`` go on in place."""
        products, persistent = self._products, self.settings.persistent
        n = v.shape[0]
        m = memory["v"].shape[0] if persistent else n
        x = self._views.get(n) or self._viewed(n, m)
        # Where chains persist, the draw at the data leads nowhere.
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
        self.climb.move(x.stack, factor)

    def _viewed(self, n: int, m: int) -> "_Views":
        stack = Stack(self._v[: n + m + 2], self._h[: n + m + 2], n, self._products)
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
    """Parts of the buffers for a batch of a certain size."""

    stack: Stack
    v: Tensor
    v_model: Tensor
    h_data: Array
    h_model: Array
    drawn: Tensor
    drawn_array: Array
    down: Tensor
    down_array: Array
