"""An energy of one's own: blobs whose places are random, and learned.

    python examples/own_energy.py

Two hidden units each draw a blob on a line of ten pixels. Its place θ is not in the energy linearly, so that
no integral over it has a closed form: chains move it by Langevin steps, and gradients are Monte-Carlo ones.
Learned are the law of the places, a mean and a standard deviation for each unit, and three plain numbers. The
model is small enough to be summed over all states and a grid of places, which says whether it learned.
"""

import torch
from torch import Tensor

from ebse.laws import Gaussian, Point
from ebse.models import EnergyEnsemble, exact
from ebse.models._leaves import rebuilt
from ebse.training import monte_carlo_gradient

PIXELS = torch.arange(10.0)


def energy(v: Tensor, h: Tensor, theta: dict[str, Tensor]) -> Tensor:
    """E = −Σ_ij v_i h_j g exp(−(i − θ_j)² / 2) − b Σ_i v_i − c Σ_j h_j, for each row."""
    blobs = torch.exp(-((PIXELS[:, None] - theta["place"][:, None, :]) ** 2) / 2)  # (N, D, K)
    drive = theta["gain"] * (blobs * h[:, None, :]).sum(-1) + theta["b"]
    return -(v * drive).sum(-1) - theta["c"][:, 0] * h.sum(-1)


def blobs(n: int, generator: torch.Generator) -> Tensor:
    """Rows with three dark pixels about N(2, 0.5²), or about N(7, 1), or both, or neither."""
    places = torch.tensor([2.0, 7.0]) + torch.tensor([0.5, 1.0]) * torch.randn(n, 2, generator=generator)
    near = (PIXELS[:, None] - places[:, None, :].round()).abs() <= 1
    there = torch.rand(n, 2, generator=generator) < 0.5
    return (near & there[:, None, :]).any(-1).float()


def mean_log_likelihood(ensemble: EnergyEnsemble, v: Tensor) -> float:
    """Mean log P(v), summed over every state and a Gauss rule of places."""
    return float(exact.decomposition(ensemble, v, n_nodes=20).log_likelihood.mean())


def main(seed: int = 0) -> None:
    """Train by a loop, compare with enumeration."""
    generator = torch.Generator().manual_seed(seed)
    v = blobs(500, generator)
    laws = {
        "place": Gaussian(torch.tensor([3.5, 5.5]), torch.tensor([0.8, 0.8])),
        "gain": Point(torch.tensor([1.0])),
        "b": Point(torch.tensor([-1.0])),
        "c": Point(torch.tensor([-1.0])),
    }
    ensemble = EnergyEnsemble(energy, laws, n_visible=10, n_hidden=2)
    before = mean_log_likelihood(ensemble, v)

    n_steps = 200
    for step in range(n_steps):
        batch = v[torch.randint(len(v), (100,), generator=generator)]
        slopes = monte_carlo_gradient(ensemble, batch, n_samples=1, n_sweeps=5, generator=generator)
        rate = 0.3 * (1 - step / n_steps)
        alpha = {}
        for name, law in ensemble.laws.items():
            alpha[name] = {key: x + rate * slopes[name][key] for key, x in law.alpha.items()}
            law.project_(alpha[name])
        # A noisy step could take σ to 0, where a law has no density and a chain nowhere to go.
        alpha["place"]["sigma"].clamp_(min=0.3)
        ensemble = rebuilt(ensemble, alpha)

    p = v.mean(0)
    independent = float((p * p.log() + (1 - p) * (1 - p).log()).sum())
    print(f"log-likelihood before training {before:.2f}")
    print(f"log-likelihood after training  {mean_log_likelihood(ensemble, v):.2f}")
    print(f"that of independent pixels     {independent:.2f}")
    place = ensemble.laws["place"].alpha
    print("places, made with N(2.0, 0.5) and N(7.0, 1.0):", end="")
    print(*(f" N({m:.1f}, {s:.1f})" for m, s in zip(place["theta_bar"], place["sigma"], strict=True)))
    table = exact.joint(ensemble, n_nodes=20)
    dark = [table.marginal(("v", i)).exp()[1] for i in range(ensemble.D)]
    print("dark pixels, data: ", *(f"{x:.2f}" for x in p))
    print("dark pixels, model:", *(f"{x:.2f}" for x in dark))


if __name__ == "__main__":
    main()
