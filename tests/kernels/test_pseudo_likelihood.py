"""Pseudo-log-likelihoods by the kernel against the plain sum in double precision."""

from collections.abc import Callable
from contextlib import AbstractContextManager

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


@pytest.mark.parametrize("letter", ["W", "b", "c"])
@pytest.mark.parametrize("every", [1, 2])
def test_parameters_that_are_learned_get_gradients(letter: str, every: int) -> None:
    small = ensemble("gaussian", 5, 3)
    fixed = small.with_laws(**{name: Point(law.effective()) for name, law in small.laws.items()})
    theta = fixed.laws[letter].effective().clone().requires_grad_()
    learned = fixed.with_laws(**{letter: Point(theta)})
    total = pseudo_log_likelihood(learned, chains(4, 5, 3).v, every=every).sum()
    (gradient,) = torch.autograd.grad(total, theta)
    assert bool(gradient.any())


@pytest.mark.parametrize("every", [1, 2])
def test_what_is_not_a_number_is_not_hidden(every: int) -> None:
    small = ensemble("gaussian", 5, 3)
    broken = small.with_laws(c=Point(torch.zeros(3).float()))
    broken.c.alpha["theta_bar"][1] = torch.nan
    assert bool(pseudo_log_likelihood(broken, chains(4, 5, 3).v, every=every).isnan().all())


def test_two_threads_thin_alike(two_threads: Callable[[], AbstractContextManager[None]]) -> None:
    small, v = ensemble("bernoulli", 40, 33), chains(70, 40, 33).v
    alone = pseudo_log_likelihood(small, v, every=4)
    with two_threads():
        assert torch.equal(pseudo_log_likelihood(small, v, every=4), alone)


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
