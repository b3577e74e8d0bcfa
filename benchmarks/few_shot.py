"""Few-shot classification on digits, MNIST and Fashion-MNIST: chain-sampled models against the mean.

    python benchmarks/few_shot.py --data digits
    python benchmarks/few_shot.py --data FOLDER --seeds 0 1 2 --sweeps auto 50 --json PATH

FOLDER holds the four idx.gz files of MNIST or Fashion-MNIST. An RBSE is trained on 50,000 unlabeled images
for 10 epochs, thresholded at 0.5 (or on all digits, gray). Episodes come from the last 16,000 images (or from
the same digits); the 4,000 between are for choosing settings (``--choose``). Every method has the same
episodes and the same logistic regression without penalty. ``--tiny`` only shows that it runs.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_digits
from sklearn.frozen import FrozenEstimator

from ebse import RBSE
from ebse._atomic import in_place
from ebse.datasets import load_images
from ebse.ensemble import RBSEClassifier
from ebse.evaluation import few_shot
from ebse.preprocessing import threshold

N_CHOOSING = 4_000


def main() -> None:
    """Train, evaluate, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", default="digits", help='"digits", or a folder with idx.gz files')
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--sweeps", nargs="+", default=["auto"], help="numbers, or auto")
    parser.add_argument("--shots", type=int, nargs="+", default=[1])
    parser.add_argument("--episodes", type=int, default=100)
    parser.add_argument("--queries", type=int, default=99)
    parser.add_argument("--components", type=int, default=400)
    parser.add_argument("--pool", type=int, default=16_000, help="images that episodes are drawn from")
    parser.add_argument("--choose", action="store_true", help="use the images for choosing settings")
    parser.add_argument("--noise", type=float, default=None, help="of the models, along the gauge")
    parser.add_argument("--epochs", type=int, default=None)
    parser.add_argument("--rate", type=float, default=None)
    parser.add_argument("--json", type=Path, help="write all rows to this file")
    parser.add_argument("--tiny", action="store_true", help="a tiny model and two episodes")
    options = parser.parse_args()
    if options.tiny:
        options.components, options.epochs, options.episodes, options.queries = 8, 1, 2, 2
    if options.data == "digits":
        X, y = load_digits(return_X_y=True)
        X = (X / 16).astype(np.float32)
        unlabeled, pool, labels = X, X, y
    else:
        images = load_images(options.data)
        unlabeled, (pool, labels) = threshold(images.unlabeled), images.episodes
        pool = threshold(pool)
        part = slice(0, N_CHOOSING) if options.choose else slice(N_CHOOSING, N_CHOOSING + options.pool)
        pool, labels = pool[part], labels[part]
    rows = []
    for seed in options.seeds:
        settings: dict[str, Any] = {
            "n_epochs": options.epochs or ("auto" if options.data == "digits" else 10)
        }
        if options.rate:
            settings["learning_rate"] = options.rate
        began = time.perf_counter()
        rbse = RBSE(options.components, random_state=seed, **settings).fit(unlabeled)
        trained = time.perf_counter() - began
        print(f"seed {seed}: trained in {trained:.0f} s", flush=True)
        methods: dict[str, Any] = {"mean": rbse}
        noise = {} if options.noise is None else {"draw_noise": options.noise}
        for sweeps in options.sweeps:
            n_sweeps = sweeps if sweeps == "auto" else int(sweeps)
            methods[f"{sweeps} sweeps"] = RBSEClassifier(
                FrozenEstimator(rbse), n_sweeps=n_sweeps, random_state=0, **noise
            )
        result = few_shot(
            methods,
            pool,
            labels,
            n_shots=options.shots,
            n_queries=options.queries,
            n_episodes=options.episodes,
            random_state=0 if options.choose else 1,
        )
        print(result, flush=True)
        rows.append(result.rows.assign(seed=seed))
    every = pd.concat(rows)
    table = every.pivot_table(index=["seed", "n_shots", "episode"], columns="method", values="accuracy")
    gains = 100 * table.sub(table["mean"], axis=0).groupby(["n_shots", "seed"]).mean()
    print("gain over the mean representation, points, by seed\n", gains.round(2))
    print("mean over seeds\n", gains.groupby("n_shots").mean().round(2))
    if options.json is not None:
        with in_place(options.json) as partial:
            partial.write_text(json.dumps(every.to_dict("records")))


if __name__ == "__main__":
    main()
