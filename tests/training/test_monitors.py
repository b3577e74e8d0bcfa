"""Monitors against loops."""

import math

import pytest
import torch

from ebse.models import RestrictedBoltzmannEnsemble, exact
from ebse.training import EffectiveAscent, Training, monitors, pseudo_log_likelihood
from examples import LAWS, ensemble
from oracles import binary, ensemble_weight

V = torch.tensor([[1.0, 0.0, 1.0], [0.0, 0.0, 1.0]])


def weight(small: RestrictedBoltzmannEnsemble, v: tuple[float, ...]) -> float:
    return sum(ensemble_weight(small.laws, v, h) for h in binary(2))


@pytest.mark.parametrize("W", sorted(LAWS))
def test_pseudo_log_likelihood(W: str) -> None:
    small = ensemble(W, "gaussian", "bernoulli")
    for row in V:
        expected = 0.0
        for i in range(3):
            flipped = row.clone()
            flipped[i] = 1 - flipped[i]
            here, there = weight(small, tuple(row.tolist())), weight(small, tuple(flipped.tolist()))
            expected += math.log(here / (here + there))
        assert pseudo_log_likelihood(small, row[None]).item() == pytest.approx(expected, rel=1e-10)


def test_pseudo_log_likelihood_of_probabilities_is_between_its_ends() -> None:
    """With one gray unit, the term of that unit is the mean of its two ends' terms."""
    small = ensemble("gaussian", D=1)
    ends = [pseudo_log_likelihood(small, torch.tensor([[x]])) for x in (0.0, 1.0)]
    gray = pseudo_log_likelihood(small, torch.tensor([[0.25]]))
    odds = small.free_energy(torch.tensor([[0.0]])) - small.free_energy(torch.tensor([[1.0]]))
    torch.testing.assert_close(ends[1], torch.nn.functional.logsigmoid(odds))
    assert gray.item() == pytest.approx(0.75 * ends[0].item() + 0.25 * ends[1].item(), abs=1e-12)


def test_reconstruction_error() -> None:
    small = ensemble("bernoulli")
    back = small.mean_v_given_h(small.mean_h_given_v(V))
    expected = sum(float((V[n, i] - back[n, i]) ** 2) for n in range(2) for i in range(3)) / 6
    assert monitors.reconstruction_error(small, V, None)["reconstruction_error"] == pytest.approx(expected)


def test_free_energy_gap() -> None:
    small = ensemble("gaussian")
    gap = monitors.free_energy_gap(small, V[:1], V[1:])["free_energy_gap"]
    expected = -math.log(weight(small, (0.0, 0.0, 1.0))) + math.log(weight(small, (1.0, 0.0, 1.0)))
    assert gap == pytest.approx(expected, rel=1e-10)
    assert monitors.free_energy_gap(small, V, None) == {}
    # Training rows sorted by kind are thinned evenly, so that a held-out set like them has no gap.
    rows = V.repeat_interleave(10, 0)
    assert monitors.free_energy_gap(small, rows, rows[::5])["free_energy_gap"] == pytest.approx(0, abs=1e-12)


def test_exact_log_likelihood_is_watched_where_small() -> None:
    small = ensemble("levels")
    total = sum(weight(small, v) for v in binary(3))
    expected = sum(math.log(weight(small, tuple(v.tolist())) / total) for v in V) / 2
    assert monitors.exact_log_likelihood(small, V, None)["log_likelihood"] == pytest.approx(expected)
    assert monitors.exact_log_likelihood(small, V / 2, None) == {}
    large = ensemble("point", D=13, K=13)
    assert monitors.exact_log_likelihood(large, torch.ones(2, 13), None) == {}


def test_real_visibles_have_no_likelihood_to_watch() -> None:
    real = RestrictedBoltzmannEnsemble(**ensemble("gaussian").laws, visible="real")
    assert monitors.exact_log_likelihood(real, V, None) == {}
    assert monitors.pseudo_likelihood(real, V, None) == {}


def test_noise_summary() -> None:
    small = ensemble("bernoulli", "gaussian", "levels")
    found = monitors.noise_summary(small, V, None)
    p = small.W.alpha["p"].flatten().tolist()
    entropy = sum(-x * math.log(x) - (1 - x) * math.log(1 - x) for x in p) / len(p)
    assert found["W_mean_p"] == pytest.approx(sum(p) / len(p))
    assert found["W_entropy_p"] == pytest.approx(entropy)
    assert found["b_mean_sigma"] == pytest.approx(float(small.b.alpha["sigma"].mean()))


def test_many_rows_are_thinned_evenly(monkeypatch: pytest.MonkeyPatch) -> None:
    small = ensemble("bernoulli")
    monkeypatch.setattr(monitors, "WORK", 12)
    rows = torch.cat([V, V, V])
    found = monitors.pseudo_likelihood(small, rows, None)["pseudo_log_likelihood"]
    assert found == pytest.approx(float(pseudo_log_likelihood(small, rows[::3]).mean()))


@pytest.mark.parametrize(("N", "D", "every"), [(7, 10, 4), (3, 5, 9), (1, 6, 4), (12, 9, 3), (2, 11, 5)])
def test_thinned_terms_are_those_of_a_loop(
    N: int, D: int, every: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row n has the terms i ≡ n (mod every), scaled up; also where few rows are held at once."""
    small = ensemble("bernoulli", D=D, K=2)
    v = (torch.rand(N, D, generator=torch.Generator().manual_seed(1)) < 0.5).double()
    expected = []
    for n, row in enumerate(v):
        i = range(n % min(every, D), D, every)
        terms = []
        for unit in i:
            flipped = row.clone()
            flipped[unit] = 1 - flipped[unit]
            odds = small.free_energy(flipped) - small.free_energy(row)
            terms.append(float(torch.nn.functional.logsigmoid(odds)))
        expected.append(sum(terms) * D / len(i))
    for block in (monitors.BLOCK, 1):
        monkeypatch.setattr(monitors, "BLOCK", block)
        found = pseudo_log_likelihood(small, v, every=every)
        torch.testing.assert_close(found, torch.tensor(expected), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("W", sorted(LAWS))
def test_history_is_of_the_ensemble(W: str) -> None:
    """Also where a law cannot follow all the way, and an epoch ends between two settlings."""
    g = torch.Generator().manual_seed(0)
    v = (torch.rand(60, 3, generator=g) < torch.tensor([0.9, 0.5, 0.2])).double()
    m_step = EffectiveAscent(learning_rate=2.0, schedule="constant")
    run = Training(ensemble(W), m_step=m_step, batch_size=20, generator=g).fit(v, 3)
    found = run.history[-1]
    assert found["log_likelihood"] == pytest.approx(
        float(exact.log_likelihood(run.ensemble, v).mean()), rel=1e-10
    )
