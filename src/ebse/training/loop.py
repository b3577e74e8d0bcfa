"""The loop of EM contrastive divergence: E-step, M-step, one row of history an epoch."""

from collections.abc import Callable, Sequence
from typing import final

import torch
from torch import Tensor

from ebse import noise
from ebse.arguments import count, units
from ebse.models import RestrictedBoltzmannEnsemble
from ebse.models.leaves import Gradient, rebuilt
from ebse.training.ascent import GradientAscent, ascend, moved_offsets
from ebse.training.gradients import Offsets, gradient
from ebse.training.monitors import DEFAULT_MONITORS, Monitor, Row
from ebse.training.phases import ContrastiveDivergence, EStep, Memory

Callback = Callable[[Row], None]


@final
class Training:
    """A training run: it holds the ensemble, its history, and whatever the next step needs.

    An interruption or an error leaves ``ensemble`` as the last completed step made it and ``history`` with
    the rows of all completed epochs; ``fit`` goes on from there, after a fault within a step with a fresh
    optimiser. The start is brought within the constraints of its laws (p in [1e-4, 1 − 1e-4]). On small
    models one thread is fastest: ``torch.set_num_threads(1)``.

    Parameters
    ----------
    ensemble
        Where training starts.
    e_step, m_step
        How expectations are estimated, and what is done with the gradient.
    batch_size
        Rows of a mini-batch, and number of persistent chains.
    monitors
        What is written into each row of the history.
    generator
        Supplies the order of rows and one key for each sampling call.

    Attributes
    ----------
    ensemble
        The ensemble as trained so far; its laws are ``ensemble.W``, ``ensemble.b`` and ``ensemble.c``.
    history
        One row of numbers for each epoch, by name: what the monitors found. ``log_likelihood`` is among
        them where one side has at most 12 units.
    n_steps
        Completed steps.

    >>> from ebse.laws import Bernoulli, Point
    >>> g = torch.Generator().manual_seed(0)
    >>> W, b, c = Bernoulli.start((6, 4), generator=g), Point(torch.zeros(6)), Point(torch.zeros(4))
    >>> ensemble = RestrictedBoltzmannEnsemble(W=W, b=b, c=c)
    >>> run = Training(ensemble, m_step=GradientAscent(learning_rate=1.0), batch_size=10, generator=g)
    >>> v = torch.tensor([[1., 1., 1., 0., 0., 0.], [0., 0., 0., 1., 1., 1.]]).repeat(20, 1)
    >>> history = run.fit(v, n_epochs=50).history
    >>> history[-1]["log_likelihood"] > history[0]["log_likelihood"]
    True
    """

    def __init__(
        self,
        ensemble: RestrictedBoltzmannEnsemble,
        *,
        generator: torch.Generator,
        e_step: EStep | None = None,
        m_step: GradientAscent | None = None,
        batch_size: int = 100,
        monitors: Sequence[Monitor] = DEFAULT_MONITORS,
    ) -> None:
        noise.require_generator(generator)
        self.e_step = ContrastiveDivergence() if e_step is None else e_step
        self.m_step = GradientAscent() if m_step is None else m_step
        _require_parts(ensemble, self.e_step, self.m_step)
        self.batch_size = count("batch_size", batch_size)
        self.monitors = tuple(monitors)
        self.generator = generator
        self.history: list[Row] = []
        self.n_steps = 0
        self._alpha: Gradient = {
            letter: {name: x.detach().clone().requires_grad_() for name, x in law.alpha.items()}
            for letter, law in ensemble.laws.items()
        }
        with torch.no_grad():
            for letter, law in ensemble.laws.items():
                law.project_(self._alpha[letter])
        self.ensemble = self._completed(ensemble)
        self._begin_ascent()
        self._memory: Memory = {}
        self._offsets: Offsets | None = None

    def fit(
        self,
        v: Tensor,
        n_epochs: int,
        *,
        held_out: Tensor | None = None,
        callback: Callback | None = None,
    ) -> "Training":
        """Train for n_epochs more passes over the rows of v (N, D); each epoch's row goes to ``callback``."""
        v = self._rows("v", v)
        held_out = None if held_out is None else self._rows("held_out", held_out)
        count("n_epochs", n_epochs, least=0)
        n_batches = -(-len(v) // self.batch_size)
        self._memory = self.e_step.start(
            self.ensemble, v, self.batch_size, self._memory, generator=self.generator
        )
        if self.m_step.centred and self._offsets is None:
            self._offsets = Offsets(v.mean(0), v.new_full((self.ensemble.K,), 0.5))
        for epoch in range(n_epochs):
            order = torch.randperm(len(v), generator=self.generator, device=self.generator.device)
            for batch in range(n_batches):
                self._set_rates((epoch * n_batches + batch) / (n_epochs * n_batches))
                rows = order[batch * self.batch_size : (batch + 1) * self.batch_size].to(v.device)
                self._step(v[rows], rows)
            row = self._watch(v, held_out)
            self.history.append(row)
            if callback is not None:
                callback(row)
        return self

    def _step(self, v: Tensor, rows: Tensor) -> None:
        """One E-step and one M-step on a batch."""
        with torch.no_grad():
            phases, memory = self.e_step.phases(
                self.ensemble, v, rows, self._memory, generator=self.generator
            )
        slopes = gradient(self.ensemble, phases, self._offsets)
        try:
            ascend(self.ensemble, self._alpha, slopes, self._optimizer, self._offsets)
            completed = self._completed(self.ensemble)
            self._require_finite(completed)
        except BaseException:
            self._take_back()
            raise
        self.ensemble, self._memory = completed, memory
        if self._offsets is not None:
            self._offsets = moved_offsets(self._offsets, *phases.data)
        self.n_steps += 1

    def _completed(self, ensemble: RestrictedBoltzmannEnsemble) -> RestrictedBoltzmannEnsemble:
        """A copy of the leaves as an ensemble, which later steps do not touch."""
        copies = {
            letter: {name: x.detach().clone() for name, x in part.items()}
            for letter, part in self._alpha.items()
        }
        return rebuilt(ensemble, copies)

    def _begin_ascent(self) -> None:
        self._optimizer = self.m_step.build(self.ensemble.laws, self._alpha)
        self._rates = [group["lr"] for group in self._optimizer.param_groups]

    def _take_back(self) -> None:
        """The leaves as the last completed step made them, and an optimiser that remembers nothing else."""
        with torch.no_grad():
            for letter, law in self.ensemble.laws.items():
                for name, value in law.alpha.items():
                    self._alpha[letter][name].copy_(value)
        self._begin_ascent()

    def _require_finite(self, ensemble: RestrictedBoltzmannEnsemble) -> None:
        """Stop where a parameter, or the effective one it makes, is not finite, and say what to lower.

        Numbers whose squares overflow count as well: the inputs that they make would not be finite.
        """
        values = {
            (letter, name): x
            for letter, law in ensemble.laws.items()
            for name, x in {**law.alpha, "K(1)": law.effective()}.items()
        }
        sums = torch.stack([x.square().sum() for x in values.values()])
        # One number tells that all is well, which is the usual case.
        if bool(torch.isfinite(sums.sum())):
            return
        for ((letter, name), x), squares in zip(values.items(), sums, strict=True):
            if not bool(torch.isfinite(squares)):
                grown = (
                    f"has grown to {x.abs().max():.2g}" if bool(torch.isfinite(x).all()) else "is not finite"
                )
                raise FloatingPointError(
                    f"training diverged at step {self.n_steps + 1}: {name} of {letter} {grown}; "
                    f"lower {self._rates_of(letter, name)} or momentum. The ensemble of step "
                    f"{self.n_steps} is kept in this run's .ensemble and its rows in .history"
                )

    def _rates_of(self, letter: str, name: str) -> str:
        """The rates that move a parameter, with their values."""
        rates = {"learning_rate": self.m_step.learning_rate, "noise_rate": self.m_step.noise_rate}
        law = self.ensemble.laws[letter]
        if name in law.names and rates["noise_rate"] is not None:
            rates.pop("learning_rate" if name in law.noise_names else "noise_rate")
        return " and ".join(f"{rate} (now {value:g})" for rate, value in rates.items() if value is not None)

    def _set_rates(self, done: float) -> None:
        factor = self.m_step.factor(done)
        for group, rate in zip(self._optimizer.param_groups, self._rates, strict=True):
            group["lr"] = rate * factor

    def _watch(self, v: Tensor, held_out: Tensor | None) -> Row:
        row: Row = {"epoch": float(len(self.history) + 1), "step": float(self.n_steps)}
        with torch.no_grad():
            for monitor in self.monitors:
                row.update(monitor(self.ensemble, v, held_out))
        return row

    def _rows(self, name: str, v: Tensor) -> Tensor:
        v = units(name, v, self.ensemble.D, dtype=self.ensemble.dtype)
        if v.ndim != 2 or len(v) == 0:
            raise ValueError(
                f"{name} must have shape (N, {self.ensemble.D}) with N >= 1, got {tuple(v.shape)}; "
                "pass one row per example"
            )
        return v


def _require_parts(ensemble: RestrictedBoltzmannEnsemble, e_step: EStep, m_step: GradientAscent) -> None:
    """An ensemble, an E-step and an M-step that can work together."""
    if not isinstance(ensemble, RestrictedBoltzmannEnsemble):
        raise TypeError(
            f"ensemble must be a RestrictedBoltzmannEnsemble, got {type(ensemble).__name__}; other ensembles "
            "are trained with ebse.training.gradient or monte_carlo_gradient and an optimiser of your own"
        )
    if isinstance(e_step, type) or not hasattr(e_step, "phases"):
        raise TypeError(
            f"e_step must be an E-step, got {e_step!r}; pass ContrastiveDivergence() or Algorithm1()"
        )
    if not isinstance(m_step, GradientAscent):
        raise TypeError(
            f"m_step must be a GradientAscent, got {m_step!r}; pass GradientAscent(learning_rate=0.1), "
            "with optimizer=… for another optimiser"
        )
    if m_step.centred:
        if ensemble.visible != "binary":
            raise ValueError("visible must be 'binary' for centred gradients, got 'real'; use centred=False")
        for name in ("b", "c"):
            law = ensemble.laws[name]
            try:
                law.shifted(torch.zeros_like(law.effective()))
            except TypeError as error:
                raise TypeError(f"{name} cannot be shifted: {error}") from None
