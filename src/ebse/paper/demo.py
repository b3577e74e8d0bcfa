"""The demo: both experiments of the paper on data that comes with the package, in about two minutes."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ebse.paper.manifold_experiment import ManifoldsConfig, run_manifolds
from ebse.paper.one_shot_config import OneShotConfig
from ebse.paper.one_shot_experiment import run_one_shot
from ebse.workflow.run_folder import Step

MANIFOLDS = ManifoldsConfig(seeds=(0, 1))
ONE_SHOT = OneShotConfig(
    data="mnist-sample",
    laws=("point", "bernoulli"),
    n_components=200,
    n_epochs=60,
    n_episodes=40,
    propagation=("contrastive",),
    contrastive_updates=300,
    methods=(
        "pixels",
        "1-NN",
        "RBM mean",
        "DropConnect, prior",
        "Bernoulli posterior samples",
        "Bernoulli chain-sampled models",
        "label propagation on contrastive features",
    ),
)
"""5,000 digits for training without labels; labels and test rows are among 1,000 other digits.

Hidden units, episodes, updates and methods are fewer than by default to keep the demo within two minutes.
"""

MARK = ".ebse-demo"
"""File in a folder that the demo may overwrite."""


class Part(NamedTuple):
    """One experiment of the demo: a title, its run folder, and its steps."""

    title: str
    folder: Path
    steps: Iterator[Step]


def demo_parts(
    out: str | Path,
    *,
    n_workers: int = 1,
    manifolds: ManifoldsConfig = MANIFOLDS,
    one_shot: OneShotConfig = ONE_SHOT,
) -> list[Part]:
    """The two experiments of the demo, in new run folders below ``out``.

    Folders of an earlier demo are removed. Folders that are not a demo's are refused.
    """
    out = Path(out)
    folders = [out / "manifolds", out / "one-shot"]
    for folder in folders:
        if folder.exists() and not (out / MARK).exists():
            raise FileExistsError(
                f"out must not hold other files, got {out}, in which {folder.name} was not written by the "
                "demo; give another folder"
            )
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
    out.mkdir(parents=True, exist_ok=True)
    (out / MARK).touch()
    curves = run_manifolds(manifolds, folders[0], n_workers=n_workers)
    digits = run_one_shot(one_shot, folders[1])
    return [
        Part("Points near a curve (section 3.1)", folders[0], curves),
        Part("One label per class, MNIST digits (section 3.2)", folders[1], digits),
    ]
