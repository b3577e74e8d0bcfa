"""Training behind ``fit``: threads, interruption, divergence, and refused fits."""

import pickle
from collections.abc import Callable
from threading import Event, Thread
from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse

from ebse import RBSE
from ebse._threads import SMALL, threads_for
from ebse.models import RestrictedBoltzmannEnsemble
from ensemble.rows import K, fitted, interrupt_at, rows
from kernels.single import threads

X, _ = rows()


def test_every_python_thread_restores_its_number_of_threads() -> None:
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


def test_divergence_names_the_estimator() -> None:
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
    with pytest.raises(KeyboardInterrupt, match="partial_fit continues from there"):
        rbse.partial_fit(X)
    monkeypatch.undo()
    after = rbse.partial_fit(X).transform(X)
    assert (after != before).any()


@pytest.mark.parametrize("random_state", ["a", 1.5, -1])
def test_an_invalid_random_state_is_refused(random_state: Any) -> None:
    with pytest.raises(ValueError, match=r"random_state must be None, an int .*got .*pass an int"):
        RBSE(K, n_epochs=1, random_state=random_state).fit(X)


NOISE: list[tuple[str, dict[str, Any], str]] = [
    ("bernoulli", {"keep_prob": 2.0}, r"keep_prob must be a probability in \(0, 1\) .*Bernoulli, got 2.0"),
    ("bernoulli", {"keep_prob": 1.0}, r"keep_prob must be a probability in \(0, 1\) .*Bernoulli, got 1.0"),
    ("gaussian", {"sigma": -1.0}, r"sigma must be a standard deviation >= 0 .*Gaussian, got -1.0"),
    ("bernoulli", {"sigma": 0.5}, r"sigma must be None for the law Bernoulli, got 0.5; pass keep_prob"),
    ("gaussian", {"keep_prob": 0.5}, r"keep_prob must be None for the law Gaussian, got 0.5; pass sigma"),
    (
        "gaussian",
        {"keep_prob": 0.5, "sigma": 0.5},
        r"keep_prob and sigma must not both .*pass sigma for the law Gaussian",
    ),
]


@pytest.mark.parametrize(("law", "noise", "message"), NOISE)
def test_noise_arguments_that_do_not_suit_the_law(law: str, noise: dict[str, Any], message: str) -> None:
    """The same messages from training, from a call and from a conversion."""
    rbm = np.zeros((2, 2)), np.zeros(2), np.zeros(2)
    calls: list[Callable[[], Any]] = [
        lambda: RBSE(K, law=law, n_epochs=1, **noise).fit(X),
        lambda: fitted(law=law).sample_transform(X, **noise),
        lambda: fitted(law=law).sample_transform(X, source="mean", **noise),
        lambda: RBSE.from_rbm(rbm, law=law, **noise),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=message):
            call()


def test_a_refused_refit_leaves_the_estimator_alone() -> None:
    """Rows of another width, and a parameter that training refuses: the old fit still works."""
    rbse = RBSE(K, n_epochs=2, random_state=0).fit(X)
    before = rbse.transform(X)
    with pytest.raises(ValueError, match="algorithm must be one of"):
        rbse.set_params(algorithm="adam").fit(X[:, :5])
    with pytest.raises(ValueError, match="contains NaN"):
        rbse.set_params(algorithm="pcd").fit(np.full((3, 4), np.nan))
    assert rbse.n_features_in_ == X.shape[1]
    np.testing.assert_array_equal(rbse.transform(X), before)
    # The twin: a refit that is accepted takes the new width.
    assert rbse.fit(X[:, :5]).n_features_in_ == 5


def test_the_mean_needs_no_other_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights are converted to another noise only where models are sampled."""
    calls: list[Any] = []
    monkeypatch.setattr(
        RestrictedBoltzmannEnsemble,
        "with_noise",
        lambda self, **noise: calls.append(noise) or self,  # type: ignore[func-returns-value]
    )
    rbse = fitted()
    rbse.sample_transform(X, source="mean", keep_prob=0.1)
    rbse.sample_transform(X, n_sweeps=1, read="state", keep_prob=0.1)
    assert calls == []
    rbse.sample_transform(X, keep_prob=0.1)
    rbse.sample_transform(X, source="prior", keep_prob=0.2)
    assert calls == [{"p": 0.1}, {"p": 0.2}]


def test_small_passes_are_not_monitored() -> None:
    rbse = RBSE(K, random_state=0)
    assert set(rbse.partial_fit(X).history_[0]) == {"epoch", "step"}
    many = np.tile(X, (17, 1))
    assert "pseudo_log_likelihood" in RBSE(K, random_state=0).partial_fit(many).history_[0]


def test_what_was_learned_is_read_after_every_pass() -> None:
    """Arrays are converted on demand; a copy in between must not change them."""
    rbse = RBSE(K, batch_size=20, random_state=0).partial_fit(X)
    twin = RBSE(K, batch_size=20, random_state=0).partial_fit(X)
    first = twin.components_.copy()
    assert len(pickle.dumps(twin)) > 0
    for _ in range(3):
        rbse.partial_fit(X)
        assert twin.partial_fit(X).transform(X).shape == (len(X), K)
    np.testing.assert_array_equal(rbse.components_, twin.components_)
    assert (twin.components_ != first).any()


def test_real_units_may_name_their_algorithm() -> None:
    settings: dict[str, Any] = {"visible": "real", "law": "gaussian", "n_epochs": 1, "random_state": 0}
    named, other = RBSE(2, algorithm="algorithm1", **settings), RBSE(2, **settings)
    few = X[:, :3]
    np.testing.assert_array_equal(named.fit(few).transform(few), other.fit(few).transform(few))


def test_dropped_connections_keep_the_law_of_biases() -> None:
    dropped = fitted(bias_law="gaussian").dropped(0.5)
    assert type(dropped._ensemble().b).__name__ == "Gaussian"


def test_sparse_rows_are_not_modified() -> None:
    """Unsorted, with a duplicate entry, and read-only as in a memory map."""
    D = X.shape[1]
    data = np.array([0.5, 0.25, 1.0, 1.0], dtype=np.float32)
    odd = sparse.csr_matrix((data, [3, 3, 1, 0], [0, 2, 4]), shape=(2, D))
    for part in (odd.data, odd.indices, odd.indptr):
        part.flags.writeable = False
    found = fitted().transform(odd)
    assert odd.nnz == 4
    assert odd.indices.tolist() == [3, 3, 1, 0]
    np.testing.assert_allclose(found, fitted().transform(odd.toarray()), rtol=1e-5)
