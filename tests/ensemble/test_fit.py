"""Runs behind ``fit``: threads, interruptions, divergence, and what is left of a fit that was refused."""

from threading import Event, Thread
from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse

from ebse import RBSE
from ebse._threads import SMALL, threads_for
from ensemble.rows import K, fitted, interrupt_at, rows
from kernels.single import threads

X, _ = rows()


def test_every_python_thread_gives_its_threads_back() -> None:
    """Main enters, a worker enters, main leaves, the worker leaves."""
    inside, left = Event(), Event()
    found: dict[str, int] = {}

    def work() -> None:
        torch.set_num_threads(2)
        with threads_for(1):
            found["worker inside"] = torch.get_num_threads()
            inside.set()
            assert left.wait(10)
        found["worker"] = torch.get_num_threads()

    with threads(2):
        worker = Thread(target=work)
        with threads_for(1):
            worker.start()
            assert inside.wait(10)
            found["main inside"] = torch.get_num_threads()
        left.set()
        worker.join()
        found["main"] = torch.get_num_threads()
        with threads_for(SMALL):
            found["large"] = torch.get_num_threads()
    assert found == {"worker inside": 1, "main inside": 1, "worker": 2, "main": 2, "large": 2}


@pytest.mark.parametrize("n_epochs", ["many", -1])
def test_a_refused_fit_leaves_the_estimator_alone(n_epochs: Any) -> None:
    rbse = RBSE(K, n_epochs=2, random_state=0).fit(X)
    before = rbse.transform(X)
    with pytest.raises(ValueError, match="n_epochs must be"):
        rbse.set_params(n_epochs=n_epochs).fit(X)
    np.testing.assert_array_equal(rbse.transform(X), before)
    new = RBSE(K, n_epochs=n_epochs)
    with pytest.raises(ValueError, match="n_epochs must be"):
        new.fit(X)
    assert not new.__sklearn_is_fitted__()


def test_divergence_speaks_of_the_estimator() -> None:
    rbse = RBSE(K, n_epochs=3, learning_rate=1e9, random_state=0)
    with pytest.raises(
        FloatingPointError, match=r"lower learning_rate .*estimator is fitted with .* 0 updates"
    ):
        rbse.fit(X)
    assert np.isfinite(rbse.transform(X)).all()


def test_an_interrupted_pass_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    rbse = RBSE(K, batch_size=20, random_state=0).partial_fit(X)
    before = rbse.transform(X)
    interrupt_at(3, monkeypatch)
    with pytest.raises(KeyboardInterrupt, match="partial_fit goes on from there"):
        rbse.partial_fit(X)
    monkeypatch.undo()
    after = rbse.partial_fit(X).transform(X)
    assert (after != before).any()


@pytest.mark.parametrize("random_state", ["a", 1.5, -1])
def test_what_is_no_random_state_is_refused(random_state: Any) -> None:
    with pytest.raises(ValueError, match=r"random_state must be None, an int .*got .*pass an int"):
        RBSE(K, n_epochs=1, random_state=random_state).fit(X)


@pytest.mark.parametrize(("law", "noise"), [("bernoulli", 2.0), ("bernoulli", 1.0), ("gaussian", -1.0)])
def test_another_noise_is_checked_by_its_name(law: str, noise: float) -> None:
    with pytest.raises(ValueError, match=r"noise must be .* for the law (Bernoulli|Gaussian), got"):
        fitted(law=law).sample_transform(X, noise=noise)


def test_real_units_may_name_their_algorithm() -> None:
    settings: dict[str, Any] = {"visible": "real", "law": "gaussian", "n_epochs": 1, "random_state": 0}
    named, other = RBSE(2, algorithm="algorithm1", **settings), RBSE(2, **settings)
    few = X[:, :3]
    np.testing.assert_array_equal(named.fit(few).transform(few), other.fit(few).transform(few))


def test_dropped_connections_keep_the_law_of_biases() -> None:
    dropped = fitted(bias_law="gaussian").dropped(0.5)
    assert type(dropped._ensemble().b).__name__ == "Gaussian"


def test_sparse_rows_of_any_kind_are_left_alone() -> None:
    """Unsorted, with an entry in two parts, and read-only, as a memory map gives them."""
    D = X.shape[1]
    data = np.array([0.5, 0.25, 1.0, 1.0], dtype=np.float32)
    odd = sparse.csr_matrix((data, [3, 3, 1, 0], [0, 2, 4]), shape=(2, D))
    for part in (odd.data, odd.indices, odd.indptr):
        part.flags.writeable = False
    found = fitted().transform(odd)
    assert odd.nnz == 4
    assert odd.indices.tolist() == [3, 3, 1, 0]
    np.testing.assert_allclose(found, fitted().transform(odd.toarray()), rtol=1e-5)
