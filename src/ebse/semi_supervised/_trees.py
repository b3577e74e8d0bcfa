"""Ensembles of decision trees as arrays of nodes, which files hold and which predict by themselves."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

BLOCK = 4_096
"""Rows that descend the trees at once."""


class Trees(NamedTuple):
    """T trees, whose M nodes stand one after another.

    Row x goes from node i to ``left[i]`` if x[feature[i]] ≤ threshold[i], otherwise to ``right[i]``; a leaf
    leads to itself.
    """

    roots: npt.NDArray[np.int32]
    """(T,)"""
    feature: npt.NDArray[np.int32]
    threshold: npt.NDArray[np.float64]
    left: npt.NDArray[np.int32]
    right: npt.NDArray[np.int32]
    value: npt.NDArray[np.float64]
    """Class frequencies of the training rows at each node (M, C)."""

    @classmethod
    def of(cls, forest: Any) -> "Trees":
        """From a fitted ``RandomForestClassifier`` or ``ExtraTreesClassifier`` of scikit-learn."""
        parts, roots, begin = [], [], 0
        for one in forest.estimators_:
            tree = one.tree_
            own = np.arange(tree.node_count)
            leaf = tree.children_left < 0
            value = tree.value[:, 0, :]
            parts.append(
                (
                    np.where(leaf, 0, tree.feature),
                    tree.threshold,
                    begin + np.where(leaf, own, tree.children_left),
                    begin + np.where(leaf, own, tree.children_right),
                    value / value.sum(1, keepdims=True),
                )
            )
            roots.append(begin)
            begin += tree.node_count
        feature, threshold, left, right, value = (np.concatenate(x) for x in zip(*parts, strict=True))
        return cls(
            np.array(roots, dtype=np.int32),
            feature.astype(np.int32),
            threshold.astype(np.float64),
            left.astype(np.int32),
            right.astype(np.int32),
            value,
        )

    def predict_proba(self, X: Array) -> Array:
        """Mean of the class frequencies at the leaves of each row of X (N, D), as float64 (N, C)."""
        found = [np.empty((0, self.value.shape[1]))]
        # Thresholds are compared with single precision, as scikit-learn does.
        X = np.asarray(X, dtype=np.float32)
        for start in range(0, len(X), BLOCK):
            rows = X[start : start + BLOCK]
            at = np.broadcast_to(self.roots, (len(rows), len(self.roots)))
            own = np.arange(len(rows))[:, np.newaxis]
            while True:
                goes_left = rows[own, self.feature[at]] <= self.threshold[at]
                after = np.where(goes_left, self.left[at], self.right[at])
                if (after == at).all():
                    break
                at = after
            found.append(self.value[at].mean(1, dtype=np.float64))
        return np.concatenate(found)

    @classmethod
    def from_arrays(cls, arrays: dict[str, Array], n_features: int) -> "Trees":
        """The trees of a file; ValueError for nodes that do not exist, or that lead back."""
        made = cls(*(arrays[name] for name in cls._fields))
        n = len(made.feature)
        own = np.arange(n)
        sound = (
            all(x.shape == (n,) for x in (made.feature, made.threshold, made.left, made.right))
            and all(x.dtype.kind == "i" for x in (made.roots, made.feature, made.left, made.right))
            and made.roots.ndim == 1
            and len(made.roots) > 0
            and made.value.shape[:1] == (n,)
            and made.value.ndim == 2
            and bool((made.value >= 0).all() and (abs(made.value.sum(1) - 1) < 1e-6).all())
            and all(((x >= own) & (x < n)).all() for x in (made.left, made.right))
            and bool(((made.feature >= 0) & (made.feature < n_features)).all())
            and bool(((made.roots >= 0) & (made.roots < n)).all())
            # A node leads to itself on both sides or on none: rows would go round otherwise.
            and bool(((made.left == own) == (made.right == own)).all())
        )
        if not sound:
            raise ValueError(f"trees of {n} nodes that do not fit together")
        return made
