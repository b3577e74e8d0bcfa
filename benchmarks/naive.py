"""Algorithm 1 and posterior samples in plain torch: the weights of a batch in one N × D × K tensor."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass
class NaiveEnsemble:
    """A Bernoulli ensemble in plain torch: W is W_bar with probability p, else 0; b and c are certain.

    It makes the same number of sweeps and takes the same gradient as ``ebse``. The gradient is the cheap one,
    two matrix products, so that only the tensors of θ make it slow.
    """

    W_bar: Tensor
    p: Tensor
    b: Tensor
    c: Tensor

    def draw_models(self, v: Tensor, h: Tensor) -> Tensor:
        """W ~ P(W | v, h) of every row, (N, D, K)  (A4)."""
        t = v[:, :, None] * h[:, None, :]
        q = torch.sigmoid(torch.logit(self.p) + t * self.W_bar)
        # Faster than torch.bernoulli(q), with the same distribution.
        return (torch.rand_like(q) < q) * self.W_bar

    def draw_hidden(self, v: Tensor) -> Tensor:
        """h ~ P(h | v), W integrated out."""
        effective = torch.log1p(self.p * torch.expm1(self.W_bar))
        return torch.bernoulli(torch.sigmoid(v @ effective + self.c))

    def read(self, v: Tensor, W: Tensor) -> Tensor:
        """P(h | v, W), each row with its own W."""
        return torch.sigmoid(torch.einsum("nd,ndk->nk", v, W) + self.c)

    def algorithm1_step(self, v: Tensor, learning_rate: float, k: int = 1) -> None:
        """One step of Algorithm 1 on a batch: a free loop, a clamped loop, the gradient (B4, corrected)."""
        h_first = self.draw_hidden(v)
        v_model, h_model = v, h_first
        for _ in range(k + 1):
            W = self.draw_models(v_model, h_model)
            v_model = torch.bernoulli(torch.sigmoid(torch.einsum("ndk,nk->nd", W, h_model) + self.b))
            h_model = torch.bernoulli(self.read(v_model, W))
        h_data = h_first
        for _ in range(k + 1):
            W = self.draw_models(v, h_data)
            h_data = torch.bernoulli(self.read(v, W))
        contrast = (v.T @ h_data - v_model.T @ h_model) / len(v)
        # t is 0 or 1 and both derivatives of K vanish at 0, so that their values at 1 are factors.
        grown = torch.expm1(self.W_bar)
        q = torch.sigmoid(torch.logit(self.p) + self.W_bar)
        slope_p = contrast * grown / (1 + self.p * grown)
        self.W_bar = self.W_bar + learning_rate * contrast * q
        self.p = (self.p + learning_rate * slope_p).clamp(1e-4, 1 - 1e-4)
        self.b = self.b + learning_rate * (v - v_model).mean(0)
        self.c = self.c + learning_rate * (h_data - h_model).mean(0)

    def posterior_draws(self, v: Tensor, n_draws: int) -> Tensor:
        """P(h | v, θ) for n_draws samples of θ given each row: (N, n_draws, K)."""
        draws = []
        for _ in range(n_draws):
            W = self.draw_models(v, self.draw_hidden(v))
            draws.append(self.read(v, W))
        return torch.stack(draws, 1)
