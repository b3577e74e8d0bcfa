"""The low-rank Gaussian law: K, means and covariances against loops and quadrature; samples."""

import itertools
import math

import numpy as np
import pytest
import torch
from torch import Tensor

from ebse.laws._low_rank import LowRankGaussian
from monte_carlo import FAILURE_RATE, means_depart

SHAPES = [(3,), (2, 3), (2, 2, 2)]
N_MODES = 2


def law_of(shape: tuple[int, ...], n_modes: int = N_MODES) -> LowRankGaussian:
    generator = torch.Generator().manual_seed(len(shape))
    W_bar = torch.randn(shape, generator=generator)
    return LowRankGaussian(W_bar, torch.randn(n_modes, *shape, generator=generator) / 2)


def tilt_of(shape: tuple[int, ...], *batch: int) -> Tensor:
    return torch.randn(*batch, *shape, generator=torch.Generator().manual_seed(7)) / 2


def entries(shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    return list(itertools.product(*map(range, shape)))


def full_covariance(law: LowRankGaussian) -> list[list[float]]:
    """Cov(θ_a, θ_b) of every pair of entries, in loops."""
    return [
        [sum(float(A[a]) * float(A[b]) for A in law.A) for b in entries(tuple(law.shape))]
        for a in entries(tuple(law.shape))
    ]


# ---- K and its derivatives


@pytest.mark.parametrize("shape", SHAPES)
def test_log_mgf_is_the_log_of_the_expected_exponential(shape: tuple[int, ...]) -> None:
    """By Gauss–Hermite quadrature over both s."""
    law, T = law_of(shape), tilt_of(shape)
    parts = [(float(T[e]), float(law.W_bar[e]), *(float(A[e]) for A in law.A)) for e in entries(shape)]
    nodes, weights = np.polynomial.hermite_e.hermegauss(30)
    total = 0.0
    for (s, w), (t, u) in itertools.product(zip(nodes, weights, strict=True), repeat=2):
        exponent = sum(tilt * (mean + s * first + t * second) for tilt, mean, first, second in parts)
        total += w * u / (2 * math.pi) * math.exp(exponent)
    assert float(law.log_mgf(T)) == pytest.approx(math.log(total), rel=1e-10)


@pytest.mark.parametrize("shape", SHAPES)
def test_log_mgf_is_that_of_the_full_covariance(shape: tuple[int, ...]) -> None:
    law, T = law_of(shape, n_modes=3), tilt_of(shape)
    t, covariance = [float(T[e]) for e in entries(shape)], full_covariance(law)
    expected = sum(x * float(law.W_bar[e]) for x, e in zip(t, entries(shape), strict=True))
    expected += sum(t[a] * covariance[a][b] * t[b] for a in range(len(t)) for b in range(len(t))) / 2
    assert float(law.log_mgf(T)) == pytest.approx(expected, rel=1e-10)
    np.testing.assert_allclose(law.covariance(), covariance, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_gradient_is_the_mean_and_the_hessian_the_covariance(shape: tuple[int, ...]) -> None:
    law, T = law_of(shape), tilt_of(shape)
    gradient = torch.autograd.functional.jacobian(law.log_mgf, T)  # type: ignore[no-untyped-call]
    torch.testing.assert_close(gradient, law.mean(T), rtol=1e-10, atol=1e-12)
    n = math.prod(shape)
    hessian = torch.autograd.functional.hessian(law.log_mgf, T)  # type: ignore[no-untyped-call]
    torch.testing.assert_close(hessian.reshape(n, n), law.covariance(), rtol=1e-10, atol=1e-12)


def test_without_a_tilt_log_mgf_is_zero_and_the_mean_is_the_mean() -> None:
    law = law_of((2, 3))
    assert float(law.log_mgf(torch.zeros(2, 3))) == 0
    assert torch.equal(law.mean(torch.zeros(2, 3)), law.W_bar)
    assert law.shape == (2, 3)


@pytest.mark.parametrize("batch", [(4,), (2, 3), (0,)])
def test_tilts_are_independent_of_each_other(batch: tuple[int, ...]) -> None:
    law = law_of((2, 3))
    T = tilt_of((2, 3), *batch)
    assert law.log_mgf(T).shape == batch
    assert law.mean(T).shape == (*batch, 2, 3)
    for i in itertools.product(*map(range, batch)):
        torch.testing.assert_close(law.log_mgf(T)[i], law.log_mgf(T[i]))
        torch.testing.assert_close(law.mean(T)[i], law.mean(T[i]))


def test_a_tilt_by_a_row_gives_the_law_of_its_product() -> None:
    """T = x tᵀ: log E[exp(t · xθ)] of the normal xθ, whose mean and covariance are summed in loops."""
    D, r = 3, 2
    law = law_of((D, r), n_modes=3)
    x, t = tilt_of((D,)), tilt_of((r,))
    mean = [sum(float(x[i] * law.W_bar[i, j]) for i in range(D)) for j in range(r)]
    modes = [[sum(float(x[i] * A[i, j]) for i in range(D)) for j in range(r)] for A in law.A]
    expected = sum(float(t[j]) * mean[j] for j in range(r))
    for j, k in itertools.product(range(r), repeat=2):
        expected += float(t[j] * t[k]) * sum(m[j] * m[k] for m in modes) / 2
    assert float(law.log_mgf(torch.outer(x, t))) == pytest.approx(expected, rel=1e-10)


# ---- rows and their modes


def test_modes_of_rows_are_products_with_every_mode() -> None:
    law = law_of((3, 2), n_modes=4)
    x = tilt_of((3,), 5)
    found = law.modes_of(x)
    assert found.shape == (5, 4, 2)
    for n, k, j in itertools.product(range(5), range(4), range(2)):
        expected = sum(float(x[n, i]) * float(law.A[k, i, j]) for i in range(3))
        assert float(found[n, k, j]) == pytest.approx(expected, rel=1e-10)


def test_a_row_and_its_modes_make_its_product_with_a_random_matrix() -> None:
    law = law_of((3, 2), n_modes=4)
    x, s = tilt_of((3,), 5), tilt_of((4,), 5)
    by_matrix = (x[:, None, :] @ law.at(s))[:, 0]
    by_modes = x @ law.W_bar + (s[:, None, :] @ law.modes_of(x))[:, 0]
    torch.testing.assert_close(by_modes, by_matrix, rtol=1e-10, atol=1e-12)


# ---- samples

SHAPE, N = (2, 2), 20_000
T = torch.tensor([[1.0, -0.75], [0.5, 0.0]])


def departs(samples: Tensor, law: LowRankGaussian) -> tuple[bool, bool]:
    """Whether the means, and whether the covariances of samples (N, 2, 2) depart from the law tilted by T."""
    C = torch.tensor(full_covariance(law))
    rate = FAILURE_RATE / 2
    mean = law.mean(T).flatten()
    means = means_depart(samples.flatten(1), mean, variance=C.diagonal(), failure_rate=rate)
    left = samples.flatten(1) - mean
    # The variance of a product of two centered normal variables (Isserlis).
    variance = torch.outer(C.diagonal(), C.diagonal()) + C**2
    products = left[:, :, None] * left[:, None, :]
    return means, means_depart(products, C, variance=variance, failure_rate=rate)


def test_samples_follow_the_tilted_law(generator: torch.Generator) -> None:
    law = law_of(SHAPE)
    assert departs(law.sample(T.expand(N, 2, 2), generator=generator), law) == (False, False)


def test_samples_that_ignore_the_tilt_are_found_out(generator: torch.Generator) -> None:
    law = law_of(SHAPE)
    means, _ = departs(law.sample(torch.zeros(N, 2, 2), generator=generator), law)
    assert means


def test_samples_of_independent_entries_are_found_out(generator: torch.Generator) -> None:
    """With the means and variances of the law: only covariances tell."""
    law = law_of(SHAPE)
    spread = law.covariance().diagonal().sqrt().reshape(SHAPE)
    samples = law.mean(T) + spread * torch.randn(N, 2, 2, generator=generator)
    assert departs(samples, law) == (False, True)


def test_same_seed_same_sample_other_seed_other_sample() -> None:
    law = law_of(SHAPE)

    def sample(seed: int) -> Tensor:
        return law.sample(T.expand(5, 2, 2), generator=torch.Generator().manual_seed(seed))

    assert torch.equal(sample(1), sample(1))
    assert not torch.equal(sample(1), sample(2))
    # Every tilt has a sample of its own.
    assert len(np.unique(sample(1), axis=0)) == 5


def test_samples_have_the_precision_of_the_law(generator: torch.Generator) -> None:
    law = LowRankGaussian(torch.zeros(2, 2, dtype=torch.float32), torch.ones(1, 2, 2, dtype=torch.float32))
    assert law.sample(T.float(), generator=generator).dtype == torch.float32
    assert law.log_mgf(T.float()).dtype == torch.float32


# ---- errors


@pytest.mark.parametrize("modes", [(2, 3), (1, 3, 2), (0, 2, 3), (1, 2), (1, 2, 3, 1)])
def test_modes_of_another_shape_are_refused(modes: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"A must have the shape \(n_modes, 2, 3\), got \("):
        LowRankGaussian(torch.zeros(2, 3), torch.zeros(modes))


@pytest.mark.parametrize("tilt", [(), (3,), (2,), (3, 2), (2, 3, 1), (4, 6)])
def test_a_tilt_of_another_shape_is_named(tilt: tuple[int, ...], generator: torch.Generator) -> None:
    law, wrong = law_of((2, 3)), torch.zeros(tilt)
    for use in (law.log_mgf, law.mean, law.tilted_s, lambda T: law.sample(T, generator=generator)):
        with pytest.raises(ValueError, match=r"T must end in the law's shape \(2, 3\), got \("):
            use(wrong)
