"""Early stopping: a run ends when held-out rows stop gaining, and keeps what was best."""

import pytest
import torch

from ebse.laws import Bernoulli, Point
from ebse.models import RestrictedBoltzmannEnsemble
from ebse.training import ContrastiveDivergence, EarlyStopping, EffectiveAscent, Training, initial_ensemble
from ebse.training.monitors import Row
from learning import DATA, D


def overfitting(on: str, generator: torch.Generator) -> tuple[Training, torch.Tensor, torch.Tensor]:
    """Twelve random rows to learn by heart, and others from the same coins that suffer from it."""
    v = (torch.rand(212, D, generator=generator) < 0.5).double()
    first = initial_ensemble(v[:12], 8, law=Bernoulli, generator=generator)
    m_step = EffectiveAscent(1.0, schedule="constant")
    run = Training(
        first, e_step=ContrastiveDivergence(k=5), m_step=m_step, batch_size=12, generator=generator
    )
    return run, v[:12], v[12:]


@pytest.mark.parametrize("on", ["pseudo_log_likelihood", "free_energy_gap"])
def test_a_run_that_overfits_stops_and_keeps_the_best(on: str, generator: torch.Generator) -> None:
    run, v, held_out = overfitting(on, generator)
    stopping = EarlyStopping(on=on, patience=5)  # type: ignore[arg-type]
    rows: list[Row] = []
    run.fit(v, 500, held_out=held_out, early_stopping=stopping, callback=rows.append)
    assert len(run.history) < 500
    name = "held_out_pseudo_log_likelihood" if on == "pseudo_log_likelihood" else on
    sign = 1 if on == "pseudo_log_likelihood" else -1
    watched = [sign * row[name] for row in run.history]
    best = max(range(len(watched)), key=watched.__getitem__)
    assert len(run.history) == best + 1 + stopping.patience
    found = stopping.gain(run.ensemble, v, held_out)
    assert found == pytest.approx(watched[best])
    assert found > watched[-1]
    # Further training continues from there.
    kept = run.ensemble.W.effective()
    torch.testing.assert_close(run.fit(v, 0).ensemble.W.effective(), kept, rtol=1e-12, atol=1e-12)


def test_without_it_the_last_ensemble_counts(generator: torch.Generator) -> None:
    run, v, held_out = overfitting("free_energy_gap", generator)
    run.fit(v, 20, held_out=held_out)
    assert len(run.history) == 20
    assert torch.equal(run.ensemble.W.effective(), run._engine.ascent.ensemble.W.effective())


def test_a_gain_must_be_large_enough(generator: torch.Generator) -> None:
    first = initial_ensemble(DATA, 3, generator=generator)
    run = Training(first, generator=generator)
    run.fit(DATA, 50, held_out=DATA, early_stopping=EarlyStopping(patience=4, min_gain=1000.0))
    assert len(run.history) == 5


def test_real_units_have_no_pseudo_likelihood(generator: torch.Generator) -> None:
    zeros = torch.zeros(2)
    real = RestrictedBoltzmannEnsemble(
        W=Point(torch.zeros(2, 2)), b=Point(zeros), c=Point(zeros), visible="real"
    )
    run, v = Training(real, generator=generator), torch.rand(20, 2, generator=generator)
    with pytest.raises(ValueError, match="on must be 'free_energy_gap' for real visible units"):
        run.fit(v, 5, held_out=v, early_stopping=EarlyStopping())
    run.fit(v, 5, held_out=v, early_stopping=EarlyStopping(on="free_energy_gap"))


def test_errors(generator: torch.Generator) -> None:
    run = Training(initial_ensemble(DATA, 3, generator=generator), generator=generator)
    with pytest.raises(ValueError, match="held_out must be given for early stopping, got None"):
        run.fit(DATA, 5, early_stopping=EarlyStopping())
    with pytest.raises(
        ValueError, match="on must be one of 'pseudo_log_likelihood', 'free_energy_gap', got 'loss'"
    ):
        EarlyStopping(on="loss")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="patience must be >= 1, got 0"):
        EarlyStopping(patience=0)
    with pytest.raises(ValueError, match=r"min_gain must lie in \[0, inf\), got -1"):
        EarlyStopping(min_gain=-1)
