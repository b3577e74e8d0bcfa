"""The loop: it learns, it reports, it stops when it diverges, and it loses nothing."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from ebse.laws import Bernoulli, Law, Point
from ebse.models import RestrictedBoltzmannEnsemble
from ebse.training import Algorithm1, ContrastiveDivergence, EStep, GradientAscent, Training
from ebse.training.optim.gradient_ascent import GradientState
from examples import LAWS, ensemble
from learning import DATA, D, K, log_likelihood, start


def learned(
    first: RestrictedBoltzmannEnsemble, e_step: EStep, m_step: GradientAscent, generator: torch.Generator
) -> RestrictedBoltzmannEnsemble:
    """The ensemble after 60 steps on all rows."""
    run = Training(first, e_step=e_step, m_step=m_step, batch_size=60, monitors=(), generator=generator)
    return run.fit(DATA, 60).ensemble


@pytest.mark.parametrize("name", sorted(LAWS))
def test_every_law_learns(name: str, generator: torch.Generator) -> None:
    """CD-2 gains more than a nat a row over fair coins, which the first ensemble is worse than."""
    first = ensemble(name, D=D, K=K)
    # Levels learn by their probabilities alone, which are all noise.
    noise_rate = 1.0 if name == "levels" else 0.05
    m_step = GradientAscent(learning_rate=0.5, noise_rate=noise_rate, momentum=0.8, schedule="linear")
    after = learned(first, ContrastiveDivergence(k=2), m_step, generator)
    assert log_likelihood(after) > -D * math.log(2) + 1
    assert log_likelihood(first) < -D * math.log(2)


STEPS: dict[str, EStep] = {
    "cd": ContrastiveDivergence(k=2),
    "pcd": ContrastiveDivergence(k=2, persistent=True),
    "algorithm 1": Algorithm1(k=1),
    "algorithm 1, persistent": Algorithm1(k=1, persistent=True),
}


@pytest.mark.parametrize("e_step", sorted(STEPS))
@pytest.mark.parametrize("centered", [False, True])
def test_every_e_step_learns(e_step: str, centered: bool, generator: torch.Generator) -> None:
    m_step = GradientAscent(learning_rate=0.6, noise_rate=0.05, centered=centered, schedule="linear")
    after = learned(ensemble("gaussian", D=D, K=K), STEPS[e_step], m_step, generator)
    assert log_likelihood(after) > -D * math.log(2) + 1


def test_any_torch_optimizer_will_do(generator: torch.Generator) -> None:
    first = ensemble("bernoulli", D=D, K=K)
    m_step = GradientAscent(learning_rate=0.1, optimizer=lambda groups: torch.optim.Adam(groups))
    after = learned(first, ContrastiveDivergence(), m_step, generator)
    assert log_likelihood(after) > log_likelihood(first) + 0.5


# ---- the M-step


def one_step(m_step: GradientAscent, law: Law, generator: torch.Generator) -> RestrictedBoltzmannEnsemble:
    small = RestrictedBoltzmannEnsemble(W=law, b=LAWS["point"]((D,)), c=LAWS["point"]((K,)))
    run = Training(small, m_step=m_step, batch_size=60, generator=generator)
    return run.fit(DATA, 1).ensemble


def test_means_and_noise_have_rates_of_their_own(generator: torch.Generator) -> None:
    law = LAWS["bernoulli"]((D, K))
    still = one_step(GradientAscent(learning_rate=0.5, noise_rate=0.0), law, generator)
    assert torch.equal(still.W.alpha["p"], law.alpha["p"])
    assert not torch.equal(still.W.alpha["theta_bar"], law.alpha["theta_bar"])
    still = one_step(GradientAscent(learning_rate=0.0, noise_rate=0.5), law, generator)
    assert not torch.equal(still.W.alpha["p"], law.alpha["p"])
    assert torch.equal(still.W.alpha["theta_bar"], law.alpha["theta_bar"])


def test_the_step_is_the_rate_times_the_gradient() -> None:
    """One mean-field CD-1 step by hand, which draws nothing: 0.2 (⟨v hᵀ⟩_data − ⟨v hᵀ⟩_model)."""
    law = LAWS["gaussian"]((D, K))
    small = RestrictedBoltzmannEnsemble(W=law, b=LAWS["point"]((D,)), c=LAWS["point"]((K,)))
    run = Training(
        small,
        e_step=ContrastiveDivergence(units="mean"),
        m_step=GradientAscent(learning_rate=0.2, noise_rate=0.3),
        batch_size=60,
        generator=torch.Generator().manual_seed(3),
    )
    after = run.fit(DATA, 1).ensemble
    h = small.mean_h_given_v(DATA)
    v_model = small.mean_v_given_h(h)
    h_model = small.mean_h_given_v(v_model)
    G = (DATA.T @ h - v_model.T @ h_model) / len(DATA)
    torch.testing.assert_close(after.W.alpha["theta_bar"], law.alpha["theta_bar"] + 0.2 * G)
    torch.testing.assert_close(after.W.alpha["sigma"], law.alpha["sigma"] * (1 + 0.3 * G))
    torch.testing.assert_close(
        after.c.alpha["theta_bar"] - small.c.alpha["theta_bar"], 0.2 * (h - h_model).mean(0)
    )


def test_weight_decay_pulls_the_means_of_w_towards_zero() -> None:
    law = LAWS["gaussian"]((D, K))

    def after(decay: float) -> RestrictedBoltzmannEnsemble:
        m_step = GradientAscent(learning_rate=0.1, weight_decay=decay)
        return one_step(m_step, law, torch.Generator().manual_seed(3))

    pulled = after(0.5).W.alpha["theta_bar"] - after(0.0).W.alpha["theta_bar"]
    torch.testing.assert_close(pulled, -0.05 * law.alpha["theta_bar"])
    assert torch.equal(after(0.5).b.alpha["theta_bar"], after(0.0).b.alpha["theta_bar"])
    assert torch.equal(after(0.5).W.alpha["sigma"], after(0.0).W.alpha["sigma"])


def test_momentum_and_schedule_reach_the_optimizer(generator: torch.Generator) -> None:
    rates: list[float] = []

    def recording(groups: list[dict[str, Any]]) -> torch.optim.Optimizer:
        optimizer = torch.optim.SGD(groups)
        optimizer.register_step_pre_hook(lambda o, *_: rates.append(o.param_groups[0]["lr"]))
        return optimizer

    m_step = GradientAscent(learning_rate=0.4, schedule="linear", optimizer=recording)
    Training(start(Point, generator), m_step=m_step, batch_size=30, generator=generator).fit(DATA, 2)
    assert rates == pytest.approx([0.4, 0.3, 0.2, 0.1])
    rates.clear()
    m_step = GradientAscent(learning_rate=0.4, schedule=lambda done: 0.5**done, optimizer=recording)
    Training(start(Point, generator), m_step=m_step, batch_size=30, generator=generator).fit(DATA, 1)
    assert rates == pytest.approx([0.4, 0.4 * 0.5**0.5])
    small = start(Point, generator)
    run = Training(small, m_step=GradientAscent(momentum=0.7), generator=generator)
    ascent = run._engine.ascent
    assert isinstance(ascent, GradientState)
    assert all(group["momentum"] == 0.7 for group in ascent._optimizer.param_groups)


def test_centered_biases_give_back_what_w_really_changed() -> None:
    """b + W λ and c + μᵀ W move by the plain bias gradient alone, although W is stopped at a bound."""
    law = Bernoulli(LAWS["point"]((D, K)).alpha["theta_bar"], 1 - 1e-4)  # p cannot rise
    small = RestrictedBoltzmannEnsemble(W=law, b=LAWS["point"]((D,)), c=LAWS["point"]((K,)))

    def after(centered: bool) -> RestrictedBoltzmannEnsemble:
        g = torch.Generator().manual_seed(5)
        m_step = GradientAscent(learning_rate=0.5, centered=centered)
        return Training(small, m_step=m_step, batch_size=60, generator=g).fit(DATA, 1).ensemble

    plain, centered = after(False).effective(), after(True).effective()
    mu, lam = DATA.mean(0), torch.full((K,), 0.5)
    change = centered.W - small.effective().W
    torch.testing.assert_close(centered.b + change @ lam, plain.b)
    torch.testing.assert_close(centered.c + mu @ change, plain.c)
    assert (centered.b - plain.b).abs().max() > 1e-3


def test_constraints_hold_after_every_step(generator: torch.Generator) -> None:
    m_step = GradientAscent(learning_rate=0.1, noise_rate=50.0)
    after = one_step(m_step, LAWS["bernoulli"]((D, K)), generator)
    p = after.W.alpha["p"]
    assert (p >= 1e-4).all()
    assert (p <= 1 - 1e-4).all()
    assert ((p == 1e-4) | (p == 1 - 1e-4)).any()


# ---- bad input

WRONG: Any = "x"


@pytest.mark.parametrize(
    ("v", "message"),
    [
        (torch.zeros(4, 5), r"v must have shape \(N, 6\) with N >= 1, got \(4, 5\)"),
        (torch.zeros(6), r"v must have shape \(N, 6\) with N >= 1, got \(6,\); pass one row per example"),
        (torch.zeros(0, 6), r"v must have shape \(N, 6\) with N >= 1, got \(0, 6\)"),
        (torch.full((4, 6), math.nan), r"v must lie in \[0, 1\], got NaN; scale"),
        (torch.full((4, 6), 255.0), r"v must lie in \[0, 1\], got values from 255 to 255; scale"),
    ],
)
def test_bad_data_is_refused_before_any_step(v: Tensor, message: str, generator: torch.Generator) -> None:
    run = Training(start(Point, generator), generator=generator)
    with pytest.raises(ValueError, match=message):
        run.fit(v, 1)
    with pytest.raises(ValueError, match=message.replace("v must", "held_out must")):
        run.fit(DATA, 1, held_out=v)
    assert run.n_steps == 0


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda: GradientAscent(learning_rate=-1),
            ValueError,
            r"learning_rate must lie in \[0, inf\), got -1; pass",
        ),
        (
            lambda: GradientAscent(noise_rate=math.nan),
            ValueError,
            r"noise_rate must lie in \[0, inf\), got nan",
        ),
        (
            lambda: GradientAscent(momentum=1.0),
            ValueError,
            r"momentum must lie in \[0, 1\), got 1.0; try 0.5 or 0.9",
        ),
        (
            lambda: GradientAscent(schedule="cosine"),
            ValueError,
            "schedule must be one of 'constant', 'linear', got",
        ),
        (lambda: ContrastiveDivergence(k=0), ValueError, "k must be >= 1, got 0"),
        (lambda: Algorithm1(k=-1), ValueError, "k must be >= 0, got -1"),
        (lambda: ContrastiveDivergence(units=WRONG), ValueError, "units must be one of"),
        (
            lambda: Training(ensemble(), batch_size=0, generator=torch.Generator()),
            ValueError,
            "batch_size must be >= 1",
        ),
        (
            lambda: Training(ensemble(), generator=WRONG),
            TypeError,
            "generator must be a torch.Generator, got 'x'",
        ),
    ],
)
def test_bad_settings_are_named(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


def test_centering_refuses_biases_that_cannot_be_shifted(generator: torch.Generator) -> None:
    small = RestrictedBoltzmannEnsemble(
        W=LAWS["gaussian"]((D, K)), b=LAWS["bernoulli"]((D,)), c=LAWS["point"]((K,))
    )
    with pytest.raises(
        TypeError, match=r"b cannot be shifted: Bernoulli has no law of θ \+ delta .* with centered gradients"
    ):
        Training(small, m_step=GradientAscent(centered=True), generator=generator)
