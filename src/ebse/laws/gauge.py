"""Gauge transformations: laws with other noise and the same K(1), hence the same P(v, h) of binary units."""

import torch
from torch import Tensor

from ebse._tensors import as_float_tensor, same_shape
from ebse.laws.bernoulli import Bernoulli, presence
from ebse.laws.gaussian import Gaussian, standard_deviation
from ebse.laws.law import Law


def regauged(
    law: Law,
    noise: Tensor | float | None,
    *,
    p: Tensor | float | None,
    sigma: Tensor | float | None,
) -> Law:
    """The Bernoulli law with probability p, or the Gaussian law with σ, that has the K(1) of ``law``."""
    given = {"p": p, "sigma": sigma, "a number without its name": noise}
    named = [name for name, value in given.items() if value is not None]
    if noise is not None and named[:-1] == [] and isinstance(law, (Bernoulli, Gaussian)):
        p, sigma = (noise, None) if isinstance(law, Bernoulli) else (None, noise)
    elif named not in (["p"], ["sigma"]):
        raise TypeError(
            f"with_noise of a {type(law).__name__} law takes one of p (a Bernoulli law) and sigma "
            f"(a Gaussian law), got {' and '.join(named) or 'neither'}; write with_noise(p=0.1)"
        )
    if p is not None:
        return bernoulli_with_effective(law.effective(), p)
    assert sigma is not None
    return gaussian_with_effective(law.effective(), sigma)


def bernoulli_with_effective(W: Tensor, p: Tensor | float) -> Bernoulli:
    """The Bernoulli law with probability p and log(1 − p + p exp W_bar) = W.

    W ≥ 0: W_bar = log(1 + (e^W − 1)/p).
    W < 0: log p_ij = log(1 − (1 − p) e^W), W_bar = W + log p − log p_ij and
    logit p_ij = log p_ij − log(1 − p) − W, so that q(1) = p for every W < 0.
    """
    W, p = same_shape(W=W, p=as_float_tensor("p", p))
    p = presence("p", p)
    # Each branch is evaluated only on its own side, so that neither overflows on the other.
    up, down = W.clamp(min=0), W.clamp(max=0)
    log_p, log_absent = torch.log(p), torch.log1p(-p)
    # e^W overflows for large W; from 1 on the same number is written with e^−W.
    theta_up = torch.where(
        W < 1,
        torch.log1p(torch.expm1(up.clamp(max=1)) / p),
        up + torch.log1p(-(1 - p) * torch.exp(-up.clamp(min=1))) - log_p,
    )
    log_p_down = torch.log1p(-(1 - p) * torch.exp(down))
    theta_down = down + log_p - log_p_down
    logit_down = log_p_down - log_absent - down
    return Bernoulli.from_logit(
        torch.where(W < 0, theta_down, theta_up),
        torch.where(W < 0, logit_down, log_p - log_absent),
    )


def gaussian_with_effective(W: Tensor, sigma: Tensor | float) -> Gaussian:
    """The Gaussian law with standard deviation σ and W_bar + σ²/2 = W."""
    W, sigma = same_shape(W=W, sigma=as_float_tensor("sigma", sigma))
    return Gaussian(W - standard_deviation("sigma", sigma) ** 2 / 2, sigma)
