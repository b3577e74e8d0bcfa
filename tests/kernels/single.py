"""Ensembles and chains in single precision, in odd shapes and with extreme noise."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

from ebse.laws import Bernoulli, Gaussian, Law
from ebse.models import RestrictedBoltzmannEnsemble
from ebse.sampling import State
from examples import LAWS

SHAPES = [(1, 1), (3, 2), (8, 16), (17, 9), (40, 33)]
Shape = tuple[int, int]


def _spread(shape: Shape, scale: float) -> torch.Tensor:
    return scale * torch.randn(shape, generator=torch.Generator().manual_seed(9), dtype=torch.float32)


WEIGHTS: dict[str, Callable[[Shape], Law]] = {
    "bernoulli": lambda shape: Bernoulli(_spread(shape, 1.5), torch.sigmoid(_spread(shape, 1.0))),
    "rare": lambda shape: Bernoulli(_spread(shape, 5.0), 1e-6),
    "certain": lambda shape: Bernoulli(_spread(shape, 5.0), 1 - 1e-6),
    "regauged": lambda shape: Bernoulli(_spread(shape, 2.0), 0.5).with_noise(p=0.01),
    "gaussian": lambda shape: Gaussian(_spread(shape, 1.0), _spread(shape, 0.7).abs()),
}


def ensemble(W: str, D: int, K: int) -> RestrictedBoltzmannEnsemble:
    """Float32 connections of the named kind, Gaussian visible and fixed hidden biases."""
    biases = RestrictedBoltzmannEnsemble(
        W=LAWS["point"]((D, K)), b=LAWS["gaussian"]((D,)), c=LAWS["point"]((K,))
    )
    return single(biases).with_laws(W=WEIGHTS[W]((D, K)))


def single(small: RestrictedBoltzmannEnsemble) -> RestrictedBoltzmannEnsemble:
    """The ensemble in float32, which the kernels serve."""
    laws = {
        letter: law.with_alpha({name: x.float() for name, x in law.alpha.items()})
        for letter, law in small.laws.items()
    }
    return small.with_laws(**laws)


def chains(N: int, D: int, K: int, *, seed: int = 0) -> State:
    """Random binary units in float32."""
    g = torch.Generator().manual_seed(seed)
    v, h = (torch.rand(N, n, generator=g) < 0.5 for n in (D, K))
    return State(v.float(), h.float())


@contextmanager
def threads(n: int) -> Iterator[None]:
    """n threads, for torch and for the kernels, which follow it."""
    before = torch.get_num_threads()
    torch.set_num_threads(n)
    try:
        yield
    finally:
        torch.set_num_threads(before)
