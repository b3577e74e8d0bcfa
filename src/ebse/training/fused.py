"""Collapsed contrastive divergence in preallocated buffers: the products, and one pass beside each.

The plain twin is :meth:`ebse.training.ContrastiveDivergence.counted_phases` and then the M-step's ``step``;
given the same key both make the same numbers.
"""

from typing import NamedTuple, final

import torch
from torch import Tensor

from ebse import noise
from ebse.kernels.units import draw_units, mean_and_draw_units, mean_units
from ebse.sampling.state import START
from ebse.training.effective import EffectiveClimb, Stack
from ebse.training.phases import ContrastiveDivergence, Memory


@final
class FusedDivergence:
    """Buffers for batches of up to ``n_rows`` rows, and the step that uses them.

    Both phases lie in one array each, v = [v; v′] and h = [h/n; −h′/m], and two more rows for the terms of
    centring, so that the gradient is one product.
    """

    def __init__(self, settings: ContrastiveDivergence, climb: EffectiveClimb, n_rows: int) -> None:
        self.settings, self.climb = settings, climb
        D, K = climb.W.shape
        new = climb.W.new_empty
        self._v, self._h = new(2 * n_rows + 2, D), new(2 * n_rows + 2, K)
        self._down, self._up, self._drawn = new(n_rows, D), new(n_rows, K), new(n_rows, K)
        self._W_T = climb.W.T
        self._views: dict[int, _Views] = {}

    @property
    def batch(self) -> Tensor:
        """Where the rows of a mini-batch may be written, so that they need not be copied."""
        return self._v[: len(self._down)]

    def step(self, v: Tensor, memory: Memory, factor: float, key: int) -> None:
        """E-step and M-step on the batch v (n, D); persistent chains in ``memory`` go on in place."""
        W, b, c = self.climb.W, self.climb.b, self.climb.c
        k, persistent = self.settings.k, self.settings.persistent
        n = v.shape[0]
        m = memory["v"].shape[0] if persistent else n
        x = self._views.get(n) or self._viewed(n, m)
        if v.data_ptr() != x.v.data_ptr():
            x.v.copy_(v)
        torch.mm(x.v, W, out=x.up)
        if persistent:
            h = memory["h"]
            mean_units(x.up, c, mean=x.h, weight=1 / n)
        else:
            h = x.drawn
            mean_and_draw_units(x.up, c, noise.subkey(key, START), mean=x.h, drawn=h, weight=1 / n)
        for sweep in range(k):
            torch.mm(h, self._W_T, out=x.down)
            draw_units(x.down, b, noise.subkey(key, 2 * sweep), drawn=x.v_model)
            torch.mm(x.v_model, W, out=x.up_model)
            h_key = noise.subkey(key, 2 * sweep + 1)
            if sweep < k - 1:
                draw_units(x.up_model, c, h_key, drawn=h)
            elif persistent:
                mean_and_draw_units(x.up_model, c, h_key, mean=x.h_model, drawn=h, weight=-1 / m)
            else:
                mean_units(x.up_model, c, mean=x.h_model, weight=-1 / m)
        if persistent:
            memory["v"].copy_(x.v_model)
        self.climb.move(x.stack, factor)

    def _viewed(self, n: int, m: int) -> "_Views":
        stack = Stack(self._v[: n + m + 2], self._h[: n + m + 2], n)
        views = _Views(
            stack,
            stack.v_rows[:n],
            stack.h_rows[:n],
            stack.v_rows[n:],
            stack.h_rows[n:],
            self._up[:n],
            self._drawn[:n],
            self._down[:m],
            self._up[:m],
        )
        self._views[n] = views
        return views


class _Views(NamedTuple):
    """Parts of the buffers for a batch of a certain size."""

    stack: Stack
    v: Tensor
    h: Tensor
    v_model: Tensor
    h_model: Tensor
    up: Tensor
    drawn: Tensor
    down: Tensor
    up_model: Tensor
