"""Pseudo-log-likelihoods by the kernel against the plain sum in double precision."""

import pytest
import torch

from ebse.training import pseudo_log_likelihood
from kernels.single import WEIGHTS, chains, ensemble, threads


@pytest.mark.parametrize("shape", [(1, 1), (3, 2), (17, 9), (40, 33)], ids=str)
@pytest.mark.parametrize("W", sorted(WEIGHTS))
@pytest.mark.parametrize("n_threads", [1, 2])
def test_the_kernel_agrees_with_the_plain_sum(W: str, shape: tuple[int, int], n_threads: int) -> None:
    small = ensemble(W, *shape)
    v = chains(70, *shape).v
    wide = small.with_laws(
        **{
            letter: law.with_alpha({name: x.double() for name, x in law.alpha.items()})
            for letter, law in small.laws.items()
        }
    )
    with threads(n_threads):
        found = pseudo_log_likelihood(small, v)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.double(), pseudo_log_likelihood(wide, v.double()), rtol=1e-4, atol=1e-4)


def test_units_that_are_certain_stay_finite() -> None:
    """Weights so strong that a hidden unit is certain: 1 + p (e^W − 1) is 0 in single precision."""
    small = ensemble("certain", 8, 16)
    strong = small.with_laws(W=small.W.with_alpha({"theta_bar": 30 * small.W.alpha["theta_bar"]}))
    found = pseudo_log_likelihood(strong, chains(20, 8, 16).v)
    assert torch.isfinite(found).all()
