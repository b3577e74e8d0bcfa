"""The member of the few-label classifier on stochastic representations of an ensemble."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax
from sklearn.decomposition import PCA
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from ebse import RBSE, FewLabelClassifier, _archive, _chains
from ebse.preprocessing.binary import quartile_cuts
from ebse.semi_supervised import _draws
from ebse.semi_supervised._columns import Views
from ebse.semi_supervised._draws import OnDraws, Sampler, Splits, samples_models
from ebse.semi_supervised._members import DRAWS, DRAWS_PART, FEATURES, LINEAR, TREES, fitted_on_draws

RNG = np.random.default_rng(0)
N = 80
Y = np.arange(N) % 2
X = (RNG.normal(size=(N, 3)) + 2 * Y[:, np.newaxis]).astype(np.float32)
FEW = [int(c) if i < 10 else None for i, c in enumerate(Y)]


def ensemble() -> RBSE:
    return RBSE(n_components=6, n_epochs=3, random_state=0)


@pytest.fixture(params=[0, 4])
def sampler(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Sampler:
    """With the mean representation, and with chains."""
    monkeypatch.setattr(_chains, "LENGTHS", (request.param,) if request.param else ())
    monkeypatch.setattr(_chains, "LEAST_CORRELATION", -1.0)
    made = Sampler.learned(ensemble(), X, 0)
    assert made.n_sweeps == request.param
    return made


@pytest.mark.parametrize(
    ("column", "cuts"),
    [
        ([0, 1, 2, 3, 4, 5, 6, 7], [1.75, 3.5, 5.25]),
        ([0, 0, 0, 0, 1, 1], [0, 0.75]),
        ([0, 1, 1, 1, 1, 1, 1, 1], [0]),
        ([0, 0, 0, 0, 0, 0, 0, 1], [0]),
        ([2, 2, 2], []),
    ],
)
def test_cuts_have_values_above_and_below(column: Any, cuts: Any) -> None:
    np.testing.assert_allclose(quartile_cuts(np.array(column)), cuts)


def test_splits_are_above_a_quartile() -> None:
    """Against a loop; a constant column has no feature."""
    table = np.column_stack([X, np.ones(N)]).astype(np.float32)
    found = Splits.learned(table)
    bits = found(table)
    assert set(found.columns) == {0, 1, 2}
    for b, (j, cut) in enumerate(zip(found.columns, found.cuts, strict=True)):
        np.testing.assert_array_equal(bits[:, b], [float(x > cut) for x in table[:, j]])
    assert ((bits.mean(0) > 0) & (bits.mean(0) < 1)).all()


def test_an_ensemble_is_recognized() -> None:
    assert samples_models(ensemble())
    assert not samples_models(PCA())
    assert not samples_models(None)


def test_rows_do_not_depend_on_each_other(sampler: Sampler) -> None:
    all_at_once = sampler(X)
    assert all_at_once.shape == (N, _draws.N_DRAWS if sampler.n_sweeps else 1, 6)
    np.testing.assert_allclose(sampler(X[3:5]), all_at_once[3:5], atol=1e-6)


def test_probabilities_are_averaged_over_models(sampler: Sampler, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against a loop over the models, also where rows are in several blocks."""
    monkeypatch.setattr(_draws, "BLOCK", 30)
    coef, intercept = RNG.normal(size=(3, 6)), RNG.normal(size=3)
    found = OnDraws(sampler, coef, intercept)(Views(X, X))
    drawn = sampler(X)
    models = [softmax(drawn[:, m] @ coef.T + intercept, axis=1) for m in range(drawn.shape[1])]
    np.testing.assert_allclose(found, np.mean(models, axis=0), atol=1e-6)


def test_the_models_of_a_row_share_its_weight(sampler: Sampler) -> None:
    """Logistic regression with the weight 1 / n_draws for each, and the same penalty."""
    found = fitted_on_draws(sampler, Views(X, X), Y, 2)
    drawn = sampler(X)
    n = drawn.shape[1]
    rows, target = drawn.reshape(N * n, 6), np.repeat(Y, n)
    expected = LogisticRegression(max_iter=300).fit(rows, target, sample_weight=np.full(N * n, 1 / n))
    np.testing.assert_allclose(found.coef[1], expected.coef_[0], atol=1e-3)
    np.testing.assert_allclose(found.coef[0], 0)
    if n > 1:
        full = LogisticRegression(max_iter=300).fit(rows, target)
        assert abs(found.coef[1] - full.coef_[0]).max() > 0.01


@pytest.mark.usefixtures("sampler")
def test_an_ensemble_as_features_is_a_member(tmp_path: Path) -> None:
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    made = FewLabelClassifier(features=ensemble(), random_state=0).fit(frame, FEW)
    weights = made.members_.set_index("member")["weight"]
    assert {DRAWS, LINEAR, TREES} < set(weights.index)
    assert FEATURES not in weights.index
    # Of its factor by cross-validation, and the sum of all.
    weighed = {name: w / made._factors[name] for name, w in weights.items()}
    np.testing.assert_allclose(weighed[DRAWS] / sum(weighed.values()), DRAWS_PART)
    assert made.score(frame, Y) > 0.8
    made.save(tmp_path / "a.safetensors")
    again = FewLabelClassifier.load(tmp_path / "a.safetensors")
    np.testing.assert_allclose(again.predict_proba(frame), made.predict_proba(frame), atol=1e-6)
    relabeled = again.relabel(frame.iloc[:10], Y[:10])
    np.testing.assert_array_equal(relabeled.predict(frame), made.predict(frame))
    # Fitted anew, where fit is called again.
    assert type(again.features) is RBSE
    again.fit(frame.iloc[::-1], FEW[::-1])


def test_a_frozen_ensemble_is_refused() -> None:
    """It would need the columns that the classifier makes of the table."""
    frozen = FrozenEstimator(ensemble().fit(X > 1))
    with pytest.raises(
        ValueError, match=r"features must be an ensemble that is not frozen, .* pass RBSE\(\)"
    ):
        FewLabelClassifier(features=frozen).fit(X, FEW)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("splits.columns", np.array([0, 1])),
        ("splits.columns", np.full(9, 7)),
        ("splits.columns", np.full(9, -1)),
        ("splits.cuts", np.zeros((1, 9), dtype=np.float32)),
        (f"{DRAWS}.coef", np.zeros((2, 6), dtype=np.int64)),
        ("n_sweeps", 20_000),
        ("splits.cuts", np.zeros(4, dtype=np.float32)),
        (f"{DRAWS}.coef", np.zeros((2, 5), dtype=np.float32)),
        (f"{DRAWS}.intercept", np.zeros(3, dtype=np.float32)),
        ("n_sweeps", -1),
        ("n_sweeps", "many"),
        ("features", None),
    ],
)
def test_doctored_files_are_refused(name: str, value: Any, tmp_path: Path) -> None:
    made = FewLabelClassifier(features=ensemble(), random_state=0).fit(X, FEW)
    facts, arrays = made._state()
    if name in arrays:
        arrays = {**arrays, name: value}
    else:
        facts = {**facts, name: value}
    path = tmp_path / "a.safetensors"
    _archive.write(path, "FewLabelClassifier", facts, arrays)
    with pytest.raises(ValueError, match=r"a\.safetensors must hold what ebse wrote"):
        FewLabelClassifier.load(path)
