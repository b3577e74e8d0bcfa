"""The M-step in effective parameters: every law learns at the speed of a plain RBM.

With binary units the likelihood depends on α only through K(1). A step in θ_bar is slowed down by q(1)² for a
Bernoulli law; a step in K(1) is not, whatever the noise, and the noise takes a fixed part of each step
(docs/maths.md, "Training a law").
"""

from dataclasses import dataclass
from functools import partial
from typing import final

import torch
from torch import Tensor

from ebse._validation import count
from ebse.kernels.products import Products, contrasts
from ebse.laws import Point
from ebse.models import RestrictedBoltzmannEnsemble, Theta
from ebse.training.optim._settled_laws import settled_law
from ebse.training.optim.m_step import OFFSET_RATE, Schedule, Tensors, divergence_of, require_rates
from ebse.training.phases import Phases


@final
@dataclass(frozen=True)
class EffectiveAscent:
    """Centered gradient ascent in the effective parameters K(1) of an ensemble of binary units.

    ΔK_W(1) = ε ⟨(v − μ)(h − λ)ᵀ⟩, with ⟨·⟩ the data phase minus the model phase: the update of a centered
    RBM. Every law then follows its K(1).

    Parameters
    ----------
    learning_rate : float, default=0.1
        ε of the effective parameters of W, b and c. Larger steps learn faster, and diverge from some point
        on; 0.01 to 0.5 worked. The default is the usual rate of a centered RBM.
    noise_share : float, default=1.0
        κ: weight of the noise (p, σ, …) in a change of K(1), against 1 for the means. 0 keeps the noise fixed
        wherever the law can follow K(1) without it; larger values change the noise more.
    momentum : float, default=0.0
        Momentum of the ascent, in [0, 1). Larger values smooth the gradient; 0.5 and 0.9 are usual.
    weight_decay : float, default=0.0
        L2 penalty on the effective W. Larger values pull it towards 0; 1e-4 is usual.
    schedule : {"constant", "linear"} or callable, default="linear"
        Factor on the rate: "linear" falls to 0 at the end of the run, which removes the noise of the last
        steps; a function maps the fraction of the run that is done to the factor.
    centered : bool, default=True
        Measure v and h around their running means μ and λ, which gains tens of nats.
    settle_every : int, default=20
        Steps after which the laws follow the effective parameters. Smaller values cost time and change the
        result little.

    References
    ----------
    G. Montavon and K.-R. Müller, "Deep Boltzmann machines and the centering trick", 2012. J. Melchior,
    A. Fischer and L. Wiskott, "How to center deep Boltzmann machines", 2016.

    Examples
    --------
    >>> EffectiveAscent(learning_rate=0.05, schedule="constant").noise_share
    1.0
    """

    learning_rate: float = 0.1
    noise_share: float = 1.0
    momentum: float = 0.0
    weight_decay: float = 0.0
    schedule: Schedule = "linear"
    centered: bool = True
    settle_every: int = 20

    def __post_init__(self) -> None:
        require_rates(self, ("learning_rate", "noise_share", "momentum", "weight_decay"))
        count("settle_every", self.settle_every)

    def start(self, ensemble: RestrictedBoltzmannEnsemble, mu: Tensor) -> "EffectiveState":
        """An ascent from the ensemble; ``mu`` is the mean of the data."""
        if ensemble.visible != "binary":
            raise ValueError(
                "visible must be 'binary' for EffectiveAscent, got 'real', for which more than K(1) matters; "
                "use GradientAscent"
            )
        if ensemble.dtype not in (torch.float32, torch.float64):
            raise TypeError(
                f"ensemble must be float32 or float64 for EffectiveAscent, got {ensemble.dtype}; "
                "convert the arrays of its laws"
            )
        return EffectiveState(self, ensemble, mu)


@final
class EffectiveState:
    """The state of the ascent: effective W, b and c, the laws that follow them, velocities and offsets."""

    snapshots_every_step = False

    def __init__(
        self,
        settings: EffectiveAscent,
        ensemble: RestrictedBoltzmannEnsemble,
        mu: Tensor,
        *,
        fused: bool = True,
    ) -> None:
        self.settings = settings
        self._start = ensemble
        self._laws = {
            letter: settled_law(law, settings.noise_share, fused=fused)
            for letter, law in ensemble.laws.items()
        }
        self.W, self.b, self.c = (part.x for part in self._laws.values())
        self.collapsed = RestrictedBoltzmannEnsemble(Point(self.W), Point(self.b), Point(self.c))
        self.mu = mu.clone() if settings.centered else torch.zeros_like(mu)
        self.lam = torch.full_like(self.c, 0.5 if settings.centered else 0.0)
        self._velocity = [torch.zeros_like(x) for x in (self.W, self.b, self.c) if settings.momentum]
        self._n_unsettled = 0
        self._saved: Tensors = {}
        self.snapshot()

    @property
    def ensemble(self) -> RestrictedBoltzmannEnsemble:
        """The ensemble whose laws are settled to the effective parameters, in memory of its own."""
        return self._start.with_laws(**{letter: part.current() for letter, part in self._laws.items()})

    @property
    def monitored(self) -> RestrictedBoltzmannEnsemble:
        """The same, with its effective parameters, which are known where the laws follow them exactly."""
        known = all(part.exact for part in self._laws.values())
        theta = Theta(self.W.clone(), self.b.clone(), self.c.clone()) if known else None
        return self.ensemble.frozen(theta)

    def tensors(self) -> Tensors:
        """All arrays of the state, by name; every step writes to them in place."""
        held = {
            f"{letter}/{name}": x for letter, part in self._laws.items() for name, x in part.tensors().items()
        }
        held |= {f"velocity/{letter}": x for letter, x in zip("Wbc", self._velocity, strict=False)}
        unsettled = torch.tensor(self._n_unsettled)
        return held | {"mu": self.mu, "lam": self.lam, "unsettled": unsettled}

    @torch.no_grad()
    def load(self, tensors: Tensors) -> None:
        """Take over the arrays that :meth:`tensors` of another run returned."""
        for name, x in self.tensors().items():
            if x.shape != tensors[name].shape:
                raise ValueError(f"{name} must have shape {tuple(x.shape)}, got {tuple(tensors[name].shape)}")
            x.copy_(tensors[name])
        self._n_unsettled = int(tensors["unsettled"])

    def snapshot(self) -> None:
        """Copy all arrays for :meth:`roll_back`, into the memory of the last snapshot."""
        for name, x in self.tensors().items():
            if name in self._saved:
                self._saved[name].copy_(x)
            else:
                self._saved[name] = x.clone()

    def roll_back(self) -> None:
        """Restore the arrays of the last snapshot."""
        self.load(self._saved)

    def divergence(self) -> str | None:
        """The effective parameter that is not finite, or too large, and the settings to lower, or None."""
        for letter, part in self._laws.items():
            if not part.is_finite():
                settings = self.settings
                momentum = f" and momentum (now {settings.momentum:g})" if settings.momentum else ""
                return (
                    f"K(1) of {letter} {divergence_of(part.x)}; lower learning_rate "
                    f"(now {settings.learning_rate:g}){momentum}"
                )
        return None

    def step(self, phases: Phases, factor: float) -> None:
        """One step from the states of the two phases."""
        n, m = (len(state.v) for state in phases)
        v, h = (x.new_empty(n + m + 2, x.shape[1]) for x in phases.data)
        stack = PhaseStack(v, h, n)
        torch.cat([state.v for state in phases], out=stack.v_rows)
        torch.mul(phases.data.h, 1 / n, out=stack.h_rows[:n])
        torch.mul(phases.model.h, -1 / m, out=stack.h_rows[n:])
        self.update(stack, factor)

    def update(self, stack: "PhaseStack", factor: float) -> None:
        """One step from both phases, with weighted h.

        With ⟨·⟩ data minus model, ΔW = ε ⟨(v − μ)(h − λ)ᵀ⟩ = ε (⟨v hᵀ⟩ − μ ⟨h⟩ᵀ − ⟨v⟩ λᵀ) is one product once
        the two last rows of the stack hold the last two terms; Δb = ε ⟨v⟩ − ΔW λ and Δc = ε ⟨h⟩ − μᵀ ΔW.
        """
        settings, rate = self.settings, self.settings.learning_rate * factor
        shrink = 1 - rate * settings.weight_decay
        (mean_v, db), (mean_h, dc) = stack.contrasts()
        if settings.centered:
            stack.put_offsets(self.mu, self.lam, db, dc)
        if settings.momentum:
            dW, velocity_b, velocity_c = self._velocity
            stack.add_outer(dW, settings.centered, keep=settings.momentum, weight=1.0)
            db = velocity_b.mul_(settings.momentum).add_(db)
            dc = velocity_c.mul_(settings.momentum).add_(dc)
        self.b.add_(db, alpha=rate)
        self.c.add_(dc, alpha=rate)
        if settings.centered:
            self._correct_biases(stack, rate, shrink)
        if settings.momentum:
            self.W.mul_(shrink).add_(dW, alpha=rate)
        else:
            stack.add_outer(self.W, settings.centered, keep=shrink, weight=rate)
        if settings.centered:
            self.mu.lerp_(mean_v, OFFSET_RATE)
            self.lam.lerp_(mean_h, OFFSET_RATE)
        self._n_unsettled += 1
        if self._n_unsettled == settings.settle_every:
            self._settle()

    def _correct_biases(self, stack: "PhaseStack", rate: float, shrink: float) -> None:
        """Δb = −ΔW λ and Δc = −μᵀ ΔW, for the ΔW of this step."""
        if self.settings.momentum:
            dW = self._velocity[0]
            self.b.addmv_(dW, self.lam, alpha=-rate)
            self.c.addmv_(dW.T, self.mu, alpha=-rate)
        else:
            self.b.addmv_(stack.v_T, torch.mv(stack.h, self.lam), alpha=-rate)
            self.c.addmv_(stack.h_T, torch.mv(stack.v, self.mu), alpha=-rate)
        if self.settings.weight_decay:
            self.b.addmv_(self.W, self.lam, alpha=1 - shrink)
            self.c.addmv_(self.W.T, self.mu, alpha=1 - shrink)

    def _settle(self) -> None:
        """Let every law follow its K(1), and correct the biases where W could not follow exactly."""
        self._n_unsettled = 0
        for letter, part in self._laws.items():
            change = part.settle()
            if letter == "W" and change is not None:
                self.b -= change @ self.lam
                self.c -= self.mu @ change


@final
class PhaseStack:
    """Both phases in one array each, v (n + m + 2, D) and h (n + m + 2, K), and views of their parts.

    The first n rows are of the data, the next m of the model; h is weighted by 1/n and −1/m. The last two
    rows hold the terms of centering. Views are created once, because creating one takes as long as summing a
    thousand numbers.
    """

    def __init__(self, v: Tensor, h: Tensor, n: int, products: Products | None = None) -> None:
        self._products = products
        self.v, self.h, self.v_T, self.h_T = v, h, v.T, h.T
        self.v_rows, self._minus_mu, self._minus_dv = v[:-2], v[-2], v[-1]
        self.h_rows, self._dh, self._lam = h[:-2], h[-2], h[-1]
        self.v_rows_T = self.v_rows.T
        self._n = n
        self._sums = v.new_empty(2, v.shape[1]), h.new_empty(2, h.shape[1])
        (mean_v, dv), (mean_h, dh) = (sums.unbind() for sums in self._sums)
        self._means_and_contrasts = (mean_v, dv), (mean_h, dh)
        if products is not None:
            sums_v, sums_h = (sums.numpy() for sums in self._sums)
            arrays = self.v_rows.numpy(), self.h_rows.numpy(), n
            self._contrasts = partial(contrasts, *arrays, sums_v=sums_v, sums_h=sums_h)

    def contrasts(self) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
        """Of v and of h: the mean of the data, and its difference from the mean of the model."""
        if self._products is not None:
            self._contrasts()
            return self._means_and_contrasts
        (mean_v, dv), (mean_h, dh) = self._means_and_contrasts
        n = self._n
        torch.mean(self.v_rows[:n], 0, out=mean_v)
        torch.sub(mean_v, self.v_rows[n:].mean(0), out=dv)
        torch.sum(self.h_rows[:n], 0, out=mean_h)
        torch.sum(self.h_rows, 0, out=dh)
        return self._means_and_contrasts

    def add_outer(self, into: Tensor, centered: bool, *, keep: float, weight: float) -> None:
        """into (D, K) = keep · into + weight · vᵀ h, with the terms of centering or without."""
        v_T, h = (self.v_T, self.h) if centered else (self.v_rows_T, self.h_rows)
        if self._products is None:
            into.addmm_(v_T, h, beta=keep, alpha=weight)
        else:
            self._products.add_outer(h, into=into, keep=keep, weight=weight)

    def put_offsets(self, mu: Tensor, lam: Tensor, dv: Tensor, dh: Tensor) -> None:
        """The last two rows: −μ beside ⟨h⟩, and −⟨v⟩ beside λ."""
        torch.neg(mu, out=self._minus_mu)
        torch.neg(dv, out=self._minus_dv)
        self._dh.copy_(dh)
        self._lam.copy_(lam)
        if self._products is not None:
            self._products.take(len(self.v_rows), len(self.v))
