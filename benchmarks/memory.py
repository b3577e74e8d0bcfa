"""Peak memory of clamped draws, in a process of its own: prints the MiB that it needed over what was there.

Linux only: the kernel keeps the peak, and sets it back when it is asked to.
"""

import os
from pathlib import Path

import torch

from binary_rows import binary_rows
from ebse.ensemble.draws import posterior_draws
from ours import ensemble

N, K, DRAWS = 10_000, 400, 10


def status(field: str) -> int:
    """A size in KiB from the kernel's record of this process."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1])
    raise KeyError(field)


def main() -> None:
    """Draw once for compilation, then measure."""
    folder = os.environ.get("EBSE_MNIST")
    v, _ = binary_rows(N, Path(folder) if folder else None)
    model, g = ensemble("Bernoulli RBSE", v, K), torch.Generator().manual_seed(0)
    posterior_draws(model, v[:10], DRAWS, generator=g)
    Path("/proc/self/clear_refs").write_text("5")
    before = status("VmRSS")
    posterior_draws(model, v, DRAWS, generator=g)
    print((status("VmHWM") - before) / 1024)


if __name__ == "__main__":
    main()
