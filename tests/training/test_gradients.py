"""Gradients of every law and each of W, b, c against autograd of the enumerated log-likelihood."""

import itertools
import math

import pytest
import torch
from torch import Tensor

from ebse import rng
from ebse.laws import Bernoulli, Gaussian, Law, Point
from ebse.models import EnergyEnsemble, LinearEnsemble, RestrictedBoltzmannEnsemble, exact
from ebse.models._leaves import Gradient
from ebse.sampling import State
from ebse.training import (
    Algorithm1,
    ContrastiveDivergence,
    EStep,
    Offsets,
    Phases,
    gradient,
    monte_carlo_gradient,
)
from examples import LAWS, ensemble
from monte_carlo import means_depart
from oracles import atoms, binary

V = torch.tensor([[1.0, 0.0, 1.0], [0.0, 0.0, 1.0], [1.0, 1.0, 1.0], [1.0, 0.0, 1.0]])
MIXES = [(name, "point", "point") for name in sorted(LAWS)]
MIXES += [("point", name, "point") for name in sorted(LAWS)]
MIXES += [("point", "point", name) for name in sorted(LAWS)]
MIXES += [("bernoulli", "bernoulli", "bernoulli"), ("gaussian", "gaussian", "gaussian")]


def expectation_gradient(small: RestrictedBoltzmannEnsemble, offsets: Offsets | None = None) -> Gradient:
    """Σ_states (P_data − P_model) × the gradient that a single state contributes."""
    log_model = exact.log_joint_vh(small)
    row = (V.long() << torch.arange(2, -1, -1)).sum(-1)
    p_data = torch.bincount(row, minlength=8).double() / len(V)
    data = p_data.unsqueeze(1) * exact.log_prob_h_given_v(small).exp()
    weight = (data - log_model.exp()).flatten()
    zero = State(torch.zeros(1, 3), torch.zeros(1, 2))
    total: Gradient = {}
    for w, (v, h) in zip(weight, itertools.product(exact.states(3), exact.states(2)), strict=True):
        one = gradient(small, Phases(State(v[None], h[None]), zero), offsets)
        for letter, part in one.items():
            for name, x in part.items():
                total.setdefault(letter, {}).setdefault(name, torch.zeros_like(x)).add_(w * x)
    return total


def assert_same(found: Gradient, expected: Gradient, tolerance: float = 1e-10) -> None:
    for letter, part in expected.items():
        for name, x in part.items():
            torch.testing.assert_close(found[letter][name], x, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("mix", MIXES, ids="-".join)
def test_contrast_of_exact_phases_is_the_likelihood_gradient(mix: tuple[str, str, str]) -> None:
    small = ensemble(*mix)
    assert_same(expectation_gradient(small), exact.log_likelihood_gradient(small, V))


def test_without_the_model_phase_it_is_not() -> None:
    small = ensemble("bernoulli")
    data = gradient(
        small, Phases(State(V, small.mean_h_given_v(V)), State(torch.zeros(1, 3), torch.zeros(1, 2)))
    )
    expected = exact.log_likelihood_gradient(small, V)
    assert (data["W"]["theta_bar"] - expected["W"]["theta_bar"]).abs().max() > 1e-2


# ---- the paper's own formulas


def closed_forms(small: RestrictedBoltzmannEnsemble) -> dict[str, Tensor]:
    """⟨·⟩_data − ⟨·⟩_model of the paper's expressions for W (B4, B7), right and as printed."""
    log_model = exact.log_joint_vh(small)
    row = (V.long() << torch.arange(2, -1, -1)).sum(-1)
    p_data = torch.bincount(row, minlength=8).double() / len(V)
    weight = p_data.unsqueeze(1) * exact.log_prob_h_given_v(small).exp() - log_model.exp()
    theta_bar, noise = (small.W.alpha[name] for name in small.W.names)
    found = {name: torch.zeros(3, 2) for name in ("theta_bar", "noise", "printed")}
    for a, b in itertools.product(range(8), range(4)):
        t = exact.states(3)[a].unsqueeze(-1) * exact.states(2)[b]
        if isinstance(small.W, Bernoulli):
            base = 1 - noise + noise * torch.exp(t * theta_bar)
            found["theta_bar"] += weight[a, b] * t * noise * torch.exp(t * theta_bar) / base
            found["noise"] += weight[a, b] * (torch.exp(t * theta_bar) - 1) / base
            absent = (1 - noise) / base
            found["printed"] += weight[a, b] * absent * (1 - torch.exp(t * theta_bar))
        else:
            found["theta_bar"] += weight[a, b] * t
            found["noise"] += weight[a, b] * t**2 * noise
    return found


@pytest.mark.parametrize("W", ["bernoulli", "gaussian"])
def test_closed_forms_of_the_paper(W: str) -> None:
    small = ensemble(W)
    expected = exact.log_likelihood_gradient(small, V)["W"]
    forms = closed_forms(small)
    torch.testing.assert_close(forms["theta_bar"], expected["theta_bar"], rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(forms["noise"], expected[small.W.noise_names[0]], rtol=1e-10, atol=1e-12)


def test_the_printed_gradient_in_p_is_wrong() -> None:
    """B3 and B4 as printed are −(1 − p) times the true gradient: another size, and another sign."""
    small = ensemble("bernoulli")
    true = exact.log_likelihood_gradient(small, V)["W"]["p"]
    printed = closed_forms(small)["printed"]
    torch.testing.assert_close(printed, -(1 - small.W.alpha["p"]) * true, rtol=1e-10, atol=1e-12)
    assert true.abs().max() > 1e-2
    assert (printed * true <= 0).all()


def test_the_expected_score_under_the_law_itself_is_zero() -> None:
    """Eq. 5 and 6 name P(θ; α); under the law itself the expected score vanishes for every α."""
    law = LAWS["bernoulli"]((3, 2))
    leaves = {name: x.clone().requires_grad_() for name, x in law.alpha.items()}
    law = law.with_alpha(leaves)
    values, log_w = (x.detach() for x in law.nodes(1))
    expected_score = torch.autograd.grad(-(log_w.exp() * law.potential(values)).sum(), leaves["p"])[0]
    torch.testing.assert_close(expected_score, torch.zeros(3, 2), rtol=0, atol=1e-12)


# ---- centering


def test_centered_gradient_is_the_gradient_at_fixed_centered_biases() -> None:
    """Autograd of the enumerated likelihood in (α_W, b + W λ, c + μᵀ W)."""
    small = ensemble("bernoulli")
    offsets = Offsets(torch.tensor([0.2, 0.5, 0.9]), torch.tensor([0.3, 0.6]))
    W, b, c = small.effective()
    leaves = {name: x.clone().requires_grad_() for name, x in small.W.alpha.items()}
    law = small.W.with_alpha(leaves)
    shifted = small.with_laws(
        W=law,
        b=small.b.with_alpha({"theta_bar": b + W @ offsets.lam - law.effective() @ offsets.lam}),
        c=small.c.with_alpha({"theta_bar": c + offsets.mu @ W - offsets.mu @ law.effective()}),
    )
    value = exact.log_likelihood(shifted, V).mean()
    expected = dict(zip(leaves, torch.autograd.grad(value, list(leaves.values())), strict=True))
    found = expectation_gradient(small, offsets)
    for name, x in expected.items():
        torch.testing.assert_close(found["W"][name], x, rtol=1e-10, atol=1e-12)
    plain = expectation_gradient(small)
    assert_same({"b": found["b"], "c": found["c"]}, {"b": plain["b"], "c": plain["c"]})
    assert (found["W"]["theta_bar"] - plain["W"]["theta_bar"]).abs().max() > 1e-3


def test_centering_needs_binary_units() -> None:
    real = RestrictedBoltzmannEnsemble(**ensemble("gaussian").laws, visible="real")
    phases = Phases(State(V, torch.ones(4, 2)), State(V, torch.ones(4, 2)))
    with pytest.raises(
        ValueError, match=r"centered gradients need an ensemble of binary units, got .*; use visible"
    ):
        gradient(real, phases, Offsets(torch.zeros(3), torch.zeros(2)))


# ---- E-steps estimate the right expectations

E_STEPS: dict[str, EStep] = {
    "cd": ContrastiveDivergence(k=30),
    "pcd": ContrastiveDivergence(k=30, persistent=True),
    "algorithm 1": Algorithm1(k=30),
    "algorithm 1, persistent": Algorithm1(k=30, persistent=True),
}


def batch_gradients(small: RestrictedBoltzmannEnsemble, phases: Phases, n: int = 50) -> list[Gradient]:
    """Independent estimates from n batches of the rows, which have a standard error."""
    return [gradient(small, Phases(*(State(s.v[i::n], s.h[i::n]) for s in phases))) for i in range(n)]


@pytest.mark.parametrize("W", ["bernoulli", "gaussian", "levels"])
@pytest.mark.parametrize("name", sorted(E_STEPS))
def test_long_chains_estimate_the_gradient(W: str, name: str, generator: torch.Generator) -> None:
    """30 sweeps of these weakly coupled units leave a bias far below the Monte-Carlo error of 10,000 rows."""
    small, e_step = ensemble(W), E_STEPS[name]
    v = V.repeat(2_500, 1)
    memory = e_step.start(small, v, len(v), {}, generator=generator)
    phases, _ = e_step.phases(small, v, torch.arange(len(v)), memory, generator=generator)
    expected = exact.log_likelihood_gradient(small, V)
    parts = batch_gradients(small, phases)
    for alpha in expected["W"]:
        estimates = torch.stack([part["W"][alpha] for part in parts])
        assert not means_depart(estimates, expected["W"][alpha])


def test_a_single_sweep_is_biased(generator: torch.Generator) -> None:
    """The twin: CD-1 is not the likelihood gradient, and the same test shows it."""
    small = ensemble("bernoulli").with_laws(
        W=Bernoulli(torch.full((3, 2), 4.0), 0.8),
        b=Point(torch.full((3,), -2.5)),
        c=Point(torch.full((2,), -4.0)),
    )
    v = V.repeat(2_500, 1)
    phases, _ = ContrastiveDivergence(k=1).phases(small, v, torch.arange(len(v)), {}, generator=generator)
    expected = exact.log_likelihood_gradient(small, V)["W"]["theta_bar"]
    parts = batch_gradients(small, phases)
    assert means_depart(torch.stack([part["W"]["theta_bar"] for part in parts]), expected)


def test_gray_rows_are_drawn_once_for_both_loops(generator: torch.Generator) -> None:
    """⟨v h⟩ of Algorithm 1's data phase is E_v[v P(h | v)] over binary v, already at k = 0."""
    small = ensemble("bernoulli", D=2, K=2).with_laws(W=Bernoulli(torch.full((2, 2), 4.0), 0.3))
    gray = torch.tensor([0.5, 0.3])
    step = Algorithm1(k=0)
    v = gray.expand(40_000, 2)
    phases, _ = step.phases(small, v, torch.arange(len(v)), {}, generator=generator)
    states = exact.states(2)
    p = torch.where(states == 1, gray, 1 - gray).prod(-1).reshape(-1, 1, 1)
    expected = (p * states.unsqueeze(-1) * small.mean_h_given_v(states).unsqueeze(-2)).sum(0)
    found = phases.data.v.unsqueeze(-1) * phases.data.h.unsqueeze(-2)
    assert not means_depart(found, expected)
    apart = ContrastiveDivergence().phases(small, v, torch.arange(len(v)), {}, generator=generator)[0].data
    wrong = apart.v.unsqueeze(-1) * rng.bernoulli(apart.h, 7).unsqueeze(-2)
    assert means_depart(wrong, expected)  # the twin: h drawn from the gray v


def test_gradients_are_recorded_wherever_they_are_asked_for() -> None:
    small = ensemble("gaussian")
    phases = Phases(State(V, torch.ones(4, 2)), State(V, torch.zeros(4, 2)))
    expected = gradient(small, phases), exact.log_likelihood_gradient(small, V)
    with torch.no_grad():
        assert_same(gradient(small, phases), expected[0])
        assert_same(exact.log_likelihood_gradient(small, V), expected[1])


def test_mean_field_phases_are_deterministic(generator: torch.Generator) -> None:
    small = ensemble("gaussian")
    e_step = ContrastiveDivergence(units="mean")
    phases, _ = e_step.phases(small, V, torch.arange(4), {}, generator=generator)
    h = small.mean_h_given_v(V)
    v = small.mean_v_given_h(h)
    torch.testing.assert_close(phases.data.h, h)
    torch.testing.assert_close(phases.model.v, v)
    torch.testing.assert_close(phases.model.h, small.mean_h_given_v(v))


def test_persistent_memory_is_carried_on(generator: torch.Generator) -> None:
    small, rows = ensemble("bernoulli"), torch.tensor([2, 0])
    step = Algorithm1(persistent=True)
    memory = step.start(small, V, 4, {}, generator=generator)
    before = memory["h"].clone()
    phases, after = step.phases(small, V[rows], rows, memory, generator=generator)
    assert torch.equal(after["h"][rows], phases.data.h)
    assert torch.equal(after["h"][[1, 3]], before[[1, 3]])
    assert step.start(small, V, 4, after, generator=generator) is after
    assert step.start(small, V[:2], 4, after, generator=generator)["h"].shape == (2, 2)
    chains = ContrastiveDivergence(persistent=True)
    memory = chains.start(small, V, 50, {}, generator=generator)
    assert memory["v"].shape == (50, 3)
    phases, after = chains.phases(small, V, rows, memory, generator=generator)
    assert torch.equal(after["v"], phases.model.v)


# ---- linear and arbitrary energies


def test_gradient_of_a_semi_restricted_machine() -> None:
    def statistics(v: Tensor, h: Tensor) -> dict[str, Tensor]:
        return {"W": v[..., :, None] * h[..., None, :], "L": v[..., :-1] * v[..., 1:]}

    laws = {"W": LAWS["spike_slab"]((3, 2)), "L": LAWS["levels"]((2,))}
    model = LinearEnsemble(statistics, laws, n_visible=3, n_hidden=2)
    table = exact.log_joint_vh(model)
    posterior = exact.log_prob_h_given_v(model)
    row = (V.long() << torch.arange(2, -1, -1)).sum(-1)
    p_data = torch.bincount(row, minlength=8).double() / len(V)
    weight = (p_data.unsqueeze(1) * posterior.exp() - table.exp()).flatten()
    zero = State(torch.zeros(1, 3), torch.zeros(1, 2))
    expected = exact.log_likelihood_gradient(model, V)
    for letter, part in expected.items():
        for name, x in part.items():
            total = torch.zeros_like(x)
            for w, (v, h) in zip(weight, itertools.product(exact.states(3), exact.states(2)), strict=True):
                total += w * gradient(model, Phases(State(v[None], h[None]), zero))[letter][name]
            torch.testing.assert_close(total, x, rtol=1e-10, atol=1e-10)


def estimates(model: EnergyEnsemble, v: Tensor, n_repeats: int, generator: torch.Generator) -> list[Gradient]:
    return [
        monte_carlo_gradient(model, v, n_samples=2000, n_sweeps=20, generator=generator)
        for _ in range(n_repeats)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("a", [name for name in sorted(LAWS) if name != "point"])
def test_monte_carlo_gradient_agrees_with_enumeration(a: str, generator: torch.Generator) -> None:
    """An energy that is not linear in θ, every kind of law; the exact answer by summing over nodes of θ.

    Twenty sweeps of these weakly coupled units leave a bias far below the Monte-Carlo error.
    """

    def energy(v: Tensor, h: Tensor, theta: dict[str, Tensor]) -> Tensor:
        return -(2 * torch.tanh(theta["a"] * (v[:, :1] + 0.5 * v[:, 1:])) * h).sum(-1) + 0.3 * v.sum(-1)

    # A narrow density has a score of large variance, which would cost the test its power.
    wide = Gaussian(torch.tensor([0.8, -0.4]), torch.tensor([0.9, 1.1]))
    law = wide if a == "gaussian" else LAWS[a]((2,))
    model = EnergyEnsemble(energy, {"a": law}, n_visible=2, n_hidden=2)
    v = torch.tensor([[1.0, 1.0]])
    expected = enumerated_gradient(model, v)
    found = estimates(model, v, 40, generator)
    for name, x in expected.items():
        samples = torch.stack([part["a"][name] for part in found])
        assert not means_depart(samples, x)
        # The twin: leaving out the score, or the path of what moves the support, would give zero.
        assert means_depart(samples, torch.zeros_like(x))


def enumerated_gradient(model: EnergyEnsemble, v: Tensor) -> dict[str, Tensor]:
    """Central differences of Σ log P(v), θ and h summed over all nodes and states."""
    law = model.laws["a"]

    def value(law: Law) -> float:
        parts = exact.decomposition(model.with_laws(a=law), v, n_nodes=40)
        return float(parts.log_likelihood.mean())

    found = {}
    for name, x in law.alpha.items():
        slope = torch.zeros_like(x)
        for element in itertools.product(*map(range, x.shape)):
            step = torch.zeros_like(x)
            step[element] = 1e-4
            plus, minus = (law.with_alpha({**law.alpha, name: x + s * step}) for s in (1, -1))
            slope[element] = (value(plus) - value(minus)) / 2e-4
        found[name] = slope
    return found


def test_enumerated_gradient_agrees_with_loops() -> None:
    """The oracle of the test above, itself checked: log P(v) of a Bernoulli ensemble by loops."""

    def energy(v: Tensor, h: Tensor, theta: dict[str, Tensor]) -> Tensor:
        return -(torch.tanh(theta["a"] * v) * h).sum(-1)

    law = LAWS["bernoulli"]((2,))
    model = EnergyEnsemble(energy, {"a": law}, n_visible=2, n_hidden=2)
    weights = {
        v: sum(
            p * math.exp(sum(math.tanh(float(a[i]) * v[i]) * h[i] for i in range(2)))
            for p, a in atoms(law)
            for h in binary(2)
        )
        for v in binary(2)
    }
    found = exact.decomposition(model, torch.tensor([[1.0, 0.0]])).log_likelihood
    assert found.item() == pytest.approx(math.log(weights[1, 0] / sum(weights.values())), abs=1e-12)
