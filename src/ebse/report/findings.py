"""What was found, in plain words: claims of the paper, and what goes beyond it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ebse.report.claims import NAMES, Verdict, verdicts
from ebse.report.parts import Finding, Stat
from ebse.report.summaries import PIXELS, REFERENCE, BySeed, accuracies, checked_claims, difference, interval
from ebse.workflow.run_folder import read_header, read_results

WORDS = {"yes": "holds", "partly": "holds in part", "no": "does not hold"}
"""Verdicts as text."""
BEYOND = "Beyond the paper: "
NEAREST, PROPAGATION = "1-NN", "label propagation on "


def manifold_findings(found: Sequence[Verdict]) -> list[Finding]:
    """One finding for each panel of Figure 2, over its models and curves."""
    findings = []
    for panel in sorted({v.claim.panel for v in found}):
        part = [v for v in found if v.claim.panel == panel]
        met = sum(v.met for v in part)
        text, _, unit = part[0].claim.says.partition(": ")
        measured = "; ".join(f"{v.claim.manifold}, {NAMES[v.claim.law]}: {v.mean:.3g}" for v in part)
        sign = "at most" if part[0].claim.at_most else "at least"
        thresholds = dict.fromkeys(f"{v.claim.threshold:g}" for v in part)
        findings.append(
            Finding(
                f"({panel}) {text}",
                f"our threshold: {sign} {' and '.join(thresholds)}",
                f"{unit}: {measured}",
                "yes" if met == len(part) else "partly" if met else "no",
            )
        )
    return findings


def one_shot_findings(found: Mapping[str, BySeed]) -> list[Finding]:
    """The claims of section 3.2, and label propagation beside the usual classifiers."""
    findings = [
        Finding(c.claim.says, c.claim.paper, f"{c.method}: {c.difference.signed()} points", c.verdict)
        for c in checked_claims(found)
    ]
    best = best_propagation(found)
    if best is not None and PIXELS in found:
        gain = difference(found[best], found[PIXELS])
        if gain is not None:
            findings.append(
                Finding(
                    f"{BEYOND}label propagation over unlabeled rows beats logistic regression on pixels",
                    "our threshold: above 0",
                    f"{best} − {PIXELS}: {gain.signed()} points",
                    "yes" if gain.low > 0 else "no",
                )
            )
    return findings


def one_shot_stats(found: Mapping[str, BySeed], labels: str) -> list[Stat]:
    """Headline accuracies: the best label propagation, and what it is compared with."""
    best = best_propagation(found)
    shown = {
        **({best: f"correct with {labels}: {best}"} if best else {}),
        PIXELS: f"correct with {labels}: logistic regression on pixels",
        NEAREST: f"correct with {labels}: nearest neighbor",
    }
    stats = [Stat(f"{interval(found[m]).mean:.0f} %", text) for m, text in shown.items() if m in found]
    chains = next((name for name in found if "chain-sampled models" in name), None)
    gain = difference(found[chains], found[REFERENCE]) if chains and REFERENCE in found else None
    if gain is not None:
        value = f"{gain.mean:+.1f} points".replace("-", "−")
        stats.append(Stat(value, "chain-sampled models over the mean of an RBM, in the same episodes"))
    return stats


def best_propagation(found: Mapping[str, BySeed]) -> str | None:
    """The most accurate label propagation that uses no class prior."""
    names = [name for name in found if name.startswith(PROPAGATION) and "," not in name]
    return max(names, key=lambda name: interval(found[name]).mean, default=None)


def demo_summary(folders: Sequence[str | Path]) -> dict[str, list[Finding]]:
    """Findings of several runs under headings: what the paper claims, and what goes beyond it."""
    findings = []
    for folder in folders:
        header, rows = read_header(folder), read_results(folder)
        if header["experiment"] == "manifolds":
            findings += manifold_findings(verdicts(rows))
        else:
            findings += one_shot_findings(accuracies(rows, header["config"]["shots"][0]))
    beyond = [finding for finding in findings if finding.text.startswith(BEYOND)]
    return {
        "What the paper claims, measured again:": [f for f in findings if f not in beyond],
        "Beyond the paper:": [replace(f, text=_sentence(f.text.removeprefix(BEYOND))) for f in beyond],
    }


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
