"""Training runs behind ``fit`` and ``partial_fit``."""

import math
from typing import Any, Protocol

import torch
from tqdm import tqdm

from ebse._threads import threads_for
from ebse._validation import count, option
from ebse.ensemble._laws import family, start_noise
from ebse.laws import Law
from ebse.models import RestrictedBoltzmannEnsemble
from ebse.training import (
    Algorithm1,
    ContrastiveDivergence,
    EffectiveAscent,
    EStep,
    GradientAscent,
    Training,
    initial_ensemble,
)
from ebse.training.monitors import Row
from ebse.training.optim.m_step import MStep

LEAST_EPOCHS, MOST_EPOCHS, UPDATES = 10, 1_000, 20_000
"""``n_epochs="auto"``: as many as make so many updates, within these bounds; few rows need many epochs."""

ALGORITHMS = ("pcd", "cd", "algorithm1")


class Settings(Protocol):
    """What a run takes from the estimator."""

    n_components: int
    law: Any
    noise: float | None
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
) -> Training:
    """A run on the data v (N, D), from ``start`` or from small weights."""
    option("visible", settings.visible, ("binary", "real"))
    count("n_components", settings.n_components)
    law, bias_law = family("law", settings.law), family("bias_law", settings.bias_law)
    if start is None:
        first = initial_ensemble(
            v, settings.n_components, law=law, generator=generator, **start_noise(law, settings.noise)
        )
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
        generator=generator,
    )


def n_epochs_for(settings: Settings, n_rows: int) -> int:
    """Epochs of ``fit``: the number asked for, or enough for a good model."""
    if settings.n_epochs != "auto":
        if isinstance(settings.n_epochs, str):
            raise ValueError(
                f"n_epochs must be 'auto' or a whole number, got {settings.n_epochs!r}; pass one"
            )
        return count("n_epochs", settings.n_epochs, least=0)
    n_updates = math.ceil(n_rows / settings.batch_size)
    return min(max(math.ceil(UPDATES / n_updates), LEAST_EPOCHS), MOST_EPOCHS)


def learn(run: Training, v: Any, n_epochs: int, *, n_components: int, verbose: int) -> None:
    """All epochs of a run, with a bar on the terminal where ``verbose``."""
    bar = tqdm(total=n_epochs, desc="RBSE", unit="epoch", disable=not verbose)

    def report(row: Row) -> None:
        shown = row.get("held_out_pseudo_log_likelihood", row.get("pseudo_log_likelihood"))
        if shown is not None:
            bar.set_postfix_str(f"pseudo-log-likelihood {shown:.2f}", refresh=False)
        bar.update()

    try:
        with bar, threads_for(v.shape[1] * n_components):
            run.fit(v, n_epochs, callback=report)
    except FloatingPointError as error:
        what = str(error).partition(". The ensemble")[0]
        raise FloatingPointError(
            f"{what}. The estimator is fitted with what it had learned after {run.n_steps} updates"
        ) from None
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"stopped after {run.n_steps} updates; the estimator is fitted with what it learned so far, and "
            "partial_fit goes on from there"
        ) from None


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
        # Sampled hidden units blur the map of real values; θ integrated out lets σ run away.
        return Algorithm1(k=k, units="mean")
    if settings.algorithm == "algorithm1":
        return Algorithm1(k=k)
    return ContrastiveDivergence(k=k, persistent=settings.algorithm == "pcd")


def _require_real(settings: Settings) -> None:
    """Refuse what real units do not know."""
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
