"""Checkpoints: resumed runs equal uninterrupted ones bit for bit, and damaged checkpoints are refused."""

import errno
import os
import pickle
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from scipy import sparse
from torch import Tensor

from ebse.laws import Bernoulli, Gaussian, Law, Point
from ebse.models.storage import load_ensemble
from ebse.training import (
    Algorithm1,
    ContrastiveDivergence,
    DataChangedError,
    DivergedError,
    EarlyStopping,
    EffectiveAscent,
    GradientAscent,
    Training,
    initial_ensemble,
    resume,
)
from ebse.training.checkpoint import RunFolder
from ebse.training.monitors import Row
from learning import DATA, D

N_EPOCHS = 6
SETTINGS: dict[str, tuple[type[Law], torch.dtype, dict[str, Any]]] = {
    "fused": (Bernoulli, torch.float32, {}),
    "fused, momentum": (
        Gaussian,
        torch.float32,
        {"m_step": EffectiveAscent(0.2, momentum=0.5, settle_every=4)},
    ),
    "plain": (Bernoulli, torch.float64, {"e_step": ContrastiveDivergence(k=2)}),
    "mean field": (Point, torch.float64, {"e_step": ContrastiveDivergence(units="mean")}),
    "alpha": (Gaussian, torch.float64, {"m_step": GradientAscent(0.2, momentum=0.5, centered=True)}),
    "algorithm 1": (
        Bernoulli,
        torch.float64,
        {"e_step": Algorithm1(persistent=True), "m_step": GradientAscent(0.2, schedule="linear")},
    ),
}


def begin(name: str, folder: Path, v: Any = None, **options: Any) -> Training:
    law, dtype, settings = SETTINGS[name]
    g = torch.Generator().manual_seed(4)
    first = initial_ensemble(DATA.to(dtype), 3, law=law, generator=g)
    run = Training(first, batch_size=25, generator=g, **settings)
    return run.fit(DATA if v is None else v, N_EPOCHS, folder=folder, **options)


@pytest.fixture(autouse=True)
def signals() -> Iterator[None]:
    """SIGINT as at a terminal: a process in the background of a shell ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class StopError(Exception):
    """Breaks a run off."""


def stop_after(epoch: int) -> Any:
    def callback(row: Row) -> None:
        if row["epoch"] == epoch:
            raise StopError

    return callback


@pytest.mark.parametrize("name", sorted(SETTINGS))
def test_a_resumed_run_ends_with_the_same_file(name: str, tmp_path: Path) -> None:
    whole = begin(name, tmp_path / "whole")
    with pytest.raises(StopError):
        begin(name, tmp_path / "broken", callback=stop_after(2))
    with pytest.raises(StopError):
        resume(tmp_path / "broken", DATA, callback=stop_after(4))
    resumed = resume(tmp_path / "broken", DATA)
    one, two = (tmp_path / part / "model.safetensors" for part in ("whole", "broken"))
    assert one.read_bytes() == two.read_bytes()
    assert resumed.history == whole.history
    effective = load_ensemble(one).W.effective()
    assert torch.equal(effective, resumed.ensemble.W.effective())


def test_another_seed_ends_with_another_file(tmp_path: Path) -> None:
    """The twin: equal files mean something."""
    begin("fused", tmp_path / "a")
    g = torch.Generator().manual_seed(5)
    first = initial_ensemble(DATA.float(), 3, law=Bernoulli, generator=g)
    Training(first, batch_size=25, generator=g).fit(DATA, N_EPOCHS, folder=tmp_path / "b")
    one, two = (tmp_path / part / "model.safetensors" for part in "ab")
    assert one.read_bytes() != two.read_bytes()


def test_the_folder_has_a_checkpoint_before_the_first_step(tmp_path: Path) -> None:
    class Never:
        shape, dtype = (60, 6), torch.float64

        def __getitem__(self, rows: Any) -> Any:
            # The first look is at the rows that are watched; the next would be the first batch.
            if (tmp_path / "run").exists():
                raise StopError
            return DATA.numpy()[rows]

    with pytest.raises(StopError):
        begin("fused", tmp_path / "run", Never())
    assert [path.name for path in RunFolder(tmp_path / "run").checkpoints] == [
        "checkpoint-000000000000.safetensors"
    ]


def test_the_last_two_checkpoints_are_kept(tmp_path: Path) -> None:
    begin("fused", tmp_path)
    assert len(RunFolder(tmp_path).checkpoints) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "checkpoint-000000000015.safetensors",
        "checkpoint-000000000018.safetensors",
        "model.safetensors",
    ]


def test_a_finished_run_is_left_alone(tmp_path: Path) -> None:
    begin("fused", tmp_path)
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in tmp_path.iterdir()}
    run = resume(tmp_path, DATA)
    assert len(run.history) == N_EPOCHS
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize(
    ("number", "exception"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit)]
)
def test_signals_stop_after_the_mini_batch_and_save(
    number: signal.Signals, exception: type[BaseException], tmp_path: Path
) -> None:
    """The signal comes while a chunk is read, in the middle of an epoch."""
    reads = 0

    def chunks() -> Iterator[Tensor]:
        nonlocal reads
        reads += 1
        yield DATA[:30].float()
        if reads == 4:
            os.kill(os.getpid(), number)
        yield DATA[30:].float()

    with pytest.raises(
        exception, match=r"stopped after step \d+ \(epoch \d\); continue with ebse.training.resume\('"
    ):
        begin("fused", tmp_path / "broken", chunks)
    facts, _ = RunFolder(tmp_path / "broken").read()
    assert facts["progress"]["batch"] == 3
    resume(tmp_path / "broken", chunks)
    begin("fused", tmp_path / "whole", chunks)
    one, two = (tmp_path / part / "model.safetensors" for part in ("whole", "broken"))
    assert one.read_bytes() == two.read_bytes()


def test_an_interrupted_run_without_a_folder_can_go_on(generator: torch.Generator) -> None:
    def chunks() -> Iterator[Tensor]:
        yield DATA[:30]
        os.kill(os.getpid(), signal.SIGINT)
        yield DATA[30:]

    run = Training(initial_ensemble(DATA, 3, generator=generator), batch_size=25, generator=generator)
    with pytest.raises(
        KeyboardInterrupt, match=r"stopped after step 3 .*; fit of the same Training continues"
    ):
        run.fit(chunks, 2)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert len(run.fit(DATA, 2).history) == 2


def test_minutes_write_in_the_middle_of_an_epoch(tmp_path: Path) -> None:
    """A checkpoint after every mini-batch: the last two of them are steps 17 and 18."""
    begin("fused", tmp_path, every_epochs=None, every_minutes=0)
    names = [path.name for path in RunFolder(tmp_path).checkpoints]
    assert names == ["checkpoint-000000000017.safetensors", "checkpoint-000000000018.safetensors"]


@pytest.mark.parametrize("name", sorted(SETTINGS))
def test_early_stopping_survives(name: str, tmp_path: Path) -> None:
    options = {"held_out": DATA[:10], "early_stopping": EarlyStopping(patience=2)}
    begin(name, tmp_path / "whole", **options)
    with pytest.raises(StopError):
        begin(name, tmp_path / "broken", callback=stop_after(2), **options)
    with pytest.raises(DataChangedError, match="held_out must be what the run began with"):
        resume(tmp_path / "broken", DATA)
    with pytest.raises(DataChangedError, match="held_out must be what the run began with"):
        resume(tmp_path / "broken", DATA, held_out=DATA[10:20])
    resume(tmp_path / "broken", DATA, held_out=DATA[:10])
    one, two = (tmp_path / part / "model.safetensors" for part in ("whole", "broken"))
    assert one.read_bytes() == two.read_bytes()


def test_a_diverged_state_is_not_written(tmp_path: Path, generator: torch.Generator) -> None:
    """Checkpoints after every mini-batch: the last that is kept is sound."""
    first = initial_ensemble(DATA.float(), 3, law=Bernoulli, generator=generator)
    run = Training(first, m_step=EffectiveAscent(1e6), batch_size=25, generator=generator)
    with pytest.raises(DivergedError, match=r"diverged at step \d+: K\(1\) of W"):
        run.fit(DATA, 5, folder=tmp_path, every_minutes=0)
    _, tensors = RunFolder(tmp_path).read()
    assert all(torch.isfinite(x).all() for x in tensors.values())
    assert tensors["ascent/W/x"].abs().max() < 80


def test_other_monitors_are_refused(broken: Path) -> None:
    with pytest.raises(ValueError, match="monitors must be what the run began with"):
        resume(broken, DATA, monitors=())


def test_other_circumstances_are_said(broken: Path) -> None:
    torch.set_num_threads(2)
    try:
        with pytest.warns(UserWarning, match="may differ in its last bits from one that was never stopped"):
            resume(broken, DATA)
    finally:
        torch.set_num_threads(1)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"every_epochs": 0}, ValueError, "every_epochs must be >= 1, got 0"),
        ({"every_minutes": "1"}, ValueError, "every_minutes must be a number >= 0 or None, got '1'"),
        (
            {"early_stopping": True, "held_out": DATA},
            TypeError,
            "early_stopping must be an EarlyStopping, got True",
        ),
    ],
)
def test_options_are_checked_before_any_work(
    options: dict[str, Any], error: type[Exception], message: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=message):
        begin("fused", tmp_path / "run", **options)
    assert not (tmp_path / "run").exists()


def test_an_existing_run_is_not_overwritten(tmp_path: Path) -> None:
    begin("fused", tmp_path)
    with pytest.raises(
        FileExistsError, match=r"must not hold a run already, got one; continue it by ebse.training.resume"
    ):
        begin("fused", tmp_path)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"m_step": EffectiveAscent(schedule=lambda done: 1.0)}, "schedule must be a word or a number"),
        ({"m_step": GradientAscent(optimizer=torch.optim.Adam)}, "optimizer must be a word or a number"),
    ],
)
def test_settings_that_cannot_be_saved_are_refused_at_once(
    settings: dict[str, Any], message: str, tmp_path: Path, generator: torch.Generator
) -> None:
    run = Training(initial_ensemble(DATA, 3, generator=generator), generator=generator, **settings)
    with pytest.raises(TypeError, match=message):
        run.fit(DATA, 1, folder=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    with pytest.raises(StopError):
        begin("fused", tmp_path, callback=stop_after(3))
    return tmp_path


def test_a_damaged_checkpoint_is_an_error_and_the_one_before_is_named(broken: Path) -> None:
    before, last = RunFolder(broken).checkpoints
    whole = last.read_bytes()
    for content in (whole[:-1], whole[: len(whole) // 2], b"", whole[:-3] + b"abc"):
        last.write_bytes(content)
        with pytest.raises(
            ValueError, match=rf"{last.name}.*the one before is {before.name}: remove {last.name}"
        ):
            resume(broken, DATA)
    last.unlink()
    assert len(resume(broken, DATA).history) == N_EPOCHS


def test_other_data_are_refused(broken: Path) -> None:
    with pytest.raises(DataChangedError, match="v must be what the run began with"):
        resume(broken, DATA[:50])
    with pytest.raises(DataChangedError, match="v must be what the run began with"):
        resume(broken, 1 - DATA)


def test_data_with_other_columns_are_refused(broken: Path) -> None:
    other = torch.zeros(60, D + 1)
    with pytest.raises(
        DataChangedError, match=rf"v must be .* \({D} columns\), got {D + 1} columns"
    ) as caught:
        resume(broken, other)
    assert caught.value.name == "v"
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


@pytest.mark.parametrize("row", [0, 1, 30, 59])
def test_one_changed_row_is_noticed(broken: Path, row: int) -> None:
    other = DATA.clone()
    other[row] = 1 - other[row]
    for v in (other, other.numpy(), sparse.csr_matrix(other.numpy())):
        with pytest.raises(
            DataChangedError, match=r"v must be what the run began with \(60 rows\), got 60 rows, others"
        ):
            resume(broken, v)


def test_the_same_data_in_another_form_will_do(broken: Path, tmp_path: Path) -> None:
    resume(broken, sparse.csr_matrix(DATA.numpy()))
    begin("fused", tmp_path / "whole", DATA.numpy())
    assert (broken / "model.safetensors").read_bytes() == (
        tmp_path / "whole" / "model.safetensors"
    ).read_bytes()


def test_folders_without_a_run_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="must hold a checkpoint of a run, got none"):
        resume(tmp_path, DATA)
    with pytest.raises(FileNotFoundError, match="does not exist; pass the folder of a run"):
        resume(tmp_path / "missing", DATA)


def test_a_full_disk_leaves_the_last_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = Path.write_bytes
    written = 0

    def full(path: Path, content: bytes) -> int:
        nonlocal written
        written += 1
        if written == 4:
            with path.open("wb") as file:
                file.write(content[: len(content) // 2])
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(path, content)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", full)
        with pytest.raises(OSError, match=r"No space left on device.*what was there before is untouched"):
            begin("fused", tmp_path / "broken")
    assert not list((tmp_path / "broken").glob("*.partial"))
    resume(tmp_path / "broken", DATA)
    begin("fused", tmp_path / "whole")
    one, two = (tmp_path / part / "model.safetensors" for part in ("whole", "broken"))
    assert one.read_bytes() == two.read_bytes()


@pytest.mark.parametrize("every_epochs", [1, None], ids=["at a checkpoint", "at the end"])
def test_a_removed_folder_is_not_recreated(tmp_path: Path, every_epochs: int | None) -> None:
    """The run stops with an error; a new folder would lack its other files."""
    folder = tmp_path / "above" / "run"

    def remove(row: Row) -> None:
        if row["epoch"] == 2:
            shutil.rmtree(tmp_path / "above")

    with pytest.raises(FileNotFoundError, match=r"above.run was removed while the run was training"):
        begin("fused", folder, callback=remove, every_epochs=every_epochs)
    assert not list(tmp_path.iterdir())


def test_temporary_files_of_killed_processes_are_removed(broken: Path) -> None:
    """A file of a process that still runs stays, and so does any other file."""
    killed = subprocess.Popen([sys.executable, "-c", "pass"])
    killed.wait()
    stale = broken / f".checkpoint-000000000009.safetensors.{killed.pid}.partial"
    in_use = broken / f".model.safetensors.{os.getpid()}.partial"
    other = broken / ".notes.partial"
    for path in (stale, in_use, other):
        path.write_bytes(b"half")
    RunFolder(broken)
    assert not stale.exists()
    assert in_use.exists()
    assert other.exists()
    in_use.unlink()
