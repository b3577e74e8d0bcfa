"""Every sampler leaves its distribution invariant: chains that start from it still follow it.

Chains start from the enumerated joint, so that slow mixing cannot hide anything. Each test wrongly fails with
probability 1e-6 at most (monte_carlo.FAILURE_RATE); each sampler has twins that are broken on purpose.
"""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from ebse import rng
from ebse.laws import Bernoulli, Gaussian, Law, Levels, Point, Uniform
from ebse.models import EnergyEnsemble, LinearEnsemble, RestrictedBoltzmannEnsemble, Theta, exact
from ebse.sampling import (
    ModelState,
    State,
    clamped_sweeps,
    collapsed_sweeps,
    explicit_sweeps,
    general_sweeps,
    linear_sweeps,
)
from examples import LAWS, ensemble
from monte_carlo import FAILURE_RATE, means_depart, states_depart

N = 40_000
MIXES = [(name, "point", "point") for name in sorted(LAWS)]
MIXES += [("bernoulli", "gaussian", "levels"), ("gaussian", "bernoulli", "laplace")]
Small = RestrictedBoltzmannEnsemble


def strong(W: str = "bernoulli", b: str = "point", c: str = "point") -> Small:
    """An ensemble whose units depend strongly on each other and whose noise is large."""
    small = ensemble(W, b, c)
    if W == "bernoulli":
        small = small.with_laws(W=Bernoulli(small.W.alpha["theta_bar"] * 1.8, 0.4))
    if W == "gaussian":
        small = small.with_laws(W=Gaussian(small.W.alpha["theta_bar"] - 0.7, 1.2))
    return small


def exact_states(log_p: Tensor, D: int, K: int, generator: torch.Generator, n: int = N) -> State:
    """n independent states (v, h) of the table log P(v, h)."""
    index = torch.multinomial(log_p.flatten().exp(), n, replacement=True, generator=generator)
    return State(exact.states(D)[index // 2**K], exact.states(K)[index % 2**K])


def is_invariant(small: Small, kernel: Callable[[State], State], generator: torch.Generator) -> bool:
    log_p = exact.log_joint_vh(small)
    state = kernel(exact_states(log_p, 3, 2, generator))
    return not states_depart(*state, log_p)


# ---- collapsed


@pytest.mark.parametrize("mix", MIXES, ids="-".join)
def test_collapsed_sweeps_leave_the_joint_invariant(
    mix: tuple[str, str, str], generator: torch.Generator
) -> None:
    small = ensemble(*mix)
    assert is_invariant(small, lambda s: collapsed_sweeps(small, s, 3, generator=generator), generator)


def test_collapsed_sweeps_of_the_average_model_do_not(generator: torch.Generator) -> None:
    small = strong()
    wrong = small.with_laws(W=Point(small.average().W))
    assert not is_invariant(small, lambda s: collapsed_sweeps(wrong, s, 3, generator=generator), generator)


# ---- explicit


@pytest.mark.parametrize("mix", MIXES, ids="-".join)
def test_explicit_sweeps_leave_the_joint_invariant(
    mix: tuple[str, str, str], generator: torch.Generator
) -> None:
    small = ensemble(*mix)
    assert is_invariant(small, lambda s: explicit_sweeps(small, s, 2, generator=generator), generator)


@pytest.mark.parametrize("W", ["bernoulli", "gaussian"])
def test_explicit_sweeps_stay_with_strong_noise(W: str, generator: torch.Generator) -> None:
    small = strong(W)
    assert is_invariant(small, lambda s: explicit_sweeps(small, s, 3, generator=generator), generator)


def naive_sweep(
    small: Small,
    state: State,
    generator: torch.Generator,
    *,
    theta_from: str = "posterior",
    h_from: str = "same",
    stale_h: bool = False,
) -> State:
    """Algorithm 1's sweep with θ as one large array, and the ways to get it wrong."""
    v, h = state
    if theta_from == "prior":
        theta = small.sample_theta_given_vh(torch.zeros_like(v), torch.zeros_like(h), generator=generator)
    else:
        theta = small.sample_theta_given_vh(v, h, generator=generator)
    v = small.sample_v_given_h(h, theta, generator=generator)
    if h_from == "fresh":
        theta = small.sample_theta_given_vh(torch.zeros_like(v), torch.zeros_like(h), generator=generator)
    new_h = small.sample_h_given_v(state.v if stale_h else v, theta, generator=generator)
    return State(v, new_h)


def test_the_naive_sweep_stays_too(generator: torch.Generator) -> None:
    small = strong()
    assert is_invariant(small, lambda s: naive_sweep(small, s, generator), generator)


@pytest.mark.parametrize("fault", [{"theta_from": "prior"}, {"h_from": "fresh"}, {"stale_h": True}], ids=str)
@pytest.mark.parametrize("W", ["bernoulli", "gaussian"])
def test_broken_explicit_sweeps_do_not(fault: dict[str, str], W: str, generator: torch.Generator) -> None:
    small = strong(W)
    assert not is_invariant(small, lambda s: naive_sweep(small, s, generator, **fault), generator)  # type: ignore[arg-type]


def test_presence_and_absence_swapped_does_not(generator: torch.Generator) -> None:
    small = strong()
    W = small.W
    assert isinstance(W, Bernoulli)
    swapped = small.with_laws(W=Bernoulli(W.theta_bar, 1 - W.p))
    assert not is_invariant(small, lambda s: explicit_sweeps(swapped, s, 2, generator=generator), generator)


def test_the_paper_reads_h_t_of_the_first_loop_in_the_second(generator: torch.Generator) -> None:
    """Errata: the clamped loop with the free loop's h does not sample P(h | v)."""
    small = strong()
    v = torch.tensor([1.0, 0.0, 1.0]).expand(N, 3)
    expected = small.mean_h_given_v(v[0])
    state = State(v, small.sample_h_given_v(v, generator=generator))
    right = clamped_sweeps(small, state, 2, generator=generator)
    assert not means_depart(right.h, expected)
    free = explicit_sweeps(small, state, 2, generator=generator)
    printed = clamped_sweeps(small, State(v, free.h), 1, generator=generator)
    assert means_depart(printed.h, expected)


# ---- clamped


@pytest.mark.parametrize("mix", MIXES, ids="-".join)
def test_clamped_sweeps_stay_at_the_conditional(
    mix: tuple[str, str, str], generator: torch.Generator
) -> None:
    small = ensemble(*mix)
    v = torch.tensor([1.0, 0.0, 1.0]).expand(N, 3)
    state = State(v, small.sample_h_given_v(v, generator=generator))
    after = clamped_sweeps(small, state, 3, generator=generator)
    assert torch.equal(after.v, v)
    table = exact.log_prob_h_given_v(small)[5]
    column = (after.h.long() * torch.tensor([2, 1])).sum(-1)
    observed = torch.nn.functional.one_hot(column, 4).double()
    assert not means_depart(observed, table.exp())


# ---- all samplers


SWEEPS = {"collapsed": collapsed_sweeps, "explicit": explicit_sweeps, "clamped": clamped_sweeps}


@pytest.mark.parametrize("sweeps", sorted(SWEEPS))
def test_same_seed_same_chain_other_seed_other_chain(sweeps: str) -> None:
    small = strong()
    start = State(torch.ones(500, 3), torch.ones(500, 2))

    def chain(seed: int) -> State:
        return SWEEPS[sweeps](small, start, 3, generator=torch.Generator().manual_seed(seed))

    assert all(torch.equal(a, b) for a, b in zip(chain(1), chain(1), strict=True))
    assert not torch.equal(chain(1).h, chain(2).h)


@pytest.mark.parametrize("visible", ["binary", "real"])
def test_mean_field_units_are_means(visible: str, generator: torch.Generator) -> None:
    laws: dict[str, Law] = {"W": LAWS["point"]((3, 2)), "b": LAWS["point"]((3,)), "c": LAWS["point"]((2,))}
    small = RestrictedBoltzmannEnsemble(**laws, visible=visible)  # type: ignore[arg-type]
    start = State(torch.ones(4, 3), torch.full((4, 2), 0.5))
    v = small.mean_v_given_h(start.h)
    for sweeps in (collapsed_sweeps, explicit_sweeps):
        after = sweeps(small, start, 1, generator=generator, units="mean")
        torch.testing.assert_close(after.v, v)
        torch.testing.assert_close(after.h, small.mean_h_given_v(v))


def test_bad_counts_and_options_are_named(generator: torch.Generator) -> None:
    small, start = strong(), State(torch.ones(4, 3), torch.ones(4, 2))
    with pytest.raises(ValueError, match="n_sweeps must be >= 0, got -1; pass an int >= 0"):
        collapsed_sweeps(small, start, -1, generator=generator)
    with pytest.raises(ValueError, match="units must be one of 'sampled', 'mean', got 'median'; pick one"):
        explicit_sweeps(small, start, 1, generator=generator, units="median")  # type: ignore[arg-type]
    for sweeps in SWEEPS.values():
        with pytest.raises(
            ValueError, match=r"v and h must have shapes \(N, 3\) and \(N, 2\), got \(4, 3\) and \(5, 2\)"
        ):
            sweeps(small, State(torch.ones(4, 3), torch.ones(5, 2)), 1, generator=generator)
        with pytest.raises(ValueError, match=r"v must lie in \[0, 1\], got values from 2 to 2"):
            sweeps(small, State(torch.full((4, 3), 2.0), torch.ones(4, 2)), 1, generator=generator)
    with pytest.raises(ValueError, match="chunk_size must be >= 1, got 0"):
        clamped_sweeps(small, start, 1, generator=generator, chunk_size=0)


# ---- general ensembles


def semi_restricted() -> LinearEnsemble:
    """Visible–visible couplings L beside W: three laws of three kinds."""
    pairs = torch.triu_indices(3, 3, 1)

    def statistics(v: Tensor, h: Tensor) -> dict[str, Tensor]:
        couplings = v[..., pairs[0]] * v[..., pairs[1]]
        return {"W": v[..., :, None] * h[..., None, :], "L": couplings, "c": h}

    laws = {"W": LAWS["bernoulli"]((3, 2)), "L": LAWS["gaussian"]((3,)), "c": LAWS["laplace"]((2,))}
    return LinearEnsemble(statistics, laws, n_visible=3, n_hidden=2)


def test_site_sweeps_of_a_semi_restricted_machine_leave_the_joint_invariant(
    generator: torch.Generator,
) -> None:
    model = semi_restricted()
    log_p = exact.log_joint_vh(model)
    start = exact_states(log_p, 3, 2, generator)
    assert not states_depart(*linear_sweeps(model, start, 2, generator=generator), log_p)


def test_site_sweeps_without_the_couplings_do_not(generator: torch.Generator) -> None:
    model = semi_restricted()
    wrong = model.with_laws(L=Point(torch.zeros(3)))
    log_p = exact.log_joint_vh(model)
    start = exact_states(log_p, 3, 2, generator)
    assert states_depart(*linear_sweeps(wrong, start, 2, generator=generator), log_p)


def energy_view(small: Small) -> EnergyEnsemble:
    """The same ensemble with its energy as an opaque function."""

    def energy(v: Tensor, h: Tensor, theta: dict[str, Tensor]) -> Tensor:
        return small.energy(v, h, Theta(**theta))

    return EnergyEnsemble(energy, small.laws, n_visible=3, n_hidden=2)


GENERAL = [name for name in sorted(LAWS) if name != "point"]


@pytest.mark.parametrize("W", GENERAL)
def test_general_sweeps_leave_the_joint_invariant(W: str, generator: torch.Generator) -> None:
    """Units and moments of θ, chains started with the exact θ | v, h of the tilt."""
    small = ensemble(W, "point", "point")
    log_p = exact.log_joint_vh(small)
    n = 40_000
    start = exact_states(log_p, 3, 2, generator, n)
    theta = small.sample_theta_given_vh(*start, generator=generator)._asdict()
    after = general_sweeps(energy_view(small), ModelState(*start, theta), 2, generator=generator)
    assert not states_depart(after.v, after.h, log_p)
    assert not _theta_departs(small, after, log_p)


def _theta_departs(small: Small, state: ModelState, log_p: Tensor) -> bool:
    """Whether E[W], E[W²] or E[W_ij v_i h_j] departs from the mixture over (v, h) of tilted moments."""
    p = log_p.exp().reshape(-1, 1, 1)
    v, h = exact.states(3).repeat_interleave(4, 0), exact.states(2).repeat(8, 1)
    t = v.unsqueeze(-1) * h.unsqueeze(-2)
    mean, variance = small.W.mean(t), small.W.variance(t)
    W, pairs = state.theta["W"], state.v.unsqueeze(-1) * state.h.unsqueeze(-2)
    expected = {
        "first": (W, (p * mean).sum(0)),
        "second": (W**2, (p * (variance + mean**2)).sum(0)),
        "with units": (W * pairs, (p * mean * t).sum(0)),
    }
    rate = FAILURE_RATE / len(expected)
    return any(means_depart(x, y, failure_rate=rate) for x, y in expected.values())


@pytest.mark.parametrize("W", ["bernoulli", "gaussian", "uniform"])
def test_general_sweeps_without_the_energy_do_not(W: str, generator: torch.Generator) -> None:
    """The twin: θ drawn from the law, as if the energy did not matter."""
    small = strong(W)
    log_p = exact.log_joint_vh(small)
    start = exact_states(log_p, 3, 2, generator, 40_000)
    prior = small.sample_theta_given_vh(*(torch.zeros_like(x) for x in start), generator=generator)
    assert _theta_departs(small, ModelState(*start, prior._asdict()), log_p)


def test_langevin_moves_and_is_corrected(generator: torch.Generator) -> None:
    """A large step without the Metropolis correction would inflate the variance; with it nothing moves."""
    law = Gaussian(torch.zeros(2), 1.0)
    model = EnergyEnsemble(
        lambda v, h, theta: (theta["a"] ** 4).sum(-1) / 4, {"a": law}, n_visible=1, n_hidden=1
    )
    grid = torch.linspace(-6, 6, 20_001)
    density = torch.exp(-(grid**2) / 2 - grid**4 / 4)
    second = torch.trapezoid(density * grid**2, grid) / torch.trapezoid(density, grid)
    n = 20_000
    zeros = torch.zeros(n, 1)
    start = grid[torch.multinomial(density, 2 * n, replacement=True, generator=generator)].reshape(n, 2)
    state = ModelState(zeros, zeros, {"a": start})
    after = general_sweeps(model, state, 5, generator=generator, langevin_step=1.0)
    assert not means_depart(after.theta["a"] ** 2, second.expand(2))
    assert (after.theta["a"] != start).double().mean() > 0.5
    a = state.theta["a"]
    for _ in range(5):
        xi = torch.special.ndtri(rng.uniform(rng.draw_key(generator), (n, 2)))
        a = a - (a + a**3).clamp(-5, 5) / 2 + xi
    assert means_depart(a**2, second.expand(2))


def test_metropolis_kernels_move_every_kind_of_law(generator: torch.Generator) -> None:
    laws: dict[str, Law] = {
        "gaussian": Gaussian(torch.zeros(2), 1.0),
        "levels": Levels(torch.tensor([-1.0, 0.0, 1.0]), torch.ones(2, 3)),
        "uniform": Uniform(torch.zeros(2), 1.0),
        "point": Point(torch.ones(2)),
    }

    def energy(v: Tensor, h: Tensor, theta: dict[str, Tensor]) -> Tensor:
        return -sum(theta.values(), torch.zeros(())).sum(-1) * h[:, 0]

    model = EnergyEnsemble(energy, laws, n_visible=1, n_hidden=1)
    theta = {name: law.sample(torch.zeros(200, 2), generator=generator) for name, law in laws.items()}
    state = ModelState(torch.zeros(200, 1), torch.ones(200, 1), theta)
    after = general_sweeps(model, state, 1, generator=generator, clamp_v=True)
    for name in ("gaussian", "levels", "uniform"):
        assert (after.theta[name] != theta[name]).double().mean() > 0.2
    assert torch.equal(after.theta["point"], theta["point"])
    assert torch.equal(after.v, state.v)
