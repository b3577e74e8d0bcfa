"""Peers of the benchmark of few labels: UMAP, autoencoders, clusterings of them, graph-based propagation."""

from itertools import pairwise
from typing import Any

import numpy as np
import torch
from scipy import sparse
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csgraph
from scipy.sparse.linalg import cg
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import KNeighborsClassifier
from sklearn.semi_supervised import LabelSpreading
from torch import nn
from torch.nn import functional

ON_GRAPHS = ("label spreading on the kNN graph", "Poisson learning", "Poisson learning, class prior")
N_NEIGHBORS, ALPHA = 10, 0.99
"""Neighbors in the graph, and α of label spreading (Zhou et al. 2004)."""


def umap() -> Any:
    """UMAP of umap-learn with its defaults; it has no seed, because with one it uses a single core."""
    import umap as learn

    return learn.UMAP(n_components=2)


def nearest_label(X: Any, y: Any) -> Any:
    """The label of the nearest labeled row."""
    return lambda known, queries: KNeighborsClassifier(1).fit(X[known], y[known]).predict(X[queries])


def label_spreading(rows: Any, X: Any, y: Any) -> Any:
    """scikit-learn's LabelSpreading, ten neighbors and otherwise its defaults; for thousands of rows."""

    def predict(known: Any, queries: Any) -> Any:
        model = LabelSpreading(kernel="knn", n_neighbors=N_NEIGHBORS)
        unknown = np.full(len(rows), -1)
        model.fit(np.concatenate([X[known], rows]), np.concatenate([y[known], unknown]))
        p = model.predict_proba(X[queries])
        # It predicts NaN where no label arrived; the nearest label serves there.
        unreached = np.isnan(p).any(1)
        nearest = nearest_label(X, y)(known, queries)
        return np.where(unreached, nearest, model.classes_[np.nan_to_num(p).argmax(1)])

    return predict


class Autoencoder:
    """A variational autoencoder, D–500–500–20 and back, of binary units: 20 means for each row."""

    def __init__(
        self, n_latent: int = 20, n_hidden: int = 500, n_updates: int | None = None, seed: int = 0
    ) -> None:
        self.n_latent, self.n_hidden, self.n_updates, self.seed = n_latent, n_hidden, n_updates, seed

    def fit(self, X: Any) -> "Autoencoder":
        """20 epochs of Adam in batches of 200, or 5,000 updates where rows are few."""
        torch.manual_seed(self.seed)
        rng = np.random.default_rng(self.seed)
        self.encoder = self._layers(X.shape[1], 2 * self.n_latent)
        decoder = self._layers(self.n_latent, X.shape[1])
        n_updates = self.n_updates or max(20 * len(X) // 200, 5_000)
        optimizer = torch.optim.Adam([*self.encoder.parameters(), *decoder.parameters()])
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-3, total_steps=n_updates + 1)
        for _ in range(n_updates):
            x = torch.from_numpy(X[rng.integers(len(X), size=200)])
            mean, log_variance = self.encoder(x).chunk(2, 1)
            z = mean + torch.randn_like(mean) * (log_variance / 2).exp()
            errors = functional.binary_cross_entropy_with_logits(decoder(z), x, reduction="sum")
            divergence = -0.5 * (1 + log_variance - mean**2 - log_variance.exp()).sum()
            optimizer.zero_grad()
            ((errors + divergence) / len(x)).backward()
            optimizer.step()
            schedule.step()
        return self

    def transform(self, X: Any) -> Any:
        """Means of the latent variables."""
        with torch.no_grad():
            return self.encoder(torch.from_numpy(X)).chunk(2, 1)[0].numpy()

    def _layers(self, n_in: int, n_out: int) -> nn.Sequential:
        n = self.n_hidden
        return nn.Sequential(nn.Linear(n_in, n), nn.ReLU(), nn.Linear(n, n), nn.ReLU(), nn.Linear(n, n_out))


class PlainAutoencoder:
    """An autoencoder D–500–500–2000–10 and back, squared error, as N2D has it.

    N2D trains for 1,000 epochs; 8,000 updates of 256 rows are 41 epochs of 50,000 rows.
    """

    def __init__(self, n_latent: int, n_updates: int, seed: int) -> None:
        self.n_latent, self.n_updates, self.seed = n_latent, n_updates, seed

    def fit(self, X: Any) -> "PlainAutoencoder":
        """Adam in batches of 256."""
        torch.manual_seed(self.seed)
        rng = np.random.default_rng(self.seed)
        sizes = [X.shape[1], 500, 500, 2000, self.n_latent]
        self.encoder, decoder = self._layers(sizes), self._layers(sizes[::-1])
        optimizer = torch.optim.Adam([*self.encoder.parameters(), *decoder.parameters()])
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-3, total_steps=self.n_updates + 1)
        for _ in range(self.n_updates):
            x = torch.from_numpy(X[rng.integers(len(X), size=256)])
            optimizer.zero_grad()
            functional.mse_loss(decoder(self.encoder(x)), x).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()
        return self

    def transform(self, X: Any) -> Any:
        """The latent variables."""
        with torch.no_grad():
            return self.encoder(torch.from_numpy(X)).numpy()

    def _layers(self, sizes: list[int]) -> nn.Sequential:
        layers: list[nn.Module] = []
        for n_in, n_out in pairwise(sizes):
            layers += [nn.Linear(n_in, n_out), nn.ReLU()]
        return nn.Sequential(*layers[:-1])


def clusters_of_embedding(rows: Any, X: Any, y: Any, *, seed: int, n_updates: int = 8_000) -> Any:
    """Autoencoder, UMAP, and a Gaussian mixture with a component for each class.

    Components are matched with classes, so that they explain the labeled rows best.

    References
    ----------
    R. McConville, R. Santos-Rodríguez, R. Piechocki and I. Craddock, "N2D: (Not Too) Deep clustering via
    clustering the local manifold of an autoencoded embedding", 2020.
    """
    import umap as learn

    classes = np.unique(y)
    encoder = PlainAutoencoder(len(classes), n_updates, seed).fit(rows)
    manifold = learn.UMAP(n_neighbors=20, min_dist=0.0, n_components=len(classes), random_state=seed)
    Z = manifold.fit_transform(encoder.transform(rows))
    mixture = GaussianMixture(len(classes), n_init=10, random_state=seed).fit(Z)
    p = mixture.predict_proba(manifold.transform(encoder.transform(X)))

    def predict(known: Any, queries: Any) -> Any:
        explained = np.stack([p[known[y[known] == c]].sum(0) for c in classes])
        to_class, component = linear_sum_assignment(-explained)
        class_of = np.empty(len(classes), dtype=int)
        class_of[component] = to_class
        return classes[class_of[p[queries].argmax(1)]]

    return predict


def on_graphs(rows: Any, X: Any, y: Any) -> list[Any]:
    """Label spreading and Poisson learning on the nearest-neighbor graph of all rows and the labeled ones.

    The prediction of a test row is the weighted mean of its nearest rows, weights as in the graph.
    """
    import graphlearning

    # The nearest neighbor of a row is the row itself, or a duplicate, and left out.
    near, squares = (part[:, 1:] for part in nearest_of(rows, rows))
    W = matrix(near, squares, len(rows))
    W.setdiag(0)
    W = W.maximum(W.T).tocsr()
    near, squares = (part[:, :-1] for part in nearest_of(rows, X))
    B = matrix(near, squares, len(rows))
    n, classes = len(rows), np.unique(y)

    def graph(known: Any) -> Any:
        return sparse.bmat([[W, B[known].T], [B[known], None]], format="csr")

    def read(values: Any, queries: Any) -> Any:
        return classes[(B[queries] @ values[:n]).argmax(1)]

    def spread(known: Any, queries: Any) -> Any:
        A = graph(known)
        root = sparse.diags(1 / np.sqrt(np.asarray(A.sum(1)).ravel()))
        S = root @ A @ root
        sent = np.zeros((A.shape[0], len(classes)))
        sent[n + np.arange(len(known)), np.searchsorted(classes, y[known])] = 1
        held = np.stack([cg(sparse.identity(len(sent)) - ALPHA * S, b, rtol=1e-4)[0] for b in sent.T], 1)
        # Normalized to class probabilities, so that rows far from any label count as much as others.
        return read(held / np.maximum(held.sum(1, keepdims=True), 1e-300), queries)

    def poisson(prior: Any) -> Any:
        def predict(known: Any, queries: Any) -> Any:
            A = graph(known)
            # On a graph of several parts the equation has no solution, and conjugate gradients do not end.
            connected = csgraph.connected_components(A, return_labels=False) == 1
            solver = "conjugate_gradient" if connected else "gradient_descent"
            model = graphlearning.ssl.poisson(A, class_priors=prior, solver=solver)
            target = np.searchsorted(classes, y[known])
            taken = model.fit_predict(n + np.arange(len(known)), target)
            return read(np.eye(len(classes))[taken], queries)

        return predict

    equal = np.full(len(classes), 1 / len(classes))
    return [spread, poisson(None), poisson(equal)]


def nearest_of(rows: Any, X: Any) -> tuple[Any, Any]:
    """Indices and squared distances (N, N_NEIGHBORS + 1) of the nearest rows of each of X."""
    blocks = (torch.from_numpy(X[first : first + 500]) for first in range(0, len(X), 500))
    found = [torch.cdist(x, torch.from_numpy(rows)).topk(N_NEIGHBORS + 1, largest=False) for x in blocks]
    distances, near = (torch.cat([part[i] for part in found]).numpy() for i in range(2))
    return near, distances.astype(np.float64) ** 2


def matrix(near: Any, squares: Any, n: int) -> Any:
    """Weights exp(−4 d²/d_k²) of the k nearest neighbors, as in graphlearning (N, n)."""
    values = np.exp(-4 * squares / np.maximum(squares[:, -1:], 1e-12))
    begins = np.arange(0, near.size + 1, near.shape[1])
    return sparse.csr_matrix((values.ravel(), near.ravel(), begins), shape=(len(near), n))
