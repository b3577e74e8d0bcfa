"""The representations that are compared in section 3.2, and those beyond the paper."""

from collections.abc import Callable
from typing import Any, NamedTuple

from sklearn.decomposition import PCA
from sklearn.frozen import FrozenEstimator
from sklearn.neighbors import KNeighborsClassifier

from ebse.datasets import Images
from ebse.evaluation import Draws, Shifts
from ebse.paper.one_shot_config import ALGORITHM_1, ALGORITHM_1_RBM, NAMES, OneShotConfig
from ebse.semi_supervised import ContrastiveFeatures, SlowFeatures, SpreadingClassifier
from ebse.semi_supervised._relabel import Relabeled

DROPPED = 0.5
"""Presence of connections in DropConnect, as in the paper."""
N_PCA = 20


class Method(NamedTuple):
    """A way to represent images: its name, how it is made of a trained ensemble, and what it costs."""

    name: str
    made: Callable[[Any], Any]
    draws: bool = False
    n_sweeps: int = 0


def fixed_methods(config: OneShotConfig, images: Images, unlabeled: Callable[[], Any]) -> list[Method]:
    """Methods that no ensemble takes part in; what is learned is learned from the unlabeled rows."""
    found = [Method("pixels", lambda _: "pixels")]
    if not config.baselines:
        return found
    n = min(N_PCA, *images.unlabeled.shape)
    return [
        *found,
        Method(f"PCA {n}", lambda _: PCA(n, random_state=0).fit(unlabeled())),
        Method("shifts", lambda _: Shifts(images.shape)),
        Method("1-NN", lambda _: KNeighborsClassifier(1)),
    ]


def model_methods(config: OneShotConfig, model: str) -> list[Method]:
    """Methods of one trained ensemble; those of the RBM are the paper's (b) and (c)."""
    name, n = NAMES[model], config.n_draws

    def drawn(label: str, n_sweeps: int = 0, **options: Any) -> Method:
        if n_sweeps:
            options["n_sweeps"] = n_sweeps
        return Method(label, lambda rbse: Draws(rbse, n, 0, options), draws=True, n_sweeps=n_sweeps)

    mean = Method(f"{name} mean", lambda rbse: rbse)
    if model == ALGORITHM_1_RBM:
        return [mean]
    if model == "point":
        return [
            mean,
            *(
                Method(
                    f"DropConnect, {source}",
                    lambda rbse, source=source: Draws(rbse.dropped(DROPPED), n, 0, {"source": source}),  # type: ignore[misc]
                    draws=True,
                )
                for source in ("prior", "posterior")
            ),
        ]
    clamped = drawn(f"{name} clamped")
    if model == ALGORITHM_1:
        return [mean, clamped]
    sweeps = config.sweeps
    name_of_noise = "keep_prob" if model == "bernoulli" else "sigma"
    noises = config.presences if model == "bernoulli" else (config.sigma,)
    walked = [
        drawn(f"{name} walked model{_suffix(config, s, x)}", s, **{name_of_noise: x})
        for s in sweeps
        for x in noises
    ]
    # A state is read by the ensemble itself, whatever its noise: one law is enough.
    states = [
        drawn(f"{name} walked state{_suffix(config, s, None)}", s, read="state")
        for s in sweeps
        if model == "bernoulli"
    ]
    return [mean, clamped, *walked, *states]


SPREADING = ("pixels", "slow features", "contrastive features")
"""What labels spread on."""
SIZES = {"": None, ", sizes": "equal"}
"""What is said of the classes among the unlabeled images, by what is added to a method's name."""


def spreading_methods(view: str, rows: Any, rbse: Any, seed: int) -> list[Method]:
    """Labels that spread over the clusters of the unlabeled rows, without and with class sizes."""
    representation: Any = None
    if view == "slow features":
        representation = SlowFeatures(FrozenEstimator(rbse), random_state=seed)
    if view == "contrastive features":
        representation = ContrastiveFeatures(random_state=seed)
    # Any two labels will do for the first time.
    clusters = SpreadingClassifier(representation, random_state=seed)
    held = FrozenEstimator(clusters.fit(rows[:2], [0, 1], X_unlabeled=rows[2:]))

    def method(end: str, sizes: Any) -> Method:
        return Method(f"spreading on {view}{end}", lambda _: Relabeled(held, class_prior=sizes))

    return [method(end, sizes) for end, sizes in SIZES.items()]


def _suffix(config: OneShotConfig, n_sweeps: int, noise: float | None) -> str:
    """What tells several walks from each other."""
    parts = [f"{n_sweeps} sweeps"] if len(config.sweeps) > 1 else []
    if noise is not None and len(config.presences) > 1:
        parts.append(f"noise {noise:g}")
    return "".join(f", {part}" for part in parts)
