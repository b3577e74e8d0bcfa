"""Bad use of a run: refused in one line."""

from collections.abc import Callable

import numpy as np
import pytest

from cli.bad_files import BITS, image, npy, npz
from cli.bad_runs import FIVE, NEW, NO_LABELS, Bad, both, cut, rows, without

USE = {
    "predict, no run": Bad("", "predict nowhere new.csv", "folder must be a run, got nowhere", rows(NEW)),
    "predict, no data": Bad("run", "predict run nowhere.csv", "does not exist; check the name"),
    "predict, nothing named": Bad("run", "predict run", "requires an argument"),
    "predict, a column less": Bad(
        "run", "predict run new.csv", "without 'f'; give a file with the same columns", rows(FIVE)
    ),
    "predict, text": Bad(
        "run",
        "predict run new.csv",
        "'x' in line 2, column 'a'",
        rows(NEW.replace(b"\n1", b"\nx", 1).replace(b"\n0", b"\nx", 1)),
    ),
    "predict, a gap": Bad(
        "run", "predict run new.csv", "a missing one in line 2", rows(b"a,b,c,d,e,f\n0,1,,0,1,1\n")
    ),
    "predict, no rows": Bad(
        "run", "predict run new.csv", "at least 1 row and one column", rows(b"a,b,c,d,e,f\n")
    ),
    "predict, a run without labels": Bad(
        "plain",
        "predict plain new.csv",
        "plain must have labels, got a run without; fit with --label",
        rows(NEW),
    ),
    "predict, a run under way": Bad(
        "stopped",
        "predict stopped new.csv",
        "got a run under way; go on with `ebse resume stopped`",
        rows(NEW),
    ),
    "predict, out exists": Bad(
        "run", "predict run new.csv --out new.csv", "--out must be new, got new.csv, which exists", rows(NEW)
    ),
    "predict, usual out exists": Bad(
        "run", "predict run new.csv", "pass --force", both(rows(NEW), rows(b"mine", "new-predictions.csv"))
    ),
    "predict, out is a folder": Bad(
        "run",
        "predict run new.csv --out run.csv --force",
        "--out must be",
        both(rows(NEW), lambda folder: (folder / "run.csv").mkdir()),
    ),
    "predict, out below a file": Bad("run", "predict run new.csv --out new.csv/x.csv", "new.csv", rows(NEW)),
    "predict, another suffix": Bad(
        "run", "predict run new.csv --out x.npy", "--out must end in .csv, got x.npy", rows(NEW)
    ),
    "predict, too few pixels": Bad(
        "run",
        "predict run d",
        "have 6 values in a row, as the data of the run, got 4",
        both(lambda folder: (folder / "d").mkdir(), rows(image(np.zeros((2, 2), np.uint8)), "d/x.png")),
    ),
    "predict, an array of fewer columns": Bad(
        "run", "predict run new.npy", "without 'a', 'b'", rows(npy(BITS), "new.npy")
    ),
    "predict, no model": Bad(
        "run", "predict run new.csv", "model.safetensors", both(rows(NEW), without("run/model.safetensors"))
    ),
    "predict, half a model": Bad(
        "run",
        "predict run new.csv",
        "model.safetensors must be a file written by ebse",
        both(rows(NEW), cut("run/model.safetensors")),
    ),
    "predict, no columns": Bad(
        "run", "predict run new.csv", "columns.npz must be", both(rows(NEW), without("run/columns.npz"))
    ),
    "predict, half of the columns": Bad(
        "run", "predict run new.csv", "columns.npz must be", both(rows(NEW), cut("run/columns.npz"))
    ),
    "predict, other columns": Bad(
        "run",
        "predict run new.csv",
        "columns.npz must be",
        both(rows(NEW), rows(npz(X=BITS), "run/columns.npz")),
    ),
    "predict, half of the labels": Bad(
        "run", "predict run new.csv", "labeled.npz must be", both(rows(NEW), cut("run/labeled.npz"))
    ),
    "predict, pickled labels": Bad(
        "run",
        "predict run new.csv",
        "labeled.npz must be",
        both(rows(NEW), rows(npz(X=BITS, y=np.array([None])), "run/labeled.npz")),
    ),
    "transform, draws as a table": Bad(
        "run",
        "transform run new.csv --n-draws 3 --out x.csv",
        "--out must end in .npy, .npz, got x.csv",
        rows(NEW),
    ),
    "transform, sweeps without draws": Bad(
        "run", "transform run new.csv --n-sweeps 3", "n_draws must be >= 1", rows(NEW)
    ),
    "transform, keep_prob without draws": Bad(
        "run", "transform run new.csv --keep-prob 0.5", "pass --n-draws 10", rows(NEW)
    ),
    "transform, keep_prob beyond 1": Bad(
        "run", "transform run new.csv --n-draws 2 --keep-prob 2", "keep_prob must", rows(NEW)
    ),
    "transform, sigma of another law": Bad(
        "run", "transform run new.csv --n-draws 2 --sigma 0.5", "keep_prob", rows(NEW)
    ),
    "transform, draws below 0": Bad(
        "run", "transform run new.csv --n-draws -1", "n_draws must be >= 0", rows(NEW)
    ),
    "transform, sweeps below 0": Bad(
        "run", "transform run new.csv --n-draws 1 --n-sweeps -1", "n_sweeps must be >= 0", rows(NEW)
    ),
    "transform, unknown suffix": Bad(
        "run", "transform run new.csv --out x.txt", "--out must end in .npy, .npz, .csv", rows(NEW)
    ),
    "transform, no suffix": Bad("run", "transform run new.csv --out x", "--out must end in", rows(NEW)),
    "transform, out exists": Bad(
        "run", "transform run new.csv --out x.npy", "which exists", both(rows(NEW), rows(b"", "x.npy"))
    ),
    "transform, a run under way": Bad("stopped", "transform stopped new.csv", "must be finished", rows(NEW)),
    "transform, a file for a run": Bad("", "transform new.csv new.csv", "new.csv", rows(NEW)),
    "transform, a delimiter of an array": Bad(
        "run",
        "transform run x.npy --delimiter ,",
        "--delimiter must be for a table",
        rows(npy(BITS), "x.npy"),
    ),
    "sample, none": Bad("run", "sample run --n-samples 0", "n_samples must be >= 1, got 0"),
    "sample, sweeps below 0": Bad("run", "sample run --n-sweeps -1", "n_sweeps must be >= 0"),
    "sample, a seed below 0": Bad("run", "sample run --random-state -1", "random_state must"),
    "sample, out exists": Bad(
        "run", "sample run", "got samples.csv, which exists", rows(b"mine", "samples.csv")
    ),
    "sample, another suffix": Bad("run", "sample run --out x.png", "--out must end in .csv, .npy, .npz"),
    "sample, a run under way": Bad("stopped", "sample stopped", "go on with `ebse resume stopped`"),
    "evaluate, 0 shots": Bad("run", "evaluate run --shots 0", "shots must be >= 1, got 0"),
    "evaluate, shots below 0": Bad("run", "evaluate run --shots 1 -2", "shots must be >= 1"),
    "evaluate, more shots than rows": Bad(
        "run", "evaluate run --shots 10", "at least 11 labeled rows of every class, got 10"
    ),
    "evaluate, no episodes": Bad("run", "evaluate run --n-episodes 0", "n_episodes must be >= 1"),
    "evaluate, a seed below 0": Bad(
        "run", "evaluate run --random-state -1 --n-episodes 1", "random_state must"
    ),
    "evaluate, no labels": Bad("plain", "evaluate plain", "plain must have labels"),
    "evaluate, no labels to learn": Bad(
        "plain",
        "evaluate plain new.csv",
        "got none; fit with --label",
        rows(b"," + NEW.replace(b"\n", b"\n1,").removesuffix(b"1,")),
    ),
    "evaluate, no label column": Bad(
        "run",
        "evaluate run new.csv",
        "must have the label column",
        rows(b"\n".join(x.rpartition(b",")[0] for x in NEW.split(b"\n"))),
    ),
    "evaluate, labels all empty": Bad("run", "evaluate run new.csv", "no label at all", rows(NO_LABELS)),
    "evaluate, a run under way": Bad("stopped", "evaluate stopped", "must be finished"),
}


@pytest.mark.parametrize("name", USE)
def test_bad_use(name: str, refused: Callable[[Bad], None]) -> None:
    refused(USE[name])
