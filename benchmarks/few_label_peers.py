"""What one would use otherwise with few labels: a map, an autoencoder, and labels on a graph of all rows."""

from typing import Any

import numpy as np
import torch
from scipy import sparse
from scipy.sparse.linalg import cg
from sklearn.neighbors import KNeighborsClassifier
from sklearn.semi_supervised import LabelSpreading
from torch import nn
from torch.nn import functional

ON_GRAPHS = ("label spreading on the kNN graph", "Poisson learning", "Poisson learning, sizes")
N_NEIGHBORS, ALPHA = 10, 0.99
"""Of the graph, and the share of a label that is passed on at every step."""


def umap() -> Any:
    """umap-learn's map, by its defaults; with a seed it would keep to one core, so it has none."""
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
        # Where nothing arrived it says nothing, and the nearest label is the best that is left.
        silent = np.isnan(p).any(1)
        nearest = nearest_label(X, y)(known, queries)
        return np.where(silent, nearest, model.classes_[np.nan_to_num(p).argmax(1)])

    return predict


class Autoencoder:
    """A variational autoencoder, D–500–500–20 and back, of binary units: 20 means for each row."""

    def __init__(self, n_latent: int = 20, n_hidden: int = 500, n_epochs: int = 20, seed: int = 0) -> None:
        self.n_latent, self.n_hidden, self.n_epochs, self.seed = n_latent, n_hidden, n_epochs, seed

    def fit(self, X: Any) -> "Autoencoder":
        """20 epochs of Adam in batches of 200, or 5,000 updates where rows are few."""
        torch.manual_seed(self.seed)
        rng = np.random.default_rng(self.seed)
        self.encoder = self._layers(X.shape[1], 2 * self.n_latent)
        decoder = self._layers(self.n_latent, X.shape[1])
        n_updates = max(self.n_epochs * len(X) // 200, 5_000)
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


def on_graphs(rows: Any, X: Any, y: Any) -> list[Any]:
    """Label spreading and Poisson learning on the nearest-neighbor graph of all rows and the labeled ones.

    A query takes what its own nearest rows have, weighed as in the graph: it is asked on its own.
    """
    import graphlearning

    # The nearest of a row is itself, or its equal, and left out.
    near, squares = (part[:, 1:] for part in nearest_of(rows, rows))
    W = matrix(near, squares, len(rows))
    W.setdiag(0)
    W = W.maximum(W.T).tocsr()
    B = matrix(*(part[:, :-1] for part in nearest_of(rows, X)), len(rows))
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
        # What arrives as shares of the classes: rows that little arrives at have a say, too.
        return read(held / np.maximum(held.sum(1, keepdims=True), 1e-300), queries)

    def poisson(sizes: Any) -> Any:
        def predict(known: Any, queries: Any) -> Any:
            model = graphlearning.ssl.poisson(graph(known), class_priors=sizes)
            target = np.searchsorted(classes, y[known])
            taken = model.fit_predict(n + np.arange(len(known)), target)
            return read(np.eye(len(classes))[taken], queries)

        return predict

    equal = np.full(len(classes), 1 / len(classes))
    return [spread, poisson(None), poisson(equal)]


def nearest_of(rows: Any, X: Any) -> tuple[Any, Any]:
    """Numbers and squared distances (N, N_NEIGHBORS + 1) of the rows that are nearest to each of X."""
    found = [torch.cdist(x, torch.from_numpy(rows)).topk(N_NEIGHBORS + 1, largest=False) for x in blocks(X)]
    distances, near = (torch.cat([part[i] for part in found]).numpy() for i in range(2))
    return near, distances.astype(np.float64) ** 2


def blocks(X: Any) -> Any:
    """Rows, so many at a time."""
    return torch.from_numpy(X).split(500)


def matrix(near: Any, squares: Any, n: int) -> Any:
    """exp(−4 d²/d_k²) at each row's nearest, k of them: graphlearning's own choice of weights (N, n)."""
    values = np.exp(-4 * squares / np.maximum(squares[:, -1:], 1e-12))
    begins = np.arange(0, near.size + 1, near.shape[1])
    return sparse.csr_matrix((values.ravel(), near.ravel(), begins), shape=(len(near), n))
