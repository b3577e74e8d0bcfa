"""Cost of a small ``partial_fit``: CPU milliseconds (user + system) per call on 20 rows, median over calls.

    python benchmarks/partial_fit.py
    python benchmarks/partial_fit.py --tiny

The default RBSE (256 hidden units, Bernoulli law) with one thread, on binary rows of 64 and of 784 features.
"""

import argparse
import time

import numpy as np
import torch

from ebse import RBSE

N_ROWS = 20


def main() -> None:
    """Measure and print one line per number of features."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--tiny", action="store_true", help="a few calls, to see that it runs")
    options = parser.parse_args()
    torch.set_num_threads(1)
    n_calls, widths = (3, (16,)) if options.tiny else (200, (64, 784))
    for D in widths:
        print(
            f"{D:4d} features: {median_ms(D, n_calls):.2f} ms of CPU per call of {N_ROWS} rows (one thread)"
        )


def median_ms(D: int, n_calls: int) -> float:
    """Median CPU time of a call, in milliseconds, after calls that compile kernels."""
    rng = np.random.default_rng(0)
    rbse, spent = RBSE(random_state=0), []
    for n in range(n_calls + 10):
        rows = (rng.random((N_ROWS, D)) < 0.3).astype(np.float32)
        began = time.process_time()
        rbse.partial_fit(rows)
        if n >= 10:
            spent.append(time.process_time() - began)
    return 1_000 * float(np.median(spent))


if __name__ == "__main__":
    main()
