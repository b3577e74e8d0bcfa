"""Log-likelihood of data: exact where possible, else a bracket, and marked as such."""

import math
from typing import Any

import pytest
import torch
from scipy import stats

from ebse.laws import Point
from ebse.models import RestrictedBoltzmannEnsemble, exact
from ebse.sampling import likelihood
from ebse.sampling.annealed import LogPartition
from ebse.sampling.likelihood import log_likelihood
from examples import ensemble
from monte_carlo import FAILURE_RATE

Z = float(stats.norm.isf(FAILURE_RATE / 2))
V = torch.tensor([[1.0, 0.0, 1.0], [0.0, 0.0, 1.0], [1.0, 1.0, 1.0], [1.0, 0.0, 1.0]])


@pytest.mark.parametrize("mix", [("point", "point", "point"), ("bernoulli", "gaussian", "levels")])
def test_small_models_are_summed(mix: tuple[str, str, str], generator: torch.Generator) -> None:
    small = ensemble(*mix)
    expected = exact.log_likelihood(small, V)
    found = log_likelihood(small, V, generator=generator)
    assert found.exact
    assert found.forward == found.reverse
    assert abs(found.forward - float(expected.mean())) < 1e-12
    torch.testing.assert_close(found.log_weights - found.log_partition.forward, expected)
    assert found.log_partition.forward_error == found.log_partition.reverse_error == 0
    assert found.log_partition.width == 0


def test_the_smaller_side_decides(generator: torch.Generator) -> None:
    def sized(D: int, K: int) -> RestrictedBoltzmannEnsemble:
        return RestrictedBoltzmannEnsemble(
            W=Point(torch.zeros(D, K)), b=Point(torch.zeros(D)), c=Point(torch.zeros(K))
        )

    for D, K, summed in ((40, 3, True), (3, 40, True), (21, 21, False)):
        v = torch.ones(2, D)
        # W = 0 and the base is the ensemble itself: every weight is the same.
        options = {"n_chains": 2, "n_temperatures": 1, "n_burn": 0, "base": torch.zeros(D)}
        found = log_likelihood(sized(D, K), v, generator=generator, **options)  # type: ignore[arg-type]
        assert found.exact is summed
        assert found.reverse == pytest.approx(-D * math.log(2))


@pytest.mark.parametrize("law", ["point", "bernoulli", "gaussian"])
def test_annealing_agrees_with_the_sum(
    law: str, generator: torch.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = ensemble(law, "gaussian", "point")
    truth = log_likelihood(small, V, generator=generator).forward
    monkeypatch.setattr(likelihood, "SMALLEST_SIDE", 0)
    found = log_likelihood(small, V, n_chains=4000, n_temperatures=40, n_burn=50, generator=generator)
    assert not found.exact
    errors = found.log_partition
    assert min(errors.forward_ess, errors.reverse_ess) > 2000
    assert abs(found.forward - truth) < Z * errors.forward_error
    assert abs(found.reverse - truth) < Z * errors.reverse_error


def test_forward_is_high_and_reverse_is_low(
    generator: torch.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mode of the rows, 6 nats above the other, that chains from a uniform base do not find."""
    D = 300
    c = 6 - D * math.log((1 + math.exp(2)) / 2)
    hard = RestrictedBoltzmannEnsemble(
        W=Point(torch.full((D, 1), 2.0)), b=Point(torch.zeros(D)), c=Point(torch.tensor([c]))
    )
    rows = (torch.rand(100, D, generator=generator) < hard.mean_v_given_h(torch.ones(1))).double()
    truth = log_likelihood(hard, rows, generator=generator).forward
    monkeypatch.setattr(likelihood, "SMALLEST_SIDE", 0)
    found = log_likelihood(
        hard, rows, base=torch.zeros(D), n_temperatures=200, n_burn=20, generator=generator
    )
    assert found.reverse < truth - 1 < truth + 1 < found.forward
    assert found.forward - found.reverse == pytest.approx(found.log_partition.width)


def test_float32_models_are_summed_in_float64(generator: torch.Generator) -> None:
    W = torch.randn(300, 8, generator=generator).float()
    narrow = RestrictedBoltzmannEnsemble(
        W=Point(W), b=Point(torch.zeros(300).float()), c=Point(torch.zeros(8).float())
    )
    wide = RestrictedBoltzmannEnsemble(
        W=Point(W.double()), b=Point(torch.zeros(300)), c=Point(torch.zeros(8))
    )
    v = torch.ones(3, 300)
    expected = float(exact.log_likelihood(wide, v).mean())
    assert abs(log_likelihood(narrow, v, generator=generator).forward - expected) < 1e-10 * abs(expected)


def test_rows_are_weighed_in_blocks(generator: torch.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    small = ensemble()
    whole = log_likelihood(small, V, generator=generator)
    monkeypatch.setattr(likelihood, "BLOCK", 1)
    torch.testing.assert_close(log_likelihood(small, V, generator=generator).log_weights, whole.log_weights)


def test_options_reach_the_annealing(generator: torch.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    passed: dict[str, Any] = {}

    def annealing(_: RestrictedBoltzmannEnsemble, **options: Any) -> LogPartition:
        passed.update(options)
        return LogPartition(0.0, 0.0, 0.0, 0.0, 1.0, 1.0)

    monkeypatch.setattr(likelihood, "SMALLEST_SIDE", 0)
    monkeypatch.setattr(likelihood, "annealed_log_partition", annealing)
    start, base = torch.ones(5, 3), torch.zeros(3)
    options = {
        "n_chains": 7,
        "n_temperatures": 8,
        "n_burn": 9,
        "start": start,
        "base": base,
        "callback": print,
    }
    log_likelihood(ensemble(), V, generator=generator, **options)  # type: ignore[arg-type]
    assert passed == {**options, "generator": generator}
    log_likelihood(ensemble(), V, generator=generator)
    assert torch.equal(passed["start"], V)


@pytest.mark.parametrize(
    ("v", "message"),
    [
        (
            torch.full((2, 3), 0.5),
            r"v must be binary, 0 or 1, got values between; make them binary first, .* state which",
        ),
        (torch.ones(3), r"v must have shape \(N, 3\) with N >= 1, got \(3,\); pass one row per example"),
        (torch.ones(0, 3), r"v must have shape \(N, 3\) with N >= 1, got \(0, 3\); pass one row per example"),
        (torch.ones(2, 4), r"v must have shape \(\.\.\., 3\), got \(2, 4\)"),
    ],
)
def test_bad_rows(v: torch.Tensor, message: str, generator: torch.Generator) -> None:
    with pytest.raises(ValueError, match=message):
        log_likelihood(ensemble(), v, generator=generator)


def test_real_visible_units_are_refused(generator: torch.Generator) -> None:
    real = RestrictedBoltzmannEnsemble(**ensemble().laws, visible="real")
    with pytest.raises(ValueError, match=r"visible must be 'binary' .* got 'real'; no normalized density"):
        log_likelihood(real, V, generator=generator)


def test_a_seed_is_no_generator() -> None:
    with pytest.raises(TypeError, match=r"generator must be a torch.Generator, got 0; make one"):
        log_likelihood(ensemble(), V, generator=0)  # type: ignore[arg-type]
