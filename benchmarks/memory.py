"""Peak memory of posterior samples: prints the MiB above what the process held before.

    python benchmarks/memory.py [--tiny]

Linux only: the kernel records the peak, and resets it on request.
"""

import argparse
import os
from pathlib import Path

import torch

from binary_rows import binary_rows
from ebse.ensemble.draws import posterior_draws
from ours import ensemble

N, K, DRAWS = 10_000, 400, 10
TINY = 100, 12


def status(field: str) -> int:
    """A size in KiB from the kernel's status of this process."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1])
    raise KeyError(field)


def peak_mib(n_rows: int, n_hidden: int) -> float:
    """Peak MiB of posterior samples above what the process holds, after one run to compile."""
    folder = os.environ.get("EBSE_MNIST")
    v, _ = binary_rows(n_rows, Path(folder) if folder else None)
    model, g = ensemble("Bernoulli RBSE", v, n_hidden), torch.Generator().manual_seed(0)
    posterior_draws(model, v[:10], DRAWS, generator=g)
    Path("/proc/self/clear_refs").write_text("5")
    before = status("VmRSS")
    posterior_draws(model, v, DRAWS, generator=g)
    return (status("VmHWM") - before) / 1024


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--tiny", action="store_true", help="a tiny model: shows that it runs")
    print(peak_mib(*(TINY if parser.parse_args().tiny else (N, K))))


if __name__ == "__main__":
    main()
