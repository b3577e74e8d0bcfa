"""Few-shot episodes: random choices of labeled rows and of query rows, class by class."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from ebse._validation import count

RandomState = int | np.random.RandomState | np.random.Generator | None
"""A seed, a NumPy generator, or None for another result every time."""

Indices = NDArray[np.int64]


class Episodes(NamedTuple):
    """Rows of a data set in E episodes, class by class."""

    classes: NDArray[Any]
    """Labels (E, n_ways), ascending; class c of an episode is ``classes[e, c]``."""
    support: Indices
    """Indices of the labeled rows (E, n_ways, n_shots)."""
    queries: Indices
    """Indices of the rows to be classified (E, n_ways, n_queries)."""


def draw_key(random_state: RandomState) -> int:
    """One 62-bit key; the same seed gives the same key."""
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**62))
    try:
        state = check_random_state(random_state)
    except ValueError:
        raise ValueError(
            f"random_state must be None, an int in [0, 2**32 - 1], a RandomState or a Generator, "
            f"got {random_state!r}; pass an int for episodes that can be drawn again"
        ) from None
    if random_state is None:
        # scikit-learn's None is NumPy's global state, which a script may have seeded; this is not.
        return int(np.random.default_rng().integers(2**62))
    return int(state.randint(2**62, dtype=np.int64))


def draw_episodes(
    y: ArrayLike,
    *,
    n_ways: int | None = None,
    n_shots: int = 1,
    n_queries: int = 15,
    n_episodes: int = 100,
    random_state: RandomState = None,
) -> Episodes:
    """Few-shot episodes: n_ways classes, and n_shots + n_queries rows of each, without replacement.

    Episode e is a function of y, ``random_state``, e, ``n_ways`` and ``n_queries``. It does not depend on the
    number of episodes, and its first shots are those of the same episode with fewer shots: queries are the
    first rows of a random order of a class, shots the next ones.

    Parameters
    ----------
    y : array-like of shape (N,)
        Labels.
    n_ways : int, default=None
        Classes of an episode; None is all classes.
    n_shots : int, default=1
        Labeled rows per class.
    n_queries : int, default=15
        Query rows per class. More reduce the variance of an episode's accuracy.
    n_episodes : int, default=100
        Number of episodes E. Intervals shrink as 1/√E.
    random_state : int, RandomState, Generator or None, default=None
        An int gives the same episodes every time, None others.

    References
    ----------
    O. Vinyals, C. Blundell, T. Lillicrap, K. Kavukcuoglu, D. Wierstra. Matching Networks for One Shot
    Learning. NeurIPS, 2016.

    Examples
    --------
    >>> episodes = draw_episodes([0, 0, 0, 1, 1, 1], n_queries=2, n_episodes=5, random_state=0)
    >>> episodes.support.shape, episodes.queries.shape
    ((5, 2, 1), (5, 2, 2))
    """
    key = draw_key(random_state)
    return keyed_episodes(y, key, n_ways=n_ways, n_shots=n_shots, n_queries=n_queries, n_episodes=n_episodes)


def keyed_episodes(
    y: ArrayLike, key: int, *, n_ways: int | None, n_shots: int, n_queries: int, n_episodes: int
) -> Episodes:
    """``draw_episodes`` from a key that was drawn before."""
    count("n_shots", n_shots)
    count("n_queries", n_queries)
    count("n_episodes", n_episodes)
    labels = np.asarray(y)
    if labels.ndim != 1:
        raise ValueError(f"y must have shape (N,), got {labels.shape}; pass one label per row")
    found, inverse = np.unique(labels, return_inverse=True)
    if len(found) < 2:
        raise ValueError(f"y must have at least 2 classes, got {len(found)}; pass rows of more classes")
    n_ways = len(found) if n_ways is None else count("n_ways", n_ways, least=2)
    if n_ways > len(found):
        raise ValueError(
            f"n_ways must be <= {len(found)}, the classes in y, got {n_ways}; "
            "lower it or pass None for all classes"
        )
    members = [np.flatnonzero(inverse == c) for c in range(len(found))]
    sizes, needed = [len(rows) for rows in members], n_shots + n_queries
    if min(sizes) < needed:
        c = int(np.argmin(sizes))
        raise ValueError(
            f"y must have at least n_shots + n_queries = {n_shots} + {n_queries} = {needed} rows of each "
            f"class, got {sizes[c]} of class {found.tolist()[c]!r}; lower n_shots or n_queries, "
            "or leave the class out"
        )
    classes = np.empty((n_episodes, n_ways), dtype=np.int64)
    rows = np.empty((n_episodes, n_ways, needed), dtype=np.int64)
    for e in range(n_episodes):
        rng = np.random.default_rng([key, e])
        classes[e] = np.sort(rng.permutation(len(found))[:n_ways])
        # Each class has its own random stream, so that its order does not depend on the others.
        for at, (c, stream) in enumerate(zip(classes[e], rng.spawn(n_ways), strict=True)):
            rows[e, at] = stream.permutation(members[c])[:needed]
    return Episodes(found[classes], rows[..., n_queries:], rows[..., :n_queries])


def used_rows(episodes: Episodes) -> tuple[Indices, Episodes]:
    """The rows that occur in some episode (U,), ascending, and the episodes as positions among them."""
    used = np.unique(np.concatenate([episodes.support.ravel(), episodes.queries.ravel()]))
    support, queries = (np.searchsorted(used, x) for x in (episodes.support, episodes.queries))
    return used, Episodes(episodes.classes, support, queries)
