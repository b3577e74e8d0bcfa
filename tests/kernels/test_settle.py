"""Fused settling of p and σ against the plain versions in the laws."""

import pytest
import torch

from ebse.kernels.settle import settle_absence as fused_absence
from ebse.kernels.settle import settle_sigma as fused_sigma
from ebse.kernels.words import F32
from ebse.laws import Gaussian
from ebse.laws.bernoulli import EPSILON, settle_absence

SHAPES = [(1, 1), (3, 5), (40, 67)]


def spread(shape: tuple[int, int], low: float, high: float, phase: float) -> torch.Tensor:
    n = torch.arange(shape[0] * shape[1], dtype=torch.float32).reshape(shape)
    return low + (high - low) * torch.frac(n * 0.618034 + phase)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_presence(shape: tuple[int, int], share: float) -> None:
    before = spread(shape, -4.0, 6.0, 0.1)
    # A presence that its effective weight allows, as training keeps it.
    absent = torch.minimum(spread(shape, 0.01, 0.99, 0.5), (1 - EPSILON) * before.clamp(max=0).exp())
    after = before + spread(shape, -0.3, 0.3, 0.7)
    expected = settle_absence(before.double(), after.double(), absent.double(), share)
    reference, amount = before.clone(), absent.clone()
    fused_absence(before.numel(), reference.numpy(), after.numpy(), amount.numpy(), F32(share), F32(EPSILON))
    # Where q(1) is small, 1 − p has lost digits in float32 already.
    torch.testing.assert_close(amount.double(), expected, rtol=2e-3, atol=1e-7)
    assert torch.equal(reference, after)


def test_a_wrong_share_would_be_found_out() -> None:
    """The twin: the same comparison fails for a kernel with another share."""
    before, absent = torch.zeros(3, 5).float() + 1, torch.full((3, 5), 0.5).float()
    expected = settle_absence(before.double(), before.double() + 0.3, absent.double(), 1.0)
    fused_absence(
        before.numel(), before.clone().numpy(), (before + 0.3).numpy(), absent.numpy(), F32(0.5), F32(EPSILON)
    )
    assert not torch.allclose(absent.double(), expected, rtol=2e-3, atol=1e-7)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_sigma(shape: tuple[int, int], share: float) -> None:
    before, sigma = spread(shape, -3.0, 3.0, 0.2), spread(shape, 0.0, 1.5, 0.4)
    after = before + spread(shape, -2.0, 0.5, 0.6)
    law = Gaussian(before.double() - sigma.double() ** 2 / 2, sigma.double())
    expected = law.settled(after.double(), share=share)
    reference, amount = before.clone(), sigma.clone()
    fused_sigma(before.numel(), reference.numpy(), after.numpy(), amount.numpy(), F32(share))
    torch.testing.assert_close(amount.double(), expected.alpha["sigma"], rtol=1e-5, atol=1e-6)
    assert torch.equal(reference, after)
