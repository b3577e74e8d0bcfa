"""A small one-shot run that several files look at."""

from pathlib import Path
from typing import Any

import pytest

from ebse.paper import OneShotConfig, run_one_shot

SMALL: dict[str, Any] = {
    "n_episodes": 2,
    "n_queries": 5,
    "n_components": 30,
    "n_epochs": 2,
    "algorithm_1_epochs": 1,
    "n_draws": 2,
}
CONFIG = OneShotConfig(
    **SMALL, seeds=(3, 5), shots=(1, 2), sweeps=(2,), episode_seed=11, algorithm_1=True, label_spreading=True
)


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("one_shot") / "run"
    for _ in run_one_shot(CONFIG, folder):
        pass
    return folder
