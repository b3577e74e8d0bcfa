"""Posterior draws, and the map back to visible units."""

import pytest
import torch

from ebse.ensemble.draws import chain_draws, map_back, posterior_draws
from ebse.laws import Gaussian, Point
from ebse.models import RestrictedBoltzmannEnsemble
from examples import LAWS, ensemble
from kernels.single import single
from monte_carlo import means_depart


@pytest.fixture(autouse=True)
def users_precision() -> None:
    """Below the estimators tests run in double precision."""


V = torch.tensor([[1.0, 0.0, 1.0], [1.0, 1.0, 1.0]])
N_DRAWS = 50_000


@pytest.mark.parametrize("W", sorted(LAWS))
@pytest.mark.parametrize("visible", ["binary", "real"])
def test_the_mean_over_posterior_draws_is_the_mean_representation(
    W: str, visible: str, generator: torch.Generator
) -> None:
    """E[P(h | v, θ)] over θ ~ P(θ | v) is P(h | v), with θ integrated out, for binary and real v."""
    small = RestrictedBoltzmannEnsemble(**ensemble(W, "point", "gaussian").laws, visible=visible)  # type: ignore[arg-type]
    v = V if visible == "binary" else torch.tensor([[0.3, 0.9, 0.5], [1.0, 0.1, 0.7]])
    draws = posterior_draws(small, v, N_DRAWS, generator=generator)
    assert draws.shape == (2, N_DRAWS, 2)
    for n in range(2):
        assert not means_depart(draws[n], small.mean_h_given_v(v[n]))


@pytest.mark.parametrize("W", ["bernoulli", "gaussian"])
def test_fused_draws_have_the_mean_representation_as_their_mean(W: str, generator: torch.Generator) -> None:
    small = ensemble(W, "point", "gaussian")
    draws = posterior_draws(single(small), V, N_DRAWS, generator=generator)
    assert draws.dtype == torch.float32
    for n in range(2):
        assert not means_depart(draws[n].double(), small.mean_h_given_v(V[n]))


def test_fused_draws_are_the_plain_draws() -> None:
    """The same noise in both precisions; a unit of v or h next to its probability may fall on either side."""
    small = ensemble("bernoulli", "point", "gaussian")
    v = torch.tensor([[1.0, 0.3, 0.0], [0.0, 1.0, 1.0]])
    plain, fused = (
        posterior_draws(x, v, 5000, generator=torch.Generator().manual_seed(2))
        for x in (small, single(small))
    )
    assert torch.isclose(fused.double(), plain, atol=1e-5).double().mean() > 0.9999


def test_draws_from_the_prior_have_another_mean(generator: torch.Generator) -> None:
    """The twin: models drawn from the law, as DropConnect does, do not average to P(h | v)."""
    small = ensemble("bernoulli")
    v = V.repeat_interleave(N_DRAWS, 0)
    zeros = torch.zeros(len(v), 2)
    theta = small.sample_theta_given_vh(torch.zeros_like(v), zeros, generator=generator)
    draws = small.mean_h_given_v(v, theta).reshape(2, N_DRAWS, 2)
    assert any(means_depart(draws[n], small.mean_h_given_v(V[n])) for n in range(2))


def test_variance_of_posterior_draws_is_at_most_that_of_sampled_units(generator: torch.Generator) -> None:
    small = ensemble("gaussian").with_noise(sigma=2.0)
    draws = posterior_draws(small, V, N_DRAWS, generator=generator)
    p = small.mean_h_given_v(V)
    assert (draws.var(1) <= p * (1 - p)).all()
    assert draws.var(1).min() > 0.01


def test_without_noise_all_draws_are_the_mean(generator: torch.Generator) -> None:
    small = ensemble("point")
    draws = posterior_draws(small, V, 5, generator=generator)
    torch.testing.assert_close(draws, small.mean_h_given_v(V).unsqueeze(1).expand(2, 5, 2))


def test_same_seed_same_draws_whatever_the_chunks() -> None:
    small = ensemble("bernoulli")

    def draws(seed: int, chunk_size: int = 2**18) -> torch.Tensor:
        g = torch.Generator().manual_seed(seed)
        return posterior_draws(small, V, 50, generator=g, chunk_size=chunk_size)

    torch.testing.assert_close(draws(1), draws(1, chunk_size=7))
    assert not torch.equal(draws(1), draws(2))


def test_the_way_back_is_the_average_model() -> None:
    small = ensemble("bernoulli", "gaussian")
    h = torch.tensor([[[0.2, 0.9], [1.0, 0.0]]])
    W = small.W.alpha["theta_bar"] * small.W.alpha["p"]
    expected = torch.sigmoid(h @ W.T + small.b.alpha["theta_bar"])
    torch.testing.assert_close(map_back(small, h), expected)


def test_bad_input_is_named(generator: torch.Generator) -> None:
    small = RestrictedBoltzmannEnsemble(
        W=Gaussian(torch.zeros(3, 2), 1.0), b=Point(torch.zeros(3)), c=Point(torch.zeros(2))
    )
    with pytest.raises(ValueError, match=r"v must have shape \(\.\.\., 3\), got \(2, 2\)"):
        posterior_draws(small, torch.zeros(2, 2), generator=generator)
    with pytest.raises(ValueError, match=r"v must have shape \(N, 3\), got \(3,\); pass a matrix of rows"):
        posterior_draws(small, torch.zeros(3), generator=generator)
    with pytest.raises(ValueError, match="n_draws must be >= 1, got 0"):
        posterior_draws(small, V, 0, generator=generator)
    with pytest.raises(ValueError, match="n_sweeps must be >= 0, got -1"):
        chain_draws(small, V, n_sweeps=-1, generator=generator)
    with pytest.raises(ValueError, match="chunk_size must be >= 1, got 0"):
        chain_draws(small, V, chunk_size=0, generator=generator)
    with pytest.raises(ValueError, match="read must be one of 'input', 'state', got 'output'; pick one"):
        chain_draws(small, V, read="output", generator=generator)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"h must have shape \(\.\.\., 2\), got \(1, 3\)"):
        map_back(small, torch.zeros(1, 3))
    with pytest.raises(TypeError, match=r"generator must be a torch\.Generator, got None"):
        posterior_draws(small, V, generator=None)  # type: ignore[arg-type]
