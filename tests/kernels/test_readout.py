"""Reads of drawn models: the kernels against the plain pass, and binary draws against rng.bernoulli."""

import numpy as np
import pytest
import torch

from ebse import rng
from ebse.kernels.readout import draw_binary, normal_read
from ebse.sampling import State, clamped_sweeps
from ebse.sampling._row_sweeps import pass_over_rows, reader
from kernels.single import SHAPES, chains, ensemble, threads
from monte_carlo import means_depart


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("W", ["bernoulli", "rare", "certain", "regauged"])
def test_a_read_is_the_plain_read(W: str, shape: tuple[int, int]) -> None:
    """Models drawn at one state and read on another, chains 7 to 46 of the key's noise."""
    small = ensemble(W, *shape)
    state, other = chains(40, *shape), chains(40, *shape, seed=1)
    models, numbers = reader(small), np.arange(7, 47, dtype=np.uint64)
    for v_s in (other.v, None):
        found = models.read(models.parts(state.v), v_s, state.h, 99, numbers=numbers)
        at = State(state.v if v_s is None else v_s, state.h)
        plain = pass_over_rows(small, at, 99, read=state.v, numbers=numbers).h
        # A word next to its threshold may fall on either side: less than one connection in a million.
        close = torch.isclose(found, plain, atol=2e-6, rtol=2e-5)
        assert close.double().mean() > 0.999


def test_the_tilt_of_a_read_matters() -> None:
    """The twin: the prior's threshold everywhere is not the posterior's."""
    small, state = ensemble("bernoulli", 17, 9), chains(40, 17, 9)
    models = reader(small)
    tilted = models.read(models.parts(state.v), state.v, state.h, 99)
    prior = models.read(models.parts(state.v), torch.zeros_like(state.v), state.h, 99)
    assert (tilted - prior).abs().max() > 0.01


def test_a_gaussian_read_has_the_moments_of_drawn_weights(generator: torch.Generator) -> None:
    """logit P(h | v, θ) of one chain, over the noise: mean and variance of Σ_i v_i W_ij + c_j."""
    n, D, K = 40_000, 5, 3
    small = ensemble("gaussian", D, K)
    v, v_s, h = (x.expand(n, -1) for x in (torch.rand(D), torch.rand(D), torch.rand(K)))
    models = reader(small)
    v, v_s, h = v.float(), v_s.float(), h.float()
    found = torch.logit(models.read(models.parts(v), v_s, h, rng.draw_key(generator)).double())
    law = small.W.alpha
    W = law["theta_bar"].double() + v_s[0].double()[:, None] * h[0].double() * law["sigma"].double() ** 2
    variance = (v[0].double() ** 2) @ law["sigma"].double() ** 2
    mean = v[0].double() @ W + small.c.mean().double()
    assert not means_depart(found, mean, variance=variance)
    assert not means_depart((found - mean) ** 2, variance)
    untilted = v[0].double() @ law["theta_bar"].double() + small.c.mean().double()
    assert means_depart(found, untilted, variance=variance)


def test_normal_reads_agree_with_their_twin() -> None:
    g = torch.Generator().manual_seed(4)
    a, variance = torch.randn(50, 13, generator=g), torch.rand(50, 13, generator=g)
    found = normal_read(a.float(), variance.float(), 8)
    torch.testing.assert_close(found.double(), normal_read(a, variance, 8), atol=2e-6, rtol=0)


def test_binary_draws_are_those_of_the_noise() -> None:
    p = torch.rand(300, 31, generator=torch.Generator().manual_seed(2), dtype=torch.float32)
    p[:, 0], p[:, 1], p[:, 2], p[:, 3] = 0, 1, 1e-10, 1 - 2.0**-24
    assert torch.equal(draw_binary(p, 77), rng.bernoulli(p, 77))
    assert torch.equal(draw_binary(p.double(), 77), rng.bernoulli(p.double(), 77))
    assert not draw_binary(p, 77)[:, 0].any()
    assert draw_binary(p, 77)[:, 1].all()


@pytest.mark.parametrize("W", ["bernoulli", "gaussian"])
def test_threads_do_not_change_clamped_sweeps(W: str) -> None:
    small, state = ensemble(W, 40, 33), chains(70, 40, 33)

    def sweep(n_threads: int) -> torch.Tensor:
        with threads(n_threads):
            return clamped_sweeps(small, state, 2, generator=torch.Generator().manual_seed(1)).h

    assert torch.equal(sweep(1), sweep(2))
