"""The one-shot experiment: rows of every method, resumed runs, settings."""

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ebse.datasets import load_digits
from ebse.paper.one_shot_config import OneShotConfig
from ebse.paper.one_shot_experiment import run_one_shot
from ebse.workflow.run_folder import Step, read_results
from paper.conftest import SMALL

module: Any = sys.modules[run_one_shot.__module__]

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
"""Models in these tests are trained for two epochs."""


def all_steps(config: OneShotConfig, folder: Path) -> list[Step]:
    return list(run_one_shot(config, folder))


def results(folder: Path) -> dict[tuple[Any, ...], Any]:
    return {
        (row["seed"], row["method"], row["n_shots"]): row["accuracies"]
        for row in read_results(folder)
        if row["kind"] == "accuracy"
    }


def test_every_method_has_its_rows(run: Path) -> None:
    found = results(run)
    fixed = {"pixels", "PCA 20", "shifts", "1-NN", "scikit-learn LabelSpreading"}
    trained = {
        *("RBM mean", "DropConnect, prior", "DropConnect, posterior"),
        *("Bernoulli mean", "Bernoulli posterior samples"),
        *("Bernoulli chain-sampled models", "Bernoulli chain states"),
        *("Gaussian mean", "Gaussian posterior samples", "Gaussian chain-sampled models"),
        *("Algorithm 1 mean", "Algorithm 1 posterior samples", "Algorithm 1 on an RBM mean"),
    }
    expected: set[tuple[Any, ...]] = {(None, m, k) for m in fixed for k in (1, 2)}
    expected |= {(s, m, k) for s in (3, 5) for m in trained for k in (1, 2)}
    assert set(found) == expected
    assert all(len(x) == 2 and 0 <= min(x) <= max(x) <= 1 for x in found.values())
    assert sum(row["kind"] == "training" for row in read_results(run)) == 10
    with np.load(run / "pictures.npz", allow_pickle=False) as pictures:
        names = {"filters", "keep_prob", "samples", "chain", "posterior", "chain_sampled"}
        assert names <= set(pictures.files)
    assert not any((run / "unfinished").iterdir())


def test_a_stopped_run_is_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = OneShotConfig(**SMALL, laws=("point", "bernoulli"), baselines=False)
    steps = all_steps(config, tmp_path / "whole")
    assert steps[-1].text == "done"
    assert [s.done for s in steps] == sorted(s.done for s in steps)
    calls, inner = 0, module.few_shot

    def stopped(*arguments: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise KeyboardInterrupt
        return inner(*arguments, **options)

    monkeypatch.setattr(module, "few_shot", stopped)
    with pytest.raises(KeyboardInterrupt):
        all_steps(config, tmp_path / "stopped")
    before = read_results(tmp_path / "stopped")
    assert len(before) == 4  # Two models, two methods.
    monkeypatch.setattr(module, "few_shot", inner)
    all_steps(config, tmp_path / "stopped")
    assert read_results(tmp_path / "stopped")[:4] == before
    assert results(tmp_path / "stopped") == results(tmp_path / "whole")
    # A finished run is left as it is.
    assert [step.text for step in all_steps(config, tmp_path / "stopped")] == ["done"]
    assert results(tmp_path / "stopped") == results(tmp_path / "whole")


@pytest.mark.parametrize("binarization", ["gray", "sampled", "sampled-per-epoch"])
def test_other_binarizations(binarization: str, tmp_path: Path) -> None:
    config = OneShotConfig(**SMALL, laws=("point",), baselines=False, binarization=binarization)
    all_steps(config, tmp_path)
    (trained,) = (row for row in read_results(tmp_path) if row["kind"] == "training")
    assert len(trained["history"]) == 2


def test_several_chains_have_their_own_names(tmp_path: Path) -> None:
    config = OneShotConfig(
        **SMALL, laws=("point", "bernoulli"), baselines=False, sweeps=(1, 2), keep_probs=(0.1, 0.5)
    )
    all_steps(config, tmp_path)
    names = {method for _, method, _ in results(tmp_path) if "chain" in method}
    models = {
        f"Bernoulli chain-sampled models, {s} sweeps, keep_prob {p:g}" for s in (1, 2) for p in (0.1, 0.5)
    }
    assert names == models | {f"Bernoulli chain states, {s} sweeps" for s in (1, 2)}


def test_defaults_depend_on_the_data() -> None:
    digits = load_digits()
    resolved = OneShotConfig().resolved(digits)
    assert (resolved.n_components, resolved.n_epochs, resolved.sweeps) == (100, 200, (2,))
    assert resolved.n_queries in range(60, 80)
    large = digits._replace(X=np.zeros((1797, 784), dtype=np.uint8))
    assert OneShotConfig().resolved(large).n_components == 400
    assert OneShotConfig(n_components=7, sweeps=(9,)).resolved(large).sweeps == (9,)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"binarization": "half"}, "binarization must be one of 'gray'"),
        ({"n_episodes": 0}, "n_episodes must be >= 1"),
        ({"laws": ("normal",)}, "laws must be one of 'point'"),
        ({"laws": ("bernoulli",)}, "laws must have 'point'"),
        ({"laws": ("point", "algorithm_1")}, "laws must be one of 'point'"),
        ({"laws": ("point", "point")}, "laws must differ from each other"),
        ({"seeds": (0, 0)}, "seeds must differ from each other"),
        ({"seeds": (-1,)}, "seeds must be >= 0"),
        ({"shots": (0,)}, "shots must be >= 1"),
        ({"sweeps": (0,)}, "sweeps must be >= 1"),
        ({"keep_probs": ()}, "keep_probs must have at least one number"),
        ({"keep_probs": (1.5,)}, r"keep_probs must lie in \(0, 1\), got 1.5"),
        ({"keep_probs": (0.1, 1.0)}, r"keep_probs must lie in \(0, 1\), got 1.0"),
        ({"keep_probs": (0.0,)}, r"keep_probs must lie in \(0, 1\), got 0.0"),
        ({"propagation": ("words",)}, "propagation must be one of 'pixels', 'slow', 'contrastive', got"),
        ({"propagation": ("slow", "slow")}, "propagation must differ from each other"),
        ({"sigma": -1.0}, r"sigma must lie in \(0, inf\), got -1.0"),
        ({"sigma": math.inf}, r"sigma must lie in \(0, inf\), got inf"),
        ({"learning_rate": 0.0}, "learning_rate must be positive"),
        ({"bias_law": "normal"}, "bias_law must be one of"),
        ({"n_epochs": 0}, "n_epochs must be >= 1"),
        ({"n_components": -5}, "n_components must be >= 1"),
        ({"episode_seed": -4}, "episode_seed must be >= 0"),
        ({"seeds": ()}, "seeds must have at least one number"),
        ({"shots": ()}, "shots must have at least one number"),
    ],
)
def test_bad_settings(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        OneShotConfig(**options)


def test_more_labels_than_there_are(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"shots must be less than 7\d, .* of digits, got 90"):
        all_steps(OneShotConfig(shots=(90,)), tmp_path)


def test_more_queries_than_there_are_leave_no_folder(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="n_queries must be at most 7"):
        all_steps(OneShotConfig(n_queries=99), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_chosen_methods_alone_are_run(tmp_path: Path) -> None:
    config = OneShotConfig(**SMALL, laws=("point", "bernoulli"), methods=("1-NN", "Bernoulli chain states"))
    all_steps(config, tmp_path)
    assert {method for _, method, _ in results(tmp_path)} == set(config.methods)
    assert [step.text for step in all_steps(config, tmp_path)] == ["done"]


def test_unknown_methods_leave_no_folder(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"methods must be one of 'pixels', .*, got '2-NN'"):
        all_steps(OneShotConfig(methods=("2-NN",)), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_labels_need_not_begin_at_0() -> None:
    digits = load_digits()
    shifted = digits._replace(y=digits.y + 3)
    assert OneShotConfig().resolved(shifted).n_queries == OneShotConfig().resolved(digits).n_queries


def test_umap_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"umap needs the package umap-learn.*pip install 'ebse\[umap\]'"):
        OneShotConfig(umap=True)
