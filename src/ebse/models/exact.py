"""Exact quantities of small models of binary units, by summation over all states.

Sums over θ use the nodes of each law: its atoms, or a Gauss quadrature, which is exact up to rounding for the
smooth integrands here from some tens of nodes on.
"""

import itertools
import math
from typing import NamedTuple

import torch
from torch import Tensor

from ebse._tensors import fractional, units
from ebse.laws.bernoulli import log1p_exp
from ebse.models._leaves import Gradient, gradient_of, leaves_of, rebuilt
from ebse.models.energy import EnergyEnsemble, LinearEnsemble, law_sum
from ebse.models.rbse import RestrictedBoltzmannEnsemble, Theta

LARGEST_TABLE = 2**26
"""Largest number of terms of a sum."""
BLOCK = 2**20

Collapsible = RestrictedBoltzmannEnsemble | LinearEnsemble
Ensemble = Collapsible | EnergyEnsemble
Axis = tuple[str | int, ...]


def states(n: int, *, dtype: torch.dtype = torch.float64, part: slice = slice(None)) -> Tensor:
    """All binary vectors of length n (or a part of them), counting upwards with the last unit fastest."""
    _bounded(2**n)
    bits = torch.arange(*part.indices(2**n)).unsqueeze(-1) >> torch.arange(n - 1, -1, -1)
    return (bits & 1).to(dtype)


def log_zeta(ensemble: Collapsible) -> Tensor:
    """log ζ(α) = log Σ_v Σ_h exp(log_weight(v, h)); for an RBSE, over the states of its smaller side."""
    if isinstance(ensemble, LinearEnsemble):
        return torch.logsumexp(_log_weights(ensemble).flatten(), 0)
    _binary(ensemble)
    W, b, c = ensemble.effective()
    if ensemble.D > ensemble.K:
        W, b, c = W.T, c, b
    n, other = W.shape
    _bounded(2**n)
    # Blocks of states whose inputs to the other side are at most BLOCK numbers.
    step = max(BLOCK // other, 1)
    parts = []
    for start in range(0, 2**n, step):
        x = states(n, dtype=ensemble.dtype, part=slice(start, start + step))
        parts.append(torch.logsumexp(x @ b + log1p_exp(x @ W + c).sum(-1), 0))
    return torch.logsumexp(torch.stack(parts), 0)


def log_joint_vh(ensemble: Collapsible) -> Tensor:
    """log P(v, h), (2^D, 2^K), rows and columns as in :func:`states`."""
    _binary(ensemble)
    log_w = _log_weights(ensemble)
    return log_w - torch.logsumexp(log_w.flatten(), 0)


def log_prob_v(ensemble: Collapsible) -> Tensor:
    """log P(v), (2^D,)."""
    return torch.logsumexp(log_joint_vh(ensemble), 1)


def log_prob_h_given_v(ensemble: Collapsible) -> Tensor:
    """log P(h | v), (2^D, 2^K)."""
    return torch.log_softmax(log_joint_vh(ensemble), 1)


def log_likelihood(ensemble: Collapsible, v: Tensor) -> Tensor:
    """log P(v; α) of each row of binary v (N, D); for other values −F(v) − log ζ is not a log probability."""
    if isinstance(ensemble, RestrictedBoltzmannEnsemble):
        return -ensemble.free_energy(v) - log_zeta(ensemble)
    h = states(ensemble.K, dtype=ensemble.dtype)
    _bounded(len(v) * len(h))
    log_w = ensemble.log_weight(*_pairs(v, h))
    return torch.logsumexp(log_w, -1) - log_zeta(ensemble)


@torch.enable_grad()
def log_likelihood_gradient(ensemble: Collapsible, v: Tensor) -> Gradient:
    """∂/∂α of the mean log P(v; α) over the rows of v."""
    alpha = leaves_of(ensemble)
    value = log_likelihood(rebuilt(ensemble, alpha), v).mean()
    return gradient_of(value, alpha)


def log_partition(ensemble: Ensemble, theta: dict[str, Tensor]) -> Tensor:
    """log Z(θ) = log Σ_v Σ_h exp(−E(v, h, θ)) of each model θ ``(G, *shape)``, (G,)."""
    energies = _energies(ensemble, theta)
    return torch.logsumexp(-energies.flatten(0, 1), 0)


def log_marginal_theta(ensemble: Collapsible, theta: dict[str, Tensor]) -> Tensor:
    """log P(θ) = −φ(θ; α) + log Z(θ) − log ζ(α): the law times Z(θ), not the law itself."""
    phi = torch.zeros(())
    for name, law in ensemble.laws.items():
        phi = phi + law_sum(law, law.potential(theta[name]))
    return -phi + log_partition(ensemble, theta) - log_zeta(ensemble)


class Joint(NamedTuple):
    """log P(v, h, θ) as a table with one axis for each unit and each parameter.

    Axes are named ("v", i), ("h", j) and, for the nodes of a parameter, ("W", i, j).
    """

    log_p: Tensor
    axes: tuple[Axis, ...]
    nodes: dict[Axis, Tensor]

    def marginal(self, *names: Axis) -> Tensor:
        """log P of the named variables, axes in the given order."""
        kept = [self.axes.index(name) for name in names]
        others = [axis for axis in range(len(self.axes)) if axis not in kept]
        summed = torch.logsumexp(self.log_p, others) if others else self.log_p
        order = sorted(kept)
        return summed.permute([order.index(axis) for axis in kept])

    def mutual_information(self, x: Axis, y: Axis, *, given: tuple[Axis, ...] = ()) -> float:
        """I(x; y | given) in nats: 0 exactly where Eq. 9 claims independence."""
        p = self.marginal(x, y, *given)
        x_only, y_only = torch.logsumexp(p, 1, keepdim=True), torch.logsumexp(p, 0, keepdim=True)
        neither = torch.logsumexp(y_only, 1, keepdim=True)
        return float((p.exp() * (p + neither - x_only - y_only)).nan_to_num().sum())


def joint(ensemble: Ensemble, *, n_nodes: int = 12) -> Joint:
    """P(v, h, θ) of a tiny ensemble: every state with every combination of the laws' nodes."""
    theta, log_w, axes, nodes = _grid(ensemble, n_nodes)
    log_p = log_w - _energies(ensemble, theta)
    log_p = log_p - torch.logsumexp(log_p.flatten(), 0)
    units: list[Axis] = [("v", i) for i in range(ensemble.D)]
    units += [("h", j) for j in range(ensemble.K)]
    sizes = [2] * len(units) + [len(nodes[axis]) for axis in axes]
    return Joint(log_p.reshape(sizes), (*units, *axes), nodes)


class Decomposition(NamedTuple):
    """Eq. 3 for each row of v: log P(v) = E[log P(v | θ)] − KL[P(θ | v) ‖ P(θ)]."""

    log_likelihood: Tensor
    expected_log_likelihood: Tensor
    divergence: Tensor


def decomposition(ensemble: Ensemble, v: Tensor, *, n_nodes: int = 12) -> Decomposition:
    """The two terms of Eq. 3, expectations over P(θ | v), for each row of binary v.

    P(θ) is the marginal of the joint, ∝ law × Z(θ); with the law itself the equation is false.
    """
    theta, log_w, _, _ = _grid(ensemble, n_nodes)
    log_p = torch.logsumexp(-_energies(ensemble, theta), 1)  # (2^D, G): log Σ_h exp(−E)
    log_z = torch.logsumexp(log_p, 0)  # (G,)
    log_zeta = torch.logsumexp(log_w + log_z, 0)
    log_p = log_p[_row_numbers(ensemble, v)]  # (N, G)
    evidence = torch.logsumexp(log_w + log_p, 1)
    posterior = log_w + log_p - evidence.unsqueeze(-1)
    marginal = log_w + log_z - log_zeta
    expected = (posterior.exp() * (log_p - log_z)).sum(-1)
    divergence = (posterior.exp() * (posterior - marginal)).sum(-1)
    return Decomposition(evidence - log_zeta, expected, divergence)


def _grid(
    ensemble: Ensemble, n_nodes: int
) -> tuple[dict[str, Tensor], Tensor, list[Axis], dict[Axis, Tensor]]:
    """Every combination of nodes: θ (G, *shape) by name, log weights (G,), axes and their nodes."""
    rules = {name: law.nodes(n_nodes) for name, law in ensemble.laws.items()}
    axes: list[Axis] = []
    nodes, log_weights = [], []
    for name, (values, log_w) in rules.items():
        for index in itertools.product(*map(range, values.shape[1:])):
            axes.append((name, *index))
            nodes.append(values.movedim(0, -1)[index])
            log_weights.append(log_w.movedim(0, -1)[index])
    _bounded(math.prod(map(len, nodes)) * 2 ** (ensemble.D + ensemble.K))
    combined = torch.meshgrid(*nodes, indexing="ij")
    flat = torch.stack([x.flatten() for x in combined], -1)  # (G, P)
    weight = torch.stack([x.flatten() for x in torch.meshgrid(*log_weights, indexing="ij")]).sum(0)
    theta, start = {}, 0
    for name, law in ensemble.laws.items():
        size = math.prod(law.shape)
        theta[name] = flat[:, start : start + size].reshape(-1, *law.shape)
        start += size
    return theta, weight, axes, dict(zip(axes, nodes, strict=True))


def _energies(ensemble: Ensemble, theta: dict[str, Tensor]) -> Tensor:
    """E(v, h, θ) of every state and every given model, (2^D, 2^K, G)."""
    _binary(ensemble)
    G = len(next(iter(theta.values())))
    v, h = states(ensemble.D, dtype=ensemble.dtype), states(ensemble.K, dtype=ensemble.dtype)
    _bounded(len(v) * len(h) * G)
    v, h = (x.flatten(0, 1) for x in _pairs(v, h))
    rows = len(v)
    v, h = v.repeat_interleave(G, 0), h.repeat_interleave(G, 0)
    repeated = {name: x.repeat(rows, *(1,) * (x.ndim - 1)) for name, x in theta.items()}
    if isinstance(ensemble, RestrictedBoltzmannEnsemble):
        energies = ensemble.energy(v, h, Theta(**repeated))
    else:
        energies = ensemble.energy(v, h, repeated)
    return energies.reshape(2**ensemble.D, 2**ensemble.K, G)


def _log_weights(ensemble: Collapsible) -> Tensor:
    """The log weight of every state, (2^D, 2^K)."""
    _bounded(2 ** (ensemble.D + ensemble.K))
    v, h = states(ensemble.D, dtype=ensemble.dtype), states(ensemble.K, dtype=ensemble.dtype)
    return ensemble.log_weight(*_pairs(v, h))


def _row_numbers(ensemble: Ensemble, v: Tensor) -> Tensor:
    """The index of each row of binary v (N, D) in :func:`states`."""
    v = units("v", v, ensemble.D, dtype=ensemble.dtype)
    if v.ndim != 2 or fractional(v):
        raise ValueError(
            f"v must be binary rows of shape (N, {ensemble.D}), got shape {tuple(v.shape)} with values "
            "between 0 and 1; threshold or sample them first"
        )
    return (v.long() << torch.arange(ensemble.D - 1, -1, -1)).sum(-1)


def _pairs(v: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
    """Every row of v with every row of h: (N, M, D) and (N, M, K)."""
    return v.unsqueeze(1).expand(-1, len(h), -1), h.unsqueeze(0).expand(len(v), -1, -1)


def _binary(ensemble: Ensemble) -> None:
    if isinstance(ensemble, RestrictedBoltzmannEnsemble) and ensemble.visible != "binary":
        raise ValueError(
            "visible must be 'binary' to enumerate states, got 'real'; "
            "no normalized density over real visibles is claimed"
        )


def _bounded(n: int) -> None:
    if n > LARGEST_TABLE:
        raise ValueError(
            f"the model must be small enough for {LARGEST_TABLE:,} terms, got {n:,}; use fewer units, "
            "parameters or n_nodes"
        )
