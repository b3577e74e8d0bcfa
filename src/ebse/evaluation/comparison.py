"""Few-shot evaluation: the same episodes for every method, compared in pairs (section 3.2)."""

import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from tqdm import tqdm

from ebse._validation import count
from ebse.evaluation._storage import Checkpoint, Group, Row, checksum
from ebse.evaluation.episodes import Episodes, RandomState, draw_key, keyed_episodes, used_rows
from ebse.evaluation.methods import (
    Array,
    classifier_accuracy,
    classifies,
    describe,
    embedding,
    representations,
)
from ebse.evaluation.results import FewShotResult

BATCH_BYTES = 2**28
"""Memory of the stacked arrays of the episodes that are fitted at once."""


def few_shot(
    estimators: Mapping[str, Any],
    X: Any,
    y: ArrayLike,
    *,
    n_ways: int | None = None,
    n_shots: int | Sequence[int] = 1,
    n_queries: int = 15,
    n_episodes: int = 100,
    random_state: RandomState = None,
    baseline: str | None = None,
    n_jobs: int | None = None,
    progress: bool = False,
    checkpoint: str | os.PathLike[str] | None = None,
) -> FewShotResult:
    """Few-shot accuracy of several methods in the same random episodes, compared in pairs.

    In each episode a method is fitted to n_shots labeled rows per class and classifies n_queries rows per
    class. Embeddings are classified by multinomial logistic regression without penalty (``fit_logistic``),
    trained on all representations of the labeled rows; the probabilities of a query are averaged over its
    representations.

    Parameters
    ----------
    estimators : dict
        Methods by name: an object with ``representations(X)`` of shape (N, n_draws, K), a fitted transformer,
        a function from X to (N, K) or (N, n_draws, K), "pixels", or a scikit-learn classifier. An embedding
        is called once, with all rows that occur in episodes. A classifier is cloned and fitted in every
        episode; one that has ``represented(X)`` represents the rows only once: it returns a classifier, and
        rows in the form which that takes, and clones of it are fitted to the rows of each episode (see
        :meth:`ebse.ensemble.RBSEClassifier.represented`).
    X : array, tensor or sparse matrix of shape (N, …)
        Rows.
    y : array-like of shape (N,)
        Their labels.
    n_ways : int, default=None
        Classes of an episode; None is all classes.
    n_shots : int or sequence of int, default=1
        Labeled rows per class. Several numbers have the same queries, and the labeled rows of fewer shots are
        among those of more.
    n_queries : int, default=15
        Query rows per class.
    n_episodes : int, default=100
        Number of episodes; intervals shrink as 1/√n_episodes.
    random_state : int, RandomState, Generator or None, default=None
        Which episodes; None gives others every time, but those of the file if ``checkpoint`` exists.
    baseline : str, default=None
        Name of the method that the others are compared with; None is the first.
    n_jobs : int, default=None
        Processes for classifiers, as in joblib: None is one, −1 all cores. Each has one thread.
    progress : bool, default=False
        Show a progress bar per method.
    checkpoint : path, default=None
        File of finished episodes. After an interruption the same call continues; a file of another
        configuration is refused. Names, types, parameters and fitted arrays of methods are compared, as far
        as they are scikit-learn's or ebse's: a method that is fitted again without a seed needs a new file.
        Rows of embeddings are written one batch of episodes at a time.

    References
    ----------
    O. Vinyals, C. Blundell, T. Lillicrap, K. Kavukcuoglu, D. Wierstra. Matching Networks for One Shot
    Learning. NeurIPS, 2016.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1], 30)
    >>> X = rng.normal(size=(60, 5)) + 3 * y[:, None]
    >>> methods = {"pixels": "pixels", "sum": lambda X: X.sum(1, keepdims=True)}
    >>> result = few_shot(methods, X, y, random_state=0)
    >>> list(result.summary().columns[:5]), len(result.rows)
    (['method', 'n_shots', 'n_episodes', 'mean', 'std'], 200)
    """
    shots = _shots(n_shots)
    first = _check_methods(estimators, baseline)
    X, labels = _examples(X, y)
    saved = None if checkpoint is None else Checkpoint(checkpoint)
    known = None if saved is None or random_state is not None else saved.key
    key = draw_key(random_state) if known is None else known
    episodes = keyed_episodes(
        labels, key, n_ways=n_ways, n_shots=max(shots), n_queries=n_queries, n_episodes=n_episodes
    )
    done: dict[Group, dict[int, float]] = {}
    if saved is not None:
        configuration = {
            "n_ways": episodes.classes.shape[1],
            "n_shots": shots,
            "n_queries": n_queries,
            "n_episodes": n_episodes,
            "X": checksum(X),
            "y": checksum(labels),
            "methods": {name: describe(method) for name, method in estimators.items()},
            "key": key,
        }
        done = saved.open(configuration)
    for name, method in estimators.items():
        todo = [(k, [e for e in range(n_episodes) if e not in done.get((name, k), {})]) for k in shots]
        n_todo, n_all = sum(len(es) for _, es in todo), len(shots) * n_episodes
        if not n_todo:
            continue
        evaluate = _classifier_rows if classifies(method) else _embedding_rows
        with (
            _interruption_explained(checkpoint),
            tqdm(desc=name, total=n_all, initial=n_all - n_todo, disable=not progress) as bar,
        ):
            for rows in evaluate(name, method, X, labels, episodes, todo, n_jobs):
                if saved is not None:
                    saved.add(rows)
                for row in rows:
                    done.setdefault((name, row["n_shots"]), {})[row["episode"]] = row["accuracy"]
                bar.update(len(rows))
    table = [(name, k, e, done[name, k][e]) for name in estimators for k in shots for e in range(n_episodes)]
    frame = pd.DataFrame(table, columns=["method", "n_shots", "episode", "accuracy"])
    return FewShotResult(frame, first)


@contextmanager
def _interruption_explained(checkpoint: str | os.PathLike[str] | None) -> Iterator[None]:
    """Ctrl-C with a message that says what is kept."""
    try:
        yield
    except KeyboardInterrupt:
        kept = (
            "nothing is kept; pass checkpoint=… to be able to continue"
            if checkpoint is None
            else f"finished episodes are in {os.fspath(checkpoint)}; the same call continues from there"
        )
        raise KeyboardInterrupt(f"few_shot was stopped: {kept}") from None


Todo = list[tuple[int, list[int]]]
"""Episodes that are left to compute, for each number of shots."""


def _embedding_rows(
    name: str, method: Any, X: Any, labels: Array, episodes: Episodes, todo: Todo, n_jobs: int | None
) -> Iterator[list[Row]]:
    """Rows of an embedding, a batch of episodes at a time."""
    # The rows of all episodes, also finished ones, so that an embedding gives the same after an interruption.
    used, local = used_rows(episodes)
    z = representations(name, method, X[used])
    n_ways, n_queries = local.queries.shape[1:]
    for k, left in todo:
        # In float64; the solver holds about four arrays of the size of its training rows.
        per_episode = 8 * z[0].size * n_ways * (4 * k + 2 * n_queries)
        size = max(1, BATCH_BYTES // per_episode)
        for start in range(0, len(left), size):
            batch = left[start : start + size]
            support, queries = local.support[batch, :, :k], local.queries[batch]
            accuracies = embedding_accuracies(z, support, queries, name=name)
            yield [_row(name, k, e, a) for e, a in zip(batch, accuracies, strict=True)]


def embedding_accuracies(z: Array, support: Array, queries: Array, *, name: str = "z") -> Array:
    """Accuracies (E,) of representations z (U, n_draws, K) in episodes of rows (E, n_ways, n) of z."""
    from ebse.evaluation.logistic import fit_logistic, predict_proba

    (E, n_ways, n_shots), n_queries, n_draws = support.shape, queries.shape[2], z.shape[1]
    train = z[support].reshape(E, -1, z.shape[2])
    y = np.repeat(np.arange(n_ways), n_shots * n_draws)
    fit = fit_logistic(train, np.broadcast_to(y, train.shape[:2]), n_classes=n_ways)
    if not fit.converged.all():
        warnings.warn(
            f"{(~fit.converged).sum()} of {E} logistic regressions on {name} did not converge in "
            f"{fit.n_iter.max()} iterations and are used as they are; features that hardly vary, or vary on "
            "very different scales, are the usual reason",
            ConvergenceWarning,
            stacklevel=2,
        )
    z_queries = z[queries].reshape(E, -1, z.shape[2])
    p = predict_proba(fit, z_queries).reshape(E, n_ways, n_queries, n_draws, n_ways).mean(3)
    right: Array = (p.argmax(-1) == np.arange(n_ways)[:, None]).mean((1, 2))
    return right


def _classifier_rows(
    name: str, method: Any, X: Any, labels: Array, episodes: Episodes, todo: Todo, n_jobs: int | None
) -> Iterator[list[Row]]:
    """Rows of a classifier, one episode at a time, as workers finish them."""
    tasks = [(k, e) for k, left in todo for e in left]
    used, local = used_rows(episodes)
    X, y = X[used], labels[used]
    classifier, X = method.represented(X) if hasattr(method, "represented") else (method, X)

    def jobs() -> Iterable[Any]:
        for k, e in tasks:
            support, queries = local.support[e, :, :k].ravel(), local.queries[e].ravel()
            yield delayed(classifier_accuracy)(
                classifier, X[support], y[support], X[queries], y[queries], parent=os.getpid()
            )

    accuracies = Parallel(n_jobs=n_jobs, return_as="generator")(jobs())
    for (k, e), accuracy in zip(tasks, accuracies, strict=True):
        yield [_row(name, k, e, accuracy)]


def _row(method: str, n_shots: int, episode: int, accuracy: float) -> Row:
    return {"method": method, "n_shots": n_shots, "episode": episode, "accuracy": float(accuracy)}


def _shots(n_shots: int | Sequence[int]) -> list[int]:
    shots = list(n_shots) if isinstance(n_shots, (Sequence, np.ndarray)) else [n_shots]
    shots = [count("n_shots", k) for k in shots]
    if not shots or len(set(shots)) < len(shots):
        raise ValueError(f"n_shots must be a number or several different ones, got {n_shots!r}; pass [1, 5]")
    return shots


def _check_methods(estimators: Mapping[str, Any], baseline: str | None) -> str:
    """Check all methods, and return the name of the baseline."""
    if not isinstance(estimators, Mapping) or not estimators:
        raise TypeError(
            f"estimators must map names to methods, got {estimators!r}; pass {{'pixels': 'pixels', …}}"
        )
    for name, method in estimators.items():
        if not isinstance(name, str):
            raise TypeError(f"estimators must have names as keys, got {name!r}; pass strings")
        if not classifies(method):
            embedding(name, method)
    if baseline is None:
        return next(iter(estimators))
    if baseline not in estimators:
        names = ", ".join(map(repr, estimators))
        raise ValueError(f"baseline must be one of {names}, got {baseline!r}; pick one of these")
    return baseline


def _examples(X: Any, y: ArrayLike) -> tuple[Any, Array]:
    """X as an array or csr matrix and y as an array, of one length."""
    if hasattr(X, "tocsr"):
        X = X.tocsr()
    else:
        X = X.detach().cpu().numpy() if hasattr(X, "detach") else np.asarray(X)
    labels = np.asarray(y)
    if not X.ndim or X.shape[0] != len(labels):
        raise ValueError(
            f"X and y must have the same number of rows, got shapes {X.shape} and {labels.shape}; "
            "pass a label for each row"
        )
    missing = int(np.sum(pd.isna(labels)))
    if missing:
        raise ValueError(
            f"y must have no missing labels (NaN or None), got {missing}; leave these rows out of X and y"
        )
    return X, labels
