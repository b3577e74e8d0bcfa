"""The paper's two experiments: configuration in, rows of results out, in a folder.

Each is an iterator of steps, which do the work as they are asked for:

    for step in one_shot(OneShotConfig(n_episodes=10), "run"):
        print(step.text)
    rows = ebse.runs.read_results("run")
"""

from ebse.experiments.manifolds import ManifoldsConfig, manifolds
from ebse.experiments.one_shot import one_shot
from ebse.experiments.settings import OneShotConfig

__all__ = ["ManifoldsConfig", "OneShotConfig", "manifolds", "one_shot"]
