"""Matrix products with sparse binary units: sums over the units that are not 0, which are listed once.

At the density of MNIST, 13 %, the products of a step of contrastive divergence take half the time of dense
ones in batches of 100, and a quarter in batches of 10. Each thread works on a part of the rows of W, so that
these stay in its cache. The plain versions are :func:`torch.mm` and :meth:`torch.Tensor.addmm_`, which are
also used where units are dense. Results are the same bits on any number of threads.
"""

from typing import final

import numpy as np
import numpy.typing as npt
import torch
from numba import prange
from torch import Tensor

from ebse.kernels.units import draw, draw_row, mean_and_draw, mean_and_draw_row, numbered
from ebse.kernels.words import F32, U64, called, kernel, part

DENSE, NARROW = 0.3, 100
"""Fraction of units that are not 0 above which, and hidden units below which, dense products are used. At
784 × 400 both take the same time at a fraction of 0.35 to 0.4; with few hidden units the lists cost more than
they save."""

FEW = 64
"""Rows up to which h Wᵀ is faster here than in the library of matrix products."""

MANY = 512
"""Rows of both phases up to which sums go directly into W: rounding it every eight rows is harmless."""

MOST_PARTS = 8
"""Largest number of parts of W, one for each thread."""

W_PARTS = 2
"""Parts of the sum over the rows of W in v W: fixed, because the order of a sum changes its last bits."""

AT_ONCE = 8
"""Numbers that a processor adds at once, by which the work of a sum is divided."""

Array = npt.NDArray[np.generic]
Lists = tuple[Array, Array, Array]
"""Rows of v, the indices of their units that are not 0, and the numbers of these."""


@final
class Products:
    """v W, h Wᵀ and vᵀ h for the rows of one array v (N, D) and a matrix W (D, K), with draws on the way.

    Rows of v are listed or sampled first, which finds their units that are not 0; ``n_rows`` is the largest
    number of rows at once.
    """

    def __init__(self, v: Tensor, W: Tensor, n_rows: int) -> None:
        self._v, self._v_T, self._W, self._W_T = v, v.T, W, W.T
        self._listing = W.shape[1] >= NARROW
        shape = v.shape if self._listing else (len(v), 0)
        self._lists = v.numpy(), np.empty(shape, dtype=np.int32), np.zeros(len(v), dtype=np.int32)
        self._parts: dict[tuple[int, int], Lists] = {}
        # By first row, for the choice between lists and the dense product.
        self._n_on: dict[int, int] = {}
        self._W_array = W.numpy()
        self._a = W.new_empty(n_rows, W.shape[1])
        self._a_array = self._a.numpy()
        self._partial = np.empty((W_PARTS, *self._a.shape), dtype=np.float32)

    def take(self, first: int, last: int) -> None:
        """List the units of the rows of v from ``first`` to ``last``, after they were written."""
        if self._listing:
            lists = self._rows(first, last)
            self._n_on[first] = _take(lists[0].size, *lists)

    def draw(self, first: int, a: Array, bias: Array, key: int) -> None:
        """v = 1 where u < sigmoid(a + bias), u the random numbers of ``key``, from row ``first`` on."""
        lists = self._rows(first, first + len(a))
        if self._listing:
            self._n_on[first] = _draw(a.size, a, bias, U64(key), *lists)
        else:
            draw(a.size, a, bias, U64(key), numbered(len(a), None), lists[0])

    def hidden(self, first: int, bias: Array, key: int, weight: float, *, mean: Array, drawn: Array) -> None:
        """mean = weight · sigmoid(v W + bias) of the rows from ``first`` on, and samples of these units."""
        n, K = mean.shape
        lists = self._rows(first, first + n)
        work = self._work(self._n_on.get(first, 0), lists, K)
        units = bias, U64(key), F32(weight), mean, drawn
        if work is None:
            torch.mm(self._v[first : first + n], self._W, out=self._a[:n])
            mean_and_draw(mean.size, self._a_array[:n], *units)
        else:
            n_blocks = -(-_n_parts() // W_PARTS)
            _hidden(work, *lists, self._W_array, n_blocks, self._partial, *units)

    def down(self, h: Tensor, *, out: Tensor) -> None:
        """out (n, D) = h Wᵀ."""
        if len(out) <= FEW:
            _down(h.numel() * len(self._W) // AT_ONCE, h.numpy(), self._W_array, _n_parts(), out.numpy())
        else:
            torch.mm(h, self._W_T, out=out)

    def add_outer(self, h: Tensor, *, into: Tensor, keep: float, weight: float) -> None:
        """into (D, K) = keep · into + weight · vᵀ h for as many rows of v as h (n, K) has."""
        n, K = h.shape
        lists = self._rows(0, n)
        work = self._work(int(np.add.reduce(lists[2])), lists, K)
        if work is None:
            into.addmm_(self._v_T[:, :n], h, beta=keep, alpha=weight)
        else:
            _add_outer(work, *lists, h.numpy(), _n_parts(), into.numpy(), F32(keep), F32(weight))

    def _work(self, n_on: int, lists: Lists, K: int) -> int | None:
        """The work of adding up n_on listed rows, or None where the dense product is used."""
        return None if not self._listing or n_on > DENSE * lists[0].size else n_on * K // AT_ONCE

    def _rows(self, first: int, last: int) -> Lists:
        """Rows of v, their units that are not 0, and the numbers of these."""
        lists = self._parts.get((first, last))
        if lists is None:
            v, listed, n_listed = (x[first:last] for x in self._lists)
            lists = self._parts[first, last] = v, listed, n_listed
        return lists


def contrasts(v: Array, h: Array, n: int, *, sums_v: Array, sums_h: Array) -> None:
    """Mean of the first n rows of v (n + m, D) and of h (n + m, K), and its difference from the other m.

    h is already weighted by 1/n and −1/m, v is not; ``sums`` (2, ·) receive the mean and the difference.
    """
    _contrasts((v.size + h.size) // AT_ONCE, v, h, n, sums_v, sums_h)


def _n_parts() -> int:
    return min(torch.get_num_threads(), MOST_PARTS)


@part
def _list_row(v, listed):  # type: ignore[no-untyped-def]
    """List the units of one row that are not 0, and return their number."""
    r = 0
    for i in range(len(v)):
        # Always written, and overwritten by the next one, which avoids a branch.
        listed[r] = i
        r += 1 if v[i] != F32(0.0) else 0
    return r


@kernel
def _take(v, listed, n_listed):  # type: ignore[no-untyped-def]
    n_on = 0
    for n in prange(len(v)):
        n_listed[n] = _list_row(v[n], listed[n])
        n_on += n_listed[n]
    return n_on


@kernel
def _draw(a, bias, key, v, listed, n_listed):  # type: ignore[no-untyped-def]
    n_on = 0
    for n in prange(len(v)):
        draw_row(a[n], bias, key, U64(n), v[n])
        n_listed[n] = _list_row(v[n], listed[n])
        n_on += n_listed[n]
    return n_on


@called
def _position(listed, i):  # type: ignore[no-untyped-def]
    """The position of i in a sorted list, or where it would be inserted."""
    low, high = 0, len(listed)
    while low < high:
        middle = (low + high) >> 1
        if listed[middle] < i:
            low = middle + 1
        else:
            high = middle
    return low


@part
def _add_rows(X, rows, weights, n, total):  # type: ignore[no-untyped-def]
    """total (K) += Σ_r weights_r X[rows_r]; eight rows at a time, to save loads and stores."""
    K, r = total.shape[0], 0
    while r + 8 <= n:
        x0, x1, x2, x3 = X[rows[r]], X[rows[r + 1]], X[rows[r + 2]], X[rows[r + 3]]
        x4, x5, x6, x7 = X[rows[r + 4]], X[rows[r + 5]], X[rows[r + 6]], X[rows[r + 7]]
        w0, w1, w2, w3 = weights[r], weights[r + 1], weights[r + 2], weights[r + 3]
        w4, w5, w6, w7 = weights[r + 4], weights[r + 5], weights[r + 6], weights[r + 7]
        for j in range(K):
            first = (w0 * x0[j] + w1 * x1[j]) + (w2 * x2[j] + w3 * x3[j])
            total[j] += first + ((w4 * x4[j] + w5 * x5[j]) + (w6 * x6[j] + w7 * x7[j]))
        r += 8
    if r + 4 <= n:
        x0, x1, x2, x3 = X[rows[r]], X[rows[r + 1]], X[rows[r + 2]], X[rows[r + 3]]
        w0, w1, w2, w3 = weights[r], weights[r + 1], weights[r + 2], weights[r + 3]
        for j in range(K):
            total[j] += (w0 * x0[j] + w1 * x1[j]) + (w2 * x2[j] + w3 * x3[j])
        r += 4
    if r + 2 <= n:
        x0, x1, w0, w1 = X[rows[r]], X[rows[r + 1]], weights[r], weights[r + 1]
        for j in range(K):
            total[j] += w0 * x0[j] + w1 * x1[j]
        r += 2
    if r < n:
        x0, w0 = X[rows[r]], weights[r]
        for j in range(K):
            total[j] += w0 * x0[j]


@kernel
def _hidden(v, listed, n_listed, W, n_blocks, partial, bias, key, weight, mean, drawn):  # type: ignore[no-untyped-def]
    N, D = v.shape
    K = W.shape[1]
    for task in prange(W_PARTS * n_blocks):
        part_of_W, block = task // n_blocks, task % n_blocks
        start, stop = part_of_W * D // W_PARTS, (part_of_W + 1) * D // W_PARTS
        weights = np.empty(D, dtype=np.float32)
        for n in range(block * N // n_blocks, (block + 1) * N // n_blocks):
            v_n, listed_n = v[n], listed[n, : n_listed[n]]
            first, last = _position(listed_n, start), _position(listed_n, stop)
            for r in range(first, last):
                weights[r] = v_n[listed_n[r]]
            total = partial[part_of_W, n]
            for j in range(K):
                total[j] = F32(0.0)
            _add_rows(W, listed_n[first:], weights[first:], last - first, total)
    for n in prange(N):
        total = partial[0, n]
        for one in range(1, W_PARTS):
            more = partial[one, n]
            for j in range(K):
                total[j] += more[j]
        mean_and_draw_row(total, bias, key, n, weight, mean[n], drawn[n])


@called
def _inner(x, y):  # type: ignore[no-untyped-def]
    """Σ_j x_j y_j."""
    total = F32(0.0)
    for j in range(len(x)):
        total += x[j] * y[j]
    return total


@kernel
def _down(h, W, n_parts, out):  # type: ignore[no-untyped-def]
    N, K = h.shape
    D = len(W)
    n_pairs = D // 2
    for one in prange(n_parts):
        # Pairs of rows are never split, so that every sum is made the same way whatever the number of parts.
        start, stop = one * n_pairs // n_parts * 2, (one + 1) * n_pairs // n_parts * 2
        if one == n_parts - 1:
            stop = D
        # Two rows of W and five of h at a time: seven loads for ten products.
        n_even, n_fives = (stop - start) // 2 * 2, N // 5 * 5
        for i in range(start, start + n_even, 2):
            W0, W1 = W[i], W[i + 1]
            for n in range(0, n_fives, 5):
                h0, h1, h2, h3, h4 = h[n], h[n + 1], h[n + 2], h[n + 3], h[n + 4]
                s00 = s01 = s02 = s03 = s04 = s10 = s11 = s12 = s13 = s14 = F32(0.0)
                for j in range(K):
                    w0, w1 = W0[j], W1[j]
                    x0, x1, x2, x3, x4 = h0[j], h1[j], h2[j], h3[j], h4[j]
                    s00 += w0 * x0
                    s01 += w0 * x1
                    s02 += w0 * x2
                    s03 += w0 * x3
                    s04 += w0 * x4
                    s10 += w1 * x0
                    s11 += w1 * x1
                    s12 += w1 * x2
                    s13 += w1 * x3
                    s14 += w1 * x4
                out[n, i], out[n + 1, i], out[n + 2, i], out[n + 3, i], out[n + 4, i] = (
                    s00,
                    s01,
                    s02,
                    s03,
                    s04,
                )
                i1 = i + 1
                out[n, i1], out[n + 1, i1], out[n + 2, i1], out[n + 3, i1], out[n + 4, i1] = (
                    s10,
                    s11,
                    s12,
                    s13,
                    s14,
                )
            for n in range(n_fives, N):
                out[n, i], out[n, i + 1] = _inner(W0, h[n]), _inner(W1, h[n])
        for i in range(start + n_even, stop):
            for n in range(N):
                out[n, i] = _inner(W[i], h[n])


@kernel
def _add_outer(v, listed, n_listed, h, n_parts, into, keep, weight):  # type: ignore[no-untyped-def]
    N, D = v.shape
    K = h.shape[1]
    for one in prange(n_parts):
        start, stop = one * D // n_parts, (one + 1) * D // n_parts
        # For each column of v: the rows in which it is not 0.
        rows_of = np.empty((stop - start, N), dtype=np.int32)
        weights = np.empty((stop - start, N), dtype=np.float32)
        n_rows_of = np.zeros(stop - start, dtype=np.int32)
        for n in range(N):
            v_n, listed_n = v[n], listed[n, : n_listed[n]]
            for r in range(_position(listed_n, start), _position(listed_n, stop)):
                i = listed_n[r]
                m = n_rows_of[i - start]
                rows_of[i - start, m], weights[i - start, m] = n, weight * v_n[i]
                n_rows_of[i - start] = m + 1
        apart = np.empty(K, dtype=np.float32)
        for i in range(start, stop):
            into_i = into[i]
            if N > MANY:
                # W is then rounded once for all rows.
                total = apart
                for j in range(K):
                    total[j] = F32(0.0)
            else:
                total = into_i
                if keep != F32(1.0):
                    for j in range(K):
                        total[j] *= keep
            _add_rows(h, rows_of[i - start], weights[i - start], n_rows_of[i - start], total)
            if N > MANY:
                for j in range(K):
                    into_i[j] = keep * into_i[j] + total[j]


@kernel
def _contrasts(v, h, n_data, sums_v, sums_h):  # type: ignore[no-untyped-def]
    n_model = len(v) - n_data
    for one in prange(2):
        if one == 0:
            _contrast(v, n_data, F32(1.0) / F32(n_data), F32(-1.0) / F32(n_model), sums_v[0], sums_v[1])
        else:
            _contrast(h, n_data, F32(1.0), F32(1.0), sums_h[0], sums_h[1])


@called
def _contrast(x, n_data, of_data, of_model, mean, difference):  # type: ignore[no-untyped-def]
    """mean = of_data · Σ of the first rows, difference = mean + of_model · Σ of the others."""
    for i in range(x.shape[1]):
        mean[i] = difference[i] = F32(0.0)
    for row in range(n_data):
        x_row = x[row]
        for i in range(x.shape[1]):
            mean[i] += x_row[i]
    for row in range(n_data, len(x)):
        x_row = x[row]
        for i in range(x.shape[1]):
            difference[i] += x_row[i]
    for i in range(x.shape[1]):
        mean[i] *= of_data
        difference[i] = mean[i] + of_model * difference[i]
