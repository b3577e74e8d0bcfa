"""Training and sampling speed of ebse, other RBM libraries, and the matrix products alone.

    python benchmarks/speed.py [--quick | --tiny] [--json PATH] [--mnist FOLDER]

All train 784 × 400 by CD-1 on the same binary rows in float32, in turn, with the setting and number of
threads that was fastest in trials. A figure is the median over rounds of the ratio of two speeds. The targets
are for two free cores. This is a report: a target that is missed is named, and the exit code is 0. Libraries
that are not installed are left out by name. ``--tiny`` only shows that everything runs.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

import ours
import peers
from binary_rows import IMAGES, binary_rows
from figures import Report
from rounds import Contestant, Pace, ratio

QUICK_SECONDS = 22
"""When a quick run starts no second round any more; on free cores the rest takes about 20 seconds."""


class Sizes(NamedTuple):
    """Hidden units, rows of an epoch, rows of the slower contestants' epochs, and samples of each row."""

    K: int = 400
    n_rows: int = 5_000
    n_few: int = 500
    n_draws: int = 10


FULL, QUICK, TINY = Sizes(), Sizes(n_rows=2_000), Sizes(K=12, n_rows=400, n_few=200, n_draws=2)


def main() -> None:
    """Measure, print, write."""
    arguments = parsed()
    begin = time.perf_counter()
    if arguments.tiny:
        sizes, pace = TINY, Pace(1, seconds=0.0, n_tries=1, patience=0)
    elif arguments.quick:
        sizes, pace = QUICK, Pace(3, seconds=0.2, n_tries=2, patience=2, deadline=begin + QUICK_SECONDS)
    else:
        sizes, pace = FULL, Pace(15, seconds=0.4, n_tries=4, patience=300)
    v, data = binary_rows(sizes.n_rows, arguments.mnist)
    if arguments.density is not None:
        v = (torch.rand(v.shape, generator=ours.generator()) < arguments.density).float()
        data = f"random units, {arguments.density:.0%} of them on"
    report, K, few = Report(), sizes.K, v[: sizes.n_few]
    batch_100(report, pace, v, K)
    batch_10(report, pace, v[: 2 * sizes.n_few], K)
    whole_fits(report, pace, v, K)
    algorithm_1(report, pace, few, K)
    representations(report, pace, few, sizes)
    gibbs_chains(report, pace, v, K)
    threads(report, pace, few, K)
    busy_core(report, v, K, n_runs=1 if arguments.tiny else 5)
    growth(report, pace, v[: 2 * sizes.n_few], sizes)
    if arguments.tiny:
        report.missing.append("draws_peak_mib: not measured in a tiny run; see memory.py --tiny")
    else:
        peak(report, arguments.mnist, seconds=15 if arguments.quick else 300)
    report.circumstances = {
        "data": data,
        "rounds": f"{pace.n_rounds}, turns of about {pace.seconds} s",
        "other work": f"{pace.n_busy} of {pace.n_done} rounds found the cores busy and used one thread",
        "measured in": f"{time.perf_counter() - begin:.0f} s",
    }
    report.show()
    if arguments.json is not None:
        report.write(arguments.json)


def parsed() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--quick", action="store_true", help="few short rounds, within 60 seconds")
    length.add_argument("--tiny", action="store_true", help="tiny models, one round: shows that it runs")
    parser.add_argument("--density", type=float, help="random units, so many of them on, instead of images")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write the figures to this file")
    parser.add_argument(
        "--mnist",
        type=Path,
        metavar="FOLDER",
        default=os.environ.get("EBSE_MNIST") or None,
        help=f"folder with {IMAGES}; by default the environment variable EBSE_MNIST, else synthetic rows",
    )
    arguments = parser.parse_args()
    if arguments.mnist is not None and not (arguments.mnist / IMAGES).is_file():
        parser.error(f"no {IMAGES} in {arguments.mnist}; leave --mnist and EBSE_MNIST out for synthetic rows")
    return arguments


def invited(
    report: Report, build: Callable[[Tensor, int, int], Contestant], v: Tensor, K: int, batch_size: int
) -> Contestant | None:
    """Another library, or None if it is not installed, which the report says."""
    try:
        return build(v, K, batch_size)
    except ImportError as error:
        report.missing.append(f"{build.__name__} at batch {batch_size}: {error}")
        return None


def batch_100(report: Report, pace: Pace, v: Tensor, K: int) -> None:
    """Our RBM and RBSEs, the peers and the limit."""
    rbm = ours.training("RBM", v, K, 100)
    others = {
        "rbm_vs_sklearn_batch100": invited(report, peers.sklearn_rbm, v, K, 100),
        "rbm_vs_rbms_batch100": invited(report, peers.rbms_rbm, v, K, 100),
        "rbm_vs_learnergy_batch100": invited(report, peers.learnergy_rbm, v, K, 100),
        "rbm_vs_products_batch100": peers.products(v, K, 100),
    }
    theirs = {key: peer for key, peer in others.items() if peer is not None}
    laws = {
        "bernoulli_vs_rbm": ours.training("Bernoulli RBSE", v, K, 100),
        "gaussian_vs_rbm": ours.training("Gaussian RBSE", v, K, 100),
    }
    centered = ours.training("RBM", v, K, 100, centered=True)
    report.race(pace, "batch 100", rbm, *laws.values(), centered, *theirs.values())
    for key, peer in theirs.items():
        report.compare(key, rbm, peer)
    for key, law in laws.items():
        report.compare(key, law, rbm)


def whole_fits(report: Report, pace: Pace, v: Tensor, K: int) -> None:
    """``fit`` of the estimators, as users call it."""
    peer = invited(report, peers.sklearn_rbm, v, K, 100)
    if peer is None:
        return
    fit = ours.estimator(v, K, 100)
    report.race(pace, "fit", fit, peer)
    report.compare("fit_vs_sklearn", fit, peer)


def batch_10(report: Report, pace: Pace, v: Tensor, K: int) -> None:
    """Our RBM and scikit-learn's, at scikit-learn's own batch size."""
    peer = invited(report, peers.sklearn_rbm, v, K, 10)
    if peer is None:
        return
    rbm, limit = ours.training("RBM", v, K, 10), peers.products(v, K, 10)
    report.race(pace, "batch 10", rbm, peer, limit)
    report.compare("rbm_vs_sklearn_batch10", rbm, peer)


def algorithm_1(report: Report, pace: Pace, v: Tensor, K: int) -> None:
    """θ integrated out, sampled in our kernel, sampled as a tensor."""
    collapsed = ours.training("Bernoulli RBSE", v, K, 100)
    explicit = ours.training("Bernoulli RBSE", v, K, 100, explicit=True)
    tensors = ours.naive_training(v, K)
    report.race(pace, "Algorithm 1", collapsed, explicit, tensors)
    report.compare("collapsed_vs_naive_algorithm1", collapsed, tensors)
    report.compare("explicit_vs_naive_algorithm1", explicit, tensors)


def representations(report: Report, pace: Pace, v: Tensor, sizes: Sizes) -> None:
    """Posterior samples, in our kernel and as tensors."""
    K, n_draws = sizes.K, sizes.n_draws
    draws, tensors = ours.draws(v, K, n_draws), ours.naive_draws(v, K)
    through = ours.estimator_draws(v, K, n_draws)
    report.race(pace, "representations", draws, through, tensors)
    report.compare("draws_vs_naive", draws, tensors)
    report.compare("sample_transform_vs_kernel", through, draws)


def gibbs_chains(report: Report, pace: Pace, v: Tensor, K: int) -> None:
    """Sweeps of Gibbs chains, against the two products of each."""
    n_chains = min(500, len(v))
    chains, limit = ours.gibbs_chains(v, K, n_chains), peers.sweep_products(v, K, n_chains)
    report.race(pace, "Gibbs sweeps", chains, limit)
    report.compare("gibbs_vs_products", chains, limit)


def busy_core(report: Report, v: Tensor, K: int, n_runs: int) -> None:
    """The default number of threads against one, while another process keeps a core busy.

    Runs alternate; each trains for about a second. The figure is a ratio of median times, at most 1.2.
    """
    print("busy core …", file=sys.stderr, flush=True)
    default = torch.get_num_threads()
    run = ours.training("Bernoulli RBSE", v, K, 100).settings[""]
    seconds: dict[int, list[float]] = {1: [], default: []}
    other = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        for n in (1, default) * (n_runs + 1):
            torch.set_num_threads(n)
            begin = time.perf_counter()
            run(max(1, 40_000 // len(v)) if n_runs > 1 else 1)
            seconds[n].append(time.perf_counter() - begin)
    finally:
        torch.set_num_threads(default)
        other.kill()
        other.wait()
    # The first run of each compiles.
    times = {n: statistics.median(found[1:]) for n, found in seconds.items()}
    report.ratios["busy_default_vs_one_time"] = times[default] / times[1]


def threads(report: Report, pace: Pace, v: Tensor, K: int) -> None:
    """Our RBM on two threads and on one."""
    one, two = (ours.training("RBM", v, K, 100, threads=n) for n in (1, 2))
    report.race(pace, "threads", one, two)
    report.compare("two_threads_vs_one", two, one)


def growth(report: Report, pace: Pace, v: Tensor, sizes: Sizes) -> None:
    """The time of a step as D, K and the batch double, and of a call as the samples double; one thread."""
    K, n_draws = sizes.K, sizes.n_draws
    pace = replace(pace, n_tries=1, seconds=pace.seconds / 2)
    wide = torch.cat([v, v.roll(1, 0)], 1)
    shapes = {"": (v, K, 100), "D": (wide, K, 100), "K": (v, 2 * K, 100), "batch": (v, K, 200)}
    few = v[: sizes.n_few]
    # Each pair with the number of rows in a step, or of representations in a call.
    pairs = {
        name: (ours.training("RBM", *shape), peers.products(*shape), shape[2])
        for name, shape in shapes.items()
    }
    draws = {
        n: (ours.draws(few, K, n), peers.read_products(few, K, n), n * len(few))
        for n in (n_draws, 2 * n_draws)
    }
    for name, (ebse, products, _) in pairs.items():
        for contestant in (ebse, products):
            contestant.name += f", {name} doubled" if name else ""
    everyone = [contestant for *pair, _ in [*pairs.values(), *draws.values()] for contestant in pair]
    report.race(pace, "growth", *everyone, threads=[1])
    base = pairs.pop("")
    for name, pair in pairs.items():
        report.growth.append({"doubled": name, **doubled(pair, base)})
    report.growth.append({"doubled": "samples", **doubled(draws[2 * n_draws], draws[n_draws])})


def doubled(
    pair: tuple[Contestant, Contestant, int], base: tuple[Contestant, Contestant, int]
) -> dict[str, float]:
    """How many times as long ours and the products take, and how much faster the products are now."""
    work = pair[2] / base[2]
    return {
        "ours": work * ratio(base[0], pair[0]),
        "products": work * ratio(base[1], pair[1]),
        "ours_vs_products_before": ratio(base[0], base[1]),
        "ours_vs_products_after": ratio(pair[0], pair[1]),
    }


def peak(report: Report, folder: Path | None, *, seconds: float) -> None:
    """Peak memory of many posterior samples, in a process of its own."""
    environment = os.environ | ({"EBSE_MNIST": str(folder)} if folder else {})
    program = Path(__file__).with_name("memory.py")
    print("memory …", file=sys.stderr, flush=True)
    try:
        done = subprocess.run(
            [sys.executable, program],
            env=environment,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=True,
        )
    except subprocess.TimeoutExpired:
        report.missing.append(f"draws_peak_mib: not done within {seconds:.0f} s")
    except subprocess.CalledProcessError as error:
        report.missing.append(f"draws_peak_mib: {error.stderr.strip().splitlines()[-1]}")
    else:
        report.ratios["draws_peak_mib"] = float(done.stdout)


if __name__ == "__main__":
    main()
