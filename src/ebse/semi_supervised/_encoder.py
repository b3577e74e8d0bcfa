"""Training of the encoder network of ``ContrastiveFeatures`` by InfoNCE, in PyTorch."""

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional

Array = npt.NDArray[np.float32]

N_LAYERS = 2
"""Hidden layers."""
WEIGHT_DECAY = 1e-4


def info_nce(z: Tensor, temperature: float) -> Tensor:
    """InfoNCE: −log softmax_j(z_i · z_j / temperature) at the positive j of i, mean over i, of z (2n, r).

    Rows i and n + i are a positive pair; all other rows are negatives.

    References
    ----------
    A. van den Oord, Y. Li and O. Vinyals, "Representation learning with contrastive predictive coding", 2018.
    """
    n = len(z) // 2
    logits = (z @ z.T / temperature).fill_diagonal_(-torch.inf)
    positive = torch.arange(2 * n).roll(n)
    return functional.cross_entropy(logits, positive)


class EncoderTraining:
    """A network under training by AdamW on InfoNCE: batch norm and ReLU after each of two hidden layers."""

    def __init__(
        self,
        n_features: int,
        *,
        n_hidden: int,
        n_components: int,
        n_updates: int,
        temperature: float,
        learning_rate: float,
        seed: int,
    ) -> None:
        self.net = _network(n_features, n_hidden, n_components, seed)
        self.temperature = temperature
        self.optimizer = torch.optim.AdamW(self.net.parameters(), learning_rate, weight_decay=WEIGHT_DECAY)
        # One step more than are taken: the last rate is not quite 0, and a single update has a schedule, too.
        self.schedule = torch.optim.lr_scheduler.OneCycleLR(
            self.optimizer, learning_rate, total_steps=n_updates + 1
        )

    def update(self, first: Array, second: Array) -> float:
        """One step on positive pairs (n, D), (n, D); their InfoNCE before it."""
        z = functional.normalize(self.net(torch.from_numpy(np.concatenate([first, second]))), dim=1)
        loss = info_nce(z, self.temperature)
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        self.schedule.step()
        return float(loss.detach())

    def layers(self) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
        """Weights and biases of the layers, with batch norms folded into the layers before them."""
        weights, biases = [], []
        layers: list[Any] = list(self.net)
        with torch.no_grad():
            for layer, norm in zip(layers[0::3], [*layers[1::3], None], strict=True):
                W, b = layer.weight.T, layer.bias
                if norm is not None:
                    scale = norm.weight / torch.sqrt(norm.running_var + norm.eps)
                    W, b = W * scale, (b - norm.running_mean) * scale + norm.bias
                weights.append(W.contiguous().numpy().copy())
                biases.append(b.numpy().copy())
        return tuple(weights), tuple(biases)


def _network(n_features: int, n_hidden: int, n_components: int, seed: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    # Layers draw their first weights from torch's own generator, which belongs to the user.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for n in range(N_LAYERS):
            layers += [
                nn.Linear(n_hidden if n else n_features, n_hidden),
                nn.BatchNorm1d(n_hidden),
                nn.ReLU(),
            ]
        # Rows are in single precision, whatever torch's default is.
        return nn.Sequential(*layers, nn.Linear(n_hidden, n_components)).float()
