"""What stands behind the names of the one-shot experiment: each row is made again by hand."""

import sys
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
from ebse.paper import OneShotConfig, one_shot
from ebse.paper import one_shot_methods as methods
from ebse.paper.transductive import spread_labels
from ebse.semi_supervised import ContrastiveFeatures, SlowFeatures, SpreadingClassifier
from ebse.semi_supervised._relabel import Relabeled
from ebse.workflow.run_folder import read_results

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
"""Of models that were trained for two epochs."""

CONFIG = OneShotConfig(
    n_episodes=3,
    n_queries=5,
    n_components=12,
    n_epochs=2,
    algorithm_1_epochs=1,
    n_draws=2,
    seeds=(3, 5),
    sweeps=(2,),
    episode_seed=11,
    algorithm_1=True,
    label_spreading=True,
)
EPISODES: dict[str, Any] = {"n_shots": 1, "n_queries": 5, "n_episodes": 3, "random_state": 11}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("one_shot") / "run"
    for _ in one_shot(CONFIG, folder):
        pass
    return folder


def pool() -> tuple[Any, Any]:
    digits = load_digits()
    return binarize(digits.X[1000:]), digits.y[1000:]


def found(run: Path, method: str, seed: int | None) -> list[float]:
    (row,) = (r for r in read_results(run) if r.get("method") == method and r["seed"] == seed)
    return list(row["accuracies"])


def by_hand(method: Any) -> list[float]:
    X, y = pool()
    return list(few_shot({"it": method}, X, y, **EPISODES).rows["accuracy"])


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
    ("law", "name", "noise"), [("bernoulli", "Bernoulli", 0.01), ("gaussian", "Gaussian", 0.5)]
)
def test_methods_of_an_ensemble(run: Path, law: str, name: str, noise: float, seed: int) -> None:
    rbse = model(run, law, seed)
    assert found(run, f"{name} mean", seed) == by_hand(rbse)
    assert found(run, f"{name} clamped", seed) == by_hand(Draws(rbse, 2, 0, {}))
    walked = by_hand(Draws(rbse, 2, 0, {"n_sweeps": 2, "noise": noise}))
    assert found(run, f"{name} walked model", seed) == walked
    if law == "bernoulli":
        state = by_hand(Draws(rbse, 2, 0, {"n_sweeps": 2, "read": "state"}))
        assert found(run, f"{name} walked state", seed) == state


@pytest.mark.parametrize("seed", [3, 5])
def test_algorithm_1(run: Path, seed: int) -> None:
    ensemble, rbm = model(run, "algorithm_1", seed), model(run, "algorithm_1_rbm", seed)
    assert [(m.algorithm, m.law, m.n_epochs) for m in (ensemble, rbm)] == [
        ("algorithm1", "bernoulli", 1),
        ("algorithm1", "point", 1),
    ]
    assert found(run, "Algorithm 1 clamped", seed) == by_hand(Draws(ensemble, 2, 0, {}))
    assert found(run, "Algorithm 1 on an RBM mean", seed) == by_hand(rbm)


@pytest.mark.parametrize("law", ["point", "bernoulli", "gaussian"])
def test_models_learn_from_unlabeled_rows_alone_and_differ_by_seed(run: Path, law: str) -> None:
    first, second = (model(run, law, seed) for seed in (3, 5))
    assert not np.array_equal(first.components_, second.components_)
    again = RBSE(12, law=law, n_epochs=2, learning_rate=0.05, random_state=3)
    again.fit(binarize(load_digits().X[:1000]))
    np.testing.assert_array_equal(again.components_, first.components_)


def test_labels_spread_from_the_labeled_alone(run: Path) -> None:
    X, y = pool()
    episodes = draw_episodes(y, n_shots=1, n_queries=5, n_episodes=3, random_state=11)
    for accuracy, support, queries in zip(
        found(run, "label spreading", None), episodes.support, episodes.queries, strict=True
    ):
        known, asked = support[:, :1].ravel(), queries.ravel()
        spread = LabelSpreading(kernel="knn", n_neighbors=10, max_iter=100)
        spread.fit(X[np.concatenate([known, asked])], [*y[known], *[-1] * len(asked)])
        assert accuracy == (spread.transduction_[len(known) :] == y[asked]).mean()


def test_labels_of_queries_are_not_looked_at() -> None:
    """With labels that say nothing, spreading is no better than chance: 30 of 300 right, 5 deviations are 26."""
    X, y = pool()
    shuffled = np.random.default_rng(0).permutation(y)
    rows = spread_labels(X, shuffled, shots=(1,), n_queries=10, n_episodes=3, random_state=0)
    assert np.mean(rows[1]) < (30 + 26) / 300
    told = spread_labels(X, y, shots=(1,), n_queries=10, n_episodes=3, random_state=0)
    assert np.mean(told[1]) > (30 + 26) / 300


def test_labels_that_spread(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On pixels and on both kinds of features, without and with class sizes; begun anew, nothing is repeated."""
    monkeypatch.setattr(sys.modules[one_shot.__module__], "MANY", 1_000)
    few: dict[str, Any] = {"n_updates": 5, "n_hidden": 8, "n_components": 4}
    monkeypatch.setattr(methods, "ContrastiveFeatures", partial(ContrastiveFeatures, **few))
    monkeypatch.setattr(methods, "SlowFeatures", partial(SlowFeatures, n_random=9, n_components=4))
    asked = replace(
        CONFIG, seeds=(3,), algorithm_1=False, label_spreading=False, baselines=False, spreading=True
    )
    for _ in one_shot(asked, tmp_path / "run"):
        pass
    digits = load_digits()
    rows = binarize(digits.X[:1000])
    ensemble = FrozenEstimator(model(tmp_path / "run", "bernoulli", 3))
    views = {
        "pixels": None,
        "slow features": SlowFeatures(ensemble, n_random=9, n_components=4, random_state=3),
        "contrastive features": ContrastiveFeatures(**few, random_state=3),
    }
    for name, view in views.items():
        spread = SpreadingClassifier(view, random_state=3).fit(rows[:2], [0, 1], X_unlabeled=rows[2:])
        for end, sizes in (("", None), (", sizes", "equal")):
            expected = by_hand(Relabeled(FrozenEstimator(spread), class_prior=sizes))
            assert found(tmp_path / "run", f"spreading on {name}{end}", 3) == expected
    assert [step.text for step in one_shot(asked, tmp_path / "run")] == ["done"]
