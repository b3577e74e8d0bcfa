"""A run reports its history, continues, stops when it diverges, and keeps its last finite state."""

import math
import pickle

import pytest
import torch
from torch import Tensor

from ebse.laws import Bernoulli, Gaussian, Point
from ebse.models import RestrictedBoltzmannEnsemble
from ebse.training import (
    Algorithm1,
    ContrastiveDivergence,
    DivergedError,
    EffectiveAscent,
    GradientAscent,
    Training,
)
from ebse.training.monitors import Row
from ebse.training.optim.gradient_ascent import GradientState
from learning import DATA, D, K, log_likelihood, start


def state_of(run: Training) -> GradientState:
    ascent = run._engine.ascent
    assert isinstance(ascent, GradientState)
    return ascent


def test_each_epoch_is_one_row_and_one_call(
    generator: torch.Generator, capsys: pytest.CaptureFixture[str]
) -> None:
    rows: list[Row] = []
    run = Training(start(Bernoulli, generator), batch_size=25, generator=generator)
    run.fit(DATA, 3, held_out=DATA[:10], callback=rows.append)
    assert run.history == rows
    assert [row["epoch"] for row in rows] == [1, 2, 3]
    assert [row["step"] for row in rows] == [3, 6, 9]
    assert set(rows[0]) == {
        "epoch",
        "step",
        "reconstruction_error",
        "pseudo_log_likelihood",
        "held_out_pseudo_log_likelihood",
        "free_energy_gap",
        "log_likelihood",
        "W_mean_p",
        "W_entropy_p",
    }
    assert rows[-1]["log_likelihood"] == pytest.approx(log_likelihood(run.ensemble))
    assert capsys.readouterr().out == ""


def test_fit_goes_on_where_it_stopped() -> None:
    """Two calls of constant rate are one longer call."""

    def run(*epochs: int) -> Tensor:
        g = torch.Generator().manual_seed(8)
        m_step = EffectiveAscent(schedule="constant")
        training = Training(start(Gaussian, g), m_step=m_step, batch_size=25, generator=g)
        for n in epochs:
            training.fit(DATA, n)
        return training.ensemble.W.alpha["theta_bar"]

    assert torch.equal(run(2, 3), run(5))
    assert not torch.equal(run(5), run(4))


def test_an_interruption_loses_nothing(generator: torch.Generator) -> None:
    run = Training(start(Bernoulli, generator), batch_size=25, generator=generator)

    def interrupt(row: Row) -> None:
        if row["epoch"] == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run.fit(DATA, 5, callback=interrupt)
    assert len(run.history) == 2
    assert run.n_steps == 6
    assert run.fit(DATA, 1).history[-1]["epoch"] == 3


@pytest.mark.parametrize(
    ("learning_rate", "noise_rate", "parameter", "remedy"),
    [(1e308, 0.0, "theta_bar of [Wbc]", "learning_rate"), (0.0, 1e308, "sigma of W", "noise_rate")],
)
def test_a_diverging_run_stops_and_keeps_what_it_had(
    learning_rate: float, noise_rate: float, parameter: str, remedy: str, generator: torch.Generator
) -> None:
    def late(done: float) -> float:
        return 0.0 if done < 0.5 else 10.0

    m_step = GradientAscent(learning_rate=learning_rate, noise_rate=noise_rate, schedule=late)
    run = Training(start(Gaussian, generator, sigma=1.0), m_step=m_step, batch_size=20, generator=generator)
    message = (
        rf"diverged at step \d+: {parameter} is not finite; lower {remedy} \(now 1e\+308\)\. .*\.history"
    )
    with pytest.raises(DivergedError, match=message) as caught:
        run.fit(DATA, 4)
    assert len(run.history) == 2
    assert f"ensemble of step {run.n_steps} is kept" in str(caught.value)
    assert caught.value.kept_step == run.n_steps < caught.value.step
    assert str(caught.value).startswith(f"{caught.value.summary}. ")
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (str(copy), copy.summary, copy.step) == (
        str(caught.value),
        caught.value.summary,
        caught.value.step,
    )
    for letter, law in run.ensemble.laws.items():
        for name, value in law.alpha.items():
            assert torch.isfinite(value).all()
            assert torch.equal(value, state_of(run).alpha[letter][name])


def test_an_infinite_effective_weight_is_divergence(generator: torch.Generator) -> None:
    """σ² can be computed with and K(1) = σ²/2 cannot: the data is not to blame."""
    small = RestrictedBoltzmannEnsemble(
        W=Gaussian(torch.zeros(D, K), 1.0), b=Point(torch.zeros(D)), c=Point(torch.zeros(K))
    )
    m_step = GradientAscent(learning_rate=0.0, noise_rate=1e100)
    run = Training(small, m_step=m_step, batch_size=20, generator=generator)
    message = r"K\(1\) of W has grown to .*; lower learning_rate \(now 0\) and noise_rate \(now 1e\+100\)"
    with pytest.raises(DivergedError, match=message):
        run.fit(torch.ones(60, D), 3)
    assert torch.isfinite(run.ensemble.W.effective()).all()


def test_weights_too_large_to_compute_with_are_divergence(generator: torch.Generator) -> None:
    m_step = GradientAscent(learning_rate=1e200)
    run = Training(start(Point, generator), m_step=m_step, batch_size=20, generator=generator)
    with pytest.raises(
        DivergedError, match=r"has grown to .*e\+\d+; lower learning_rate \(now 1e\+200\)\. The"
    ):
        run.fit(DATA, 3)
    assert torch.isfinite(run.ensemble.mean_h_given_v(DATA)).all()


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_a_run_continues_after_divergence(
    momentum: float, generator: torch.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One NaN gradient: the step is rolled back, and the next fit continues."""
    run = Training(
        start(Point, generator), m_step=GradientAscent(0.1, momentum=momentum), generator=generator
    )
    run.fit(DATA, 2)
    kept = run.ensemble.W.alpha["theta_bar"]
    broken = {"W": {"theta_bar": torch.full((D, K), math.nan)}}
    broken |= {"b": {"theta_bar": torch.zeros(D)}, "c": {"theta_bar": torch.zeros(K)}}
    with monkeypatch.context() as patch:
        patch.setattr("ebse.training.optim.gradient_ascent.gradient", lambda *_: broken)
        with pytest.raises(DivergedError, match="diverged at step 3: theta_bar of W"):
            run.fit(DATA, 1)
    assert torch.equal(run.ensemble.W.alpha["theta_bar"], kept)
    run.fit(DATA, 2)
    assert run.n_steps == 4
    assert torch.isfinite(run.ensemble.W.alpha["theta_bar"]).all()


def test_an_interruption_within_a_step_takes_it_back(
    generator: torch.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Training(start(Gaussian, generator), m_step=GradientAscent(centered=True), generator=generator)
    run.fit(DATA, 1)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("ebse.training.optim.gradient_ascent._shift_", interrupt)
        with pytest.raises(KeyboardInterrupt):
            run.fit(DATA, 1)
    for letter, law in run.ensemble.laws.items():
        for name, value in law.alpha.items():
            assert torch.equal(value, state_of(run).alpha[letter][name])


def test_training_keeps_a_regauged_ensemble(generator: torch.Generator) -> None:
    W = torch.linspace(-40, 2, D * K).reshape(D, K)
    small = RestrictedBoltzmannEnsemble(
        W=Point(W).with_noise(p=0.1), b=Point(torch.zeros(D)), c=Point(torch.zeros(K))
    )
    run = Training(small, m_step=GradientAscent(0.01), batch_size=20, generator=generator)
    torch.testing.assert_close(run.ensemble.W.effective(), W)
    run.fit(DATA, 1)
    torch.testing.assert_close(run.ensemble.W.effective(), W, rtol=0, atol=0.1)


def test_offsets_follow_the_data(generator: torch.Generator) -> None:
    run = Training(
        start(Point, generator), m_step=GradientAscent(centered=True), batch_size=60, generator=generator
    )
    h = run.ensemble.mean_h_given_v(DATA).mean(0)
    run.fit(DATA, 1)
    offsets = state_of(run).offsets
    assert offsets is not None
    torch.testing.assert_close(offsets.mu, DATA.mean(0))
    torch.testing.assert_close(offsets.lam, 0.99 * torch.full((K,), 0.5) + 0.01 * h)


def test_persistent_states_belong_to_their_rows(generator: torch.Generator) -> None:
    """Another number of rows starts the hidden states anew; persistent chains continue."""
    run = Training(start(Bernoulli, generator), e_step=Algorithm1(persistent=True), generator=generator)
    run.fit(DATA, 1).fit(DATA[:30], 1).fit(DATA, 1)
    assert run._engine.memory["h"].shape == (60, K)
    run = Training(
        start(Bernoulli, generator),
        e_step=ContrastiveDivergence(persistent=True),
        batch_size=7,
        generator=generator,
    )
    chains = run.fit(DATA, 1)._engine.memory["v"]
    assert run.fit(DATA[:30], 0)._engine.memory["v"] is chains


def test_same_seed_same_run_other_seed_other_run() -> None:
    def run(seed: int) -> Tensor:
        g = torch.Generator().manual_seed(seed)
        small = start(Bernoulli, torch.Generator().manual_seed(0))
        return Training(small, batch_size=25, generator=g).fit(DATA, 2).ensemble.W.alpha["theta_bar"]

    assert torch.equal(run(1), run(1))
    assert not torch.equal(run(1), run(2))
