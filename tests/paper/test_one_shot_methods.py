"""Methods of the one-shot experiment: the accuracies of each row are computed again by hand."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.semi_supervised import LabelSpreading

from ebse.datasets import binarize, load_digits
from ebse.ensemble import RBSE
from ebse.evaluation import Draws, draw_episodes, few_shot
from ebse.paper import one_shot_methods as methods
from ebse.paper import run_one_shot
from ebse.paper.transductive import spread_labels
from ebse.semi_supervised import ContrastiveFeatures, SlowFeatures, SpreadingClassifier
from ebse.semi_supervised._relabel import Relabeled
from ebse.workflow.run_folder import read_results
from paper.conftest import CONFIG

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
"""Models in these tests are trained for two epochs."""

EPISODES: dict[str, Any] = {"n_shots": (1, 2), "n_queries": 5, "n_episodes": 2, "random_state": 11}


def pool() -> tuple[Any, Any]:
    digits = load_digits()
    return binarize(digits.X[1000:]), digits.y[1000:]


def found(run: Path, method: str, seed: int | None) -> list[float]:
    wanted = {"kind": "accuracy", "method": method, "seed": seed, "n_shots": 1}
    (row,) = (r for r in read_results(run) if wanted.items() <= r.items())
    return list(row["accuracies"])


def by_hand(method: Any) -> list[float]:
    X, y = pool()
    rows = few_shot({"method": method}, X, y, **EPISODES).rows
    return list(rows["accuracy"][rows["n_shots"] == 1])


def model(run: Path, name: str, seed: int) -> RBSE:
    return RBSE.load(run / "models" / f"{name}-{seed}.safetensors")


def test_pixels(run: Path) -> None:
    assert found(run, "pixels", None) == by_hand("pixels")


@pytest.mark.parametrize("seed", [3, 5])
def test_methods_of_the_rbm(run: Path, seed: int) -> None:
    rbm = model(run, "point", seed)
    assert found(run, "RBM mean", seed) == by_hand(rbm)
    for source in ("prior", "posterior"):
        expected = by_hand(Draws(rbm.dropped(0.5), 2, 0, {"source": source}))
        assert found(run, f"DropConnect, {source}", seed) == expected


@pytest.mark.parametrize("seed", [3, 5])
@pytest.mark.parametrize(
    ("law", "name", "noise"),
    [("bernoulli", "Bernoulli", {"keep_prob": 0.01}), ("gaussian", "Gaussian", {"sigma": 0.5})],
)
def test_methods_of_an_ensemble(run: Path, law: str, name: str, noise: dict[str, float], seed: int) -> None:
    rbse = model(run, law, seed)
    assert found(run, f"{name} mean", seed) == by_hand(rbse)
    assert found(run, f"{name} posterior samples", seed) == by_hand(Draws(rbse, 2, 0, {}))
    chains = by_hand(Draws(rbse, 2, 0, {"n_sweeps": 2, **noise}))
    assert found(run, f"{name} chain-sampled models", seed) == chains
    if law == "bernoulli":
        state = by_hand(Draws(rbse, 2, 0, {"n_sweeps": 2, "read": "state"}))
        assert found(run, f"{name} chain states", seed) == state


@pytest.mark.parametrize("seed", [3, 5])
def test_algorithm_1(run: Path, seed: int) -> None:
    ensemble, rbm = model(run, "algorithm_1", seed), model(run, "algorithm_1_rbm", seed)
    assert [(m.algorithm, m.law, m.n_epochs) for m in (ensemble, rbm)] == [
        ("algorithm1", "bernoulli", 1),
        ("algorithm1", "point", 1),
    ]
    assert found(run, "Algorithm 1 posterior samples", seed) == by_hand(Draws(ensemble, 2, 0, {}))
    assert found(run, "Algorithm 1 on an RBM mean", seed) == by_hand(rbm)


@pytest.mark.parametrize("law", ["point", "bernoulli", "gaussian"])
def test_models_are_trained_on_unlabeled_rows_and_differ_by_seed(run: Path, law: str) -> None:
    first, second = (model(run, law, seed) for seed in (3, 5))
    assert not np.array_equal(first.components_, second.components_)
    again = RBSE(30, law=law, n_epochs=2, learning_rate=0.05, random_state=3)
    again.fit(binarize(load_digits().X[:1000]))
    np.testing.assert_array_equal(again.components_, first.components_)


def test_label_spreading_uses_the_labels_of_labeled_rows_alone(run: Path) -> None:
    X, y = pool()
    episodes = draw_episodes(y, n_shots=2, n_queries=5, n_episodes=2, random_state=11)
    for accuracy, support, queries in zip(
        found(run, "scikit-learn LabelSpreading", None), episodes.support, episodes.queries, strict=True
    ):
        labeled, test = support[:, :1].ravel(), queries.ravel()
        spread = LabelSpreading(kernel="knn", n_neighbors=10, max_iter=100)
        spread.fit(X[np.concatenate([labeled, test])], [*y[labeled], *[-1] * len(test)])
        assert accuracy == (spread.transduction_[len(labeled) :] == y[test]).mean()


def test_labels_of_test_rows_are_not_used() -> None:
    """With shuffled labels accuracy is at chance: 30 of 300 correct, 5 standard deviations are 26."""
    X, y = pool()
    shuffled = np.random.default_rng(0).permutation(y)
    rows = spread_labels(X, shuffled, shots=(1,), n_queries=10, n_episodes=3, random_state=0)
    assert np.mean(rows[1]) < (30 + 26) / 300
    informed = spread_labels(X, y, shots=(1,), n_queries=10, n_episodes=3, random_state=0)
    assert np.mean(informed[1]) > (30 + 26) / 300


def test_label_propagation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On pixels and on both kinds of features, without and with a class prior; nothing is run twice.

    With few clusters; any other setting of the experiment that is not the default gives other accuracies.
    """
    small: dict[str, Any] = {"n_clusterings": 2, "n_clusters": 60}
    monkeypatch.setattr(methods, "SpreadingClassifier", partial(SpreadingClassifier, **small))
    few: dict[str, Any] = {"n_hidden": 8, "n_components": 4}
    monkeypatch.setattr(methods, "ContrastiveFeatures", partial(ContrastiveFeatures, **few))
    monkeypatch.setattr(methods, "SlowFeatures", partial(SlowFeatures, n_random=9, n_components=4))
    config = replace(
        CONFIG,
        seeds=(3,),
        laws=("point", "bernoulli"),
        algorithm_1=False,
        label_spreading=False,
        baselines=False,
        propagation=("pixels", "slow", "contrastive"),
        contrastive_updates=5,
    )
    for _ in run_one_shot(config, tmp_path / "run"):
        pass
    digits = load_digits()
    rows = binarize(digits.X[:1000])
    ensemble = FrozenEstimator(model(tmp_path / "run", "bernoulli", 3))
    views = {
        "pixels": None,
        "slow features": SlowFeatures(ensemble, n_random=9, n_components=4, random_state=3),
        "contrastive features": ContrastiveFeatures(**few, n_updates=5, random_state=3),
    }
    for name, view in views.items():
        fitted = SpreadingClassifier(view, **small, random_state=3).fit(rows)
        for suffix, prior in (("", None), (", equal class prior", "equal")):
            expected = by_hand(Relabeled(FrozenEstimator(fitted), class_prior=prior))
            assert found(tmp_path / "run", f"label propagation on {name}{suffix}", 3) == expected
    assert [step.text for step in run_one_shot(config, tmp_path / "run")] == ["done"]
