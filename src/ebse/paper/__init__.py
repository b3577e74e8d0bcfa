"""The paper's two experiments: configuration in, rows of results out, in a folder.

Each is an iterator of steps, which do the work as they are asked for:

    for step in one_shot(OneShotConfig(n_episodes=10), "run"):
        print(step.text)
    rows = ebse.workflow.run_folder.read_results("run")
"""

from ebse.paper.manifold_experiment import ManifoldsConfig, manifolds
from ebse.paper.one_shot_config import OneShotConfig
from ebse.paper.one_shot_experiment import one_shot

__all__ = ["ManifoldsConfig", "OneShotConfig", "manifolds", "one_shot"]
