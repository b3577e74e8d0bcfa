"""``make demo``: the experiments of the paper and label propagation in two minutes, and a page."""

import argparse
import os
import sys
import textwrap
import warnings
from pathlib import Path

from ebse.cli._show import Progress, note, say
from ebse.paper import demo_parts


def main() -> int:
    """Run the demo: 0 when it ran, 2 if it would overwrite other files, 130 after Ctrl-C."""
    warnings.showwarning = lambda message, *_, **__: note(str(message))
    parser = argparse.ArgumentParser(prog="python -m ebse.cli.demo", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("demo"), help="folder for the runs and the page")
    parser.add_argument("--workers", type=int, default=min(os.cpu_count() or 1, 8), help="processes")
    options = parser.parse_args()
    try:
        parts = demo_parts(options.out, n_workers=options.workers)
    except FileExistsError as error:
        note(f"{error}")
        return 2
    for title, _, steps in parts:
        print(f"{title} …", file=sys.stderr)
        progress = Progress()
        try:
            for step in steps:
                progress.at(step)
        except KeyboardInterrupt:
            progress.close()
            say(f"Interrupted. The finished results are in {options.out}.")
            return 130
        progress.close()
    # Processes of the experiment import this file again and need no figures.
    from ebse.report import write_report
    from ebse.report.findings import WORDS, demo_summary

    folders = [part.folder for part in parts]
    page = write_report(folders, options.out / "report.html")
    for heading, findings in demo_summary(folders).items():
        say(f"\n{heading}\n")
        for finding in findings:
            text = f"{finding.text}. {finding.measured} ({finding.expected})."
            verdict = f"  {WORDS[finding.verdict]:15}"
            say(textwrap.fill(text, 110, initial_indent=verdict, subsequent_indent=" " * len(verdict)))
    say(f"\nThe page with figures and tables: {page}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
