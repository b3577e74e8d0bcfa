"""Training of ``ContrastiveFeatures``: contrast, clusters, refinement; resumable, bit for bit."""

import json
import math
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from ebse import __version__, _archive
from ebse._stages import stage
from ebse.semi_supervised._components import Components
from ebse.semi_supervised._encoder import EncoderTraining, embedded, folded
from ebse.semi_supervised._knn_graph import random_walk
from ebse.semi_supervised._learned_views import LearnedViews
from ebse.semi_supervised._refinement import INVERSE_TEMPERATURE, Heads, Refinement
from ebse.semi_supervised._walk_clusters import stability, walk_clusters
from ebse.semi_supervised.image_views import ImageViews

Array = npt.NDArray[Any]

CHECKPOINT = "feature training"
"""Kind of the file."""
EVERY = 200
"""Updates between two checkpoints."""
REFINE_BATCH, REFINE_UPDATES, REFINE_RATE, REFINE_STEP = 0.5, 4 / 3, 1.5, 0.3
"""Of refinement, relative to contrast: pairs in an update, updates and learning rate; and the length of
the adversarial step, relative to the distance of the tenth neighbor."""
LEAST_ROWS, MANY_ROWS = 500, 10_000
"""Rows from which on refinement is considered, and from which on features are cluster probabilities: with
fewer rows z is the better of the two."""
STABLE, OTHER_SEED = 0.5, 1_000
"""Adjusted Rand index of clusterings, from which on the encoder is refined; and the seed of the others."""


class Batches(NamedTuple):
    """Rows as inputs of the network, as they are and as views."""

    X: Array
    """The user's rows (N, D)."""
    components: Components
    Y: npt.NDArray[np.float32]
    """Principal components of all rows (N, P)."""
    views: Any
    """None, :class:`LearnedViews`, or a callable on rows as the user has them."""
    shape: tuple[int, int, int] | None
    """Of images, if the network's inputs are the standardized rows, not their components."""

    def inputs(self, rows: Array) -> Tensor:
        """Rows as they are (n, P)."""
        if self.shape is not None:
            return torch.from_numpy(self.components.standardizer(self.X[rows]))
        return torch.from_numpy(self.Y[rows])

    def viewed(self, rows: Array, generator: torch.Generator) -> Tensor | None:
        """A random view of each of the rows (n, P); None where there are none."""
        if self.views is None:
            return None
        if isinstance(self.views, LearnedViews):
            return self.views(self.inputs(rows), generator=generator)
        x = torch.from_numpy(self.X[rows].astype(np.float32))
        moved = self.views(x, generator=generator)
        if not isinstance(moved, Tensor) or moved.shape != x.shape or not bool(torch.isfinite(moved).all()):
            got = f"{tuple(moved.shape)}" if isinstance(moved, Tensor) else type(moved).__name__
            if isinstance(moved, Tensor) and moved.shape == x.shape:
                got = "values that are not finite"
            raise ValueError(
                f"views must return a finite tensor of shape {tuple(x.shape)}, got {got}; return one row for "
                "each row"
            )
        Z = self.components.standardizer.scaled(moved.detach().numpy())
        return torch.from_numpy(Z @ self.components.axes if self.shape is None else Z)


class Layers(NamedTuple):
    """An encoder as arrays."""

    weights: list[npt.NDArray[np.float32]]
    biases: list[npt.NDArray[np.float32]]
    heads: tuple[npt.NDArray[np.float32], npt.NDArray[np.float32], tuple[int, ...]] | None
    """Weights, biases and sizes of the heads whose probabilities are the features; None: z is."""


class Settings(NamedTuple):
    """Settings of training."""

    n_components: int
    n_steps: int
    n_updates: int
    batch_size: int
    learning_rate: float
    temperature: float
    seed: int


class FeatureTraining:
    """An encoder under training, in two stages, each of so many updates.

    Noise of an update depends on the seed, the stage and the number of the update alone: training that is
    killed goes on from its checkpoint with the same result.
    """

    def __init__(
        self,
        net: nn.Sequential,
        batches: Batches,
        neighbors: npt.NDArray[np.int64],
        radius: npt.NDArray[np.float32],
        settings: Settings,
        refine: Any,
        checkpoint: Path | None,
    ) -> None:
        self.net, self.batches, self.neighbors, self.radius = net, batches, neighbors, radius
        self.settings, self.refine, self.checkpoint = settings, refine, checkpoint
        self.losses: tuple[list[float], list[float]] = [], []
        self.heads: Heads | None = None
        # Adjusted Rand index of clusterings, by which refine="auto" decides.
        self.stability = math.nan
        self._priors: list[npt.NDArray[np.float32]] = []
        self._of = 0 if checkpoint is None else self._fingerprint()
        self._held = self._read()

    def train(self) -> None:
        """Train; ``refine`` is as in :class:`ebse.ContrastiveFeatures`."""
        self._contrast()
        if self._held is not None:
            # The checkpoint is of the refinement: it was decided before.
            self._refine([])
            return
        if self.refine is False or (self.refine == "auto" and len(self.batches.Y) < LEAST_ROWS):
            return
        clusters = self._clusters(0)
        if self.refine == "auto":
            self.stability = stability(clusters, self._clusters(OTHER_SEED))
            if self.stability < STABLE:
                return
        self._refine(clusters)

    def layers(self) -> "Layers":
        """The encoder as arrays, for inputs that are standardized rows."""
        weights, biases = folded(self.net)
        if self.batches.shape is None:
            weights[0] = self.batches.components.axes @ weights[0]
        if self.heads is None or len(self.batches.Y) < MANY_ROWS:
            return Layers(weights, biases, None)
        # The temperature goes into the weights: prediction does without it.
        W, b = INVERSE_TEMPERATURE * self.heads.linear.weight, self.heads.linear.bias
        return Layers(
            weights,
            biases,
            (W.detach().T.contiguous().numpy().copy(), b.detach().numpy().copy(), tuple(self.heads.sizes)),
        )

    def _contrast(self) -> None:
        """Train the encoder by InfoNCE on walks."""
        s = self.settings
        if self._held is not None and self._held.facts["stage"] > 0:
            self.losses[0].extend(self._held.arrays["losses_0"].tolist())
            return
        training = EncoderTraining(
            self.net, n_updates=s.n_updates, temperature=s.temperature, learning_rate=s.learning_rate
        )

        def update(u: int) -> float:
            rows, generator = self._walks(s.batch_size, 0, u)
            viewed = self.batches.viewed(rows, generator)
            return training.update(self.batches.inputs(rows) if viewed is None else viewed)

        self._run("encoder", 0, s.n_updates, training.optimization, update)

    def _clusters(self, shift: int) -> list[npt.NDArray[np.intp]]:
        """Clusterings of all rows that random walks seldom leave."""
        return walk_clusters(self.embedded(), self.neighbors, seed=self.settings.seed % 2**31 + shift)

    def _refine(self, clusters: list[npt.NDArray[np.intp]]) -> None:
        """Train encoder and heads, which begin with the clusters, on mutual information and invariance."""
        s = self.settings
        if self._held is not None:
            held = self._held.facts["stability"]
            self.stability = math.nan if held is None else held
            n = len(self._held.facts["sizes"])
            self._priors = [self._held.arrays[f"prior_{i}"] for i in range(n)]
            self.heads = Heads(self._held.facts["sizes"], s.n_components, seed=s.seed)
        else:
            counts = [np.bincount(one) for one in clusters]
            self._priors = [(one / one.sum()).astype(np.float32) for one in counts]
            heads = Heads([len(one) for one in counts], s.n_components, seed=s.seed)
            heads.fit(self.embedded(), clusters, seed=s.seed)
            # Only now: an interrupted fit must not leave heads that know nothing.
            self.heads = heads
        n_updates = max(round(REFINE_UPDATES * s.n_updates), 1)
        training = Refinement(
            self.net,
            self.heads,
            self._priors,
            n_updates=n_updates,
            learning_rate=REFINE_RATE * s.learning_rate,
            temperature=s.temperature,
            step=REFINE_STEP,
        )
        radius = torch.from_numpy(self.radius)[:, None]

        def update(u: int) -> float:
            rows, generator = self._walks(max(round(REFINE_BATCH * s.batch_size), 2), 1, u)
            viewed = self.batches.viewed(rows, generator)
            return training.update(self.batches.inputs(rows), viewed, radius[rows], generator=generator)

        self._run("refinement", 1, n_updates, training.optimization, update)

    def embedded(self) -> npt.NDArray[np.float32]:
        """z of all rows (N, r)."""
        if self.batches.shape is None:
            return embedded(self.net, self.batches.Y)
        blocks = np.array_split(np.arange(len(self.batches.Y)), -(-len(self.batches.Y) // 4_096))
        return np.concatenate([embedded(self.net, self.batches.inputs(rows).numpy()) for rows in blocks])

    def finish(self) -> None:
        """Remove the checkpoint: training has ended."""
        if self.checkpoint is not None:
            self.checkpoint.unlink(missing_ok=True)

    def _walks(self, n: int, which: int, u: int) -> tuple[Array, torch.Generator]:
        """Starts of n walks and then their ends (2n,), and the generator of all other noise of the update."""
        rng = np.random.default_rng([self.settings.seed, which + 2, u])
        starts = rng.integers(len(self.neighbors), size=n)
        ends = random_walk(self.neighbors, self.settings.n_steps, starts, rng=rng)
        generator = torch.Generator().manual_seed(int(rng.integers(2**62)))
        return np.concatenate([starts, ends]), generator

    def _run(
        self, name: str, which: int, n_updates: int, optimization: Any, update: Callable[[int], float]
    ) -> None:
        """Updates of a stage, from the checkpoint on, if there is one of this stage."""
        losses = self.losses[which]
        held, self._held = self._held, None
        if held is not None:
            assert self.checkpoint is not None
            with _archive.consistent(self.checkpoint):
                optimization.restore(held.arrays, held.facts["n_done"])
                losses.extend(held.arrays[f"losses_{which}"].tolist())
        with stage(name, n_updates, "update") as done:
            done(len(losses))
            for u in range(len(losses), n_updates):
                losses.append(update(u))
                done(1)
                if not np.isfinite(losses[-1]):
                    raise FloatingPointError(
                        f"learning_rate must suit these rows, got {self.settings.learning_rate!r}, with "
                        f"which the loss became {losses[-1]}; lower it"
                    )
                if self.checkpoint is not None and (u + 1) % EVERY == 0 and u + 1 < n_updates:
                    self._write(which, u + 1, optimization)

    def _write(self, which: int, n_done: int, optimization: Any) -> None:
        assert self.checkpoint is not None
        arrays = optimization.arrays()
        arrays |= {f"losses_{i}": np.array(x) for i, x in enumerate(self.losses)}
        arrays |= {f"prior_{i}": x for i, x in enumerate(self._priors)}
        facts = {
            "stage": which,
            "n_done": n_done,
            "sizes": [] if self.heads is None else self.heads.sizes,
            "stability": None if math.isnan(self.stability) else self.stability,
            "of": self._of,
        }
        _archive.write(self.checkpoint, CHECKPOINT, facts, arrays)

    def _read(self) -> _archive.State | None:
        """The checkpoint, if it is of these rows and settings."""
        if self.checkpoint is None or not self.checkpoint.exists():
            return None
        held = _archive.read(self.checkpoint, CHECKPOINT)
        if held.facts["of"] != self._of:
            raise ValueError(
                f"checkpoint must be of these rows and settings, got {self.checkpoint}, which is of others; "
                "delete it, or name another file"
            )
        return held

    def _fingerprint(self) -> int:
        """A checksum of rows, graph, network and settings."""
        views = self.batches.views
        if isinstance(views, LearnedViews):
            views = "learned"
        elif not isinstance(views, ImageViews):
            # The address in the repr of a function is another in every process.
            views = getattr(views, "__qualname__", type(views).__qualname__)
        settings = [__version__, *self.settings, self.refine, repr(views), repr(self.net), self.batches.shape]
        found = zlib.crc32(json.dumps(settings).encode())
        for array in (self.batches.Y, self.neighbors):
            found = zlib.crc32(np.ascontiguousarray(array).data, found)
        return found
