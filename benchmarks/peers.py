"""RBMs of other libraries, run as their documentation says, and the matrix products alone."""

from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import TensorDataset

from rounds import N_SWEEPS, Contestant, Run

LEARNING_RATE = 0.01


def sklearn_rbm(v: Tensor, K: int, batch_size: int) -> Contestant:
    """``BernoulliRBM.fit`` on float32 rows, which keeps everything in float32 (``partial_fit`` does not).

    It has persistent chains only, the same products as CD-1, and takes its batches in the order of the rows.
    Sparse rows were slower at this density. Each call starts from new weights, which are drawn beforehand and
    not timed.
    """
    import numpy as np
    from sklearn.neural_network import BernoulliRBM
    from threadpoolctl import ThreadpoolController

    class Prepared(np.random.RandomState):
        def normal(self, *arguments: Any, **options: Any) -> Any:
            return start

    start = np.random.RandomState(0).normal(0, 0.01, (K, v.shape[1]))
    rows = v.numpy()
    pools = ThreadpoolController()

    def run(n_epochs: int) -> int:
        machine = BernoulliRBM(K, learning_rate=LEARNING_RATE, batch_size=batch_size, n_iter=n_epochs)
        with pools.limit(limits=torch.get_num_threads(), user_api="blas"):
            machine.set_params(random_state=Prepared(0)).fit(rows)
        return n_epochs * len(rows)

    return Contestant("scikit-learn BernoulliRBM", {"float32, PCD-1": run})


def rbms_rbm(v: Tensor, K: int, batch_size: int) -> Contestant:
    """``fit_batch_pcd`` and SGD, the step of ``rbms.training.pcd.train``, on batches of whole epochs.

    ``train`` itself also writes to an HDF5 file at every step, which is left out. Gradients are not centered,
    which is faster. Its "cd" starts chains at each batch and computes one product more than its "pcd".
    """
    from rbms.bernoulli_bernoulli.classes import BBRBM
    from rbms.training.pcd import fit_batch_pcd

    def setting(persistent: bool) -> Run:
        dataset = SimpleNamespace(data=v)
        machine = BBRBM.init_parameters(K, dataset, device=v.device, dtype=v.dtype)
        machine.init_grad()
        optimizer = torch.optim.SGD(machine.parameters(), lr=LEARNING_RATE, maximize=True)
        weights = torch.ones(len(v))
        chains = machine.init_chains(batch_size)

        @torch.no_grad()
        def run(n_epochs: int) -> int:
            nonlocal chains
            for _ in range(n_epochs):
                order = torch.randperm(len(v))
                for first in range(0, len(v), batch_size):
                    rows = order[first : first + batch_size]
                    batch = v[rows], weights[rows]
                    if not persistent:
                        chains = machine.init_chains(len(rows), weights=batch[1], start_v=batch[0])
                    optimizer.zero_grad(set_to_none=False)
                    chains, _ = fit_batch_pcd(batch, chains, machine, gibbs_steps=1, beta=1.0, centered=False)
                    optimizer.step()
            return n_epochs * len(v)

        return run

    return Contestant("rbms BBRBM", {"CD-1": setting(False), "PCD-1": setting(True)})


def learnergy_rbm(v: Tensor, K: int, batch_size: int) -> Contestant:
    """``RBM.fit`` on a TensorDataset, as in its README; it always computes two metrics for each batch."""
    from learnergy.models.bernoulli import RBM

    machine = RBM(n_visible=v.shape[1], n_hidden=K, steps=1, learning_rate=LEARNING_RATE)
    dataset = TensorDataset(v, torch.zeros(len(v)))

    def run(n_epochs: int) -> int:
        machine.fit(dataset, batch_size=batch_size, epochs=n_epochs)
        return n_epochs * len(v)

    return Contestant("learnergy RBM", {"TensorDataset, CD-1": run})


def products(v: Tensor, K: int, batch_size: int) -> Contestant:
    """The four matrix products of a CD-1 step, into preallocated arrays, and nothing else."""
    W = 0.01 * torch.randn(v.shape[1], K)
    both_v, both_h = v[: 2 * batch_size].clone(), torch.rand(2 * batch_size, K)
    data, h = both_v[:batch_size], both_h[:batch_size]
    up, down, change = torch.empty_like(h), torch.empty_like(data), torch.empty_like(W)

    def run(n_epochs: int) -> int:
        n_batches = n_epochs * len(v) // batch_size
        for _ in range(n_batches):
            torch.mm(data, W, out=up)
            torch.mm(h, W.T, out=down)
            torch.mm(data, W, out=up)
            torch.mm(both_v.T, both_h, out=change)
        return n_batches * batch_size

    return Contestant("four matrix products", {"": run})


def sweep_products(v: Tensor, K: int, n_chains: int) -> Contestant:
    """The two matrix products of a Gibbs sweep."""
    W, h = 0.01 * torch.randn(v.shape[1], K), torch.rand(n_chains, K)
    up, down = torch.empty_like(h), torch.empty(n_chains, v.shape[1])

    def run(n_times: int) -> int:
        for _ in range(n_times * N_SWEEPS):
            torch.mm(h, W.T, out=down)
            torch.mm(down, W, out=up)
        return n_times * N_SWEEPS * n_chains

    return Contestant("two matrix products a sweep", {"": run})


def read_products(v: Tensor, K: int, n_draws: int) -> Contestant:
    """One product for every sample: the cost of the same weights on every row, n_draws times."""
    W, up = 0.01 * torch.randn(v.shape[1], K), torch.empty(len(v), K)

    def run(n_times: int) -> int:
        for _ in range(n_times * n_draws):
            torch.mm(v, W, out=up)
        return n_times * len(v) * n_draws

    return Contestant("one matrix product a sample", {"": run})
