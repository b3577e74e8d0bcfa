"""Few labels on tables: FewLabelClassifier and what people use today, on the same episodes.

    python benchmarks/tables.py --data FOLDER --mnist FOLDER --fashion-mnist FOLDER --json PATH --jobs 2

``--data`` has tables as NAME.csv or NAME.csv.gz with the label column ``y``; the handwritten digits of
scikit-learn come along, and 5,000 images of MNIST and of Fashion-MNIST where their folders are given. A sixth
to a third of the rows are test rows; of the others a number of each class are labeled in an episode, and the
rest are unlabeled. All methods have the same episodes. Other methods get one-hot categories, median
imputation and standardized columns, and once more the columns that FewLabelClassifier makes ("our columns").
SpreadingClassifier gets images as they are. Methods that are not ranked stop after ``--seconds`` of CPU for a
table and number of labels, and then have fewer episodes, the first ones.

Results in the file of ``--json`` are not measured again. Libraries that are not installed are left out by
name. ``--tiny`` only shows that everything runs.
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import joblib
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

import few_labels_peers as peers
from ebse import ContrastiveFeatures, FewLabelClassifier, SpreadingClassifier
from ebse._atomic import in_place
from ebse.datasets import load_images
from ebse.semi_supervised._columns import Table

OURS, REGRESSION = "FewLabelClassifier", "logistic regression"
FOREST, POISSON = "random forest", "Poisson learning"
RANKED = (OURS, REGRESSION, "1-NN", FOREST, POISSON)
SPREADING, ON_FEATURES = "SpreadingClassifier", "SpreadingClassifier(ContrastiveFeatures())"
OUR_COLUMNS = ", our columns"
IMAGES = ("digits", "MNIST", "Fashion-MNIST")
SHOTS = (1, 2, 5, 10, 20, 50)
FEW, N_FEW, N_MANY = 2, 100, 30
"""Labels per class up to which there are N_FEW episodes; N_MANY above."""
LEAST_EPISODES = 3
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
    for name, folder in (("MNIST", options.mnist), ("Fashion-MNIST", options.fashion_mnist)):
        if folder is not None:
            images = load_images(folder)
            pixels = pd.DataFrame(images.X[:MOST_ROWS].reshape(MOST_ROWS, -1) / np.float32(255))
            found.append(task(name, pixels, images.y[:MOST_ROWS]))
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
    """A method of ``few_labels_peers``, which takes indices of labeled rows and of queries."""
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


def peers_of(one: Task, Z: Any) -> dict[str, Callable[[], Predict]]:
    """What makes each other method, on rows coded as Z; those of missing libraries raise ImportError."""
    rows = Z[one.pool]
    return {
        REGRESSION: lambda: supervised(Z, one.test, lambda: LogisticRegression(max_iter=1_000)),
        "1-NN": lambda: supervised(Z, one.test, lambda: KNeighborsClassifier(1)),
        FOREST: lambda: supervised(Z, one.test, lambda: RandomForestClassifier(random_state=0)),
        POISSON: lambda: on_rows(peers.on_graphs(rows, Z, one.y)[1], one),
        "gradient boosting": lambda: supervised(
            Z, one.test, lambda: HistGradientBoostingClassifier(random_state=0)
        ),
        "self-training": lambda: self_training(Z, one),
        "label spreading": lambda: on_rows(peers.label_spreading(rows, Z, one.y), one),
        "UMAP + 1-NN": lambda: on_rows(peers.nearest_label(peers.umap().fit(rows).transform(Z), one.y), one),
    }


def methods(one: Task, options: argparse.Namespace) -> dict[str, Callable[[], Predict]]:
    """What makes each method."""
    table = Table.learned(one.X.iloc[one.pool].reset_index(drop=True), "auto", seed=0)
    plain, ours = plain_coding(one.X), table(one.X).standard
    raw = one.X.to_numpy(np.float32) if one.name in IMAGES else plain
    found: dict[str, Callable[[], Predict]] = {
        OURS: lambda: relabeled(FewLabelClassifier(random_state=0), one.X, one),
        SPREADING: lambda: relabeled(SpreadingClassifier(random_state=0), raw, one),
        **peers_of(one, plain),
        **{f"{name}{OUR_COLUMNS}": make for name, make in peers_of(one, ours).items()},
    }
    if one.name in IMAGES:
        features = ContrastiveFeatures(n_updates=5) if options.tiny else ContrastiveFeatures()
        found[ON_FEATURES] = lambda: relabeled(SpreadingClassifier(features, random_state=0), raw, one)
    return {name: make for name, make in found.items() if not options.methods or name in options.methods}


def labeled_rows(one: Task, n: int, episode: int) -> Any:
    """n rows of each class of the pool; of a class that is small half of its rows at most."""
    rng = np.random.default_rng([n, episode])
    chosen = []
    for c in np.unique(one.y):
        rows = rng.permutation(one.pool[one.y[one.pool] == c])
        chosen.append(rows[: min(n, max(1, len(rows) // 2))])
    return np.concatenate(chosen)


def measured(one: Task, name: str, shots: list[int], options: argparse.Namespace) -> list[dict[str, Any]]:
    """Rows of results of one method on one table."""
    predict, found = methods(one, options)[name](), []
    truth = one.y[one.test]
    limit = np.inf if name in RANKED else options.seconds
    for n in shots:
        spent = 0.0
        for episode in range(options.episodes[0] if n <= FEW else options.episodes[1]):
            if spent > limit and episode >= LEAST_EPISODES:
                break
            known = labeled_rows(one, n, episode)
            began = time.process_time()
            answer = predict(known, one.y[known])
            seconds = time.process_time() - began
            spent += seconds
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


def attempt(
    one: Task, name: str, shots: list[int], options: argparse.Namespace
) -> tuple[list[dict[str, Any]], str]:
    """Rows of results, and a line about them."""
    began = time.process_time()
    try:
        found = measured(one, name, shots, options)
    except ImportError as error:
        return [], f"left out: {name} on {one.name}: {error}"
    return found, f"{one.name}, {name}: {time.process_time() - began:.0f} s of CPU"


def summary(rows: pd.DataFrame) -> str:
    """Tables of means, ranks, differences from logistic regression, unbalanced tables, and calibration."""
    unbalanced = rows["table"].str.contains("thinned") | (rows["table"] == "shuttle")
    plain = rows[~rows["table"].str.contains("thinned")]
    lines = ["Accuracy (%), mean over tables that all of these methods have:"]
    means = plain.groupby(["table", "method", "n_labels"])["accuracy"].mean().mul(100).unstack("method")
    everywhere = means.dropna(axis=1)
    lines.append(everywhere.groupby("n_labels").mean().T.round(1).to_string())
    first = means.xs(1, level="n_labels") if 1 in means.index.get_level_values("n_labels") else means[:0]
    lines += ["", "Accuracy (%) at one label per class:", first.T.round(1).to_string()]
    counts = plain.groupby(["method", "table", "n_labels"])["episode"].count().unstack("n_labels")
    fewer = counts[(counts < counts.groupby("table").transform("max")).any(axis=1)]
    if len(fewer):
        lines += ["", "Episodes, where the limit of time made them fewer:", fewer.to_string()]
    present = [name for name in RANKED if name in means]
    if OURS in present:
        ranks = means[present].dropna().apply(_ranks, axis=1).groupby("n_labels").mean()
        lines += [
            "",
            f"Mean rank among {', '.join(present)}; within {TIED} points shared:",
            ranks.round(2).to_string(),
        ]
        others = [f"{name}{OUR_COLUMNS}" for name in RANKED[1:] if f"{name}{OUR_COLUMNS}" in means]
        if others:
            ranks = means[[OURS, *others]].dropna().apply(_ranks, axis=1).groupby("n_labels").mean()
            lines += ["", "The same, the others on our columns:", ranks.round(2).to_string()]
    if {OURS, REGRESSION} <= set(present):
        lines += ["", "FewLabelClassifier less logistic regression, points, with intervals at 5 % (Holm):"]
        lines.append(_differences(rows))
    if unbalanced.any():
        for measure in ("accuracy", "balanced"):
            found = rows[unbalanced].groupby(["table", "method", "n_labels"])[measure].mean().mul(100)
            found = found.unstack("method").reindex(columns=present).dropna().groupby("n_labels").mean()
            lines += ["", f"Unbalanced tables, {measure} (%):", found.T.round(1).to_string()]
    five = plain[plain["n_labels"] == 5].groupby(["method", "table"])["calibration"].mean().unstack("method")
    five = five.dropna(axis=1, how="all")
    # Of methods that all tables have.
    five.loc["mean"] = five.dropna(axis=1).mean()
    lines += ["", "Calibration error at five labels:", five.T.round(3).to_string()]
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
    parser.add_argument("--fashion-mnist", type=Path, help="folder of Fashion-MNIST")
    parser.add_argument("--json", type=Path, help="file of results")
    parser.add_argument("--only", nargs="*", default=[], help="names of tables")
    parser.add_argument("--methods", nargs="*", default=[], help="names of methods")
    parser.add_argument("--shots", nargs="*", type=int, default=list(SHOTS), help="labels per class")
    parser.add_argument(
        "--episodes", nargs=2, type=int, default=[N_FEW, N_MANY], help="up to 2 labels, and above"
    )
    parser.add_argument(
        "--seconds", type=float, default=60, help="of CPU a table and number of labels, where not ranked"
    )
    parser.add_argument("--jobs", type=int, default=1, help="processes")
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
    todo = []
    for one in tasks(options):
        for name in methods(one, options):
            shots = [n for n in options.shots if (one.name, name, n) not in done]
            if shots:
                todo.append(joblib.delayed(attempt)(one, name, shots, options))
    for found, line in joblib.Parallel(options.jobs, return_as="generator_unordered")(todo):
        print(line, flush=True)
        rows += found
        if options.json is not None:
            with in_place(options.json) as temporary:
                temporary.write_text(json.dumps(rows))
    print(summary(pd.DataFrame(rows)))


if __name__ == "__main__":
    main()
