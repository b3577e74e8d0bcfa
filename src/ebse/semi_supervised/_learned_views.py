"""Views by a learned law of correlated weights: random first layers that move rows as neighbors differ."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ebse._stages import stage
from ebse.laws._low_rank import LowRankGaussian
from ebse.semi_supervised._knn_graph import random_walk

Rows = npt.NDArray[np.float32]

N_MODES, N_AXES = 16, 100
"""Modes of the law, and leading principal components that it moves."""
BATCH, RATE = 512, 3e-3
"""Pairs in a step of Adam, and the largest learning rate."""
FIRST = 0.3
"""Standard deviation of the first modes, relative to 1 / √(number of inputs)."""


class LearnedViews(NamedTuple):
    """Views of rows: products with a first layer whose weights are drawn anew for every row.

    y, the leading components of a row, becomes ŷ θ, ŷ = (y, 1), with a matrix θ = W̄ + Σ_k s_k A_k,
    s ~ N(0, I), whose mean W̄ leaves y as it is. Connections vary together: one s_k moves a row as a neighbor
    of it might differ.
    """

    law: LowRankGaussian
    scale: float
    """Of the components: the law was fitted to y / scale."""

    def __call__(self, y: Tensor, *, generator: torch.Generator) -> Tensor:
        """A view of each row y (n, P)."""
        modes = self.law.modes_of(self.inputs(y))
        s = torch.randn(len(y), 1, modes.shape[1], generator=generator, dtype=y.dtype)
        moved = y.clone()
        moved[:, : modes.shape[2]] += (s @ modes)[:, 0] * self.scale
        return moved

    def inputs(self, y: Tensor) -> Tensor:
        """ŷ = (y / scale, 1) of the components that the law moves (n, r + 1)."""
        return with_one(y[:, : self.law.shape[1]] / self.scale)


def with_one(y: Tensor) -> Tensor:
    """(y, 1) of rows y (n, r)."""
    return torch.cat([y, y.new_ones(len(y), 1)], 1)


def expected_loss(modes: Tensor, step: Tensor, log_variance: Tensor) -> tuple[Tensor, Tensor]:
    """EM for step = Σ_k s_k M_k + noise: minus the expected log-likelihood, and the explained part of steps.

    M_k = ŷ A_k are the modes of each row (n, K, r), and the noise is N(0, σ² I). The E-step is without
    gradient: s given the step is N(P M step, σ² P), P = (M Mᵀ + σ² I)⁻¹. The loss is its mean over rows of

        (|step − Mᵀ s|² + tr(σ² P M Mᵀ)) / (2 σ²) + (r / 2) log σ²,

    and its gradient is that of the log-likelihood log N(step; 0, Mᵀ M + σ² I), with s summed out.

    References
    ----------
    A. P. Dempster, N. M. Laird and D. B. Rubin, "Maximum likelihood from incomplete data via the EM
    algorithm", 1977.
    """
    n_modes, r = modes.shape[1:]
    variance = log_variance.exp()
    products = modes @ modes.transpose(1, 2)
    with torch.no_grad():
        P = torch.linalg.inv(products + variance * torch.eye(n_modes, dtype=modes.dtype))
        s = P @ (modes @ step[:, :, None])
        covariance = variance * P
    left = step - (s.transpose(1, 2) @ modes)[:, 0]
    squares = (left**2).sum(1)
    spread = (covariance * products).sum((1, 2))
    loss = ((squares + spread) / (2 * variance)).mean() + r / 2 * log_variance
    return loss, 1 - squares.detach().sum() / (step**2).sum()


def fitted_views(
    Y: Rows, neighbors: npt.NDArray[np.int64], *, n_walk_steps: int, n_updates: int, seed: int
) -> LearnedViews:
    """The law that explains best, without labels, how the ends of random walks differ from their starts.

    Y (N, P) are principal components. By EM, whose M-step is a step of Adam on random pairs.
    """
    r = min(N_AXES, Y.shape[1])
    scale = float(np.sqrt(np.mean(Y[:, :r] ** 2))) or 1.0
    generator = torch.Generator().manual_seed(seed)
    # Rows are in single precision, whatever torch's default is.
    single = torch.float32
    A = torch.randn(N_MODES, r + 1, r, generator=generator, dtype=single) * (FIRST / np.sqrt(r + 1))
    A.requires_grad_()
    log_variance = torch.zeros((), dtype=single, requires_grad=True)
    optimizer = torch.optim.Adam([A, log_variance], RATE)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, total_steps=n_updates + 1)
    W_bar = torch.eye(r + 1, r, dtype=single)
    rng = np.random.default_rng([seed, 0])
    with stage("learned views", n_updates, "update") as done:
        for _ in range(n_updates):
            rows = rng.integers(len(Y), size=min(BATCH, len(Y)))
            ends = random_walk(neighbors, n_walk_steps, rows, rng=rng)
            start, end = (torch.from_numpy(Y[at, :r] / np.float32(scale)) for at in (rows, ends))
            modes = LowRankGaussian(W_bar, A).modes_of(with_one(start))
            loss, _ = expected_loss(modes, end - start, log_variance)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()
            done(1)
    return LearnedViews(LowRankGaussian(W_bar, A.detach()), scale)
