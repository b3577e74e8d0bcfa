"""Enumeration against loops, and the paper's claims that only enumeration can check."""

import itertools
import math

import pytest
import torch

from ebse.laws import Bernoulli, Gaussian, Law, Levels, Point
from ebse.models import EnergyEnsemble, LinearEnsemble, RestrictedBoltzmannEnsemble, exact
from examples import LAWS, ensemble
from oracles import atoms, binary, joint_table, rbm_energy

V = torch.tensor([[1.0, 0.0, 1.0], [0.0, 0.0, 1.0], [1.0, 1.0, 1.0], [1.0, 0.0, 1.0]])


def _close(found: torch.Tensor, expected: object, tolerance: float = 1e-10) -> None:
    torch.testing.assert_close(found, torch.as_tensor(expected), rtol=tolerance, atol=tolerance)


def linear_view(small: RestrictedBoltzmannEnsemble) -> LinearEnsemble:
    """The same ensemble, as a general one."""
    return LinearEnsemble(
        lambda v, h: {"W": v[..., :, None] * h[..., None, :], "b": v, "c": h},
        small.laws,
        n_visible=small.D,
        n_hidden=small.K,
    )


@pytest.fixture(params=sorted(LAWS))
def small(request: pytest.FixtureRequest) -> RestrictedBoltzmannEnsemble:
    return ensemble(request.param, "gaussian", "bernoulli")


def test_tables_agree_with_loops(small: RestrictedBoltzmannEnsemble) -> None:
    table = joint_table(small.laws)
    for model in (small, linear_view(small)):
        _close(exact.log_joint_vh(model).exp(), table)
        _close(exact.log_prob_v(model).exp(), table.sum(1))
        _close(exact.log_prob_h_given_v(model).exp(), table / table.sum(1, keepdim=True))
        row = torch.tensor([5, 1, 7, 5])
        _close(exact.log_likelihood(model, V), table.sum(1)[row].log())


def test_log_zeta_is_the_same_from_either_side() -> None:
    for D, K in ((4, 2), (2, 4)):
        small = ensemble("gaussian", D=D, K=K)
        _close(exact.log_zeta(small), exact.log_zeta(linear_view(small)))


def test_gradient_agrees_with_finite_differences(small: RestrictedBoltzmannEnsemble) -> None:
    """Central differences of the enumerated log-likelihood, every element of every α."""
    found = exact.log_likelihood_gradient(small, V)
    for letter, law in small.laws.items():
        for name, x in law.alpha.items():
            for element in itertools.product(*map(range, x.shape)):
                step = torch.zeros_like(x)
                step[element] = 1e-5
                values = [
                    exact.log_likelihood(
                        small.with_laws(**{letter: law.with_alpha({**law.alpha, name: x + s * step})}), V
                    ).mean()
                    for s in (1, -1)
                ]
                slope = float(values[0] - values[1]) / 2e-5
                assert found[letter][name][element].item() == pytest.approx(slope, rel=1e-6, abs=1e-8)


# ---- θ summed explicitly


def tiny(W: str, b: str = "point", c: str = "point") -> RestrictedBoltzmannEnsemble:
    return ensemble(W, b, c, D=2, K=1 if W in ("gaussian", "laplace", "uniform", "spike_slab") else 2)


@pytest.mark.parametrize("W", sorted(LAWS))
def test_the_joint_with_theta_has_the_collapsed_margin(W: str) -> None:
    small = tiny(W, "bernoulli")
    joint = exact.joint(small, n_nodes=40)
    names = [("v", 0), ("v", 1)] + [("h", j) for j in range(small.K)]
    _close(joint.marginal(*names).exp().reshape(4, -1), joint_table(small.laws))


@pytest.mark.parametrize("W", sorted(LAWS))
def test_eq_3_decomposes_the_log_likelihood(W: str) -> None:
    small = tiny(W, "levels" if W in ("point", "bernoulli") else "point")
    v = torch.tensor([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    parts = exact.decomposition(small, v, n_nodes=60)
    _close(parts.log_likelihood, exact.log_likelihood(small, v), 1e-9)
    _close(parts.expected_log_likelihood - parts.divergence, parts.log_likelihood, 1e-9)
    assert (parts.divergence >= -1e-12).all()
    if W != "point":
        assert parts.divergence.max() > 1e-4


def test_eq_3_is_false_with_the_law_in_the_marginals_place() -> None:
    """The twin: KL against the law itself does not close the equation."""
    small = tiny("bernoulli")
    v = torch.tensor([[1.0, 1.0]])
    posterior, weights = [], []
    for p, W in atoms(small.W):
        b, c = small.b.alpha["theta_bar"], small.c.alpha["theta_bar"]
        posterior.append(p * sum(math.exp(-rbm_energy((1, 1), h, W, b, c)) for h in binary(2)))
        weights.append(p)
    q = torch.tensor(posterior) / sum(posterior)
    wrong = (q * (q / torch.tensor(weights)).log()).sum()
    parts = exact.decomposition(small, v)
    assert abs(float(parts.divergence[0] - wrong)) > 1e-3


def test_marginal_over_theta_is_the_law_times_z() -> None:
    small = ensemble("bernoulli", "point", "levels", D=2, K=2)
    b = small.b.alpha["theta_bar"]
    total, found = 0.0, []
    for (p, W), (q, c) in itertools.product(atoms(small.W), atoms(small.c)):
        Z = sum(math.exp(-rbm_energy(v, h, W, b, c)) for v in binary(2) for h in binary(2))
        theta = {"W": W[None], "b": b[None], "c": c[None]}
        found.append((p * q * Z, exact.log_marginal_theta(small, theta).item(), p * q))
        total += p * q * Z
    for weight, log_p, _ in found:
        assert log_p == pytest.approx(math.log(weight / total), abs=1e-10)
    assert max(abs(math.exp(log_p) - law) for _, log_p, law in found) > 1e-3  # not the law itself
    assert sum(math.exp(log_p) for _, log_p, _ in found) == pytest.approx(1.0, abs=1e-10)


def test_marginal_density_of_a_gaussian_weight() -> None:
    """One visible, one hidden unit: law × Z(θ) / ζ integrates to one and has the joint's mean."""
    small = RestrictedBoltzmannEnsemble(
        W=Gaussian(torch.tensor([[0.5]]), 0.8), b=Point(torch.tensor([0.2])), c=Point(torch.tensor([-0.3]))
    )
    W = torch.linspace(-8, 9, 20_001)
    n = len(W)
    theta = {"W": W.reshape(n, 1, 1), "b": torch.full((n, 1), 0.2), "c": torch.full((n, 1), -0.3)}
    density = exact.log_marginal_theta(small, theta).exp()
    _close(torch.trapezoid(density, W), torch.tensor(1.0), 1e-8)
    table = joint_table(small.laws)
    mean = sum(table[v, h] * small.W.mean(float(v * h))[0, 0] for v in (0, 1) for h in (0, 1))
    _close(torch.trapezoid(density * W, W), mean, 1e-8)


# ---- Eq. 9


@pytest.fixture(params=["bernoulli", "levels"])
def table(request: pytest.FixtureRequest) -> exact.Joint:
    W: Law = Bernoulli(torch.full((2, 2), 2.5), torch.tensor([[0.5, 0.4], [0.6, 0.7]]))
    if request.param == "levels":
        W = Levels(torch.tensor([-1.0, 0.5, 2.0]), torch.tensor([0.2, 0.5, 0.3]).expand(2, 2, 3))
    return exact.joint(
        RestrictedBoltzmannEnsemble(
            W=W, b=Point(torch.tensor([-1.5, -1.0])), c=Point(torch.tensor([-2.0, -1.5]))
        )
    )


def test_eq_9_units_are_independent_given_the_other_layer(table: exact.Joint) -> None:
    assert table.mutual_information(("v", 0), ("v", 1), given=(("h", 0), ("h", 1))) == pytest.approx(
        0, abs=1e-12
    )
    assert table.mutual_information(("h", 0), ("h", 1), given=(("v", 0), ("v", 1))) == pytest.approx(
        0, abs=1e-12
    )
    assert table.mutual_information(("v", 0), ("v", 1)) > 1e-4


def test_eq_9_weights_are_dependent_given_a_unit(table: exact.Joint) -> None:
    assert table.mutual_information(("W", 0, 0), ("W", 0, 1), given=(("v", 0),)) > 1e-6
    assert table.mutual_information(("W", 0, 0), ("W", 1, 0), given=(("h", 0),)) > 1e-6


def test_eq_9_weights_are_not_independent_under_the_marginal(table: exact.Joint) -> None:
    """W_ij ⊥ W_lk holds for the law; for the marginal of the joint it does not (docs/maths.md, errata)."""
    assert table.mutual_information(("W", 0, 0), ("W", 1, 1)) > 1e-8


def test_weights_are_independent_given_all_units(table: exact.Joint) -> None:
    units = (("v", 0), ("v", 1), ("h", 0), ("h", 1))
    found = table.mutual_information(("W", 0, 0), ("W", 0, 1), given=units)
    assert found == pytest.approx(0, abs=1e-12)


# ---- any energy


def test_joint_of_an_arbitrary_energy() -> None:
    def energy(v: torch.Tensor, h: torch.Tensor, theta: dict[str, torch.Tensor]) -> torch.Tensor:
        return -(torch.tanh(theta["a"] * v.sum(-1, keepdim=True)) * h).sum(-1)

    law = Bernoulli(torch.tensor([1.5, -0.7]), torch.tensor([0.3, 0.6]))
    model = EnergyEnsemble(energy, {"a": law}, n_visible=2, n_hidden=2)
    table = exact.joint(model).marginal(("v", 0), ("v", 1), ("h", 0), ("h", 1)).exp()
    expected = torch.zeros(2, 2, 2, 2)
    for v, h, (p, a) in itertools.product(binary(2), binary(2), atoms(law)):
        exponent = sum(math.tanh(float(a[j]) * sum(v)) * h[j] for j in range(2))
        expected[v + h] += p * math.exp(exponent)
    _close(table, expected / expected.sum())


# ---- bad input


def test_large_models_are_refused() -> None:
    with pytest.raises(ValueError, match=r"small enough for 67,108,864 terms, got .*; use fewer units"):
        exact.log_zeta(ensemble("point", D=40, K=40))


def test_real_visibles_are_refused() -> None:
    real = RestrictedBoltzmannEnsemble(**ensemble("gaussian").laws, visible="real")
    with pytest.raises(ValueError, match="visible must be 'binary' to enumerate states, got 'real'; no"):
        exact.log_zeta(real)


def test_gray_rows_are_refused() -> None:
    with pytest.raises(
        ValueError, match=r"v must be binary rows of shape \(N, 2\), got .*; threshold or sample"
    ):
        exact.decomposition(ensemble("bernoulli", D=2, K=2), torch.tensor([[0.9, 0.9]]))


def test_log_zeta_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    small = ensemble("gaussian", D=4, K=3)
    whole = exact.log_zeta(small)
    monkeypatch.setattr(exact, "BLOCK", 12)
    _close(exact.log_zeta(small), whole)
