"""Metropolis–Hastings and Gibbs sampling of θ | v, h for energies that are not linear in θ.

Laws with a density on the real line move by the Metropolis-adjusted Langevin algorithm, all at once; laws
with atoms by Gibbs sampling, one element at a time; any other law by independence Metropolis–Hastings, one
element at a time, with the law itself as the proposal.

References
----------
N. Metropolis et al., "Equation of state calculations by fast computing machines", 1953. W. K. Hastings,
"Monte Carlo sampling methods using Markov chains and their applications", 1970. G. O. Roberts and R. L.
Tweedie, "Exponential convergence of Langevin distributions and their discrete approximations", 1996.
"""

import itertools
from collections.abc import Iterator

import torch
from torch import Tensor

from ebse import rng
from ebse.laws import Law
from ebse.models import EnergyEnsemble
from ebse.models.energy import Parameters, law_sum
from ebse.sampling.state import State

LANGEVIN_STEP = 1.2
"""Default step for one parameter, in standard deviations of its law.

With d parameters that move together the step is divided by d^(1/6), which keeps the acceptance rate constant
(Roberts and Rosenthal, "Optimal scaling of discrete approximations to Langevin diffusions", 1998).
"""


def theta_sweep(
    ensemble: EnergyEnsemble,
    state: State,
    theta: Parameters,
    key: int,
    *,
    step: float = LANGEVIN_STEP,
) -> tuple[Parameters, float]:
    """Move every parameter once, leaving P(θ | v, h) ∝ P(θ; α) exp(−E(v, h, θ)) invariant.

    Also returns the acceptance rate of the Langevin moves (1 if there are none).
    """
    theta = {name: x.clone() for name, x in theta.items()}
    smooth = [name for name, law in ensemble.laws.items() if law.support == "real line"]
    acceptance = 1.0
    if smooth:
        theta, acceptance = _langevin(ensemble, state, theta, smooth, rng.subkey(key, 0), step)
    for number, (name, law) in enumerate(ensemble.laws.items(), start=1):
        if law.support == "atoms":
            _gibbs(ensemble, state, theta, name, rng.subkey(key, number))
        elif law.support == "other":
            _independence(ensemble, state, theta, name, rng.subkey(key, number))
    return theta, acceptance


def _langevin(
    ensemble: EnergyEnsemble,
    state: State,
    theta: Parameters,
    names: list[str],
    key: int,
    step: float,
) -> tuple[Parameters, float]:
    """Propose θ − ε²/2 ∇U + ε ξ with U = E + φ and ε = step · sd · d^(−1/6); accept or reject."""
    step *= sum(ensemble.laws[name].shape.numel() for name in names) ** (-1 / 6)
    scale = {name: step * ensemble.laws[name].variance().detach().sqrt() for name in names}
    U, slope = _slope(ensemble, state, theta, names)
    proposal, forward, backward = dict(theta), torch.zeros_like(U), torch.zeros_like(U)
    for number, name in enumerate(names):
        u = rng.uniform(rng.subkey(key, number), tuple(theta[name].shape), device=U.device)
        xi = torch.special.ndtri(u).to(U.dtype)
        proposal[name] = theta[name] - scale[name] ** 2 / 2 * slope[name] + scale[name] * xi
        forward = forward + law_sum(ensemble.laws[name], xi**2) / 2
    U_new, slope_new = _slope(ensemble, state, proposal, names)
    for name in names:
        back = theta[name] - proposal[name] + scale[name] ** 2 / 2 * slope_new[name]
        backward = backward + law_sum(ensemble.laws[name], (back / scale[name]) ** 2) / 2
    log_ratio = U - U_new + forward - backward
    accept = _accept(log_ratio, rng.subkey(key, len(names)))
    moved = {name: torch.where(_column(accept, x), proposal[name], x) for name, x in theta.items()}
    return moved, float(accept.double().mean())


def _gibbs(ensemble: EnergyEnsemble, state: State, theta: Parameters, name: str, key: int) -> None:
    """Sample each element of an atomic law from P(θ_k | rest), in place."""
    values, log_w = (x.detach() for x in ensemble.laws[name].nodes(1))
    if len(values) == 1:
        return
    for number, element in enumerate(_elements(ensemble.laws[name])):
        log_p = []
        for value, weight in zip(values[element], log_w[element], strict=True):
            theta[name][element] = value
            log_p.append(weight - ensemble.energy(*state, theta))
        bounds = torch.softmax(torch.stack(log_p, -1), -1).to(torch.float64).cumsum(-1)[..., :-1]
        u = rng.uniform(rng.subkey(key, number), (len(bounds), 1), device=bounds.device)
        theta[name][element] = values[element][(u >= bounds).sum(-1)]


def _independence(ensemble: EnergyEnsemble, state: State, theta: Parameters, name: str, key: int) -> None:
    """Propose each element from its law, accept with min(1, exp(E − E′)), in place."""
    law, shape = ensemble.laws[name], theta[name].shape
    u = rng.uniform(rng.subkey(key, 0), tuple(shape), device=theta[name].device)
    proposal = law.draw(torch.zeros_like(theta[name]), u).detach()
    E = ensemble.energy(*state, theta)
    for number, element in enumerate(_elements(law), start=1):
        old = theta[name][element].clone()
        theta[name][element] = proposal[element]
        E_new = ensemble.energy(*state, theta)
        accept = _accept(E - E_new, rng.subkey(key, number))
        theta[name][element] = torch.where(accept, proposal[element], old)
        E = torch.where(accept, E_new, E)


def _slope(
    ensemble: EnergyEnsemble, state: State, theta: Parameters, names: list[str]
) -> tuple[Tensor, Parameters]:
    """U = E + φ of the named laws, (N,), and ∂U/∂θ of each chain's own θ."""
    with torch.enable_grad():
        moving = {name: theta[name].detach().requires_grad_() for name in names}
        U = ensemble.energy(*state, {**theta, **moving})
        for name in names:
            U = U + law_sum(ensemble.laws[name], ensemble.laws[name].potential(moving[name]))
        slopes = torch.autograd.grad(U.sum(), list(moving.values()))
    return U.detach(), dict(zip(names, slopes, strict=True))


def _accept(log_ratio: Tensor, key: int) -> Tensor:
    """Accept with probability min(1, exp(log_ratio)); a ratio that is NaN is rejected."""
    return rng.uniform(key, tuple(log_ratio.shape), device=log_ratio.device).log() < log_ratio


def _column(flags: Tensor, like: Tensor) -> Tensor:
    return flags.reshape(-1, *(1,) * (like.ndim - 1))


def _elements(law: Law) -> Iterator[tuple[slice | int, ...]]:
    """Indices of each element of θ, over all chains (or nodes) at once."""
    return ((slice(None), *element) for element in itertools.product(*map(range, law.shape)))
