"""The map: all rows in the plane, so that rows of one cluster are close to each other."""

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

NEAREST, JITTER = 3, 0.25
"""Centers between which a row is placed; how far rows scatter, in distances between centers."""
LARGEST = 65_535


def layout(model: Any, *, seed: int) -> Array:
    """Places of the rows of a fitted FewLabelClassifier (N, 2), unsigned 16-bit numbers.

    t-SNE of the centers of one clustering by −log of their similarity in the propagation kernel; a row is at
    the weighted mean of its nearest centers, with a little noise. It does not depend on labels, so that the
    map stays still while labels change.

    References
    ----------
    L. van der Maaten, G. Hinton, "Visualizing data using t-SNE", Journal of Machine Learning Research, 2008.
    """
    from sklearn.manifold import TSNE

    from ebse.semi_supervised._members import COLUMNS, FEATURES

    one = model._propagators.get(FEATURES, model._propagators[COLUMNS])
    clusters = one._clusterings[0]
    similarity = clusters.similarity().astype(np.float64)
    far = -np.log(np.clip(similarity, 1e-12, 1.0))
    far = np.maximum((far + far.T) / 2, 0)
    np.fill_diagonal(far, 0)
    k = len(far)
    if k > 3:
        places = TSNE(
            metric="precomputed", init="random", perplexity=min(30.0, (k - 1) / 3), random_state=seed
        ).fit_transform(far)
    else:
        places = np.random.default_rng(seed).normal(size=(k, 2))
    at, weights = clusters._of_first(one._rows.assigned[0])
    order = np.argsort(-weights, axis=1)[:, :NEAREST]
    at, weights = np.take_along_axis(at, order, 1), np.take_along_axis(weights, order, 1).astype(np.float64)
    weights /= weights.sum(1, keepdims=True)
    rows = (places[at] * weights[:, :, np.newaxis]).sum(1)
    if k > 1:
        gaps = np.sqrt(((places[:, np.newaxis] - places) ** 2).sum(2))
        np.fill_diagonal(gaps, np.inf)
        scale = JITTER * float(np.median(gaps.min(1)))
    else:
        scale = 1.0
    rows = rows + np.random.default_rng(seed).normal(size=rows.shape) * scale
    low, high = rows.min(0), rows.max(0)
    spread = max(float((high - low).max()), np.finfo(float).tiny)
    middle = (low + high) / 2
    found: Array = np.clip((rows - middle) / spread * LARGEST + LARGEST / 2, 0, LARGEST).astype("<u2")
    return found
