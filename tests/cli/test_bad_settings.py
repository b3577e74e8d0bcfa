"""Settings out of range: refused in one line, before anything is written."""

from pathlib import Path

import pytest

from cli.conftest import Copy
from cli.lines import assert_refused

SETTINGS = {
    "--n-components 0": "n_components must be >= 1, got 0",
    "--n-components -1": "n_components must be >= 1, got -1",
    "--n-components many": "--n-components",
    "--law normal": "law must be",
    "--bias-law normal": "bias_law must be",
    "--keep-prob 1": "keep_prob must",
    "--keep-prob 2": "keep_prob must",
    "--keep-prob -1": "keep_prob must",
    "--keep-prob nan": "keep_prob must",
    "--law gaussian --sigma -1": "sigma must",
    "--law gaussian --keep-prob 0.5": "keep_prob",
    "--law point --keep-prob 0.5": "keep_prob",
    "--sigma 0.5": "sigma",
    "--model forest": "model must be one of 'few-label', 'rbse', got 'forest'",
    "--model rbse --class-prior equal": "class_prior must be left out with --model rbse",
    "--n-components 5 --hold-back 0.2": "hold_back must be left out with n_components, a setting of the",
    "--model few-label --n-components 5": "n_components must be left out with --model few-label",
    "--class-prior some": "class_prior must be estimate, equal, labels, or like a=0.2,b=0.8, got 'some'",
    "--class-prior odd=0.5,even=0.6": "class_prior must be positive and sum to 1",
    "--class-prior odd=1": "class_prior must have a probability for each of the classes",
    "--hold-back 1": "hold_back must be from 0 to below 1, got 1",
    "--hold-back nan": "hold_back must be from 0 to below 1, got nan",
    "--column a": "column must be like zip=category, got 'a'",
    "--column z=text": "columns must name columns of X, got 'z'",
    "--column a=number": "columns must give one of quantity, category, date, text, drop for 'a', got 'number'",
    "--column a=drop b=drop c=drop d=drop e=drop f=drop": "X must have a column that tells rows apart",
    "--sheet first": "--sheet",
    "--model few-label --random-state -1": "random_state must",
    "--model few-label --tensorboard tb": "--tensorboard",
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
    """No refused fit may start."""

    def work(*arguments: object) -> None:
        raise AssertionError("the fit was started")

    monkeypatch.setattr("ebse.workflow.fit.carry_out", work)


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
