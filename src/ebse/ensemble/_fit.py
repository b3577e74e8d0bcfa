"""Training runs behind ``fit`` and ``partial_fit``, and fits with checkpoints in a folder."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import torch
from sklearn.base import clone

from ebse._estimators import seed_of, unchanged_on_error
from ebse._stages import shown, stage
from ebse._threads import threads_for
from ebse._validation import count, option
from ebse.ensemble._inputs import generator_of
from ebse.ensemble._laws import family, start_noise
from ebse.laws import Law
from ebse.models import RestrictedBoltzmannEnsemble
from ebse.training import (
    Algorithm1,
    ContrastiveDivergence,
    DivergedError,
    EffectiveAscent,
    EStep,
    GradientAscent,
    Training,
    initial_ensemble,
    resume,
)
from ebse.training.checkpoint import RunFolder
from ebse.training.monitors import DEFAULT_MONITORS, Monitor, Row
from ebse.training.optim.m_step import MStep

if TYPE_CHECKING:
    from ebse.ensemble.rbse import RBSE

LEAST_EPOCHS, MOST_EPOCHS, UPDATES = 10, 1_000, 20_000
"""``n_epochs="auto"``: enough epochs for this many updates, within the bounds; few rows need many epochs."""

ALGORITHMS = ("pcd", "cd", "algorithm1")

MONITORED_ROWS = 1_000
"""``partial_fit`` on fewer rows is not monitored: monitoring would cost more than training."""

MINUTES = 0.25
"""Between checkpoints: the work that a power failure may cost."""


class Settings(Protocol):
    """The parameters of the estimator that a run uses."""

    n_components: int
    law: Any
    keep_prob: float | None
    sigma: float | None
    bias_law: Any
    visible: str
    n_epochs: int | str
    batch_size: int
    learning_rate: float
    momentum: float
    weight_decay: float
    algorithm: str
    n_gibbs_steps: int
    verbose: int


def new_run(
    settings: Settings,
    v: Any,
    *,
    schedule: str,
    generator: torch.Generator,
    start: RestrictedBoltzmannEnsemble | None = None,
    monitors: Sequence[Monitor] = DEFAULT_MONITORS,
) -> Training:
    """A run on the data v (N, D), from ``start`` or from small random weights."""
    option("visible", settings.visible, ("binary", "real"))
    count("n_components", settings.n_components)
    law, bias_law = family("law", settings.law), family("bias_law", settings.bias_law)
    noise = start_noise(law, settings.keep_prob, settings.sigma)
    if start is None:
        first = initial_ensemble(v, settings.n_components, law=law, generator=generator, **noise)
        start = RestrictedBoltzmannEnsemble(
            first.W,
            bias(bias_law, first.b, generator),
            bias(bias_law, first.c, generator),
            visible="real" if settings.visible == "real" else "binary",
        )
    return Training(
        start,
        e_step=_e_step(settings),
        m_step=_m_step(settings, schedule),
        batch_size=min(count("batch_size", settings.batch_size), v.shape[0]),
        monitors=monitors,
        generator=generator,
    )


def n_epochs_for(settings: Settings, n_rows: int) -> int:
    """Epochs of ``fit``: ``n_epochs``, or as many as make 20,000 updates, 10 to 1,000."""
    if settings.n_epochs != "auto":
        if isinstance(settings.n_epochs, str):
            raise ValueError(
                f"n_epochs must be 'auto' or a whole number, got {settings.n_epochs!r}; pass one"
            )
        return count("n_epochs", settings.n_epochs, least=0)
    n_updates = math.ceil(n_rows / settings.batch_size)
    return min(max(math.ceil(UPDATES / n_updates), LEAST_EPOCHS), MOST_EPOCHS)


def learn(run: Training, v: Any, n_epochs: int, *, n_connections: int, verbose: int) -> None:
    """Train for n_epochs, with a progress bar where ``verbose``; on one thread where connections are few."""
    try:
        with (
            shown(verbose),
            stage("training", n_epochs, "epoch") as done,
            threads_for(n_connections),
        ):
            run.fit(v, n_epochs, callback=lambda _: done(1))
    except DivergedError as error:
        raise FloatingPointError(
            f"{error.summary}. The estimator is fitted with what it had learned after {run.n_steps} updates"
        ) from error
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"stopped after {run.n_steps} updates; the estimator is fitted with what it learned so far, and "
            "partial_fit continues from there"
        ) from None


def fit_in_folder(rbse: "RBSE", X: Any, folder: str | Path, *, callback: Callable[[Row], None]) -> "RBSE":
    """``rbse.fit(X)`` with checkpoints in ``folder``; an unfinished run that is there already is resumed.

    The callback gets each epoch's row of the history.
    """
    with unchanged_on_error(rbse), threads_for(X.shape[1] * rbse.n_components):
        v, scaling = rbse._training_rows(X, reset=True)
        if RunFolder(folder).checkpoints:
            run = resume(folder, v, callback=callback)
        else:
            run = new_run(rbse, v, schedule="linear", generator=generator_of(seed_of(rbse.random_state)))
            n_epochs = n_epochs_for(rbse, v.shape[0])
            run.fit(v, n_epochs, callback=callback, folder=folder, every_epochs=None, every_minutes=MINUTES)
    rbse._keep(run, scaling)
    return rbse


def require_settings(rbse: "RBSE", X: Any) -> int:
    """Number of epochs of ``fit(X)``; raises what ``fit`` would raise about its parameters."""
    v, _ = rbse._training_rows(X[:2], reset=True)
    count("n_components", rbse.n_components)
    # One hidden unit is enough to check all other parameters: no ensemble of full size is made twice.
    new_run(clone(rbse).set_params(n_components=1), v, schedule="linear", generator=generator_of(0))
    return n_epochs_for(rbse, X.shape[0])


def bias(law: type[Law], start: Law, generator: torch.Generator) -> Law:
    """A law of biases with the effective values of ``start``."""
    if law is type(start):
        return start
    begun = law.start(tuple(start.shape), generator=generator)
    begun = begun.with_alpha({name: x.to(start.dtype) for name, x in begun.alpha.items()})
    return begun.settled(start.effective(), share=0.0)


def _e_step(settings: Settings) -> EStep:
    option("algorithm", settings.algorithm, ALGORITHMS)
    k = count("n_gibbs_steps", settings.n_gibbs_steps)
    if settings.visible == "real":
        _require_real(settings)
        # Sampled hidden units blur the map of real values; θ integrated out lets σ diverge.
        return Algorithm1(k=k, units="mean")
    if settings.algorithm == "algorithm1":
        return Algorithm1(k=k)
    return ContrastiveDivergence(k=k, persistent=settings.algorithm == "pcd")


def _require_real(settings: Settings) -> None:
    """Refuse parameters that training with real visible units does not use."""
    allowed = {"algorithm": ("pcd", "algorithm1"), "momentum": (0,), "weight_decay": (0,)}
    for name, values in allowed.items():
        value = getattr(settings, name)
        if value not in values:
            raise ValueError(
                f"{name} must be left at {values[0]!r} where visible is 'real', got {value!r}; real units "
                "are trained by Algorithm 1 with mean hidden units, and by Adam"
            )


def _m_step(settings: Settings, schedule: str) -> MStep:
    rate = settings.learning_rate
    if settings.visible == "real":
        return GradientAscent(learning_rate=rate, noise_rate=rate / 100, schedule=schedule, optimizer=_adam)
    return EffectiveAscent(
        learning_rate=rate, momentum=settings.momentum, weight_decay=settings.weight_decay, schedule=schedule
    )


def _adam(groups: list[dict[str, Any]]) -> torch.optim.Optimizer:
    return torch.optim.Adam(groups, betas=(0.9, 0.99))
