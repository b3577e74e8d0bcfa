"""``make demo``: both experiments of the paper on data that comes along, a table of claims, and a page."""

import argparse
import os
import shutil
import sys
import warnings
from pathlib import Path

import numpy as np

from ebse.cli._show import Progress, note
from ebse.paper.manifold_experiment import ManifoldsConfig, manifolds
from ebse.paper.one_shot_config import OneShotConfig
from ebse.paper.one_shot_experiment import one_shot
from ebse.report import write_report
from ebse.report.claims import claims_table, figures_table, verdicts
from ebse.report.summaries import accuracies, aligned_claims
from ebse.workflow.run_folder import read_results

EXPLAINED = """
RBM: restricted Boltzmann machine. RBSE: restricted Boltzmann stochastic ensemble, an RBM with random weights.
self distance: from a point of the curve to its images. image to manifold: from the images to the curve, and
beside it what the same spread would give if it had no direction. outliers: distance of isolated points to the
curve after and before. coverage: share of the curve within 0.05 of the images of five points. tangent/normal:
spread of the images along the curve over their spread across it."""

MARK = ".ebse-demo"
"""The file that says that a folder is a demonstration's."""

ONE_SHOT = OneShotConfig(data="digits", spreading=True, label_spreading=True, n_episodes=100)


def main() -> int:
    """Train, measure, print, draw.

    0 if every claim of section 3.1 met its bar, 1 if not, 2 if it would overwrite, 130 if stopped.
    """
    warnings.showwarning = lambda message, *_, **__: note(str(message))
    parser = argparse.ArgumentParser(prog="python -m ebse.cli.demo", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("demo"), help="folder for the runs and the page")
    parser.add_argument("--workers", type=int, default=min(os.cpu_count() or 1, 8), help="processes")
    options = parser.parse_args()
    folders = [options.out / "manifolds", options.out / "one-shot"]
    mark = options.out / MARK
    for folder in folders:
        # A demonstration begins anew; it removes what an earlier one left, and nothing else.
        if folder.exists() and not mark.exists():
            print(f"{folder} exists and was not made by a demonstration; give another folder with --out")
            return 2
        shutil.rmtree(folder, ignore_errors=True)
    options.out.mkdir(parents=True, exist_ok=True)
    mark.touch()
    steps = (
        ("Points near a curve", manifolds(ManifoldsConfig(), folders[0], n_workers=options.workers)),
        ("One label per class, 8 × 8 digits", one_shot(ONE_SHOT, folders[1])),
    )
    progress = Progress()
    try:
        for title, run in steps:
            print(f"{title} …", file=sys.stderr)
            progress = Progress()
            for step in run:
                progress.at(step)
            progress.close()
    except KeyboardInterrupt:
        progress.close()
        print(f"Interrupted: what was finished is in {options.out}.")
        return 130
    rows, digits = (read_results(folder) for folder in folders)
    found = verdicts(rows)
    print(f"\nThe claims of section 3.1, {found[0].n_seeds} seeds each:\n\n{claims_table(found)}")
    print(f"\nAll figures, means over seeds:\n\n{figures_table(rows)}")
    print(EXPLAINED)
    print(f"\nThe claims of section 3.2, on digits of 64 pixels:\n\n{aligned_claims(accuracies(digits, 1))}")
    spread = 100 * np.mean(accuracies(digits, 1)["spreading on pixels"][0])
    print(f"\nBeyond the paper, labels that spread over other black-and-white digits: {spread:.0f} %")
    print("\nOn MNIST and Fashion-MNIST: docs/reproduction.md")
    print(f"\nReport: {write_report(folders, options.out / 'report.html')}")
    return 0 if all(verdict.met for verdict in found) else 1


if __name__ == "__main__":
    sys.exit(main())
