"""One law of each kind with uneven parameters, and small ensembles made of them."""

from collections.abc import Callable

import torch

from ebse.laws import Bernoulli, Gaussian, Laplace, Law, Levels, Point, SpikeSlab, Uniform
from ebse.models import RestrictedBoltzmannEnsemble


def _spread(shape: tuple[int, ...], low: float, high: float, phase: float) -> torch.Tensor:
    """Uneven, fixed numbers between low and high."""
    n = torch.arange(1, torch.Size(shape).numel() + 1, dtype=torch.get_default_dtype())
    return (low + (high - low) * torch.frac(n * 0.6180339887 + phase)).reshape(shape)


def point(shape: tuple[int, ...]) -> Law:
    return Point(_spread(shape, -1.5, 1.5, 0.1))


def bernoulli(shape: tuple[int, ...]) -> Law:
    return Bernoulli(_spread(shape, -2.0, 2.0, 0.2), _spread(shape, 0.15, 0.9, 0.4))


def gaussian(shape: tuple[int, ...]) -> Law:
    return Gaussian(_spread(shape, -1.5, 1.5, 0.3), _spread(shape, 0.2, 1.1, 0.5))


def spike_slab(shape: tuple[int, ...]) -> Law:
    return SpikeSlab(
        _spread(shape, -1.5, 1.5, 0.7), _spread(shape, 0.2, 0.8, 0.1), _spread(shape, 0.2, 0.9, 0.6)
    )


def laplace(shape: tuple[int, ...]) -> Law:
    return Laplace(_spread(shape, -1.2, 1.2, 0.8), _spread(shape, 0.1, 0.45, 0.3))


def uniform(shape: tuple[int, ...]) -> Law:
    return Uniform(_spread(shape, -1.2, 1.2, 0.9), _spread(shape, 0.2, 2.0, 0.2))


def levels(shape: tuple[int, ...]) -> Law:
    return Levels(torch.tensor([-1.5, -0.25, 0.0, 1.0]), _spread((*shape, 4), 0.1, 0.9, 0.5))


LAWS: dict[str, Callable[[tuple[int, ...]], Law]] = {
    "point": point,
    "bernoulli": bernoulli,
    "gaussian": gaussian,
    "spike_slab": spike_slab,
    "laplace": laplace,
    "uniform": uniform,
    "levels": levels,
}


def ensemble(
    W: str = "bernoulli", b: str = "point", c: str = "point", *, D: int = 3, K: int = 2
) -> RestrictedBoltzmannEnsemble:
    """A small ensemble with the named laws."""
    return RestrictedBoltzmannEnsemble(W=LAWS[W]((D, K)), b=LAWS[b]((D,)), c=LAWS[c]((K,)))
