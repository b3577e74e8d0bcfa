"""The paper's two experiments and the demo: configuration in, rows of results out, in a run folder.

Each experiment is an iterator of steps; the work is done while iterating::

    for step in run_one_shot(OneShotConfig(n_episodes=10), "run"):
        print(step.text)
    rows = ebse.workflow.run_folder.read_results("run")

References
----------
M. Al-Shedivat, E. Neftci, G. Cauwenberghs, "Learning non-deterministic representations with energy-based
ensembles", 2015.
"""

from ebse.paper.demo import demo_parts
from ebse.paper.manifold_experiment import ManifoldsConfig, run_manifolds
from ebse.paper.one_shot_config import OneShotConfig
from ebse.paper.one_shot_experiment import run_one_shot

__all__ = ["ManifoldsConfig", "OneShotConfig", "demo_parts", "run_manifolds", "run_one_shot"]
