"""The fused step against the plain one, given the same keys."""

import pytest
import torch

from ebse.kernels import products
from ebse.laws import Bernoulli, Gaussian, Law, Point
from ebse.training import ContrastiveDivergence, EffectiveAscent, Training, initial_ensemble
from ebse.training.optim._settled_laws import FusedBernoulli, FusedGaussian, PlainLaw
from ebse.training.optim.effective_ascent import EffectiveState

D, K, N = 13, 7, 46


def data(density: float = 0.35) -> torch.Tensor:
    u = torch.frac(torch.arange(N * D).reshape(N, D) * 0.6180339887)
    return (u < density).float()


def training(
    law: type[Law],
    e_step: ContrastiveDivergence,
    *,
    fused: bool,
    steps: int,
    density: float = 0.35,
    momentum: float = 0.5,
) -> Training:
    g = torch.Generator().manual_seed(11)
    start = initial_ensemble(data(density), K, law=law, generator=g)
    m_step = EffectiveAscent(learning_rate=0.2, momentum=momentum, weight_decay=0.01, settle_every=2)
    run = Training(start, e_step=e_step, m_step=m_step, batch_size=20, monitors=(), generator=g)
    if not fused:
        run.fit(data(density), 0)
        engine = run._engine
        engine.ascent = EffectiveState(m_step, start, data(density).mean(0), fused=False)
        engine._choose_step = lambda: None  # type: ignore[method-assign]
        engine._fused = None
    return run.fit(data(density), steps)


@pytest.mark.parametrize("law", [Point, Bernoulli, Gaussian])
@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize(("density", "momentum"), [(0.06, 0.0), (0.06, 0.5), (0.6, 0.5)])
def test_fused_and_plain_runs_agree(
    law: type[Law],
    persistent: bool,
    k: int,
    density: float,
    momentum: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Three batches an epoch, the last one smaller; settled in between and at the end."""
    monkeypatch.setattr(products, "NARROW", 1)
    n_sums, add = 0, products._add_outer

    def counted(*arguments: object) -> None:
        nonlocal n_sums
        n_sums += 1
        add(*arguments)

    monkeypatch.setattr(products, "_add_outer", counted)
    e_step = ContrastiveDivergence(k=k, persistent=persistent)
    fused, plain = (
        training(law, e_step, fused=fused, steps=2, density=density, momentum=momentum)
        for fused in (True, False)
    )
    # Sparse rows were listed in every step, dense ones never.
    assert n_sums == (6 if density < 0.3 else 0)
    assert fused._engine._fused is not None
    assert plain._engine._fused is None
    for letter, one in fused.ensemble.laws.items():
        for name, value in one.alpha.items():
            other = plain.ensemble.laws[letter].alpha[name]
            torch.testing.assert_close(value, other, rtol=2e-4, atol=2e-5)
    for name, chains in fused._engine.memory.items():
        assert torch.equal(chains, plain._engine.memory[name])


def test_other_random_numbers_would_be_noticed() -> None:
    """The twin: one more sweep departs far beyond the tolerance."""
    one, two = (training(Point, ContrastiveDivergence(k=k), fused=True, steps=2) for k in (1, 2))
    assert (one.ensemble.W.effective() - two.ensemble.W.effective()).abs().max() > 1e-3


@pytest.mark.parametrize(
    ("law", "kind"), [(Point, PlainLaw), (Bernoulli, FusedBernoulli), (Gaussian, FusedGaussian)]
)
def test_single_precision_takes_the_kernels(law: type[Law], kind: type) -> None:
    for dtype, expected in ((torch.float32, kind), (torch.float64, PlainLaw)):
        g = torch.Generator().manual_seed(0)
        ascent = EffectiveAscent().start(
            initial_ensemble(data().to(dtype), K, law=law, generator=g), data().mean(0).to(dtype)
        )
        assert type(ascent._laws["W"]) is expected


def test_very_negative_weights_can_be_learned() -> None:
    """Units that are never on together drive K(1) far below log(1 − p); presence is raised, nothing is lost."""
    v = torch.eye(4).float().repeat(20, 1)
    g = torch.Generator().manual_seed(0)
    start = initial_ensemble(v, 8, law=Bernoulli, p=0.9, generator=g)
    m_step = EffectiveAscent(learning_rate=10.0, settle_every=1)
    run = Training(start, m_step=m_step, batch_size=20, monitors=(), generator=g)
    law = run.fit(v, 100).ensemble.W
    assert law.effective().min() < -10
    torch.testing.assert_close(
        law.effective(), run._engine.ascent.collapsed.W.effective(), rtol=1e-4, atol=1e-4
    )
    assert torch.isfinite(law.alpha["theta_bar"]).all()
