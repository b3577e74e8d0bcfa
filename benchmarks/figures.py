"""Figures of the speed benchmark: a table to read, and JSON."""

import json
import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ebse._atomic import in_place
from rounds import Contestant, Pace, ratio, ratios

TARGETS = {
    "rbm_vs_sklearn_batch100": 2.0,
    "rbm_vs_sklearn_batch10": 5.0,
    "rbm_vs_rbms_batch100": 2.0,
    "rbm_vs_learnergy_batch100": 2.5,
    "rbm_vs_products_batch100": 0.85,
    "bernoulli_vs_rbm": 0.92,
    "gaussian_vs_rbm": 0.95,
    "collapsed_vs_naive_algorithm1": 400,
    "explicit_vs_naive_algorithm1": 40,
    "draws_vs_naive": 300,
    "draws_peak_mib": 1024,
    "gibbs_vs_products": 0.7,
    "two_threads_vs_one": None,
    "busy_default_vs_one_time": 1.2,
    "fit_vs_sklearn": 2.0,
    "sample_transform_vs_kernel": 0.9,
}
"""The target of each figure: at least, or at most for those in AT_MOST."""

AT_MOST = {"draws_peak_mib", "busy_default_vs_one_time"}

PACKAGES = ("ebse", "torch", "numba", "numpy", "scikit-learn", "rbms", "learnergy")


@dataclass
class Report:
    """The figures measured so far."""

    ratios: dict[str, float] = field(default_factory=dict)
    ranges: dict[str, tuple[float, float]] = field(default_factory=dict)
    contestants: list[tuple[str, Contestant]] = field(default_factory=list)
    growth: list[dict[str, float | str]] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    circumstances: dict[str, str] = field(default_factory=dict)

    def race(
        self, pace: Pace, group: str, *contestants: Contestant, threads: Sequence[int] | None = None
    ) -> None:
        """Time a group of contestants; ``threads`` where the number is not to be chosen."""
        print(f"{group} …", file=sys.stderr, flush=True)
        pace.race(*contestants, threads=threads)
        self.contestants += [(group, contestant) for contestant in contestants]

    def compare(self, key: str, ours: Contestant, theirs: Contestant) -> None:
        """Record the ratio of two speeds, and its lowest and highest round."""
        rounds = ratios(ours, theirs)
        self.ratios[key], self.ranges[key] = ratio(ours, theirs), (min(rounds), max(rounds))

    def show(self) -> None:
        """Print the tables."""
        print(f"\n{'figure':<32}{'found':>9}{'target':>8}  {'verdict':<9}rounds")
        for key, target in TARGETS.items():
            found = self.ratios.get(key)
            words = ("–" if found is None else f"{found:.4g}", "–" if target is None else f"{target:g}")
            span = " to ".join(f"{x:.4g}" for x in self.ranges.get(key, ()))
            print(f"{key:<32}{words[0]:>9}{words[1]:>8}  {verdict(key, found):<9}{span}".rstrip())
        for line in self.missing:
            print(f"left out: {line}")
        print(f"\nratios of speeds, medians over rounds; at most: {', '.join(sorted(AT_MOST))}\n")
        print(f"{'contestant':<56}{'per second':>12}  at its best")
        for group, contestant in self.contestants:
            print(f"{group + ': ' + contestant.name:<56}{contestant.rate:>12,.0f}  {contestant.setting}")
        print(f"\n{'doubled':<10}{'our time':>10}{'products':>10}   our speed ÷ theirs, before and after")
        for row in self.growth:
            print(
                f"{row['doubled']:<10}{row['ours']:>9.2f}×{row['products']:>9.2f}×"
                f"{row['ours_vs_products_before']:>11.2f}{row['ours_vs_products_after']:>7.2f}"
            )
        print()
        for name, value in (self.circumstances | machine()).items():
            print(f"{name}: {value}")

    def write(self, path: Path) -> None:
        """Write JSON, atomically."""
        details = {
            "targets": TARGETS,
            "contestants": [
                {
                    "group": group,
                    "name": x.name,
                    "per_second": x.rate,
                    "setting": x.setting,
                    "rounds": x.rates,
                    "used": x.used,
                }
                for group, x in self.contestants
            ],
            "ranges": self.ranges,
            "growth": self.growth,
            "left_out": self.missing,
            "circumstances": self.circumstances | machine(),
        }
        with in_place(path) as temporary:
            temporary.write_text(json.dumps({"ratios": self.ratios, "details": details}, indent=1) + "\n")


def verdict(key: str, found: float | None) -> str:
    """Whether a figure reaches its target."""
    target = TARGETS[key]
    if found is None:
        return "left out"
    if target is None:
        return ""
    return "met" if (found <= target if key in AT_MOST else found >= target) else "missed"


def machine() -> dict[str, str]:
    """The processor and the versions of everything that ran."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return {
        "cpu": f"{processor()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        "versions": ", ".join(f"{name} {number}" for name, number in found.items()),
    }


def processor() -> str:
    """The name of the processor, where the system gives one."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
