"""Where mini-batches come from: every source gives the same rows, none is densified or read as a whole."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse
from torch import Tensor

from ebse.laws import Bernoulli
from ebse.training import Algorithm1, Training, initial_ensemble
from ebse.training.data import rows_of
from learning import DATA, D


def train(v: Any, n_epochs: int = 3) -> Tensor:
    g = torch.Generator().manual_seed(5)
    first = initial_ensemble(DATA, 3, law=Bernoulli, generator=g)
    return Training(first, batch_size=25, generator=g).fit(v, n_epochs).ensemble.W.effective()


SOURCES: dict[str, Callable[[Tensor], Any]] = {
    "float32 tensor": lambda v: v.float(),
    "boolean tensor": lambda v: v.bool(),
    "array": lambda v: v.numpy(),
    "uint8 array": lambda v: v.numpy().astype(np.uint8),
    "boolean array": lambda v: v.numpy().astype(bool),
    "array in columns": lambda v: np.asfortranarray(v.numpy()),
    "csr matrix": lambda v: sparse.csr_matrix(v.numpy()),
    "csr array": lambda v: sparse.csr_array(v.numpy()),
    "other byte order": lambda v: v.numpy().astype(">f4"),
    "recorded": lambda v: v.clone().requires_grad_(),
    "csc matrix": lambda v: sparse.csc_matrix(v.numpy()),
}


@pytest.mark.parametrize("name", sorted(SOURCES))
def test_every_kind_of_array_trains_the_same_ensemble(name: str) -> None:
    torch.testing.assert_close(train(SOURCES[name](DATA)), train(DATA), rtol=0, atol=0)


def test_a_read_only_memory_map_trains_the_same_ensemble(tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", DATA.numpy().astype(np.float32))
    mapped = np.load(tmp_path / "v.npy", mmap_mode="r")
    torch.testing.assert_close(train(mapped), train(DATA), rtol=0, atol=0)


def test_an_epoch_is_a_permutation() -> None:
    v = torch.eye(8).repeat(3, 1)
    rows = rows_of("v", v, 8, dtype=v.dtype, batch_size=5)
    for key in (1, 2):
        batches = list(rows.batches(key))
        assert [len(batch) for batch, _ in batches] == [5, 5, 5, 5, 4]
        index = torch.cat([index for _, index in batches])
        assert index.sort().values.tolist() == list(range(24))
        assert torch.equal(torch.cat([batch for batch, _ in batches]), v[index])
    first, second = (torch.cat([index for _, index in rows.batches(key)]) for key in (1, 2))
    assert not torch.equal(first, second)


def chunks() -> Iterator[Tensor]:
    yield DATA[:35]
    yield DATA[35:]


@pytest.mark.parametrize(
    "source", [chunks, [DATA[:35], DATA[35:]], (DATA[:35].numpy(), sparse.csr_matrix(DATA[35:].numpy()))]
)
def test_chunks_are_read_anew_every_epoch(source: Any) -> None:
    rows = rows_of("v", source, D, dtype=DATA.dtype, batch_size=20)
    for key in (1, 2):
        batches = list(rows.batches(key))
        assert [len(batch) for batch, _ in batches] == [20, 15, 20, 5]
        index = torch.cat([index for _, index in batches])
        assert index.sort().values.tolist() == list(range(60))
        assert torch.equal(torch.cat([batch for batch, _ in batches]), DATA[index])
    assert torch.isfinite(train(source)).all()


@pytest.mark.parametrize(
    ("v", "error", "message"),
    [
        (
            "rows",
            TypeError,
            "v must be a tensor, an array, a csr matrix or an iterable of such chunks, got str",
        ),
        (
            DATA.tolist(),
            TypeError,
            "a chunk of v must be a tensor, an array or a csr matrix, got list; wrap lists",
        ),
        ([(DATA,)], TypeError, r"a chunk of v must be .* got tuple; .*unpack a DataLoader's batches"),
        (
            DATA.to_sparse(),
            TypeError,
            "v must be a dense tensor or a SciPy csr matrix, got torch.sparse_coo",
        ),
        (np.full((4, 6), 1j), TypeError, "v must hold real numbers, got complex128"),
        (5, TypeError, "v must be a tensor, an array, a csr matrix or an iterable of such chunks, got int"),
        (
            chunks(),
            TypeError,
            "v must be something that can be iterated every epoch, got generator, .* a function",
        ),
        ([], ValueError, "v must yield at least one chunk of rows, got none"),
        ([DATA[:, :4]], ValueError, r"a chunk of v must have shape \(N, 6\) with N >= 1, got \(60, 4\)"),
        (np.full((4, 6), 2.0), ValueError, r"v must lie in \[0, 1\], got values from 2 to 2"),
        (np.full((4, 6), "a"), TypeError, "v must hold real numbers, got <U1"),
        (sparse.csr_matrix(np.full((4, 6), -1.0)), ValueError, r"v must lie in \[0, 1\], got values from -1"),
    ],
)
def test_bad_sources_are_refused(v: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        train(v)


def test_a_bad_value_in_a_later_chunk_is_found() -> None:
    with pytest.raises(ValueError, match=r"a chunk of v must lie in \[0, 1\], got values from 0 to 7"):
        train([DATA[:35], DATA[35:] * 7])


def test_held_out_rows_may_be_any_array(generator: torch.Generator) -> None:
    first = initial_ensemble(DATA, 3, generator=generator)
    run = Training(first, generator=generator).fit(DATA, 1, held_out=sparse.csr_matrix(DATA[:9].numpy()))
    assert "free_energy_gap" in run.history[0]


def test_persistent_hidden_states_need_rows_in_memory(generator: torch.Generator) -> None:
    first = initial_ensemble(DATA, 3, generator=generator)
    run = Training(first, e_step=Algorithm1(persistent=True), generator=generator)
    many = np.zeros((2500, D))
    with pytest.raises(TypeError, match="v must be a tensor for persistent hidden states"):
        run.fit(many, 1)
