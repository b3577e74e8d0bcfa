"""A custom law of the weights: shifted exponential, mostly a little below its mean and rarely far above it.

    python examples/own_law.py

The law is checked against random numbers of NumPy; then an ensemble is trained with it.
"""

from typing import Self

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import Tensor

from ebse import RBSE
from ebse.laws import Law


class Exponential(Law):
    """K(t) = t (θ_bar − s) − log(1 − t s) for t s < 1: θ = θ_bar − s + s x, x exponential of mean 1.

    The law tilted by t is exponential again, with the same lower bound and the scale s / (1 − t s).
    """

    names = ("theta_bar", "scale")
    noise_names = ("scale",)

    def __init__(self, theta_bar: Tensor, scale: Tensor) -> None:
        self.theta_bar, self.scale = theta_bar, scale

    def log_mgf(self, t: Tensor | float) -> Tensor:
        """K(t) = log E[exp(tθ)]."""
        t = self.tilt(t)
        return t * (self.theta_bar - self.scale) - torch.log1p(-t * self.scale)

    def draw(self, t: Tensor, u: Tensor) -> Tensor:
        """The inverse distribution function of the tilted law at u, which has more bits than θ."""
        x = -torch.log(u).to(self.dtype)
        return self.theta_bar - self.scale + self.scale / (1 - t * self.scale) * x

    @staticmethod
    def project_(alpha: dict[str, Tensor]) -> None:
        """Keep the scale below 1: binary units tilt by t = 1, where K is infinite for s >= 1."""
        alpha["scale"].clamp_(min=0, max=0.9)

    @classmethod
    def start(cls, shape: tuple[int, ...], *, generator: torch.Generator) -> Self:
        """Small random means and a moderate scale."""
        return cls(0.01 * torch.randn(shape, generator=generator), torch.full(shape, 0.5))


def main(seed: int = 0, n_epochs: int = 100) -> None:
    """Check the law, train with it."""
    # 1. Mean and variance of the tilted law are K' and K''; by hand, weighted moments of untilted numbers.
    law = Exponential(torch.tensor(1.0), torch.tensor(0.4))
    generator = torch.Generator().manual_seed(seed)
    theta = 0.6 + 0.4 * np.random.default_rng(seed).exponential(size=1_000_000)
    titles = ("K(t)", "by hand", "mean", "drawn", "by hand", "variance", "drawn")
    print(f"{'tilt':>6}" + "".join(f"{title:>9}" for title in titles))
    for t in (-1.0, 0.0, 0.5, 1.0):
        drawn = law.sample(torch.full((1_000_000,), t), generator=generator)
        weight = np.exp(t * theta)
        print(
            f"{t:>6}{law.log_mgf(t):>9.3f}{np.log(weight.mean()):>9.3f}"
            f"{law.mean(t):>9.3f}{drawn.mean():>9.3f}{np.average(theta, weights=weight):>9.3f}"
            f"{law.variance(t):>9.3f}{drawn.var():>9.3f}"
        )

    # 2. With twelve hidden units the log-likelihood of binary digits is summed exactly.
    X = (load_digits().data > 7).astype(np.float32)
    start = RBSE(12, law=Exponential, n_epochs=0, random_state=seed).fit(X)
    rbse = RBSE(12, law=Exponential, n_epochs=n_epochs, random_state=seed).fit(X)
    rbm = RBSE(12, law="point", n_epochs=n_epochs, random_state=seed).fit(X)
    print(f"log-likelihood before training {start.log_likelihood(X).forward:.2f}")
    print(f"log-likelihood after training  {rbse.log_likelihood(X).forward:.2f}")
    print(f"that of an RBM (law='point')   {rbm.log_likelihood(X).forward:.2f}")
    scale = rbse.alpha_["W"]["scale"]
    print(f"scale: 0.5 before, {scale.min():.2f} to {scale.max():.2f} after")

    # 3. Posterior samples of the representation, as under any law: their mean is the transform.
    draws = rbse.sample_transform(X[:20], n_draws=5_000)
    error = np.abs(draws.mean(1) - rbse.transform(X[:20])).max()
    print(
        f"5,000 samples a row: standard deviation {draws.std(1).mean():.3f}, mean from transform {error:.3f}"
    )


if __name__ == "__main__":
    main()
