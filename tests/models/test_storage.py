"""Ensembles on disk: round trips are exact, and damaged or foreign files are refused."""

import errno
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file

from ebse import _archive
from ebse.laws import Point
from ebse.models import RestrictedBoltzmannEnsemble
from ebse.models.storage import load_ensemble, save_ensemble
from examples import LAWS, ensemble
from laws.test_own_law import Signs


@pytest.mark.parametrize("name", sorted(LAWS))
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_an_ensemble_comes_back_bit_for_bit(name: str, dtype: torch.dtype, tmp_path: Path) -> None:
    small = ensemble(name, b="point", c="gaussian", D=4, K=3)
    laws = {
        letter: law.with_alpha({key: x.to(dtype) for key, x in law.alpha.items()})
        for letter, law in small.laws.items()
    }
    small = small.with_laws(**laws)
    save_ensemble(tmp_path / "a.safetensors", small)
    back = load_ensemble(tmp_path / "a.safetensors")
    for letter, law in small.laws.items():
        assert type(back.laws[letter]) is type(law)
        for key, value in law.alpha.items():
            assert torch.equal(back.laws[letter].alpha[key], value)


def test_a_regauged_law_keeps_its_logit(tmp_path: Path) -> None:
    small = ensemble("point").with_noise(p=0.01)
    save_ensemble(tmp_path / "a.safetensors", small)
    back = load_ensemble(tmp_path / "a.safetensors")
    assert back.W.names == ("theta_bar", "logit_p")
    assert torch.equal(back.W.effective(), small.W.effective())


def test_real_units_stay_real(tmp_path: Path) -> None:
    small = RestrictedBoltzmannEnsemble(
        W=Point(torch.zeros(2, 2)), b=Point(torch.zeros(2)), c=Point(torch.zeros(2)), visible="real"
    )
    save_ensemble(tmp_path / "a.safetensors", small)
    assert load_ensemble(tmp_path / "a.safetensors").visible == "real"


def test_the_same_ensemble_makes_the_same_file(tmp_path: Path) -> None:
    for name in ("a", "b"):
        save_ensemble(tmp_path / name, ensemble("spike_slab"), history=[{"epoch": 1.0}])
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_law_of_the_users_own_cannot_be_saved(tmp_path: Path) -> None:
    small = ensemble().with_laws(W=Signs(torch.ones(3, 2)))
    with pytest.raises(TypeError, match=r"W must have a law of ebse.laws to be saved, got Signs"):
        save_ensemble(tmp_path / "a.safetensors", small)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "a.safetensors"
    save_ensemble(path, ensemble())
    return path


def rewrite(path: Path, **changes: Any) -> None:
    """The same arrays with other facts."""
    content = path.read_bytes()
    size = int.from_bytes(content[:8], "little")
    facts = json.loads(json.loads(content[8 : 8 + size])["__metadata__"]["ebse"]) | changes
    facts.pop("checksum")
    tensors = load_file(path)
    facts["checksum"] = _archive._checksum(tensors, facts)
    save_file(tensors, path, metadata={"ebse": json.dumps(facts)})


def test_truncated(saved: Path) -> None:
    whole = saved.read_bytes()
    for n in (0, 4, 100, len(whole) // 2, len(whole) - 1):
        saved.write_bytes(whole[:n])
        with pytest.raises(
            ValueError, match="must be a file written by ebse, got something else or a damaged"
        ):
            load_ensemble(saved)


def test_every_flipped_byte_of_the_arrays_is_noticed(saved: Path) -> None:
    whole = bytearray(saved.read_bytes())
    first = 8 + int.from_bytes(whole[:8], "little")
    for n in range(first, len(whole), 7):
        damaged = bytearray(whole)
        damaged[n] ^= 1
        saved.write_bytes(damaged)
        with pytest.raises(ValueError, match="is damaged: it does not match its checksum"):
            load_ensemble(saved)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"format": 2, "ebse": "9.0"},
            "must have format 1, got 2, written by ebse 9.0; read it with that version",
        ),
        ({"kind": "checkpoint"}, "must hold kind 'ensemble', got 'checkpoint'"),
    ],
)
def test_other_versions_and_kinds(saved: Path, changes: dict[str, Any], message: str) -> None:
    rewrite(saved, **changes)
    with pytest.raises(ValueError, match=message):
        load_ensemble(saved)


def test_a_flipped_digit_of_the_header_is_noticed(saved: Path) -> None:
    whole = saved.read_bytes()
    assert whole.count(b"theta_bar") >= 2
    saved.write_bytes(whole.replace(b'\\"visible\\": \\"binary', b'\\"visible\\": \\"binarx'))
    assert saved.read_bytes() != whole
    with pytest.raises(ValueError, match="is damaged: it does not match its checksum"):
        load_ensemble(saved)


@pytest.mark.parametrize(
    "described",
    [
        5,
        {},
        {"laws": {"W": 5}, "visible": "binary"},
        {"laws": {"W": ["__class__", "theta_bar"], "b": ["Point", "theta_bar"], "c": ["Point", "theta_bar"]}},
        {"laws": {"W": ["Point", "p"]}, "visible": "binary"},
        {"laws": {"W": ["Bernoulli", "theta_bar", "p"]}, "visible": "binary"},
    ],
)
def test_contents_that_do_not_fit_are_named(saved: Path, described: Any) -> None:
    rewrite(saved, ensemble=described)
    with pytest.raises(
        ValueError, match=r"a.safetensors must hold what ebse wrote, got contents that do not fit"
    ):
        load_ensemble(saved)


def test_arrays_that_share_memory_can_be_saved(tmp_path: Path) -> None:
    z = torch.zeros(3)
    small = RestrictedBoltzmannEnsemble(W=Point(torch.zeros(3, 3)), b=Point(z), c=Point(z))
    save_ensemble(tmp_path / "a", small, kind="mine", format=7)
    assert torch.equal(load_ensemble(tmp_path / "a").b.effective(), z)


def test_foreign_files(tmp_path: Path) -> None:
    path = tmp_path / "other.safetensors"
    save_file({"x": np.zeros(2)}, path)
    with pytest.raises(ValueError, match="must be a file written by ebse"):
        load_ensemble(path)
    with pytest.raises(FileNotFoundError, match="does not exist; check the name"):
        load_ensemble(tmp_path / "missing")
    with pytest.raises(IsADirectoryError, match="must be a file, got a folder"):
        load_ensemble(tmp_path)


class Bomb:
    """Runs code when it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (pytest.fail, ("a pickle was executed",))


def test_a_pickle_is_not_executed(tmp_path: Path) -> None:
    path = tmp_path / "bomb"
    path.write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(ValueError, match="must be a file written by ebse"):
        load_ensemble(path)


def test_a_full_disk_leaves_what_was_there(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = saved.read_bytes()

    def full(path: Path, content: bytes) -> int:
        with path.open("wb") as file:
            file.write(content[: len(content) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(
        OSError, match=r"could not write .*No space left.*untouched. Free some space"
    ) as caught:
        save_ensemble(saved, ensemble("gaussian"))
    assert caught.value.errno == errno.ENOSPC
    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]
