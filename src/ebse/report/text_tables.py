"""Results of an experiment as text tables."""

from pathlib import Path

from ebse.report.claims import aligned, claims_table, figures_table, verdicts
from ebse.report.summaries import accuracies, accuracy_lines, aligned_claims
from ebse.workflow.run_folder import read_header, read_results


def text_tables(folder: str | Path) -> list[str]:
    """Claims and measurements of a run."""
    header, rows = read_header(folder), read_results(folder)
    if header["experiment"] == "manifolds":
        return [claims_table(verdicts(rows)), figures_table(rows)]
    found = accuracies(rows, header["config"]["shots"][0])
    return [aligned_claims(found), aligned(accuracy_lines(found))]
