"""One pass over the rows of W: θ is drawn, used and forgotten, a block at a time.

For row i: draw W_i· given (v_i, h), take the new v_i from Σ_j W_ij h_j + b_i, and add v_i W_i· to the input
of the hidden units. The model that made v is then the model that is read, and no N × D × K array exists.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from ebse import noise
from ebse.laws import Law
from ebse.models import RestrictedBoltzmannEnsemble
from ebse.sampling.state import State, Units

CHUNK_SIZE = 2**18
"""Connections that are drawn at once, over all chains; about 10 arrays of this size are alive."""

_W, _B, _C, _V, _H = range(5)


def pass_over_rows(
    ensemble: RestrictedBoltzmannEnsemble,
    state: State,
    key: int,
    *,
    read: Tensor | None = None,
    units: Units = "sampled",
    chunk_size: int = CHUNK_SIZE,
) -> State:
    """θ ~ P(θ | v, h), then v′ ~ P(v | h, θ) and the mean P(h | v′, θ) of the same θ.

    With ``read`` given, v′ is ``read`` and is not drawn: the model is read on that input.
    """
    v, h = state
    N, D, K = len(v), ensemble.D, ensemble.K
    v_new = v.new_empty(N, D) if read is None else read
    mean = v.new_empty(N, K)

    def u(purpose: int, *shape: int, window: noise.Window) -> Tensor:
        return noise.uniform(noise.subkey(key, purpose), shape, window=window, device=v.device)

    def draw(law: Law, t: Tensor, purpose: int, *shape: int, window: noise.Window) -> Tensor:
        # Numbers that a law would not use are not made.
        return law.draw(t, u(purpose, *shape, window=window)) if law.random else law.mean()

    for n in _blocks(N, chunk_size // K):
        v_n, h_n = v[n], h[n]
        b = draw(ensemble.b, v_n, _B, N, D, window=(n,))
        hidden_input = draw(ensemble.c, h_n, _C, N, K, window=(n,))
        for i in _blocks(D, chunk_size // (K * (n.stop - n.start))):
            t = v_n[:, i].unsqueeze(-1) * h_n.unsqueeze(-2)  # (n, i, K)
            W_i = ensemble.W if i.stop - i.start == D else ensemble.W.rows(i)
            W = draw(W_i, t, _W, N, D, K, window=(n, i))
            if read is None:
                down = torch.sigmoid((W @ h_n.unsqueeze(-1)).squeeze(-1) + b[..., i])
                if units == "sampled" and ensemble.visible == "binary":
                    down = (u(_V, N, D, window=(n, i)) < down).to(down.dtype)
                v_new[n, i] = down
            hidden_input = hidden_input + (v_new[n, i].unsqueeze(-2) @ W).squeeze(-2)
        mean[n] = torch.sigmoid(hidden_input)
    return State(v_new, mean)


def hidden_noise(mean: Tensor, key: int) -> Tensor:
    """h ~ P(h | v, θ) from the mean that a pass with the same key gave."""
    return noise.bernoulli(mean, noise.subkey(key, _H))


def _blocks(size: int, step: int) -> Iterator[slice]:
    step = max(step, 1)
    return (slice(start, min(start + step, size)) for start in range(0, size, step))
