"""Imputation of missing visible units: block Gibbs sampling with θ integrated out and known units clamped."""

import torch
from torch import Tensor

from ebse import rng
from ebse._validation import count
from ebse.kernels.readout import draw_binary
from ebse.models import RestrictedBoltzmannEnsemble
from ebse.sampling.collapsed import EffectiveChain
from ebse.sampling.state import START

_V, _H = range(2)


@torch.no_grad()
def conditional_sweeps(
    ensemble: RestrictedBoltzmannEnsemble,
    v: Tensor,
    missing: Tensor,
    n_sweeps: int,
    *,
    n_burn: int = 0,
    generator: torch.Generator,
    numbers: rng.Numbers | None = None,
) -> tuple[Tensor, Tensor]:
    """E[v | known units] and one sample of it (N, D), from n_sweeps after n_burn others.

    The mean is that of P(v_i = 1 | h) over the sweeps. Known units do not change, also where they are
    probabilities between 0 and 1; the values of ``v`` where ``missing`` is true are not used.
    """
    count("n_sweeps", n_sweeps)
    count("n_burn", n_burn, least=0)
    key = rng.draw_key(generator)
    chain = EffectiveChain(ensemble)
    start = torch.sigmoid(chain.b).expand(v.shape)
    v = torch.where(missing, draw_binary(start, rng.subkey(key, START), numbers), v)
    total = torch.zeros_like(v)
    for sweep in range(n_burn + n_sweeps):
        v_key, h_key = (rng.subkey(key, 2 * sweep + layer) for layer in (_V, _H))
        h = draw_binary(chain.mean_h(v), h_key, numbers)
        mean = ensemble.mean_v_given_h(h)
        v = torch.where(missing, draw_binary(mean, v_key, numbers), v)
        if sweep >= n_burn:
            total += mean
    return torch.where(missing, total / n_sweeps, v), v
