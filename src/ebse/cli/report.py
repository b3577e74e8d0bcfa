"""``ebse report``: one HTML page about runs."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ebse.cli._command import Json, command
from ebse.cli._show import say, say_json

app = command("report", "report runs/table", "report runs/one-shot-digits runs/manifolds --out page.html")


@app.default
def report(
    *runs: Annotated[Path, Parameter(help="Folders that `ebse fit` or `ebse experiment` wrote.")],
    out: Annotated[Path, Parameter(help="The page, a file .html.")] = Path("report.html"),
    figures: Annotated[
        Path | None, Parameter(help="Folder for the figures as PNG files, if they are wanted separately.")
    ] = None,
    json: Json = False,
) -> None:
    """Write one HTML page about one or more runs."""
    if out.suffix.lower() not in (".html", ".htm") or out.is_dir():
        raise ValueError(f"--out must be a page that ends in .html, got {out}; choose another name")
    from ebse.report import write_report

    path = write_report(runs, out, figures=figures)
    if json:
        say_json({"report": str(path)})
    else:
        say(f"Report: {path}")
