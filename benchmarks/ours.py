"""Contestants of ``ebse``, and the same algorithms in plain tensors."""

import torch
from torch import Tensor

from ebse import RBSE
from ebse.ensemble.draws import posterior_draws
from ebse.laws import Bernoulli, Gaussian, Law, Point
from ebse.models import RestrictedBoltzmannEnsemble
from ebse.sampling import State, collapsed_sweeps
from ebse.training import Algorithm1, ContrastiveDivergence, EffectiveAscent, Training
from naive import NaiveEnsemble
from rounds import N_SWEEPS, Contestant

LAWS: dict[str, type[Point] | type[Bernoulli] | type[Gaussian]] = {
    "RBM": Point,
    "Bernoulli RBSE": Bernoulli,
    "Gaussian RBSE": Gaussian,
}
LEARNING_RATE = 0.01


def ensemble(law: str, v: Tensor, K: int) -> RestrictedBoltzmannEnsemble:
    """Initial weights, and visible biases at the mean of the data: chains are as dense as the data."""
    W: Law = LAWS[law].start((v.shape[1], K), generator=generator())
    return RestrictedBoltzmannEnsemble(
        W=W, b=Point(v.mean(0).clamp(0.01, 0.99).logit()), c=Point(torch.zeros(K))
    )


def generator() -> torch.Generator:
    """The same seed for all."""
    return torch.Generator().manual_seed(0)


def training(
    law: str,
    v: Tensor,
    K: int,
    batch_size: int,
    *,
    explicit: bool = False,
    centered: bool = False,
    threads: int | None = None,
) -> Contestant:
    """Whole epochs of ``Training.fit``, by CD-1 with θ integrated out or by Algorithm 1 with its k = 1."""
    session = Training(
        ensemble(law, v, K),
        e_step=Algorithm1(k=1) if explicit else ContrastiveDivergence(k=1),
        m_step=EffectiveAscent(learning_rate=LEARNING_RATE, schedule="constant", centered=centered),
        batch_size=batch_size,
        monitors=(),
        generator=generator(),
    )

    def run(n_epochs: int) -> int:
        session.fit(v, n_epochs)
        return n_epochs * len(v)

    words = [law, "Algorithm 1" if explicit else "", "centered" if centered else ""]
    return Contestant("ebse " + ", ".join(word for word in words if word), {"": run}, threads)


def draws(v: Tensor, K: int, n_draws: int) -> Contestant:
    """Posterior samples of the representation, of a Bernoulli ensemble."""
    model, g = ensemble("Bernoulli RBSE", v, K), generator()

    def run(n_times: int) -> int:
        for _ in range(n_times):
            posterior_draws(model, v, n_draws, generator=g)
        return n_times * len(v) * n_draws

    return Contestant(f"ebse posterior samples, {n_draws} a row", {"": run})


def estimator(v: Tensor, K: int, batch_size: int) -> Contestant:
    """Whole calls of ``RBSE(law="point").fit`` on an array, checks and monitors included."""
    rows = v.numpy()

    def run(n_epochs: int) -> int:
        rbse = RBSE(K, law="point", n_epochs=n_epochs, batch_size=batch_size, random_state=0)
        rbse.fit(rows)
        return n_epochs * len(rows)

    return Contestant("ebse RBSE.fit", {"PCD-1, centered": run})


def estimator_draws(v: Tensor, K: int, n_draws: int) -> Contestant:
    """Posterior samples through the estimator."""
    rows = v.numpy()
    weights = (x.numpy() for x in ensemble("Bernoulli RBSE", v, K).effective())
    rbse = RBSE.from_rbm(tuple(weights), keep_prob=0.5, random_state=0)

    def run(n_times: int) -> int:
        for _ in range(n_times):
            rbse.sample_transform(rows, n_draws)
        return n_times * len(rows) * n_draws

    return Contestant(f"ebse sample_transform, {n_draws} a row", {"": run})


def gibbs_chains(v: Tensor, K: int, n_chains: int) -> Contestant:
    """Gibbs chains of an RBM, 20 sweeps each."""
    model, g = ensemble("RBM", v, K), generator()
    state = State(v[:n_chains], model.sample_h_given_v(v[:n_chains], generator=g))

    def run(n_times: int) -> int:
        for _ in range(n_times):
            collapsed_sweeps(model, state, N_SWEEPS, generator=g)
        return n_times * N_SWEEPS * n_chains

    return Contestant(f"ebse, {n_chains} Gibbs chains", {"": run})


def naive(v: Tensor, K: int) -> NaiveEnsemble:
    """The Bernoulli ensemble in plain tensors, with the same initial parameters."""
    model = ensemble("Bernoulli RBSE", v, K)
    W, b, c = model.laws.values()
    assert isinstance(W, Bernoulli)
    return NaiveEnsemble(W.theta_bar, W.p, b.effective(), c.effective())


def naive_training(v: Tensor, K: int) -> Contestant:
    """Algorithm 1, always on the same 10 rows: an epoch takes minutes, larger batches are slower."""
    model, batch = naive(v, K), v[:10]

    def run(n_batches: int) -> int:
        for _ in range(n_batches):
            model.algorithm1_step(batch, LEARNING_RATE)
        return n_batches * len(batch)

    return Contestant("tensors, Algorithm 1", {"batch 10": run})


def naive_draws(v: Tensor, K: int) -> Contestant:
    """Three samples of 10 rows at a time."""
    model, batch = naive(v, K), v[:10]

    def run(n_times: int) -> int:
        for _ in range(n_times):
            model.posterior_draws(batch, 3)
        return n_times * len(batch) * 3

    return Contestant("tensors, posterior samples", {"10 rows at once": run})
