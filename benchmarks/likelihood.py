"""Log-likelihood of RBM and RBSE on MNIST thresholded at 0.5: exact, or bracketed by AIS and reverse AIS.

    python benchmarks/likelihood.py --mnist FOLDER --json likelihood.json --plot curves.png

Three parts: ``small`` (784–16, exact), ``large`` (784–500, annealed importance sampling in both directions)
and ``curves`` (exact likelihood against epochs under five laws). Each row is printed as soon as it is known.
``--tiny`` shows on synthetic rows that everything runs.

References
----------
R. M. Neal, "Annealed importance sampling", 2001. Y. Burda, R. Grosse and R. Salakhutdinov, "Accurate and
conservative estimates of MRF log-likelihood using reverse annealing", 2015.
"""

import argparse
import json
import os
import platform
import time
from pathlib import Path
from typing import Any

import torch
from matplotlib.figure import Figure
from torch import Tensor

from binary_rows import blobs, mnist
from ebse._atomic import in_place
from ebse.laws import Bernoulli, Gaussian, Law, Point
from ebse.sampling import LogLikelihood, log_likelihood
from ebse.training import EffectiveAscent, Training, initial_ensemble

Row = dict[str, Any]
LAWS: dict[str, tuple[type[Law], dict[str, float]]] = {
    "RBM": (Point, {}),
    "Bernoulli, p = 0.9": (Bernoulli, {"p": 0.9}),
    "Bernoulli, p = 0.5": (Bernoulli, {"p": 0.5}),
    "Bernoulli, p = 0.1": (Bernoulli, {"p": 0.1}),
    "Gaussian, sigma = 0.3": (Gaussian, {"sigma": 0.3}),
}
SIDE_BY_SIDE = ("RBM", "Bernoulli, p = 0.5", "Gaussian, sigma = 0.3")
CURVE_RATE = 0.02
"""So small that the noise of persistent chains does not blur the curves: at 0.1 they vary by nats."""
PLOTTED = (1, 2, 3, 4, 6, 8, 11, 15, 20)
ANCHORS = {
    "small": "PyDeep's tutorial, PCD-1, 50 epochs, centered: -142.56 exact",
    "large": "PyDeep's tutorial, PCD-1, 200 epochs, centered: -84.86 forward, -96.61 reverse",
}


def begin(law: str, v: Tensor, K: int, rate: float, seed: int) -> Training:
    """Training with the defaults (PCD-1, centered, rate falling linearly to 0), without monitors."""
    family, noise = LAWS[law]
    g = torch.Generator().manual_seed(seed)
    first = initial_ensemble(v, K, law=family, generator=g, **noise)
    return Training(first, m_step=EffectiveAscent(rate), monitors=(), generator=g)


def found(run: Training, v: Tensor, test: Tensor, **options: Any) -> LogLikelihood:
    """Mean test log-likelihood in nats; reverse chains start from training rows."""
    return log_likelihood(run.ensemble, test, start=v, generator=torch.Generator().manual_seed(1), **options)


def trained(
    part: str, law: str, K: int, n_epochs: int, v: Tensor, test: Tensor, options: argparse.Namespace
) -> Row:
    """One row of a table: minutes of training and the log-likelihood."""
    begun = time.perf_counter()
    run = begin(law, v, K, options.rate, options.seed).fit(v, n_epochs)
    minutes = (time.perf_counter() - begun) / 60
    begun = time.perf_counter()
    nats = found(
        run, v, test, n_temperatures=options.temperatures, n_chains=options.chains, n_burn=options.burn
    )
    estimate, log_z = (time.perf_counter() - begun) / 60, nats.log_partition
    noise = {name: round(value, 3) for name, value in run.ensemble.W.summary().items()}
    row: Row = {
        "part": part,
        "law": law,
        "shape": f"784-{K}",
        "epochs": n_epochs,
        "rate": options.rate,
        "exact": nats.exact,
        "forward": round(nats.forward, 3),
        "forward_error": round(log_z.forward_error, 3),
        "reverse": round(nats.reverse, 3),
        "reverse_error": round(log_z.reverse_error, 3),
        "effective_samples": [round(log_z.forward_ess, 1), round(log_z.reverse_ess, 1)],
        "training_minutes": round(minutes, 2),
        "estimate_minutes": round(estimate, 2),
        "noise": noise,
    }
    print(json.dumps(row), flush=True)
    return row


def curve(law: str, v: Tensor, test: Tensor, options: argparse.Namespace) -> Row:
    """Exact test log-likelihood after some epochs of one run at a constant rate."""
    family, noise = LAWS[law]
    g = torch.Generator().manual_seed(options.seed)
    first = initial_ensemble(v, options.small, law=family, generator=g, **noise)
    m_step = EffectiveAscent(CURVE_RATE, schedule="constant")
    run = Training(first, m_step=m_step, monitors=(), generator=g)
    nats = [found(run, v, test).forward]
    plotted = PLOTTED[:2] if options.tiny else PLOTTED
    for before, epoch in zip((0, *plotted), plotted, strict=False):
        nats.append(found(run.fit(v, epoch - before), v, test).forward)
    row: Row = {"part": "curves", "law": law, "epochs": [0, *plotted], "nats": [round(x, 3) for x in nats]}
    print(json.dumps(row), flush=True)
    return row


def plot(rows: list[Row], path: Path) -> None:
    """Likelihood against epochs, one line a law."""
    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    axes = figure.subplots()
    for row, marker in zip(rows, "os^vD", strict=True):
        axes.plot(
            row["epochs"][1:], row["nats"][1:], marker=marker, markersize=4, label=row["law"], alpha=0.8
        )
    axes.set_xlabel("epochs")
    axes.set_ylabel("mean log P(v) of test digits, nats (exact)")
    axes.set_title("784–16, MNIST at threshold 0.5: one learning speed under every law", fontsize=10)
    axes.legend()
    axes.grid(alpha=0.3)
    with in_place(path) as temporary:
        figure.savefig(temporary, format=path.suffix.removeprefix("."), dpi=110)


def main() -> None:
    """Run the chosen parts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--mnist", type=Path, default=os.environ.get("EBSE_MNIST"), help="folder of the idx.gz files"
    )
    parser.add_argument(
        "--parts", nargs="+", default=["small", "curves", "large"], choices=["small", "curves", "large"]
    )
    parser.add_argument("--laws", nargs="+", default=SIDE_BY_SIDE, choices=tuple(LAWS), help="of the tables")
    parser.add_argument("--epochs", type=int, default=50, help="of the large models")
    parser.add_argument("--rate", type=float, default=EffectiveAscent().learning_rate)
    parser.add_argument("--temperatures", type=int, default=20_000)
    parser.add_argument("--chains", type=int, default=100)
    parser.add_argument("--burn", type=int, default=5_000, help="sweeps before the reverse chains start")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="where to write the rows")
    parser.add_argument("--plot", type=Path, help="where to draw the curves")
    parser.add_argument("--small", type=int, default=16, help="hidden units of the small models")
    parser.add_argument("--large", type=int, default=500, help="hidden units of the large models")
    parser.add_argument("--tiny", action="store_true", help="synthetic rows, two epochs, short annealing")
    options = parser.parse_args()
    if options.tiny:
        options.epochs, options.temperatures, options.chains, options.burn = 2, 20, 4, 4
        options.small, options.large = 4, 24
        v, test = blobs(200), blobs(50, seed=1)
    elif options.mnist is None:
        parser.error("--mnist FOLDER (or EBSE_MNIST) must name the folder of MNIST's idx.gz files")
    else:
        v, test = mnist(Path(options.mnist), "train"), mnist(Path(options.mnist), "t10k")
    settings = f"torch {torch.__version__}, {torch.get_num_threads()} threads, {platform.machine()}"
    print(f"MNIST thresholded at 0.5; {settings}; anchors: {ANCHORS}", flush=True)
    rows: list[Row] = []
    for part in options.parts:
        if part == "curves":
            rows += [curve(law, v, test, options) for law in LAWS]
            if options.plot:
                plot([row for row in rows if row["part"] == "curves"], options.plot)
            continue
        K, n_epochs = (options.small, 50) if part == "small" else (options.large, options.epochs)
        rows += [trained(part, law, K, n_epochs, v, test, options) for law in options.laws]
    if options.json:
        with in_place(options.json) as temporary:
            temporary.write_text(
                json.dumps({"settings": settings, "anchors": ANCHORS, "rows": rows}, indent=1) + "\n"
            )


if __name__ == "__main__":
    main()
