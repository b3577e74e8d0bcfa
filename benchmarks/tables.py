"""Few labels on tables: FewLabelClassifier and what people use today, on the same episodes.

    python benchmarks/tables.py --data FOLDER --json PATH

FOLDER has tables as NAME.csv or NAME.csv.gz with the label column ``y``; the handwritten digits of
scikit-learn come along, and with ``--mnist FOLDER`` 5,000 images of MNIST. A tenth to a third of the rows
are test rows; of the others a number of each class are labeled in an episode, and the rest are unlabeled.
All methods have the same episodes. Other methods get one-hot categories, median imputation and standardized
columns, or with ``--coding ours`` the columns that FewLabelClassifier makes. Results in the file of
``--json`` are not measured again. Libraries that are not installed are left out by name. ``--tiny`` only
shows that everything runs.
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import stats
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_digits
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.semi_supervised import SelfTrainingClassifier

import semi_supervised_peers as peers
from ebse import ContrastiveFeatures, FewLabelClassifier, SpreadingClassifier
from ebse._atomic import in_place
from ebse.datasets import load_images

OURS, REGRESSION = "FewLabelClassifier", "logistic regression"
RANKED = (OURS, REGRESSION, "1-NN", "random forest", "Poisson learning")
SHOTS = (1, 2, 5, 10, 20, 50)
FEW, N_FEW, N_MANY = 2, 100, 30
"""Labels per class up to which there are N_FEW episodes; N_MANY above."""
MOST_TEST, MOST_ROWS = 1_000, 6_000
N_BINS = 15
"""Of the calibration error."""
TIED = 0.5
"""Points within which two methods share a rank."""


class Task(NamedTuple):
    """A table: raw rows, classes as numbers, rows to label and rows to test."""

    name: str
    X: pd.DataFrame
    y: Any
    pool: Any
    test: Any


def task(name: str, X: pd.DataFrame, y: Any, *, thinned: int | None = None) -> Task:
    """Rows of a table in random order; with ``thinned``, a seed, all classes but the largest 20:1."""
    rng = np.random.default_rng(1)
    order = rng.permutation(len(X))[:MOST_ROWS]
    target = np.unique(np.asarray(y).astype(str), return_inverse=True)[1][order]
    if thinned is not None:
        largest = np.bincount(target).argmax()
        keep = (target == largest) | (np.random.default_rng(thinned).random(len(target)) < 1 / 20)
        order, target = order[keep], target[keep]
    # A class of fewer rows can neither be labeled nor tested.
    counts = np.bincount(target)
    common = counts[target] >= 8
    order, target = order[common], np.unique(target[common], return_inverse=True)[1]
    n_test = min(MOST_TEST, len(order) * 3 // 10)
    rows = np.arange(len(order))
    return Task(name, X.iloc[order].reset_index(drop=True), target, rows[n_test:], rows[:n_test])


def tasks(options: argparse.Namespace) -> list[Task]:
    """All tables that are asked for."""
    digits = load_digits(as_frame=True)
    found = [task("digits", digits.data, digits.target)]
    if options.tiny:
        return [found[0]._replace(pool=found[0].pool[:200], test=found[0].test[:50])]
    for path in sorted(Path(options.data).glob("*.csv*")) if options.data else ():
        table = pd.read_csv(path)
        y = table.pop("y")
        name = path.name.split(".")[0]
        found.append(task(name, table, y))
        if name in options.thinned:
            found += [task(f"{name}, thinned, seed {i}", table, y, thinned=i) for i in range(3)]
    if options.mnist:
        images = load_images(options.mnist)
        pixels = pd.DataFrame(images.X[:MOST_ROWS].reshape(MOST_ROWS, -1) / 255)
        found.append(task("MNIST", pixels, images.y[:MOST_ROWS]))
    return [one for one in found if not options.only or one.name in options.only]


def plain_coding(X: pd.DataFrame) -> Any:
    """What people do first: one-hot categories, medians for missing numbers, standardized columns."""
    words = [c for c in X if X[c].dtype.kind not in "biuf"]
    X = X.astype(dict.fromkeys(words, object))
    X[words] = X[words].where(X[words].notna(), "missing").astype(str)
    coder = ColumnTransformer(
        [
            (
                "numbers",
                make_pipeline(SimpleImputer(strategy="median"), StandardScaler()),
                X.columns.difference(words),
            ),
            ("words", OneHotEncoder(handle_unknown="ignore", sparse_output=False), words),
        ]
    )
    return np.asarray(coder.fit_transform(X), dtype=np.float32)


Predict = Callable[[Any, Any], Any]
"""Class probabilities, or classes, of the test rows, from indices of labeled rows and their classes."""


def supervised(Z: Any, test: Any, make: Callable[[], Any]) -> Predict:
    """A classifier of scikit-learn that learns from the labeled rows alone."""
    return lambda known, y: make().fit(Z[known], y).predict_proba(Z[test])


def self_training(Z: Any, one: Task) -> Predict:
    """Self-training with logistic regression, scikit-learn's defaults."""

    def predict(known: Any, y: Any) -> Any:
        target = np.full(len(Z), -1)
        target[known] = y
        model = SelfTrainingClassifier(LogisticRegression(max_iter=1_000)).fit(Z[one.pool], target[one.pool])
        return model.predict_proba(Z[one.test])

    return predict


def on_rows(predictor: Any, one: Task) -> Predict:
    """A method of ``semi_supervised_peers``, which takes indices of labeled rows and of queries."""
    return lambda known, _: predictor(known, one.test)


def relabeled(model: Any, rows: Any, one: Task) -> Predict:
    """One of our classifiers, whose clusters are the same in all episodes."""
    take = rows.iloc if isinstance(rows, pd.DataFrame) else rows
    model.fit(take[one.pool])

    def predict(known: Any, y: Any) -> Any:
        with warnings.catch_warnings():
            # Random labels: warnings of doubtful results would come in every episode.
            warnings.simplefilter("ignore", UserWarning)
            return model.relabel(take[known], y).predict_proba(take[one.test])

    return predict


def methods(one: Task, options: argparse.Namespace) -> dict[str, Callable[[], Predict]]:
    """What makes each method; those of libraries that are missing raise ImportError."""
    Z = plain_coding(one.X)
    if options.coding == "ours":
        Z = FewLabelClassifier(random_state=0).fit(one.X.iloc[one.pool])._table(one.X).standard
    rows = Z[one.pool]
    found: dict[str, Callable[[], Predict]] = {
        OURS: lambda: relabeled(FewLabelClassifier(random_state=0), one.X, one),
        "SpreadingClassifier": lambda: relabeled(SpreadingClassifier(random_state=0), Z, one),
        REGRESSION: lambda: supervised(Z, one.test, lambda: LogisticRegression(max_iter=1_000)),
        "1-NN": lambda: supervised(Z, one.test, lambda: KNeighborsClassifier(1)),
        "random forest": lambda: supervised(Z, one.test, lambda: RandomForestClassifier(random_state=0)),
        "gradient boosting": lambda: supervised(
            Z, one.test, lambda: HistGradientBoostingClassifier(random_state=0)
        ),
        "self-training": lambda: self_training(Z, one),
        "label spreading": lambda: on_rows(peers.label_spreading(rows, Z, one.y), one),
        "Poisson learning": lambda: on_rows(peers.on_graphs(rows, Z, one.y)[1], one),
        "UMAP + 1-NN": lambda: on_rows(peers.nearest_label(peers.umap().fit(rows).transform(Z), one.y), one),
    }
    if one.name in ("MNIST", "digits"):
        features = ContrastiveFeatures(n_updates=5) if options.tiny else ContrastiveFeatures()
        found["SpreadingClassifier(ContrastiveFeatures())"] = lambda: relabeled(
            SpreadingClassifier(features, random_state=0), Z, one
        )
    return {name: make for name, make in found.items() if not options.methods or name in options.methods}


def labeled_rows(one: Task, n: int, episode: int) -> Any:
    """n rows of each class of the pool; of a class that is small half of its rows at most."""
    rng = np.random.default_rng([n, episode])
    chosen = []
    for c in np.unique(one.y):
        rows = rng.permutation(one.pool[one.y[one.pool] == c])
        chosen.append(rows[: min(n, max(1, len(rows) // 2))])
    return np.concatenate(chosen)


def measured(
    one: Task, name: str, make: Callable[[], Predict], options: argparse.Namespace
) -> list[dict[str, Any]]:
    """Rows of results of one method on one table."""
    predict, found = make(), []
    truth = one.y[one.test]
    for n in options.shots:
        for episode in range(options.episodes[0] if n <= FEW else options.episodes[1]):
            known = labeled_rows(one, n, episode)
            began = time.process_time()
            answer = predict(known, one.y[known])
            seconds = time.process_time() - began
            p = answer if np.ndim(answer) == 2 else None
            predicted = answer if p is None else p.argmax(1)
            recalls = [(predicted[truth == c] == c).mean() for c in np.unique(truth)]
            found.append(
                {
                    "table": one.name,
                    "method": name,
                    "n_labels": n,
                    "episode": episode,
                    "accuracy": float((predicted == truth).mean()),
                    "balanced": float(np.mean(recalls)),
                    "calibration": None if p is None else calibration_error(p, truth),
                    "cpu_seconds": seconds,
                }
            )
    return found


def calibration_error(p: Any, truth: Any) -> float:
    """Top-label calibration error in 15 bins of equal width."""
    confidence, right = p.max(1), p.argmax(1) == truth
    bins = np.minimum((confidence * N_BINS).astype(int), N_BINS - 1)
    return float(sum(abs((confidence - right)[bins == b].sum()) for b in range(N_BINS)) / len(p))


def summary(rows: pd.DataFrame) -> str:
    """Tables of means, ranks, differences from logistic regression, and calibration."""
    lines = ["Accuracy (%), mean over episodes and tables:"]
    means = rows.groupby(["table", "method", "n_labels"])["accuracy"].mean().mul(100).unstack("method")
    lines.append(means.groupby("n_labels").mean().T.round(1).to_string())
    plain = means[~means.index.get_level_values("table").str.contains("thinned")]
    present = [name for name in RANKED if name in plain]
    if OURS in present:
        ranks = plain[present].apply(_ranks, axis=1).groupby("n_labels").mean()
        lines += [
            "",
            f"Mean rank among {', '.join(present)}; within {TIED} points shared:",
            ranks.round(2).to_string(),
        ]
    if {OURS, REGRESSION} <= set(present):
        lines += ["", "FewLabelClassifier less logistic regression, points, with intervals at 5 % (Holm):"]
        lines.append(_differences(rows))
    calibration = rows[rows["n_labels"] == 5].groupby(["method", "table"])["calibration"].mean()
    lines += ["", "Calibration error at five labels:", calibration.unstack("method").round(3).to_string()]
    return "\n".join(lines)


def _ranks(row: Any) -> Any:
    """Rank of each method: 1, and 1 for each that is better, 1/2 for each that is level."""
    return pd.Series(
        {
            name: 1
            + sum(row[other] > row[name] + TIED for other in row.index)
            + sum(abs(row[other] - row[name]) <= TIED for other in row.index if other != name) / 2
            for name in row.index
        }
    )


def _differences(rows: pd.DataFrame) -> str:
    """Paired differences by table and number of labels; intervals of Holm's procedure."""
    wide = rows.pivot_table(index=["table", "n_labels", "episode"], columns="method", values="accuracy")
    gaps = 100 * (wide[OURS] - wide[REGRESSION])
    cells = gaps.groupby(["table", "n_labels"]).agg(["mean", "std", "count"]).reset_index()
    cells["error"] = cells["std"] / np.sqrt(cells["count"])
    # One-sided tests of "not below −1": the smallest p-value is compared with 5 % / number of cells.
    t = (cells["mean"] + 1) / cells["error"].clip(lower=1e-9)
    p = stats.t.cdf(t, cells["count"] - 1)
    order = np.argsort(p)
    below = np.zeros(len(cells), dtype=bool)
    for k, i in enumerate(order):
        if p[i] > 0.05 / (len(cells) - k):
            break
        below[i] = True
    cells["below −1"] = below
    return str(cells[["table", "n_labels", "mean", "error", "below −1"]].round(2).to_string(index=False))


def main() -> None:
    """Measure what is not in the file yet, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", help="folder of tables")
    parser.add_argument("--mnist", type=Path, help="folder of MNIST")
    parser.add_argument("--json", type=Path, help="file of results")
    parser.add_argument("--only", nargs="*", default=[], help="names of tables")
    parser.add_argument("--methods", nargs="*", default=[], help="names of methods")
    parser.add_argument("--shots", nargs="*", type=int, default=list(SHOTS), help="labels per class")
    parser.add_argument(
        "--episodes", nargs=2, type=int, default=[N_FEW, N_MANY], help="up to 2 labels, and above"
    )
    parser.add_argument(
        "--coding", choices=("plain", "ours"), default="plain", help="columns of other methods"
    )
    parser.add_argument(
        "--thinned", nargs="*", default=["satellite", "vehicle"], help="tables to thin as well"
    )
    parser.add_argument("--tiny", action="store_true", help="a few rows and episodes, to see that it runs")
    options = parser.parse_args()
    if options.tiny:
        options.shots, options.episodes = [1, 5], [2, 2]
    rows: list[dict[str, Any]] = []
    if options.json is not None and options.json.exists():
        rows = json.loads(options.json.read_text())
    done = {(row["table"], row["method"], row["n_labels"]) for row in rows}
    for one in tasks(options):
        for name, make in methods(one, options).items():
            if all((one.name, name, n) in done for n in options.shots):
                continue
            began = time.process_time()
            try:
                rows += measured(one, name, make, options)
            except ImportError as error:
                print(f"left out: {name} on {one.name}: {error}")
                continue
            print(f"{one.name}, {name}: {time.process_time() - began:.0f} s of CPU", flush=True)
            if options.json is not None:
                with in_place(options.json) as temporary:
                    temporary.write_text(json.dumps(rows))
    print(summary(pd.DataFrame(rows)))


if __name__ == "__main__":
    main()
