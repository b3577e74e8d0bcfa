"""A custom energy: blobs at random positions, whose distribution is learned.

    python examples/own_energy.py

Each of two hidden units switches a blob on a line of ten pixels. The energy is not linear in the position θ
of a blob, so that integrals over θ have no closed form: chains move θ by Langevin steps, and gradients are
Monte Carlo estimates. Learned are the law of the positions, a mean and a standard deviation for each unit,
and three numbers. The model is small enough to sum over all states and a grid of positions, which gives the
exact log-likelihood.
"""

import torch
from torch import Tensor

from ebse.laws import Gaussian, Law, Point
from ebse.models import EnergyEnsemble, exact
from ebse.training import monte_carlo_gradient

PIXELS = torch.arange(10.0)


def energy(v: Tensor, h: Tensor, theta: dict[str, Tensor]) -> Tensor:
    """E = −Σ_ij v_i h_j g exp(−(i − θ_j)² / 2) − b Σ_i v_i − c Σ_j h_j, for each row."""
    blobs = torch.exp(-((PIXELS[:, None] - theta["position"][:, None, :]) ** 2) / 2)  # (N, D, K)
    drive = theta["gain"] * (blobs * h[:, None, :]).sum(-1) + theta["b"]
    return -(v * drive).sum(-1) - theta["c"][:, 0] * h.sum(-1)


def blobs(n: int, generator: torch.Generator) -> Tensor:
    """Rows with three dark pixels around N(2, 0.5²), around N(7, 1), around both, or none."""
    positions = torch.tensor([2.0, 7.0]) + torch.tensor([0.5, 1.0]) * torch.randn(n, 2, generator=generator)
    near = (PIXELS[:, None] - positions[:, None, :].round()).abs() <= 1
    there = torch.rand(n, 2, generator=generator) < 0.5
    return (near & there[:, None, :]).any(-1).float()


def mean_log_likelihood(ensemble: EnergyEnsemble, v: Tensor) -> float:
    """Mean log P(v), summed over all states and a Gauss rule of positions."""
    return float(exact.decomposition(ensemble, v, n_nodes=20).log_likelihood.mean())


def main(seed: int = 0, n_steps: int = 200) -> None:
    """Train by gradient ascent, compare with enumeration."""
    generator = torch.Generator().manual_seed(seed)
    v = blobs(500, generator)
    laws: dict[str, Law] = {
        "position": Gaussian(torch.tensor([3.5, 5.5]), torch.tensor([0.8, 0.8])),
        "gain": Point(torch.tensor([1.0])),
        "b": Point(torch.tensor([-1.0])),
        "c": Point(torch.tensor([-1.0])),
    }
    ensemble = EnergyEnsemble(energy, laws, n_visible=10, n_hidden=2)
    before = mean_log_likelihood(ensemble, v)

    for step in range(n_steps):
        batch = v[torch.randint(len(v), (100,), generator=generator)]
        slopes = monte_carlo_gradient(ensemble, batch, n_samples=1, n_sweeps=5, generator=generator)
        rate = 0.3 * (1 - step / n_steps)
        for name, law in laws.items():
            alpha = {key: x + rate * slopes[name][key] for key, x in law.alpha.items()}
            law.project_(alpha)
            if name == "position":
                # A noisy step could take σ to 0, where the law has no density and chains cannot move.
                alpha["sigma"].clamp_(min=0.3)
            laws[name] = law.with_alpha(alpha)
        ensemble = EnergyEnsemble(energy, laws, n_visible=10, n_hidden=2)

    p = v.mean(0)
    independent = float((p * p.log() + (1 - p) * (1 - p).log()).sum())
    print(f"log-likelihood before training {before:.2f}")
    print(f"log-likelihood after training  {mean_log_likelihood(ensemble, v):.2f}")
    print(f"that of independent pixels     {independent:.2f}")
    position = laws["position"].alpha
    print("positions, generated with N(2.0, 0.5) and N(7.0, 1.0):", end="")
    print(*(f" N({m:.1f}, {s:.1f})" for m, s in zip(position["theta_bar"], position["sigma"], strict=True)))
    table = exact.joint(ensemble, n_nodes=20)
    dark = [table.marginal(("v", i)).exp()[1] for i in range(ensemble.D)]
    print("dark pixels, data: ", *(f"{x:.2f}" for x in p))
    print("dark pixels, model:", *(f"{x:.2f}" for x in dark))


if __name__ == "__main__":
    main()
