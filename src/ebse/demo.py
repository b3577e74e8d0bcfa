"""``make demo``: section 3.1 of the paper, as a figure and a table of its four claims."""

import argparse
import json
import os
import sys
import time
from dataclasses import asdict
from pathlib import Path

from ebse import __version__
from ebse.experiments.manifolds import ManifoldsConfig, Result, run
from ebse.files import in_place
from ebse.report.claims import claims_table, figures_table, verdicts
from ebse.report.figure2 import figure2

EXPLAINED = """
RBM: restricted Boltzmann machine. RBSE: restricted Boltzmann stochastic ensemble, an RBM with random weights.
self distance: from a point of the curve to its images. image to manifold: from the images to the curve, and
beside it what the same spread would give if it had no direction. outliers: distance of isolated points to the
curve after and before. coverage: share of the curve within 0.05 of the images of five points. tangent/normal:
spread of the images along the curve over their spread across it."""


def main() -> int:
    """Train, measure, draw, print; 0 if every claim met its bar, 1 if not, 130 if interrupted."""
    parser = argparse.ArgumentParser(prog="python -m ebse.demo", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("demo"), help="folder for the figure and the rows")
    parser.add_argument("--workers", type=int, default=min(os.cpu_count() or 1, 8), help="processes")
    options = parser.parse_args()
    config = ManifoldsConfig()
    results, interrupted = collect(config, options.workers)
    if not results:
        return 130
    rows = [result.row for result in results]
    figure, table = options.out / "figure2.png", options.out / "manifolds.json"
    with in_place(table) as temporary:
        document = {"version": __version__, "config": asdict(config), "rows": rows}
        temporary.write_text(json.dumps(document, indent=1) + "\n")
    shown = {
        str(result.row["law"]): {name: points.numpy() for name, points in result.panels._asdict().items()}
        for result in results
        if (result.row["manifold"], result.row["seed"]) == (config.manifolds[0], config.seeds[0])
    }
    panels = {law: shown[law] for law in config.laws if law in shown}
    if panels:
        figure2(panels, figure, title="Points near an arc and their representations, mapped back")
    found = verdicts(rows)
    print(f"\nThe claims of section 3.1, {len(config.seeds)} seeds each:\n\n{claims_table(found)}")
    print(f"\nAll figures, means over seeds:\n\n{figures_table(rows)}")
    print(EXPLAINED)
    print(f"\nPicture: {figure}\nRows:    {table}")
    if interrupted:
        print("Interrupted: the tables hold what was finished.")
        return 130
    return 0 if all(verdict.met for verdict in found) else 1


def collect(config: ManifoldsConfig, n_workers: int) -> tuple[list[Result], bool]:
    """Results in a fixed order, and whether the user interrupted; progress goes to stderr."""
    n_jobs = len(config.manifolds) * len(config.laws) * len(config.seeds)
    began, results, interrupted = time.perf_counter(), [], False
    print(f"Training {n_jobs} ensembles in {n_workers} processes …", file=sys.stderr)
    try:
        for result in run(config, n_workers=n_workers):
            results.append(result)
            elapsed = time.perf_counter() - began
            left = elapsed / len(results) * (n_jobs - len(results))
            # The first results come late, after the processes have started.
            estimate = f", about {left:3.0f} s left" if len(results) > 5 else ""
            end = "\n" if len(results) == n_jobs or not sys.stderr.isatty() else "\r"
            line = f"  {len(results):2d} of {n_jobs} trained, {elapsed:3.0f} s{estimate} "
            print(line, end=end, file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        interrupted = True
    results.sort(key=lambda r: (str(r.row["manifold"]), str(r.row["law"]), float(r.row["seed"])))
    return results, interrupted


if __name__ == "__main__":
    sys.exit(main())
