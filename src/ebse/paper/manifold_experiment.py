"""Section 3.1, Figure 2: how an RBM and an RBSE map points near a curve in the plane."""

import math
import multiprocessing
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from ebse import rng
from ebse._atomic import write_npz
from ebse._validation import count, option
from ebse.datasets import MANIFOLDS, Manifold
from ebse.ensemble.draws import map_back, posterior_draws
from ebse.laws import Bernoulli, Gaussian, Law, Point
from ebse.models import RestrictedBoltzmannEnsemble
from ebse.training import Algorithm1, GradientAscent, Training
from ebse.workflow.run_folder import Run, Step

Row = dict[str, str | float]

LAWS = ("point", "gaussian", "bernoulli")


@dataclass(frozen=True)
class ManifoldsConfig:
    """Settings of the 2-D manifold experiment, the same for every law and manifold.

    They were chosen on other seeds than those reported; docs/dev/design_notes.md has the reasons.
    """

    manifolds: tuple[str, ...] = ("arc", "line")
    """Curves: arc, circle, half_circle, line, moons, spiral."""
    laws: tuple[str, ...] = LAWS
    """Distributions of the weights: point (the RBM), gaussian, bernoulli."""
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    """Random seeds of data and training."""
    n_points: int = 1000
    """Training points."""
    n_hidden: int = 8
    """Hidden units."""
    n_epochs: int = 40
    """Training epochs."""
    batch_size: int = 50
    """Points per update."""
    k: int = 1
    """Gibbs sweeps per update."""
    learning_rate: float = 0.11
    """Of the weights; decreases linearly to 0."""
    noise_rate: float = 0.001
    """Learning rate of sigma and p."""
    start_scale: float = 0.1
    """Standard deviation of the initial weights."""
    sigma: float = 0.5
    """Initial standard deviation of the Gaussian law."""
    p: float = 0.85
    """Initial keep probability of the Bernoulli law."""
    n_draws: int = 100
    """Sampled models, and so images, per point."""
    n_test: int = 100
    """Test points on the curve."""
    n_outliers: int = 200
    """Test points away from the curve."""
    outlier_distance: float = 0.1
    """Smallest distance of these from the curve."""
    n_few: int = 5
    """Test points whose images should cover the curve."""
    radius: float = 0.05
    """Distance within which an image covers a place of the curve."""

    def __post_init__(self) -> None:
        for name in self.manifolds:
            option("manifolds", name, sorted(MANIFOLDS))
        for name in self.laws:
            option("laws", name, LAWS)
        counts = (
            "n_points",
            "n_hidden",
            "n_epochs",
            "batch_size",
            "n_draws",
            "n_test",
            "n_few",
            "n_outliers",
            "k",
        )
        for name in counts:
            count(name, getattr(self, name))
        for name in (
            "learning_rate",
            "noise_rate",
            "start_scale",
            "sigma",
            "p",
            "outlier_distance",
            "radius",
        ):
            if not 0 < getattr(self, name) < (1 if name in ("p", "outlier_distance", "radius") else math.inf):
                raise ValueError(f"{name} must be positive and small, got {getattr(self, name)!r}; try 0.1")
        for name in ("manifolds", "laws", "seeds"):
            values = getattr(self, name)
            if not values or len(set(values)) < len(values):
                raise ValueError(f"{name} must have values, each once, got {values!r}; name at least one")
        for seed in self.seeds:
            count("seeds", seed, least=0)


class Panels(NamedTuple):
    """Figure 2 as points: inputs (n, 2) and their images (n, n_draws, 2)."""

    training: Tensor
    test: Tensor
    test_images: Tensor
    outliers: Tensor
    outlier_images: Tensor
    few: Tensor
    few_images: Tensor


class Result(NamedTuple):
    """Measurements of one trained ensemble, and its panels of the figure."""

    row: Row
    panels: Panels


def run_manifolds(config: ManifoldsConfig, folder: str | Path, *, n_workers: int = 1) -> Iterator[Step]:
    """Run the 2-D manifold experiment in a run folder; continues where an earlier call stopped."""
    count("n_workers", n_workers)
    kept = Run(folder, "manifolds", config)
    every = all_jobs(config)
    left = [job for job in every if not kept.has(manifold=job[0], law=job[1], seed=float(job[2]))]
    n_done = len(every) - len(left)
    yield Step("training", n_done, len(every))
    for result in run_jobs(config, n_workers=n_workers, jobs=left):
        row = result.row
        if (row["manifold"], row["seed"]) == (config.manifolds[0], config.seeds[0]):
            arrays = {name: x.numpy() for name, x in result.panels._asdict().items()}
            write_npz(kept.folder / f"panels-{row['law']}.npz", **arrays)
        kept.add({"kind": "manifold", **row})
        n_done += 1
        yield Step(f"{row['manifold']}, {row['law']}, seed {row['seed']:.0f}", n_done, len(every))


Job = tuple[str, str, int]
"""Manifold, law and seed."""


def all_jobs(config: ManifoldsConfig) -> list[Job]:
    """Every (manifold, law, seed)."""
    return [(m, law, s) for s in config.seeds for law in config.laws for m in config.manifolds]


def run_jobs(
    config: ManifoldsConfig, *, n_workers: int = 1, jobs: list[Job] | None = None
) -> Iterator[Result]:
    """Train and measure every (manifold, law, seed); yields each result when it is done."""
    jobs = all_jobs(config) if jobs is None else jobs
    if n_workers == 1:
        yield from (run_job(config, *job) for job in jobs)
        return
    # Not fork: a process would inherit the threads of torch in an unknown state. The server of forkserver
    # runs nothing, and imports torch once for all processes.
    able = "forkserver" in multiprocessing.get_all_start_methods()
    context = multiprocessing.get_context("forkserver" if able else "spawn")
    context.set_forkserver_preload([__name__])
    pool = ProcessPoolExecutor(n_workers, mp_context=context, initializer=_one_thread)
    try:
        for job in as_completed([pool.submit(run_job, config, *job) for job in jobs]):
            yield job.result()
    finally:
        pool.shutdown(cancel_futures=True)


def run_job(config: ManifoldsConfig, manifold: str, law: str, seed: int) -> Result:
    """Train one ensemble on one manifold and measure it."""
    began = time.perf_counter()
    curve = MANIFOLDS[manifold]()
    # One random stream for the data, shared by every law, and one for the training of this law.
    training = curve.sample(config.n_points, generator=torch.Generator().manual_seed(2 * seed))
    generator = torch.Generator().manual_seed(2 * seed + 1)
    ensemble = train(config, law, training, generator=generator)
    panels = map_points(config, ensemble, curve, training, generator=generator)
    row: Row = {"manifold": manifold, "law": law, "seed": float(seed)}
    row |= measure(config, curve, panels, generator=generator)
    row["seconds"] = time.perf_counter() - began
    return Result(row, panels)


def train(
    config: ManifoldsConfig, law: str, v: Tensor, *, generator: torch.Generator
) -> RestrictedBoltzmannEnsemble:
    """Train an ensemble with real visible units by Algorithm 1 with mean-field units."""
    shape = (v.shape[-1], config.n_hidden)
    u = rng.uniform(rng.draw_key(generator), shape)
    theta_bar = config.start_scale * torch.special.ndtri(u).to(v.dtype)
    W: Law = Point(theta_bar)
    if law == "gaussian":
        W = Gaussian(theta_bar, config.sigma)
    elif law == "bernoulli":
        W = Bernoulli(theta_bar, config.p)
    ensemble = RestrictedBoltzmannEnsemble(
        W=W, b=Point(torch.logit(v.mean(0))), c=Point(v.new_zeros(config.n_hidden)), visible="real"
    )
    m_step = GradientAscent(
        learning_rate=config.learning_rate,
        noise_rate=config.noise_rate,
        schedule="linear",
        optimizer=lambda groups: torch.optim.Adam(groups, betas=(0.9, 0.99), fused=True),
    )
    training = Training(
        ensemble,
        e_step=Algorithm1(k=config.k, units="mean"),
        m_step=m_step,
        batch_size=config.batch_size,
        monitors=(),
        generator=generator,
    )
    return training.fit(v, config.n_epochs).ensemble


def map_points(
    config: ManifoldsConfig,
    ensemble: RestrictedBoltzmannEnsemble,
    curve: Manifold,
    training: Tensor,
    *,
    generator: torch.Generator,
) -> Panels:
    """Map points up with θ ~ P(θ | v) and P(h | v, θ), and back with the mean model, n_draws times each."""
    test, few = curve.points(config.n_test), curve.points(config.n_few)
    outliers = isolated_points(config, curve, generator=generator)

    def images(v: Tensor) -> Tensor:
        return map_back(ensemble, posterior_draws(ensemble, v, config.n_draws, generator=generator))

    return Panels(training, test, images(test), outliers, images(outliers), few, images(few))


def isolated_points(config: ManifoldsConfig, curve: Manifold, *, generator: torch.Generator) -> Tensor:
    """Points uniform in the unit square, at least ``outlier_distance`` from the manifold."""
    u = rng.uniform(rng.draw_key(generator), (10 * config.n_outliers, 2)).to(curve.curves[0].dtype)
    return u[curve.project(u).distance > config.outlier_distance][: config.n_outliers]


def measure(config: ManifoldsConfig, curve: Manifold, panels: Panels, *, generator: torch.Generator) -> Row:
    """The four claims of Figure 2 as measurements."""
    here = curve.project(panels.test)
    offset = panels.test_images - panels.test_images.mean(1, keepdim=True)
    normal = torch.stack([-here.tangent[:, 1], here.tangent[:, 0]], -1)
    along = (offset * here.tangent.unsqueeze(1)).sum(-1).square().mean().sqrt()
    across = (offset * normal.unsqueeze(1)).sum(-1).square().mean().sqrt()
    # Isotropic noise with the same variance as the images of each point.
    spread = (offset.square().sum(-1).mean(1) / 2).sqrt()
    u = rng.uniform(rng.draw_key(generator), tuple(panels.test_images.shape))
    xi: Tensor = torch.special.ndtri(u)
    isotropic = panels.test_images.mean(1, keepdim=True) + spread.reshape(-1, 1, 1) * xi.to(spread.dtype)
    before = curve.project(panels.outliers).distance.mean()
    return {
        "self_distance": float((panels.test_images - panels.test.unsqueeze(1)).norm(dim=-1).mean()),
        "image_distance": _distance(curve, panels.test_images),
        "isotropic_distance": _distance(curve, isotropic),
        "tangent_spread": float(along),
        "normal_spread": float(across),
        "outliers_after_before": _distance(curve, panels.outlier_images) / float(before),
        "coverage": coverage(curve, panels.few_images, config.radius),
    }


def coverage(curve: Manifold, images: Tensor, radius: float) -> float:
    """Fraction of the manifold that has an image within ``radius``."""
    gaps = torch.cdist(curve.points(500), images.flatten(0, 1)).min(1).values
    return float((gaps <= radius).double().mean())


def _distance(curve: Manifold, images: Tensor) -> float:
    return float(curve.project(images.flatten(0, 1)).distance.mean())


def _one_thread() -> None:
    # Ctrl-C reaches every process of a terminal; only the parent process handles it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(1)
