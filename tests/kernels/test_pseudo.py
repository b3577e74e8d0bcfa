"""Pseudo-log-likelihoods by the kernel against the plain sum in double precision."""

import pytest
import torch

from ebse.laws import Point
from ebse.training import pseudo_log_likelihood
from kernels.single import WEIGHTS, chains, ensemble, threads


@pytest.mark.parametrize("shape", [(1, 1), (3, 2), (17, 9), (40, 33)], ids=str)
@pytest.mark.parametrize("W", sorted(WEIGHTS))
@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("every", [1, 4, 60])
def test_the_kernel_agrees_with_the_plain_sum(
    W: str, shape: tuple[int, int], n_threads: int, every: int
) -> None:
    small = ensemble(W, *shape)
    v = chains(70, *shape).v
    wide = small.with_laws(
        **{
            letter: law.with_alpha({name: x.double() for name, x in law.alpha.items()})
            for letter, law in small.laws.items()
        }
    )
    with threads(n_threads):
        found = pseudo_log_likelihood(small, v, every=every)
    assert found.dtype == torch.float32
    expected = pseudo_log_likelihood(wide, v.double(), every=every)
    torch.testing.assert_close(found.double(), expected, rtol=1e-4, atol=1e-4)


def test_parameters_that_are_learned_get_gradients() -> None:
    small = ensemble("gaussian", 5, 3)
    W = small.W.alpha["theta_bar"].clone().requires_grad_()
    total = pseudo_log_likelihood(small.with_laws(W=Point(W)), chains(4, 5, 3).v).sum()
    (gradient,) = torch.autograd.grad(total, W)
    assert bool(gradient.any())


@pytest.mark.parametrize("scale", [5.0, 15.0, 30.0])
def test_strong_weights(scale: float) -> None:
    """Hidden units that are certain, and weights whose exponentials overflow."""
    small = ensemble("certain", 8, 16)
    strong = small.with_laws(W=Point(scale * small.W.alpha["theta_bar"]))
    v = chains(20, 8, 16).v
    wide = strong.with_laws(
        **{
            letter: law.with_alpha({name: x.double() for name, x in law.alpha.items()})
            for letter, law in strong.laws.items()
        }
    )
    expected = pseudo_log_likelihood(wide, v.double())
    torch.testing.assert_close(pseudo_log_likelihood(strong, v).double(), expected, rtol=1e-4, atol=1e-3)
