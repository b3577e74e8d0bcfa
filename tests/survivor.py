"""Processes that train: one to be killed at any moment, one with little memory."""

import resource
from pathlib import Path

import numpy as np
import torch

from ebse.laws import Bernoulli
from ebse.training import Training, initial_ensemble, resume

N_EPOCHS = 60


def data() -> torch.Tensor:
    u = torch.frac(torch.arange(1000 * 40, dtype=torch.float64).reshape(1000, 40) * 0.6180339887498949)
    return (u < 0.3).float()


def live(folder: Path) -> None:
    """Begin a run in the folder, or resume the one in it."""
    torch.set_num_threads(1)
    v = data()
    if list(folder.glob("checkpoint-*")):
        resume(folder, v)
        return
    g = torch.Generator().manual_seed(2)
    first = initial_ensemble(v, 16, law=Bernoulli, p=0.3, generator=g)
    # Also in the middle of epochs, so that runs resume from all kinds of checkpoints.
    Training(first, batch_size=64, generator=g).fit(
        v, N_EPOCHS, folder=folder, every_epochs=2, every_minutes=2e-3
    )


def frugal(path: Path, n_rows: int, n_units: int, spare: int) -> None:
    """One epoch over a file, with no more memory than there is now and ``spare`` bytes."""
    torch.set_num_threads(1)
    v = np.memmap(path, dtype=np.float32, mode="r", shape=(n_rows, n_units))
    g = torch.Generator().manual_seed(0)
    first = initial_ensemble(torch.zeros(2, n_units).float(), 2, law=Bernoulli, generator=g)
    run = Training(first, batch_size=20, generator=g)
    run.fit(v[:40], 1)
    used = next(
        line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmData")
    )
    limit = int(used.split()[1]) * 1024 + spare
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    run.fit(v, 1)
    assert run.n_steps == 2 + -(-n_rows // 20)


def greedy(path: Path, n_rows: int, n_units: int, spare: int) -> None:
    """The same with all rows in memory, which must fail."""
    v = np.memmap(path, dtype=np.float32, mode="r", shape=(n_rows, n_units))
    used = next(
        line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmData")
    )
    limit = int(used.split()[1]) * 1024 + spare
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    torch.from_numpy(np.array(v))
