"""``ebse predict``, ``transform``, ``sample`` and ``evaluate``: what a fitted run is used for."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ebse.cli._command import Json, command, there
from ebse.cli.fit import Force
from ebse.workflow.run_folder import read_header

predict_app = command(
    "predict", "predict runs/table new.csv", "predict runs/table new.csv --out answers.csv --json"
)
transform_app = command(
    "transform",
    "transform runs/table new.csv --out features.csv",
    "transform runs/digits more.npz --n-draws 10 --n-sweeps 50 --out draws.npy",
)
sample_app = command("sample", "sample runs/table --n-samples 100 --out made-up.csv")
evaluate_app = command("evaluate", "evaluate runs/table", "evaluate runs/table labeled.csv --shots 1 5 10")

Fit = Annotated[Path, Parameter(help="Folder that `ebse fit` wrote.")]
Data = Annotated[Path, Parameter(help="Rows with the columns that were learned from.")]
Delimiter = Annotated[str | None, Parameter(help="Of a table, where it is not the usual one.")]
Array = Annotated[str | None, Parameter(help="The array of an npz file that holds the rows.")]


@predict_app.default
def predict(
    run: Fit,
    data: Data,
    *,
    out: Annotated[Path | None, Parameter(help="Table of predictions; by default named after DATA.")] = None,
    delimiter: Delimiter = None,
    array: Array = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """What rows are taken for, by the few labels of a run, and how often rightly where they have labels."""
    read_header(run)
    there(data)
    from ebse.cli import uses

    uses.predict(run, data, out=out, delimiter=delimiter, array=array, force=force, json=json)


@transform_app.default
def transform(
    run: Fit,
    data: Data,
    *,
    out: Annotated[
        Path | None, Parameter(help=".npy or .npz, the mean also .csv; by default named after DATA.")
    ] = None,
    n_draws: Annotated[int, Parameter(help="Models drawn for each row; 0: the mean representation.")] = 0,
    n_sweeps: Annotated[int, Parameter(help="Sweeps of a walk before each draw.")] = 0,
    noise: Annotated[float | None, Parameter(help="Another noise for the draws.")] = None,
    random_state: Annotated[int | None, Parameter(help="A seed; by default that of the run.")] = None,
    delimiter: Delimiter = None,
    array: Array = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Representations of rows: their mean (N, n_components), or draws (N, n_draws, n_components)."""
    read_header(run)
    there(data)
    from ebse.cli import uses

    uses.transform(
        run,
        data,
        out=out,
        n_draws=n_draws,
        n_sweeps=n_sweeps,
        noise=noise,
        random_state=random_state,
        delimiter=delimiter,
        array=array,
        force=force,
        json=json,
    )


@sample_app.default
def sample(
    run: Fit,
    *,
    n_samples: Annotated[int, Parameter(name=["--n-samples", "-n"], help="New rows.")] = 16,
    n_sweeps: Annotated[int, Parameter(help="Sweeps of each chain.")] = 200,
    random_state: Annotated[int | None, Parameter(help="A seed; by default that of the run.")] = None,
    out: Annotated[Path, Parameter(help=".csv, .npy or .npz.")] = Path("samples.csv"),
    force: Force = False,
    json: Json = False,
) -> None:
    """New rows that the ensemble makes up: each value is the low or the high end of its feature."""
    read_header(run)
    from ebse.cli import uses

    uses.sample(
        run,
        n_samples=n_samples,
        n_sweeps=n_sweeps,
        random_state=random_state,
        out=out,
        force=force,
        json=json,
    )


@evaluate_app.default
def evaluate(
    run: Fit,
    data: Annotated[Path | None, Parameter(help="Labeled rows; by default those of the run.")] = None,
    *,
    shots: Annotated[
        tuple[int, ...], Parameter(consume_multiple=True, negative=(), help="Labeled rows of each class.")
    ] = (1, 2, 5),
    n_episodes: Annotated[int, Parameter(help="Random choices of labeled rows.")] = 100,
    random_state: Annotated[int, Parameter(help="Which choices.")] = 0,
    delimiter: Delimiter = None,
    array: Array = None,
    json: Json = False,
) -> None:
    """How well few labels would do: many random choices of labeled rows, the others asked."""
    read_header(run)
    if data is not None:
        there(data)
    from ebse.cli import uses

    uses.evaluate(
        run,
        data,
        shots=shots,
        n_episodes=n_episodes,
        random_state=random_state,
        delimiter=delimiter,
        array=array,
        json=json,
    )
