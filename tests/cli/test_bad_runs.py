"""Damaged runs, and runs whose data changed: refused in one line, and left unchanged."""

from collections.abc import Callable

import pytest

from cli.bad_files import BITS, npz
from cli.bad_runs import FIVE, NEW, OTHERS, Bad, both, cut, reconfigured, rows
from cli.lines import SMALL

DAMAGED = {
    "info, nothing": Bad("", "info nowhere", "nowhere does not exist; check the name"),
    "info, nonsense": Bad("", "info x.bin", "a file of another kind (.bin)", rows(b"\1\2\3\4", "x.bin")),
    "info, an empty folder": Bad("", "info d", "d must hold images", lambda folder: (folder / "d").mkdir()),
    "info, no model": Bad("", "info x.safetensors", "x.safetensors does not exist; check the name"),
    "info, half a model": Bad(
        "run", "info run/model.safetensors", "restore it from a copy", cut("run/model.safetensors")
    ),
    "info, text for a model": Bad(
        "", "info x.safetensors", "restore it from a copy", rows(b"hello there", "x.safetensors")
    ),
    "info, an empty model": Bad(
        "", "info x.safetensors", "restore it from a copy", rows(b"", "x.safetensors")
    ),
    "info, a folder for a model": Bad(
        "", "info x.safetensors", "got a folder", lambda folder: (folder / "x.safetensors").mkdir()
    ),
    "info, a broken header": Bad(
        "run", "info run", "config.json must be written by ebse", rows(b"{", "run/config.json")
    ),
    "info, an empty header": Bad(
        "run", "info run", "config.json must be written by ebse", rows(b"", "run/config.json")
    ),
    "info, a list for a header": Bad(
        "run", "info run", "config.json must be written by ebse", rows(b"[]", "run/config.json")
    ),
    "info, bytes for a header": Bad(
        "run", "info run", "config.json must be written by ebse", rows(b"\xff\xfe", "run/config.json")
    ),
    "info, broken results": Bad(
        "run", "info run", "rows.jsonl must hold a line of JSON", rows(b"{\n", "run/rows.jsonl")
    ),
    "info, numbers for results": Bad(
        "run", "info run", "rows.jsonl must hold", rows(b"3\n", "run/rows.jsonl")
    ),
    "info, data without content": Bad(
        "", "info x.csv", "none that is usable", rows(b"a,b\n,1\n,1\n", "x.csv")
    ),
    "info, no such label": Bad(
        "", "info x.csv --label z", "the column that --label names", rows(NEW, "x.csv")
    ),
    "resume, nothing": Bad("", "resume nowhere", "nowhere does not exist; check the name"),
    "resume, nothing named": Bad("", "resume", "requires an argument"),
    "resume, a file": Bad("", "resume x.csv", "x.csv", rows(NEW, "x.csv")),
    "resume, a folder": Bad(
        "",
        "resume d",
        "folder must be a run, got d, which has no config.json",
        lambda folder: (folder / "d").mkdir(),
    ),
    "resume, data gone": Bad(
        "stopped", "resume stopped", "gone.csv must be a table", reconfigured("stopped", data="gone.csv")
    ),
    "resume, data changed": Bad(
        "stopped", "resume stopped", "new.csv", both(rows(OTHERS), reconfigured("stopped", data="new.csv"))
    ),
    "resume, data without a column": Bad(
        "stopped", "resume stopped", "new.csv", both(rows(FIVE), reconfigured("stopped", data="new.csv"))
    ),
    "resume, data with fewer rows": Bad(
        "stopped",
        "resume stopped",
        "new.csv",
        both(rows(NEW[:-30].rpartition(b"\n")[0]), reconfigured("stopped", data="new.csv")),
    ),
    "resume, data of text": Bad(
        "stopped",
        "resume stopped",
        "'x' in line",
        both(rows(NEW.replace(b"\n1", b"\nx")), reconfigured("stopped", data="new.csv")),
    ),
    "resume, unknown settings": Bad(
        "stopped", "resume stopped", "settings of this version of ebse", reconfigured("stopped", color="red")
    ),
    "resume, bad settings": Bad(
        "stopped", "resume stopped", "n_components must", reconfigured("stopped", n_components="many")
    ),
    "resume, a broken header": Bad(
        "stopped", "resume stopped", "must be written by ebse", rows(b"{}", "stopped/config.json")
    ),
    "resume, broken results": Bad(
        "stopped", "resume stopped", "rows.jsonl must hold", rows(b"hello\n", "stopped/rows.jsonl")
    ),
    "resume, numbers for results": Bad(
        "stopped", "resume stopped", "rows.jsonl must hold", rows(b"3\n", "stopped/rows.jsonl")
    ),
    "resume, a broken checkpoint": Bad(
        "stopped",
        "resume stopped",
        "must be a file written by ebse",
        lambda folder: [path.write_bytes(b"hello") for path in (folder / "stopped" / "training").iterdir()],
    ),
    "fit, a run there": Bad(
        "run", f"fit new.csv --label kind --out run {SMALL}", "run must not hold a run already", rows(NEW)
    ),
    "fit, a run under way there": Bad(
        "stopped", f"fit new.csv --drop kind --out stopped {SMALL}", "begin again with --force", rows(NEW)
    ),
    "fit, again but badly": Bad(
        "run", "fit new.csv --label kind --out run --force --n-components 0", "n_components must", rows(NEW)
    ),
    "fit, again over other files": Bad(
        "run",
        "fit new.csv --label kind --out run --force",
        "notes.txt",
        both(rows(NEW), rows(b"mine", "run/notes.txt")),
    ),
    "fit, again over an experiment": Bad(
        "run",
        "fit new.csv --label kind --out run --force",
        "run must be a run of `ebse fit`",
        both(
            rows(NEW),
            lambda folder: (folder / "run" / "config.json").write_text(
                (folder / "run" / "config.json").read_text().replace('"fit"', '"manifolds"')
            ),
        ),
    ),
    "fit, again over a broken run": Bad(
        "run",
        "fit new.csv --label kind --out run --force",
        "config.json must be written by ebse",
        both(rows(NEW), rows(b"{}", "run/config.json")),
    ),
    "report, nothing": Bad("", "report nowhere", "folder must be a run, got nowhere"),
    "report, no results": Bad(
        "stopped", "report stopped", "which has none yet; go on with `ebse resume stopped`"
    ),
    "report, broken results": Bad(
        "run", "report run", "rows.jsonl must hold", rows(b"{\n", "run/rows.jsonl")
    ),
    "report, numbers for results": Bad(
        "run", "report run", "rows.jsonl must hold", rows(b"3\n", "run/rows.jsonl")
    ),
    "report, results without a kind": Bad(
        "run", "report run", "rows.jsonl must hold", rows(b"{}\n", "run/rows.jsonl")
    ),
    "report, half of the pictures": Bad("run", "report run", "pictures.npz must", cut("run/pictures.npz")),
    "report, other pictures": Bad(
        "run", "report run", "pictures.npz must", rows(npz(X=BITS), "run/pictures.npz")
    ),
    "report, empty predictions": Bad(
        "run", "report run", "predictions.csv must", rows(b"", "run/predictions.csv")
    ),
    "report, other predictions": Bad(
        "run", "report run", "predictions.csv must", rows(b"a,b\n1\n2\n", "run/predictions.csv")
    ),
    "an unknown command": Bad("", "learn x.csv", "learn"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_run(name: str, refused: Callable[[Bad], None]) -> None:
    refused(DAMAGED[name])
