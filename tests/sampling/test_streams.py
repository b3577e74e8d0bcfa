"""Streams of noise that must not be the same one: shapes in which a shared key would line up."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from ebse import rng
from ebse.ensemble.draws import chain_draws, posterior_draws
from ebse.laws import Bernoulli, Gaussian, Law, Point
from ebse.models import EnergyEnsemble, RestrictedBoltzmannEnsemble, Theta, exact
from ebse.sampling import (
    ModelState,
    State,
    clamped_sweeps,
    collapsed_sweeps,
    explicit_sweeps,
    general_sweeps,
    start_chains,
)
from ebse.training import Algorithm1, monte_carlo_gradient
from examples import LAWS, ensemble
from kernels.single import single
from monte_carlo import means_depart, states_depart

N = 40_000


def start(small: RestrictedBoltzmannEnsemble, generator: torch.Generator) -> tuple[State, Tensor]:
    log_p = exact.log_joint_vh(small)
    index = torch.multinomial(log_p.flatten().exp(), N, replacement=True, generator=generator)
    state = State(exact.states(small.D)[index // 2**small.K], exact.states(small.K)[index % 2**small.K])
    return state, log_p


@pytest.mark.parametrize("shape", [(2, 2), (2, 1), (1, 1)])
@pytest.mark.parametrize(
    "mix", [("bernoulli", "bernoulli", "bernoulli"), ("gaussian", "gaussian", "gaussian")]
)
def test_chains_stay_in_shapes_that_align(
    shape: tuple[int, int], mix: tuple[str, str, str], generator: torch.Generator
) -> None:
    small = ensemble(*mix, D=shape[0], K=shape[1])
    state, log_p = start(small, generator)
    fused = single(small)
    for sweeps in (collapsed_sweeps, explicit_sweeps):
        assert not states_depart(*sweeps(small, state, 2, generator=generator), log_p)
        assert not states_depart(*sweeps(fused, state, 2, generator=generator), log_p)


def test_one_key_for_v_and_h_would_be_noticed(
    generator: torch.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = ensemble("bernoulli", "bernoulli", "bernoulli", D=2, K=2)
    state, log_p = start(small, generator)
    monkeypatch.setattr(rng, "subkey", lambda key, n: key)
    assert states_depart(*collapsed_sweeps(small, state, 2, generator=generator), log_p)
    assert states_depart(*explicit_sweeps(small, state, 2, generator=generator), log_p)
    assert states_depart(*explicit_sweeps(single(small), state, 2, generator=generator), log_p)


class Counting:
    """A generator's draws, counted."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.n = 0
        plain = torch.randint

        def randint(*args: object, **kwargs: object) -> Tensor:
            self.n += 1
            return plain(*args, **kwargs)  # type: ignore[call-overload, no-any-return]

        monkeypatch.setattr(torch, "randint", randint)


def test_a_call_takes_one_key(generator: torch.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    small = ensemble("bernoulli", "gaussian", "levels")
    v, h = torch.ones(4, 3), torch.ones(4, 2)
    calls: list[Callable[[], object]] = [
        lambda: small.sample_theta_given_vh(v, h, generator=generator),
        lambda: small.sample_h_given_v(v, generator=generator),
        lambda: collapsed_sweeps(small, State(v, h), 3, generator=generator),
        lambda: explicit_sweeps(small, State(v, h), 3, generator=generator),
        lambda: clamped_sweeps(small, State(v, h), 3, generator=generator),
        lambda: posterior_draws(small, v, 3, generator=generator),
        lambda: chain_draws(small, v, 3, n_sweeps=2, generator=generator),
        lambda: start_chains(energy_view(small), v, generator=generator),
        lambda: LAWS["levels"]((3,)).start((3,), generator=generator),
    ]
    counting = Counting(monkeypatch)
    for number, call in enumerate(calls, start=1):
        call()
        assert counting.n == number


# ---- probabilities of binary units, and real units


def test_probabilities_are_drawn_before_theta(generator: torch.Generator) -> None:
    """Gray v of binary units: θ and h belong to binary v, and draws average to E_v[P(h | v)]."""
    small = RestrictedBoltzmannEnsemble(
        W=Bernoulli(torch.tensor([[4.0]]), 0.3), b=Point(torch.zeros(1)), c=Point(torch.tensor([-3.0]))
    )
    v, ends = torch.full((N, 1), 0.5), torch.tensor([[0.0], [1.0]])
    expected = small.mean_h_given_v(ends).mean(0)
    h = small.mean_h_given_v(v)
    assert not means_depart(posterior_draws(small, v[:1], N, generator=generator)[0], expected)
    assert not means_depart(clamped_sweeps(small, State(v, h), 20, generator=generator).h, expected)
    theta = small.sample_theta_given_vh(v, torch.ones(N, 1), generator=generator)
    mean = small.mean_theta_given_vh(v[0], torch.ones(1))
    assert not means_depart(theta.W, mean.W)
    assert means_depart(theta.W, small.W.mean(0.5))  # the twin: a tilt of one half


def test_mean_theta_averages_over_probabilities_of_h_with_real_v() -> None:
    laws = ensemble("bernoulli", "gaussian", "levels").laws
    real = RestrictedBoltzmannEnsemble(**laws, visible="real")
    v = torch.tensor([0.3, 0.9, 0.5])
    on, off = (real.mean_theta_given_vh(v, torch.tensor([x, 1.0])) for x in (1.0, 0.0))
    half = real.mean_theta_given_vh(v, torch.tensor([0.25, 1.0]))
    for found, a, b in zip(half, on, off, strict=True):
        torch.testing.assert_close(found, 0.25 * a + 0.75 * b)
    torch.testing.assert_close(on.W, laws["W"].mean(v.unsqueeze(-1).expand(3, 2)))


def test_explicit_sweeps_of_real_units_come_down_as_means(generator: torch.Generator) -> None:
    laws = ensemble("bernoulli", "gaussian", "point").laws
    real = RestrictedBoltzmannEnsemble(**laws, visible="real")
    state = State(torch.rand(50, 3, generator=generator), torch.ones(50, 2))
    after = explicit_sweeps(real, state, 1, generator=generator)
    assert ((after.v > 0) & (after.v < 1)).all()
    assert ((after.h == 0) | (after.h == 1)).all()


def test_real_hidden_inputs_are_summed_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    from ebse.models import rbse

    real = RestrictedBoltzmannEnsemble(**ensemble("levels").laws, visible="real")
    v = torch.tensor([[0.3, 0.9, 0.5], [0.1, 0.2, 1.0]])
    whole = real.mean_h_given_v(v)
    monkeypatch.setattr(rbse, "BLOCK", 1)
    torch.testing.assert_close(real.mean_h_given_v(v), whole)


def test_algorithm_1_makes_k_plus_one_sweeps(generator: torch.Generator) -> None:
    """k = 0: each phase is one sweep from (v, h⁽⁰⁾), with the keys of these calls in this order."""
    small = ensemble("bernoulli")
    v = torch.ones(40, 3)
    for k in (0, 2):
        twin = torch.Generator().manual_seed(5)
        phases, _ = Algorithm1(k=k).phases(small, v, torch.arange(40), {}, generator=twin)
        twin = torch.Generator().manual_seed(5)
        rng.draw_key(twin)  # for v, had it been given as probabilities
        state = State(v, small.sample_h_given_v(v, generator=twin))
        model = explicit_sweeps(small, state, k + 1, generator=twin)
        data = clamped_sweeps(small, state, k + 1, generator=twin)
        assert torch.equal(phases.model.h, model.h)
        assert torch.equal(phases.data.h, data.h)


def test_samplers_record_no_gradients(generator: torch.Generator) -> None:
    theta_bar = torch.ones(3, 2, requires_grad=True)
    small = ensemble().with_laws(W=Bernoulli(theta_bar, 0.5))
    state = State(torch.ones(4, 3), torch.ones(4, 2))
    for sweeps in (collapsed_sweeps, explicit_sweeps, clamped_sweeps):
        assert not sweeps(small, state, 1, generator=generator, units="mean").h.requires_grad


# ---- many parameters, and one


def energy_view(small: RestrictedBoltzmannEnsemble) -> EnergyEnsemble:
    def energy(v: Tensor, h: Tensor, theta: dict[str, Tensor]) -> Tensor:
        return small.energy(v, h, Theta(**theta))

    return EnergyEnsemble(energy, small.laws, n_visible=small.D, n_hidden=small.K)


def test_langevin_moves_in_many_dimensions(generator: torch.Generator) -> None:
    """360 Gaussian weights at once: moves are accepted, and P(h | v) is reached from the law."""
    D, K = 18, 20
    small = RestrictedBoltzmannEnsemble(
        W=Gaussian(torch.full((D, K), -0.045), 0.3), b=Point(torch.zeros(D)), c=Point(torch.full((K,), -0.5))
    )
    model, v = energy_view(small), torch.ones(300, D)
    state = start_chains(model, v, generator=generator)
    after = general_sweeps(model, state, 40, generator=generator, clamp_v=True)
    assert 0.5 < after.acceptance < 0.95
    assert not means_depart(after.h, small.mean_h_given_v(v[0]))


def test_scalar_laws_work_everywhere(generator: torch.Generator) -> None:
    def energy(v: Tensor, h: Tensor, theta: dict[str, Tensor]) -> Tensor:
        return -theta["a"] * v[:, 0] * h[:, 0]

    v = torch.ones(1, 1)
    for name in sorted(LAWS):
        law: Law = LAWS[name]((1,)).rows(0)  # type: ignore[arg-type]
        assert law.shape == ()
        model = EnergyEnsemble(energy, {"a": law}, n_visible=1, n_hidden=1)
        state = general_sweeps(model, start_chains(model, v, generator=generator), 2, generator=generator)
        assert isinstance(state, ModelState)
        assert state.theta["a"].shape == (1,)
        slopes = monte_carlo_gradient(model, v, n_samples=5, n_sweeps=2, generator=generator)
        assert all(torch.isfinite(x).all() for x in slopes["a"].values())
        parts = exact.decomposition(model, v, n_nodes=30)
        torch.testing.assert_close(parts.expected_log_likelihood - parts.divergence, parts.log_likelihood)
