"""The representations that section 3.2 compares, and methods beyond the paper."""

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
"""Keep probability of DropConnect, as in the paper."""
N_PCA = 20


class Method(NamedTuple):
    """A method: its name, how to build it from a trained ensemble, and the size of its sampling."""

    name: str
    build: Callable[[Any], Any]
    draws: bool = False
    n_sweeps: int = 0


def fixed_methods(config: OneShotConfig, images: Images, unlabeled: Callable[[], Any]) -> list[Method]:
    """Baselines without an ensemble, trained on the unlabeled rows where they are trained."""
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
    """Methods that use one trained ensemble; those of the RBM are (b) and (c) of the paper."""
    name, n = NAMES[model], config.n_draws

    def sampled(label: str, n_sweeps: int = 0, **options: Any) -> Method:
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
    posterior = sampled(f"{name} posterior samples")
    if model == ALGORITHM_1:
        return [mean, posterior]
    sweeps = config.sweeps
    name_of_noise = "keep_prob" if model == "bernoulli" else "sigma"
    noises = config.keep_probs if model == "bernoulli" else (config.sigma,)
    chains = [
        sampled(f"{name} chain-sampled models{_suffix(config, s, x)}", s, **{name_of_noise: x})
        for s in sweeps
        for x in noises
    ]
    # The end states of a chain do not depend on the law of the weights: one law is enough.
    states = [
        sampled(f"{name} chain states{_suffix(config, s, None)}", s, read="state")
        for s in sweeps
        if model == "bernoulli"
    ]
    return [mean, posterior, *chains, *states]


CLASS_PRIORS = {"": None, ", equal class prior": "equal"}
"""Class priors of label propagation, by what they add to a method's name."""


def propagation_names(view: str) -> list[str]:
    """Names of the methods of :func:`propagation_methods`."""
    on = "pixels" if view == "pixels" else f"{view} features"
    return [f"label propagation on {on}{suffix}" for suffix in CLASS_PRIORS]


def propagation_methods(config: OneShotConfig, view: str, rows: Any, rbse: Any, seed: int) -> list[Method]:
    """Label propagation over clusters of the unlabeled rows, without and with an equal class prior."""
    representation: Any = None
    if view == "slow":
        representation = SlowFeatures(FrozenEstimator(rbse), random_state=seed)
    if view == "contrastive":
        representation = ContrastiveFeatures(n_updates=config.contrastive_updates, random_state=seed)
    # The clusters are made once, without labels; every episode then has labels of its own.
    fitted = FrozenEstimator(SpreadingClassifier(representation, random_state=seed).fit(rows))

    def method(name: str, prior: Any) -> Method:
        return Method(name, lambda _: Relabeled(fitted, class_prior=prior))

    return [
        method(name, prior)
        for name, prior in zip(propagation_names(view), CLASS_PRIORS.values(), strict=True)
    ]


def _suffix(config: OneShotConfig, n_sweeps: int, noise: float | None) -> str:
    """Settings that distinguish several chains in the names of methods."""
    parts = [f"{n_sweeps} sweeps"] if len(config.sweeps) > 1 else []
    if noise is not None and len(config.keep_probs) > 1:
        parts.append(f"keep_prob {noise:g}")
    return "".join(f", {part}" for part in parts)
