"""Multinomial logistic regression without penalty, for many episodes at once."""

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from ebse._tensors import as_float_tensor
from ebse._threads import one_thread
from ebse._validation import count
from ebse.evaluation._line_search import wolfe_lengths

N_PAIRS = 10
"""Pairs (step, change of the gradient) that L-BFGS keeps: SciPy's maxcor."""
NO_PROGRESS = 64 * torch.finfo(torch.float64).eps
"""A decrease of the loss that counts as none: scikit-learn's ftol."""

Array = NDArray[np.float64]


class LogisticFit(NamedTuple):
    """Weights (E, d, C) and intercepts (E, C) of E episodes, and whether the fits converged."""

    weights: Array
    intercepts: Array
    n_iter: NDArray[np.int64]
    """Iterations of each episode (E,)."""
    converged: NDArray[np.bool_]
    """Whether an episode converged before ``max_iter`` (E,)."""


def fit_logistic(
    X: ArrayLike | Tensor,
    y: ArrayLike | Tensor,
    *,
    n_classes: int,
    tol: float = 1e-4,
    max_iter: int = 100,
) -> LogisticFit:
    """argmin over (W, a) of −1/n Σ_i log softmax(x_i W + a)[y_i], for every episode: W (E, d, C), a (E, C).

    L-BFGS from zero, all episodes in one batch, each with its own steps and stopping. It stops where
    scikit-learn's ``LogisticRegression(C=numpy.inf)`` does: when no element of the gradient exceeds ``tol``
    or the loss stops falling. On separable rows, where the minimum is at infinity, this stopping rule defines
    the classifier.

    Parameters
    ----------
    X : array-like of shape (E, n, d)
        Training rows of E episodes; the arithmetic is in float64.
    y : array-like of shape (E, n)
        Their classes, whole numbers from 0 to n_classes − 1.
    n_classes : int
        Number of classes C.
    tol : float, default=1e-4
        Largest element of the gradient at which an episode stops; scikit-learn's default.
    max_iter : int, default=100
        Maximum number of iterations; scikit-learn's default.

    Notes
    -----
    With more features than rows the fit is computed in the row space: with Xᵀ = Q R the rows become Rᵀ and
    W = Q W'. L-BFGS from zero moves by linear combinations of gradients, which lie in that space, and uses
    them only in scalar products, which Q preserves. Only the stopping rule, the largest element of the
    gradient, needs the original features.

    Step lengths are SciPy's, so that the result is the same also on separable rows: with another line search
    one prediction in twenty differed.

    References
    ----------
    D. C. Liu, J. Nocedal. On the Limited Memory BFGS Method for Large Scale Optimization. 1989.

    J. J. Moré, D. J. Thuente. Line Search Algorithms with Guaranteed Sufficient Decrease. 1994.

    Examples
    --------
    >>> fit = fit_logistic([[[0.0], [1.0], [2.0], [3.0]]], [[0, 1, 0, 1]], n_classes=2)
    >>> fit.weights.shape, fit.intercepts.shape, bool(fit.converged[0])
    ((1, 1, 2), (1, 2), True)
    >>> predict_proba(fit, [[[1.5]]]).round(3)
    array([[[0.5, 0.5]]])
    """
    count("n_classes", n_classes, least=2)
    count("max_iter", max_iter)
    if not tol > 0:
        raise ValueError(f"tol must be > 0, got {tol}; 1e-4 is scikit-learn's")
    rows, classes = _rows(X), _classes(y, n_classes)
    if classes.shape != rows.shape[:2]:
        raise ValueError(
            f"y must have shape (E, n) = {tuple(rows.shape[:2])} as X, got {tuple(classes.shape)}; "
            "pass one class per training row"
        )
    if not rows.shape[1]:
        raise ValueError("X must have training rows, got n = 0; label at least one row per class")
    # One thread, because products of this size do not gain by a second, nor do factorizations.
    with torch.no_grad(), one_thread():
        basis = None
        if rows.shape[2] > rows.shape[1]:
            basis, triangle = torch.linalg.qr(rows.mT)
            rows = triangle.mT
        ones = rows.new_ones((*rows.shape[:2], 1))
        descent = _Descent(torch.cat([rows, ones], -1), classes, n_classes, basis)
        theta, n_iter, converged = descent.run(tol, max_iter)
        weights = theta[:, :-1] if basis is None else basis @ theta[:, :-1]
    return LogisticFit(weights.numpy(), theta[:, -1].numpy(), n_iter.numpy(), converged.numpy())


def predict_proba(fit: LogisticFit, X: ArrayLike | Tensor) -> Array:
    """softmax(x W + a) for rows X (E, n, d): (E, n, C)."""
    rows = _rows(X)
    expected = fit.weights.shape
    if rows.shape[0] != expected[0] or rows.shape[2] != expected[1]:
        raise ValueError(
            f"X must have shape ({expected[0]}, n, {expected[1]}) as in fit_logistic, "
            f"got {tuple(rows.shape)}; pass rows of the same episodes and features"
        )
    z = torch.baddbmm(torch.from_numpy(fit.intercepts)[:, None], rows, torch.from_numpy(fit.weights))
    probabilities: Array = z.softmax(-1).numpy()
    return probabilities


class _Descent:
    """L-BFGS on θ (E, r + 1, C), the weights above the intercepts; finished episodes leave the batch."""

    def __init__(self, rows: Tensor, classes: Tensor, n_classes: int, basis: Tensor | None) -> None:
        self.rows, self.basis = rows, basis
        self.target = torch.nn.functional.one_hot(classes, n_classes).to(rows)  # (E, n, C)
        self.theta = rows.new_zeros(len(rows), rows.shape[2], n_classes)
        self.logits = torch.zeros_like(self.target)
        self.loss, self.gradient = self._loss(self.logits), self._gradient(self.logits)
        self.memory = _Memory(len(rows))

    def run(self, tol: float, max_iter: int) -> tuple[Tensor, Tensor, Tensor]:
        """θ, iterations and convergence of all episodes."""
        found, alive = self.theta.clone(), torch.arange(len(self.rows))
        n_iter = torch.full((len(found),), max_iter)
        converged = torch.zeros(len(found), dtype=torch.bool)
        stuck = torch.zeros(len(found), dtype=torch.bool)
        for i in range(max_iter + 1):
            done = stuck | (self._largest_slope() <= tol)
            if bool(done.any()):
                ended = alive[done]
                found[ended], n_iter[ended], converged[ended] = self.theta[done], i, True
                keep = ~done
                alive, stuck = alive[keep], stuck[keep]
                self._keep(keep)
            if not len(alive) or i == max_iter:
                break
            stuck = self._step()
        found[alive] = self.theta
        return found, n_iter, converged

    def _step(self) -> Tensor:
        """One step of every episode; returns which of them made no progress."""
        flat = self.gradient.flatten(1)
        direction = -self.memory.times(flat)
        slope = (direction * flat).sum(1)
        moved = self.rows @ direction.view_as(self.theta)
        # Before the first pair there is no scale but that of the gradient.
        first = 1 / direction.norm(dim=1) if not len(self.memory.steps) else torch.ones_like(slope)

        def along(t: Tensor) -> tuple[Tensor, Tensor]:
            # Logits are linear in the step length: a trial needs no product with the rows.
            at = self.logits + t[:, None, None] * moved
            return self._loss(at), ((at.softmax(-1) - self.target) * moved).sum((1, 2)) / moved.shape[1]

        length, fine = wolfe_lengths(along, self.loss, slope, first)
        length = torch.where(fine, length, 0.0)
        step = length[:, None] * direction
        self.theta = self.theta + step.view_as(self.theta)
        self.logits = self.logits + length[:, None, None] * moved
        before, self.loss = self.loss, self._loss(self.logits)
        self.gradient = self._gradient(self.logits)
        self.memory.add(step, self.gradient.flatten(1) - flat)
        scale = torch.maximum(before.abs(), self.loss.abs()).clamp(min=1)
        return ~fine | ((before - self.loss) / scale <= NO_PROGRESS)

    def _loss(self, logits: Tensor) -> Tensor:
        """Mean cross-entropy (E,)."""
        return (logits.logsumexp(-1) - (logits * self.target).sum(-1)).mean(1)

    def _gradient(self, logits: Tensor) -> Tensor:
        """Its gradient (E, r + 1, C): 1/n Xᵀ (softmax − target)."""
        return self.rows.mT @ (logits.softmax(-1) - self.target) / self.rows.shape[1]

    def _largest_slope(self) -> Tensor:
        """max |gradient| over the features and the intercept (E,)."""
        g = self.gradient
        if self.basis is None:
            return g.abs().amax((1, 2))
        return torch.maximum((self.basis @ g[:, :-1]).abs().amax((1, 2)), g[:, -1].abs().amax(1))

    def _keep(self, keep: Tensor) -> None:
        """Drop finished episodes."""
        for name in ("rows", "basis", "target", "theta", "logits", "loss", "gradient"):
            value: Any = getattr(self, name)
            setattr(self, name, None if value is None else value[keep])
        self.memory.keep(keep)


class _Memory:
    """The last pairs of L-BFGS, and products of its inverse Hessian with vectors."""

    def __init__(self, n_episodes: int) -> None:
        self.steps: list[Tensor] = []
        self.changes: list[Tensor] = []
        self.weights: list[Tensor] = []
        self.scale = torch.ones(n_episodes, 1, dtype=torch.float64)

    def add(self, step: Tensor, change: Tensor) -> None:
        """Keep step s and change y of the gradient, where s · y is positive enough."""
        product, square = (step * change).sum(1, keepdim=True), (change * change).sum(1, keepdim=True)
        good = product > torch.finfo(step.dtype).eps * square
        # A pair with weight 0 changes no product.
        self.steps.append(step)
        self.changes.append(change)
        self.weights.append(torch.where(good, 1 / product, 0.0))
        self.scale = torch.where(good, product / square, self.scale)
        for pairs in (self.steps, self.changes, self.weights):
            del pairs[:-N_PAIRS]

    def times(self, g: Tensor) -> Tensor:
        """H g by the two-loop recursion (E, size)."""
        q, alphas = g, []
        pairs = list(zip(self.steps, self.changes, self.weights, strict=True))
        for s, y, weight in reversed(pairs):
            alpha = weight * (s * q).sum(1, keepdim=True)
            q = torch.addcmul(q, alpha, y, value=-1)
            alphas.append(alpha)
        q = self.scale * q
        for (s, y, weight), alpha in zip(pairs, reversed(alphas), strict=True):
            beta = weight * (y * q).sum(1, keepdim=True)
            q = torch.addcmul(q, alpha - beta, s)
        return q

    def keep(self, keep: Tensor) -> None:
        """Drop finished episodes."""
        for pairs in (self.steps, self.changes, self.weights):
            pairs[:] = [x[keep] for x in pairs]
        self.scale = self.scale[keep]


def _rows(X: ArrayLike | Tensor) -> Tensor:
    """X (E, n, d) in float64."""
    rows = as_float_tensor("X", X if isinstance(X, Tensor) else _tensor(X)).detach()
    if rows.ndim != 3:
        raise ValueError(
            f"X must have shape (E, n, d), got {tuple(rows.shape)}; "
            "pass rows of E episodes (of one episode: X[None])"
        )
    return rows.double()


def _tensor(x: ArrayLike) -> Tensor:
    """x as a tensor; an array that torch cannot share is copied."""
    return torch.from_numpy(np.require(x, requirements=["C", "W"]))


def _classes(y: ArrayLike | Tensor, n_classes: int) -> Tensor:
    """y as whole numbers from 0 to n_classes − 1."""
    classes = y if isinstance(y, Tensor) else _tensor(y)
    if classes.is_floating_point() or classes.is_complex():
        raise TypeError(f"y must hold whole numbers, got {classes.dtype}; number the classes from 0")
    bad = classes[(classes < 0) | (classes >= n_classes)]
    if len(bad):
        raise ValueError(
            f"y must lie in 0 … {n_classes - 1}, got {int(bad[0])}; "
            "number the classes from 0 or raise n_classes"
        )
    return classes.long()
