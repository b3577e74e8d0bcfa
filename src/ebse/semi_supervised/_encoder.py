"""Training of the encoder network of ``ContrastiveFeatures`` by InfoNCE, in PyTorch."""

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional

Array = npt.NDArray[np.float32]

N_LAYERS = 2
"""Hidden layers."""
N_FILTERS, STRIDE = (16, 32, 64), 2
"""Filters of the convolutions, and their stride."""
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


class Optimization:
    """AdamW with a one-cycle schedule on the parameters of some modules, and its state as arrays."""

    def __init__(self, modules: dict[str, nn.Module], *, n_updates: int, learning_rate: float) -> None:
        self.modules = modules
        parameters = [p for module in modules.values() for p in module.parameters()]
        self.optimizer = torch.optim.AdamW(parameters, learning_rate, weight_decay=WEIGHT_DECAY)
        # One step more than are taken: the last rate is not quite 0, and a single update has a schedule, too.
        self.schedule = torch.optim.lr_scheduler.OneCycleLR(
            self.optimizer, learning_rate, total_steps=n_updates + 1
        )

    def step(self, loss: Tensor) -> None:
        """One step down the gradient of the loss."""
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        self.schedule.step()

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Weights of the modules and moments of AdamW, from which training goes on bit for bit."""
        found = {
            f"{name}.{key}": x.numpy().copy()
            for name, module in self.modules.items()
            for key, x in module.state_dict().items()
        }
        for i, moments in self.optimizer.state_dict()["state"].items():
            found |= {f"moments.{i}.{key}": x.numpy().copy() for key, x in moments.items()}
        return found

    def restore(self, arrays: dict[str, npt.NDArray[Any]], n_done: int) -> None:
        """Go on where arrays of :meth:`arrays` were made, after n_done updates."""
        for name, module in self.modules.items():
            module.load_state_dict(
                {key: torch.from_numpy(arrays[f"{name}.{key}"]) for key in module.state_dict()}
            )
        held = self.optimizer.state_dict()
        keys = ("step", "exp_avg", "exp_avg_sq")
        n = len(held["param_groups"][0]["params"])
        held["state"] = {
            i: {key: torch.from_numpy(arrays[f"moments.{i}.{key}"]) for key in keys} for i in range(n)
        }
        self.optimizer.load_state_dict(held)
        self.schedule.last_epoch = n_done - 1
        with warnings.catch_warnings():
            # It counts steps of this optimizer object, of which there were none.
            warnings.filterwarnings("ignore", "Detected call of `lr_scheduler.step", UserWarning)
            self.schedule.step()


class EncoderTraining:
    """A network under training by AdamW on InfoNCE."""

    def __init__(
        self, net: nn.Sequential, *, n_updates: int, temperature: float, learning_rate: float
    ) -> None:
        self.net = net
        self.temperature = temperature
        self.optimization = Optimization({"net": net}, n_updates=n_updates, learning_rate=learning_rate)

    def update(self, x: Tensor) -> float:
        """One step on positive pairs, rows i and n + i of x (2n, P); their InfoNCE before it."""
        loss = info_nce(functional.normalize(self.net(x), dim=1), self.temperature)
        self.optimization.step(loss)
        return float(loss.detach())


def dense_network(n_features: int, n_hidden: int, n_components: int, *, seed: int) -> nn.Sequential:
    """Two hidden layers with batch norm and ReLU, and a linear one."""
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


class _Channels(nn.Module):
    """Rows (n, height · width · channels) as images (n, channels, height, width)."""

    def __init__(self, shape: tuple[int, int, int]) -> None:
        super().__init__()
        self.shape = shape

    def forward(self, x: Tensor) -> Tensor:
        return x.view(-1, *self.shape).permute(0, 3, 1, 2)


def convolutional_network(
    shape: tuple[int, int, int], n_hidden: int, n_components: int, *, seed: int
) -> nn.Sequential:
    """Three convolutions of 3 × 3 that halve height and width, a hidden layer, and a linear one."""
    height, width, n_channels = shape
    layers: list[nn.Module] = [_Channels(shape)]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for n_out in N_FILTERS:
            layers += [
                nn.Conv2d(n_channels, n_out, 3, stride=STRIDE, padding=1),
                nn.BatchNorm2d(n_out),
                nn.ReLU(),
            ]
            n_channels, height, width = n_out, -(-height // STRIDE), -(-width // STRIDE)
        layers += [
            nn.Flatten(),
            nn.Linear(n_channels * height * width, n_hidden),
            nn.BatchNorm1d(n_hidden),
            nn.ReLU(),
        ]
        return nn.Sequential(*layers, nn.Linear(n_hidden, n_components)).float()


def embedded(net: nn.Sequential, Y: Array, block: int = 4_096) -> Array:
    """z (N, r), of length 1, of the inputs Y (N, P), with the running statistics of batch norms."""
    net.eval()
    with torch.no_grad():
        parts = [
            functional.normalize(net(torch.from_numpy(Y[start : start + block])), dim=1)
            for start in range(0, len(Y), block)
        ]
    net.train()
    found: Array = torch.cat(parts).numpy()
    return found


def folded(net: nn.Sequential) -> tuple[list[Array], list[Array]]:
    """Weights and biases of the layers, with batch norms folded into the layers before them.

    Weights of linear layers are (n_in, n_out), those of convolutions (n_out, n_in, 3, 3).
    """
    weights, biases = [], []
    layers: list[Any] = list(net)
    with torch.no_grad():
        for layer, after in zip(layers, [*layers[1:], None], strict=True):
            if not isinstance(layer, (nn.Linear, nn.Conv2d)):
                continue
            W, b = layer.weight, layer.bias
            assert b is not None
            if isinstance(after, (nn.BatchNorm1d, nn.BatchNorm2d)):
                assert after.running_var is not None
                assert after.running_mean is not None
                scale = after.weight / torch.sqrt(after.running_var + after.eps)
                W = W * scale.view(-1, *[1] * (W.ndim - 1))
                b = (b - after.running_mean) * scale + after.bias
            if isinstance(layer, nn.Linear):
                W = W.T
            weights.append(W.contiguous().numpy().copy())
            biases.append(b.numpy().copy())
    return weights, biases


def convolved(x: Array, shape: tuple[int, int, int], kernels: list[Array], biases: list[Array]) -> Array:
    """Outputs (N, n) of convolutions with ReLU, of rows x (N, D) that are images of a shape."""
    height, width, n_channels = shape
    with torch.no_grad():
        at = torch.from_numpy(x).view(-1, height, width, n_channels).permute(0, 3, 1, 2)
        for W, b in zip(kernels, biases, strict=True):
            at = functional.conv2d(at, torch.from_numpy(W), torch.from_numpy(b), STRIDE, padding=1).relu()
        found: Array = at.flatten(1).numpy()
        return found
