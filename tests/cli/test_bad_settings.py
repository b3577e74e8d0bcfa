"""Settings out of range: refused in one line, before anything is written."""

from pathlib import Path

import pytest

from cli.conftest import Copy
from cli.lines import assert_refused
from ebse.cli import fits

SETTINGS = {
    "--class-prior equal": "class_prior must be left out where labels do not spread",
    "--n-rounds 3": "n_rounds must be left out where labels do not spread",
    "--n-rounds -1": "n_rounds must be >= 0, got -1",
    "--n-components 0": "n_components must be >= 1, got 0",
    "--n-components -1": "n_components must be >= 1, got -1",
    "--n-components many": "--n-components",
    "--law normal": "law must be",
    "--bias-law normal": "bias_law must be",
    "--noise 2": "noise must",
    "--noise -1": "noise must",
    "--noise nan": "noise must",
    "--law gaussian --noise -1": "noise must",
    "--law point --noise 0.5": "noise must",
    "--n-epochs -1": "n_epochs must be >= 0, got -1",
    "--n-epochs many": "n_epochs must be 'auto' or a whole number, got 'many'",
    "--batch-size 0": "batch_size must be >= 1, got 0",
    "--batch-size -5": "batch_size must be >= 1",
    "--learning-rate 0": "learning_rate must",
    "--learning-rate -1": "learning_rate must",
    "--learning-rate nan": "learning_rate must",
    "--learning-rate inf": "learning_rate must",
    "--learning-rate fast": "--learning-rate",
    "--momentum 1": "momentum must",
    "--momentum -0.1": "momentum must",
    "--momentum nan": "momentum must",
    "--weight-decay -1": "weight_decay must",
    "--weight-decay nan": "weight_decay must",
    "--algorithm adam": "algorithm must be one of 'pcd'",
    "--n-gibbs-steps 0": "n_gibbs_steps must be >= 1",
    "--random-state -1": "random_state must",
    "--random-state 99999999999": "random_state must",
    "--random-state dice": "--random-state",
    "--color red": "--color",
    "--out": "--out",
    "--out notes.txt": "notes.txt must be a folder",
    "--out notes.txt/run": "notes.txt must be a folder",
    "--out full": "folder must be new, empty or a run",
    "--out full --force": "full",
    "--config nowhere.toml": "nowhere.toml",
    "--config broken.toml": "at line 1",
    "--config strange.toml": "color",
    "--config worse.toml": "n_components must be >= 1",
    "more.csv": "more.csv",
}
FILES = {
    "notes.txt": "hello",
    "full/notes.txt": "hello",
    "broken.toml": "n_epochs = = 3\n",
    "strange.toml": 'color = "red"\n',
    "worse.toml": "n_components = 0\n",
}


@pytest.fixture
def idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that is refused may have begun to work."""

    def work(*arguments: object) -> None:
        raise AssertionError("work was begun")

    monkeypatch.setattr(fits, "carry_out", work)


@pytest.mark.usefixtures("idle")
@pytest.mark.parametrize("options", SETTINGS)
def test_a_bad_setting(
    options: str,
    copied: Copy,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    copied("rows.csv", tmp_path)
    (tmp_path / "full").mkdir()
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    assert_refused(f"fit rows.csv --label kind {options}", SETTINGS[options], tmp_path, monkeypatch, capsys)
