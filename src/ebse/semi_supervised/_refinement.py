"""Refinement of an encoder: clusters become sharp, balanced, and invariant to small changes of a row."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional

from ebse.semi_supervised._encoder import Optimization, info_nce

Array = npt.NDArray[np.float32]
Index = npt.NDArray[np.intp]

INVERSE_TEMPERATURE = 10.0
"""Factor of z before the heads: rows of length 1 would make flat probabilities."""
N_HEAD_STEPS, HEAD_BATCH, HEAD_RATE = 400, 512, 1e-2
"""Steps of Adam on the heads alone, rows in each, and learning rate."""
INFORMATION, BALANCE, CONTRAST = 0.1, 4.0, 0.05
"""Weights of the mutual information, of the marginal in it, and of InfoNCE."""
PROBE = 0.1
"""Length of the random step, relative to a row's radius, at which the adversarial direction is found."""
SMALLEST = 1e-6
"""Of the frequencies of clusters."""


class Heads:
    """Cluster probabilities p = softmax(10 z W + b), for several clusterings of different sizes."""

    def __init__(self, sizes: Sequence[int], n_components: int, *, seed: int) -> None:
        self.sizes = list(sizes)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.linear = nn.Linear(n_components, sum(sizes)).float()

    def __call__(self, z: Tensor) -> list[Tensor]:
        """Logarithms of the cluster probabilities of rows z (n, r): (n, K) for each clustering."""
        scores = self.linear(INVERSE_TEMPERATURE * z).split(self.sizes, 1)
        return [functional.log_softmax(one, 1) for one in scores]

    def fit(self, z: Array, clusters: Sequence[Index], *, seed: int) -> None:
        """Learn to predict the clusters of rows z (N, r), which stay as they are."""
        rng = np.random.default_rng([seed, 1])
        optimizer = torch.optim.Adam(self.linear.parameters(), HEAD_RATE)
        targets = [torch.from_numpy(one.astype(np.int64)) for one in clusters]
        for _ in range(N_HEAD_STEPS):
            rows = rng.integers(len(z), size=HEAD_BATCH)
            log_p = self(torch.from_numpy(z[rows]))
            losses = [functional.nll_loss(p, t[rows]) for p, t in zip(log_p, targets, strict=True)]
            optimizer.zero_grad()
            torch.stack(losses).mean().backward()  # type: ignore[no-untyped-call]
            optimizer.step()


def divergence(log_p: list[Tensor], log_q: list[Tensor]) -> Tensor:
    """KL(p ‖ q) of rows, mean over rows and clusterings; p is a constant."""
    parts = [(p.detach().exp() * (p.detach() - q)).sum(1).mean() for p, q in zip(log_p, log_q, strict=True)]
    return torch.stack(parts).mean()


def information_loss(log_p: list[Tensor], priors: list[Tensor]) -> Tensor:
    """H(p | x) + 4 KL(mean p ‖ prior), mean over clusterings.

    Minus the mutual information of cluster and row, up to a constant, if the prior is uniform and the factor
    is 1: each row is in one cluster, and clusters keep their sizes.

    References
    ----------
    W. Hu et al., "Learning discrete representations via information maximizing self-augmented training",
    2017 (IMSAT).
    """
    losses = []
    for p, prior in zip(log_p, priors, strict=True):
        mean = p.exp().mean(0)
        entropy = -(p.exp() * p).sum(1).mean()
        losses.append(entropy + BALANCE * (mean * (mean.clamp_min(1e-9) / prior).log()).sum())
    return torch.stack(losses).mean()


class Refinement:
    """An encoder and heads under training, by AdamW, on rows and the ends of their random walks.

    The loss, mean over clusterings, is

        KL(p(x) ‖ p(x + r)) + KL(p(x) ‖ p(view of x)) + 0.1 [H(p | x) + 4 KL(mean p ‖ prior)] + 0.05 InfoNCE,

    r the adversarial step: of those of its length one that changes p much, to second order, by a step of the
    power method from a random direction.

    References
    ----------
    T. Miyato et al., "Virtual adversarial training", 2018.
    W. Hu et al., "Learning discrete representations via information maximizing self-augmented training",
    2017.
    """

    def __init__(
        self,
        net: nn.Sequential,
        heads: Heads,
        priors: Sequence[npt.NDArray[np.floating]],
        *,
        n_updates: int,
        learning_rate: float,
        temperature: float,
        step: float,
    ) -> None:
        self.net, self.heads = net, heads
        self.priors = [torch.from_numpy(np.maximum(p, SMALLEST)).float() for p in priors]
        self.temperature, self.length = temperature, step
        self.optimization = Optimization(
            {"net": net, "heads": heads.linear}, n_updates=n_updates, learning_rate=learning_rate
        )

    def update(
        self,
        x: Tensor,
        viewed: Tensor | None,
        radius: Tensor,
        *,
        generator: torch.Generator,
    ) -> float:
        """One step on rows x (2n, P), of which i and n + i are the ends of a walk; the loss before it.

        ``viewed`` (2n, P) are views of the rows, if there are any, and ``radius`` (2n, 1) is how far
        neighbors of each row are.
        """
        z = self._z(x)
        log_p = self.heads(z)
        with _running_statistics_kept(self.net):
            probe = torch.randn(x.shape, generator=generator, dtype=x.dtype)
            probe = (
                functional.normalize(probe.flatten(1), dim=1).view_as(x) * PROBE * radius
            ).requires_grad_()
            (gradient,) = torch.autograd.grad(divergence(log_p, self.heads(self._z(x + probe))), probe)
            adversarial = functional.normalize(gradient.flatten(1), dim=1).view_as(x) * self.length * radius
            loss = divergence(log_p, self.heads(self._z(x + adversarial)))
            if viewed is not None:
                loss = loss + divergence(log_p, self.heads(self._z(viewed)))
        loss = loss + INFORMATION * information_loss(log_p, self.priors)
        loss = loss + CONTRAST * info_nce(z, self.temperature)
        self.optimization.step(loss)
        return float(loss.detach())

    def _z(self, x: Tensor) -> Tensor:
        return functional.normalize(self.net(x), dim=1)


@contextmanager
def _running_statistics_kept(net: nn.Module) -> Iterator[None]:
    """Batch statistics as in training, without counting them: only rows as they are make the running ones."""
    norms = [m for m in net.modules() if isinstance(m, (nn.BatchNorm1d, nn.BatchNorm2d))]
    held = [m.momentum for m in norms]
    for m in norms:
        m.momentum = 0.0
    try:
        yield
    finally:
        for m, momentum in zip(norms, held, strict=True):
            m.momentum = momentum
