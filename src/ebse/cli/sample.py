"""``ebse sample``: new rows by the ensemble of a run."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ebse._validation import count
from ebse.cli._command import Force, Json, Run, command
from ebse.cli._show import say, say_json
from ebse.workflow.run_folder import read_header

app = command("sample", "sample runs/table --n-samples 100 --out new-rows.csv")


@app.default
def sample(
    run: Run,
    *,
    n_samples: Annotated[int, Parameter(name=["--n-samples", "-n"], help="Number of new rows.")] = 16,
    n_sweeps: Annotated[int, Parameter(help="Gibbs sweeps of each chain.")] = 200,
    random_state: Annotated[int | None, Parameter(help="Seed. Default: that of the run.")] = None,
    out: Annotated[Path, Parameter(help="A file .csv, .npy or .npz.")] = Path("samples.csv"),
    force: Force = False,
    json: Json = False,
) -> None:
    """Generate new rows by Gibbs sampling; each value is the minimum or the maximum of its feature."""
    read_header(run)
    from ebse.workflow.fit import load
    from ebse.workflow.outputs import require_writable, write_array

    count("n_samples", n_samples)
    count("n_sweeps", n_sweeps, least=0)
    fitted = load(run)
    rbse, columns = fitted.ensemble, fitted.columns
    assert columns is not None
    path = require_writable(out, force=force)
    X = rbse.sample(n_samples, n_sweeps=n_sweeps, random_state=random_state)
    write_array(path, X, columns.features)
    if json:
        say_json({"out": str(path), "shape": list(X.shape)})
    else:
        say(f"{path}: {' × '.join(map(str, X.shape))}")
