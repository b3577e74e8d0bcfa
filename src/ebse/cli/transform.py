"""``ebse transform``: representations of rows by the ensemble of a run."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ebse._validation import count
from ebse.cli._command import (
    Array,
    Data,
    Delimiter,
    Force,
    Json,
    Run,
    Sheet,
    command,
    named_after,
    require_existing,
)
from ebse.cli._show import say, say_json
from ebse.workflow.run_folder import read_header

app = command(
    "transform",
    "transform runs/table new.csv --out features.csv",
    "transform runs/digits more.npz --n-draws 10 --n-sweeps 50 --out draws.npy",
)


@app.default
def transform(
    run: Run,
    data: Data,
    *,
    out: Annotated[
        Path | None, Parameter(help="A file .npy or .npz, for means also .csv. Default: named after DATA.")
    ] = None,
    n_draws: Annotated[int, Parameter(help="Models sampled for each row; 0: the mean representation.")] = 0,
    n_sweeps: Annotated[
        int, Parameter(help="Gibbs sweeps, started at the row, before each model is sampled.")
    ] = 0,
    keep_prob: Annotated[
        float | None, Parameter(help="Another probability that a connection is present; bernoulli law.")
    ] = None,
    sigma: Annotated[
        float | None, Parameter(help="Another standard deviation of the weights; gaussian law.")
    ] = None,
    random_state: Annotated[int | None, Parameter(help="Seed. Default: that of the run.")] = None,
    delimiter: Delimiter = None,
    array: Array = None,
    sheet: Sheet = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Compute representations of rows: means (N, n_components) or samples (N, n_draws, n_components)."""
    read_header(run)
    require_existing(data)
    import numpy as np

    from ebse.workflow.ensemble import prepared
    from ebse.workflow.fit import load
    from ebse.workflow.outputs import require_writable, write_array

    count("n_draws", n_draws, least=0)
    if not n_draws and (n_sweeps or keep_prob is not None or sigma is not None):
        raise ValueError(
            "n_draws must be >= 1 with --n-sweeps, --keep-prob or --sigma, got 0; pass --n-draws 10, for "
            "example"
        )
    suffixes = (".npy", ".npz") if n_draws else (".npy", ".npz", ".csv")
    fitted = load(run)
    rbse, columns = fitted.ensemble, fitted.columns
    assert columns is not None
    path = require_writable(
        out or named_after(data, "representations", ".npy"), force=force, suffixes=suffixes
    )
    rows = fitted.read(data, delimiter=delimiter, array=array, sheet=sheet)
    X = prepared(rbse, columns, rows.X)
    if n_draws:
        H = rbse.sample_transform(
            X, n_draws, n_sweeps=n_sweeps, keep_prob=keep_prob, sigma=sigma, random_state=random_state
        )
    else:
        H = rbse.transform(X)
    write_array(path, H.astype(np.float32), [f"h{j}" for j in range(H.shape[-1])])
    if json:
        say_json({"out": str(path), "shape": list(H.shape)})
    else:
        say(f"{path}: {' × '.join(map(str, H.shape))}")
