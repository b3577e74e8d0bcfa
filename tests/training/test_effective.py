"""The M-step in effective parameters: the centered gradient of the RBM, at the RBM's pace under every law."""

import math

import pytest
import torch
from torch import Tensor

from ebse.laws import Bernoulli, Gaussian, Law, Point
from ebse.models import RestrictedBoltzmannEnsemble, exact
from ebse.sampling import State
from ebse.training import (
    Algorithm1,
    ContrastiveDivergence,
    DivergedError,
    EffectiveAscent,
    GradientAscent,
    Phases,
    Training,
    initial_ensemble,
)
from ebse.training.optim.effective_ascent import EffectiveState
from ebse.training.optim.m_step import OFFSET_RATE
from examples import LAWS, ensemble
from laws.test_own_law import Signs
from learning import DATA, D, K, log_likelihood


def phases(N: int = 5, M: int = 4) -> Phases:
    """Two phases of uneven size and value."""
    u = torch.frac(torch.arange((N + M) * (D + K)).reshape(N + M, D + K) * 0.6180339887)
    v, h = (u[:, :D] < 0.4).double(), u[:, D:]
    return Phases(State(v[:N], h[:N]), State(v[N:], h[N:]))


def ascent(law: str, **settings: object) -> EffectiveState:
    mu = torch.linspace(0.2, 0.7, D) if settings.get("centered", True) else torch.zeros(D)
    return EffectiveAscent(**settings).start(ensemble(law, D=D, K=K), mu)  # type: ignore[arg-type]


def slopes(both: Phases, mu: Tensor, lam: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """⟨(v − μ)(h − λ)ᵀ⟩, ⟨v⟩ and ⟨h⟩, data minus model, as loops."""
    W, b, c = torch.zeros(D, K), torch.zeros(D), torch.zeros(K)
    for sign, (v, h) in zip((1, -1), both, strict=True):
        for n in range(len(v)):
            for i in range(D):
                b[i] += sign * v[n, i] / len(v)
                for j in range(K):
                    W[i, j] += sign * (v[n, i] - mu[i]) * (h[n, j] - lam[j]) / len(v)
            for j in range(K):
                c[j] += sign * h[n, j] / len(v)
    return W, b, c


@pytest.mark.parametrize("law", ["point", "bernoulli", "gaussian"])
@pytest.mark.parametrize("centered", [False, True])
@pytest.mark.parametrize(("momentum", "decay"), [(0.0, 0.0), (0.7, 0.0), (0.0, 0.3), (0.7, 0.3)])
def test_two_steps_against_loops(law: str, centered: bool, momentum: float, decay: float) -> None:
    rate = 0.05
    up = ascent(
        law, learning_rate=rate, momentum=momentum, weight_decay=decay, centered=centered, settle_every=1
    )
    W, b, c = (x.clone() for x in (up.W, up.b, up.c))
    mu, lam = up.mu.clone(), up.lam.clone()
    velocity = [torch.zeros_like(x) for x in (W, b, c)]
    for both in (phases(), phases(3, 6)):
        velocity = [momentum * x + g for x, g in zip(velocity, slopes(both, mu, lam), strict=True)]
        change = rate * velocity[0] - rate * decay * W
        W, b, c = (
            W + change,
            b + rate * velocity[1] - change @ lam,
            c + rate * velocity[2] - mu @ change,
        )
        if centered:
            mu = mu + OFFSET_RATE * (both.data.v.mean(0) - mu)
            lam = lam + OFFSET_RATE * (both.data.h.mean(0) - lam)
        up.step(both, 1.0)
    found = up.ensemble.effective()
    for x, expected in zip(found, (W, b, c), strict=True):
        torch.testing.assert_close(x, expected, rtol=1e-9, atol=1e-9)


def test_the_centered_step_climbs_the_exact_likelihood() -> None:
    """ΔW, Δb, Δc along the centered gradient of the enumerated log-likelihood raise it to first order."""
    small = ensemble("bernoulli", D=D, K=K)
    p = exact.log_joint_vh(small).exp().flatten()
    v = exact.states(D).repeat_interleave(2**K, 0)
    h = exact.states(K).repeat(2**D, 1)
    # Every state as often as its probability says; rounding moves no expectation by more than 1 %.
    rows = torch.repeat_interleave(torch.arange(len(p)), (20_000 * p).round().long())
    mean_h = small.mean_h_given_v(DATA)
    before = exact.log_likelihood(small, DATA).mean()

    def gain(rate: float, phases: Phases) -> float:
        up = EffectiveAscent(learning_rate=rate, schedule="constant").start(small, DATA.mean(0))
        up.step(phases, 1.0)
        return float(exact.log_likelihood(up.ensemble, DATA).mean() - before)

    mu, lam = DATA.mean(0), torch.full((K,), 0.5)
    gradient = (
        (DATA - mu).T @ (mean_h - lam) / len(DATA) - (v - mu).T @ (p.unsqueeze(-1) * (h - lam)),
        mu - p @ v,
        mean_h.mean(0) - p @ h,
    )
    rate = 1e-5
    expected = rate * sum(float((g**2).sum()) for g in gradient)
    data = State(DATA, mean_h)
    assert gain(rate, Phases(data, State(v[rows], h[rows]))) == pytest.approx(expected, rel=0.03)
    # The twin: the states of the model, all equally often.
    assert gain(rate, Phases(data, State(v, h))) != pytest.approx(expected, rel=0.03)


def run(law: type[Law], m_step: EffectiveAscent | GradientAscent, **noise: float) -> Training:
    g = torch.Generator().manual_seed(3)
    W = Point(0.1 * torch.sin(torch.arange(float(D * K))).reshape(D, K))
    family = W if law is Point else W.with_noise(**noise)
    start = RestrictedBoltzmannEnsemble(W=family, b=Point(torch.zeros(D)), c=Point(torch.zeros(K)))
    return Training(start, m_step=m_step, batch_size=20, monitors=(), generator=g).fit(DATA, 30)


@pytest.mark.parametrize(
    ("law", "noise"),
    [
        (Bernoulli, {"p": 0.9}),
        (Bernoulli, {"p": 0.5}),
        (Bernoulli, {"p": 0.1}),
        (Gaussian, {"sigma": 0.3}),
        (Gaussian, {"sigma": 1.5}),
    ],
)
def test_effective_weights_learn_as_the_plain_machine_does(law: type[Law], noise: dict[str, float]) -> None:
    """With the same noise of units, the very same effective parameters, whatever the law starts from."""
    m_step = EffectiveAscent(learning_rate=0.3)
    plain, noisy = run(Point, m_step), run(law, m_step, **noise)
    for x, y in zip(noisy.ensemble.effective(), plain.ensemble.effective(), strict=True):
        torch.testing.assert_close(x, y, rtol=0, atol=1e-6)
    noise_of = noisy.ensemble.W.noise_names[0]
    assert noisy.ensemble.W.alpha[noise_of].std() > 1e-3


def test_a_plain_step_in_theta_bar_is_slower() -> None:
    """The twin: gradient ascent on α leaves a Bernoulli law of p = 0.1 far behind the RBM."""
    m_step = GradientAscent(0.3, noise_rate=0.0, centered=True, schedule="linear")
    plain, noisy = run(Point, m_step), run(Bernoulli, m_step, p=0.1)
    moved = noisy.ensemble.W.effective().std() / plain.ensemble.W.effective().std()
    assert moved < 0.5


@pytest.mark.parametrize("name", sorted(LAWS))
def test_defaults_learn_under_every_law(name: str, generator: torch.Generator) -> None:
    """Nothing but the data, the law and the number of units is given; in single precision, as it is used."""
    law, v = type(LAWS[name]((1,))), DATA.float()
    torch.set_default_dtype(torch.float32)
    try:
        first = initial_ensemble(v, 4, law=law, generator=generator)
        run = Training(first, generator=generator, batch_size=20, monitors=())
        learned = run.fit(v, 600 if name == "levels" else 300).ensemble
    finally:
        torch.set_default_dtype(torch.float64)
    best = -math.log(4)
    # No level is above 1, which bounds what K(1) can be, and how fast it grows.
    assert log_likelihood(learned) > best - (1.5 if name == "levels" else 0.8)
    assert log_likelihood(first) < best - 2


def test_algorithm_1_can_use_it(generator: torch.Generator) -> None:
    first = initial_ensemble(DATA, 4, law=Bernoulli, p=0.7, generator=generator)
    m_step = EffectiveAscent(0.6)
    learned = Training(
        first, e_step=Algorithm1(), m_step=m_step, batch_size=20, monitors=(), generator=generator
    )
    assert log_likelihood(learned.fit(DATA, 40).ensemble) > log_likelihood(first) + 0.5


def test_mean_field_units_can_use_it(generator: torch.Generator) -> None:
    first = initial_ensemble(DATA, 4, law=Gaussian, generator=generator)
    e_step = ContrastiveDivergence(units="mean")
    learned = Training(
        first, e_step=e_step, m_step=EffectiveAscent(0.3), batch_size=10, monitors=(), generator=generator
    )
    assert log_likelihood(learned.fit(DATA, 100).ensemble) > log_likelihood(first)


def test_noisy_biases_learn(generator: torch.Generator) -> None:
    """Laws that have no θ + δ in their family are settled as W is."""
    small = ensemble("bernoulli", b="bernoulli", c="gaussian", D=D, K=K)
    learned = Training(small, batch_size=10, monitors=(), generator=generator).fit(DATA, 200).ensemble
    assert log_likelihood(learned) > -math.log(4) - 0.8


def test_a_custom_law_follows(generator: torch.Generator) -> None:
    """One parameter, no noise, and a K(1) that is not linear in it: the law is settled all the same."""
    first = RestrictedBoltzmannEnsemble(
        W=Signs(torch.full((D, K), 0.5)), b=Point(torch.zeros(D)), c=Point(torch.zeros(K))
    )
    run = Training(first, m_step=EffectiveAscent(0.3, settle_every=1), batch_size=20, generator=generator)
    run.fit(DATA, 20)
    torch.testing.assert_close(
        run.ensemble.W.effective(), run._engine.ascent.collapsed.W.effective(), rtol=0, atol=1e-6
    )


def test_large_biases_are_no_divergence(generator: torch.Generator) -> None:
    first = RestrictedBoltzmannEnsemble(
        W=Point(torch.zeros(D, K)), b=Point(torch.zeros(D)), c=Point(torch.full((K,), -500.0))
    )
    run = Training(first, batch_size=20, generator=generator).fit(DATA, 2)
    assert len(run.history) == 2


def test_the_start_knows_the_mean(generator: torch.Generator) -> None:
    v = (torch.rand(500, 4, generator=generator) < torch.tensor([0.1, 0.4, 0.8, 0.0])).double()
    for law, noise in ((Point, {}), (Bernoulli, {"p": 0.2}), (Gaussian, {"sigma": 0.8})):
        first = initial_ensemble(v, 3, law=law, generator=generator, **noise)
        assert first.W.effective().abs().max() < 0.06
        p = exact.log_prob_v(first).exp()
        mean = p @ exact.states(4)
        torch.testing.assert_close(mean[:3], v.mean(0)[:3], rtol=0.05, atol=0.0)
        assert 0 < mean[3] < 0.01


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"learning_rate": -1.0}, ValueError, r"learning_rate must lie in \[0, inf\), got -1.0"),
        ({"learning_rate": "fast"}, TypeError, "learning_rate must be a number, got 'fast'"),
        ({"noise_share": -0.1}, ValueError, r"noise_share must lie in \[0, inf\)"),
        ({"momentum": 1.0}, ValueError, r"momentum must lie in \[0, 1\), got 1.0"),
        ({"schedule": "cosine"}, ValueError, "schedule must be one of 'constant', 'linear', got 'cosine'"),
        ({"settle_every": 0}, ValueError, "settle_every must be >= 1, got 0"),
    ],
)
def test_settings_are_checked(settings: dict[str, object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        EffectiveAscent(**settings)  # type: ignore[arg-type]


def test_real_units_are_refused(generator: torch.Generator) -> None:
    real = RestrictedBoltzmannEnsemble(
        W=Gaussian(torch.zeros(2, 3), 0.3), b=Point(torch.zeros(2)), c=Point(torch.zeros(3)), visible="real"
    )
    with pytest.raises(
        ValueError, match=r"visible must be 'binary' for EffectiveAscent, got 'real'.*GradientAscent"
    ):
        Training(real, m_step=EffectiveAscent(), generator=generator)
    Training(real, generator=generator).fit(torch.rand(20, 2, generator=generator), 1)


def test_a_diverging_run_goes_back_to_the_start_of_its_epoch(generator: torch.Generator) -> None:
    def late(done: float) -> float:
        return 0.1 if done < 0.5 else 1e30

    small = initial_ensemble(DATA, K, law=Bernoulli, generator=generator)
    training = Training(small, m_step=EffectiveAscent(schedule=late), batch_size=20, generator=generator)
    message = r"diverged at step 9: K\(1\) of W (has grown|is not finite).*lower learning_rate \(now 0.1\)"
    with pytest.raises(DivergedError, match=message + r"\. The ensemble of step 6"):
        training.fit(DATA, 4)
    assert (training.n_steps, len(training.history)) == (6, 2)
    assert torch.isfinite(training.ensemble.W.effective()).all()
