"""Annealed importance sampling against enumeration, in both directions, within its own errors."""

import itertools
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from scipy import stats
from torch import Tensor

from ebse import rng
from ebse.laws import Point
from ebse.models import RestrictedBoltzmannEnsemble, exact
from ebse.sampling import annealed
from ebse.sampling.annealed import LogPartition, Path, annealed_log_partition
from examples import ensemble
from monte_carlo import FAILURE_RATE, means_depart

Z = float(stats.norm.isf(FAILURE_RATE / 2))
N = 100_000


def model_rows(small: RestrictedBoltzmannEnsemble, n: int, generator: torch.Generator) -> Tensor:
    """Exact samples of P(v)."""
    p = exact.log_prob_v(small).exp()
    return exact.states(small.D)[torch.multinomial(p, n, replacement=True, generator=generator)]


def departs(found: LogPartition, log_zeta: float, n_chains: int) -> list[bool]:
    """Whether forward and reverse depart from log ζ by more than their own errors allow."""
    # The error is meaningful only where most chains contribute.
    assert min(found.forward_ess, found.reverse_ess) > n_chains / 2
    return [
        abs(found.forward - log_zeta) > Z * found.forward_error,
        abs(found.reverse - log_zeta) > Z * found.reverse_error,
    ]


@pytest.fixture
def small() -> RestrictedBoltzmannEnsemble:
    return ensemble("bernoulli", "gaussian", "point", D=5, K=4)


def annealed_small(
    small: RestrictedBoltzmannEnsemble, generator: torch.Generator, **options: Any
) -> LogPartition:
    options = {"n_chains": 4000, "n_temperatures": 40, "n_burn": 0, **options}
    if "start" not in options:
        options["start"] = model_rows(small, options["n_chains"], generator)
    return annealed_log_partition(small, generator=generator, **options)


# ---- against enumeration


@pytest.mark.parametrize(
    "mix",
    [
        ("point", "point", "point"),
        ("bernoulli", "gaussian", "bernoulli"),
        ("gaussian", "bernoulli", "gaussian"),
    ],
)
@pytest.mark.parametrize("shape", [(5, 4), (3, 6)])
def test_both_directions_agree_with_enumeration(
    mix: tuple[str, str, str], shape: tuple[int, int], generator: torch.Generator
) -> None:
    small = ensemble(*mix, D=shape[0], K=shape[1])
    found = annealed_small(small, generator)
    assert departs(found, float(exact.log_zeta(small)), 4000) == [False, False]
    assert 0 < found.forward_error < 0.02
    assert 0 < found.reverse_error < 0.02


def test_any_base_and_either_start_will_do(
    small: RestrictedBoltzmannEnsemble, generator: torch.Generator
) -> None:
    log_zeta = float(exact.log_zeta(small))
    base = torch.tensor([1.0, -1.0, 0.5, 0.0, -2.0])
    for options in ({"base": base}, {"start": None}, {"start": None, "base": base}):
        found = annealed_small(small, generator, n_burn=20, **options)
        assert departs(found, log_zeta, 4000) == [False, False]


def test_a_start_that_is_wrong_within_a_mode_is_mended_by_burning_in(
    small: RestrictedBoltzmannEnsemble, generator: torch.Generator
) -> None:
    log_zeta = float(exact.log_zeta(small))
    # Few temperatures, so that sweeps on the way do not make up for the start.
    options: dict[str, Any] = {"start": torch.zeros(1, 5), "base": small.b.effective(), "n_temperatures": 4}
    assert departs(annealed_small(small, generator, n_burn=50, **options), log_zeta, 4000)[1] is False
    assert departs(annealed_small(small, generator, n_burn=0, **options), log_zeta, 4000)[1] is True


def test_float32_agrees_with_enumeration(
    small: RestrictedBoltzmannEnsemble, generator: torch.Generator
) -> None:
    W, b, c = (Point(x.float()) for x in small.effective())
    narrow = RestrictedBoltzmannEnsemble(W=W, b=b, c=c)
    found = annealed_small(narrow, generator, start=model_rows(small, 4000, generator))
    assert departs(found, float(exact.log_zeta(small)), 4000) == [False, False]


def test_float32_weights_lose_no_small_steps(generator: torch.Generator) -> None:
    """Many small steps at one state: their sum is the log ratio of the ends."""
    W = torch.randn(60, 200, generator=generator)
    path = Path(W.float(), torch.zeros(60).float(), torch.full((200,), 5.0).float(), torch.zeros(60).float())
    v = torch.ones(1, 60, dtype=torch.float32)
    a = path.hidden_input(v)
    steps = itertools.pairwise(annealed.temperatures(5000))
    total = sum(float(path.log_ratio(v, a, before, beta)) for before, beta in steps)
    wide = Path(*(x.double() for x in path))
    expected = float(wide.log_ratio(v.double(), a.double(), 0.0, 1.0))
    assert abs(total - expected) < 1e-5 * abs(expected)


# ---- weights are unbiased, and the test of it can tell


class Late(Path):
    """The fault: weights are taken after the sweep instead of before it."""

    __slots__ = ()

    def anneal(
        self, v: Tensor, betas: list[float], key: int, tick: Callable[[], None]
    ) -> tuple[Tensor, Tensor]:
        log_w = torch.zeros(len(v))
        for k, (before, beta) in enumerate(itertools.pairwise(betas)):
            v = self.sweep(self.hidden_input(v), beta, rng.subkey(key, k))
            log_w += self.log_ratio(v, self.hidden_input(v), before, beta)
        return log_w, v


@pytest.mark.parametrize(("kind", "biased"), [(Path, False), (Late, True)])
def test_forward_weights_are_unbiased(
    kind: type[Path], biased: bool, small: RestrictedBoltzmannEnsemble, generator: torch.Generator
) -> None:
    """E[w] = ζ / Z_0 with few temperatures, where weights vary."""
    path = kind(*small.effective(), torch.zeros(small.D))
    v = torch.randint(2, (N, small.D), generator=generator).double()
    log_w, _ = path.anneal(v, annealed.temperatures(3), 17, lambda: None)
    assert log_w.std() > 0.2
    log_zeta = float(exact.log_zeta(small))
    assert means_depart((log_w + path.log_base() - log_zeta).exp(), torch.ones(())) is biased


@pytest.mark.parametrize(("kind", "biased"), [(Path, False), (Late, True)])
def test_reverse_weights_are_unbiased(
    kind: type[Path], biased: bool, small: RestrictedBoltzmannEnsemble, generator: torch.Generator
) -> None:
    """E[w] = Z_0 / ζ from exact samples."""
    path = kind(*small.effective(), torch.zeros(small.D))
    log_w, _ = path.anneal(model_rows(small, N, generator), annealed.temperatures(3)[::-1], 17, lambda: None)
    assert log_w.std() > 0.2
    log_zeta = float(exact.log_zeta(small))
    assert means_depart((log_w + log_zeta - path.log_base()).exp(), torch.ones(())) is biased


def test_a_base_without_its_hidden_units_would_be_noticed(
    small: RestrictedBoltzmannEnsemble, generator: torch.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Path.log_base
    monkeypatch.setattr(Path, "log_base", lambda path: whole(path) - len(path.c) * math.log(2))
    assert departs(annealed_small(small, generator), float(exact.log_zeta(small)), 4000) == [True, True]


def test_one_key_for_all_temperatures_would_be_noticed(
    small: RestrictedBoltzmannEnsemble, generator: torch.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rng, "subkey", lambda key, n: key)
    assert any(departs(annealed_small(small, generator), float(exact.log_zeta(small)), 4000))


def test_reported_errors_are_those_of_repeated_calls(
    small: RestrictedBoltzmannEnsemble, generator: torch.Generator
) -> None:
    runs = [annealed_small(small, generator, n_chains=200, n_temperatures=10) for _ in range(60)]
    for name in ("forward", "reverse"):
        spread = torch.tensor([getattr(run, name) for run in runs]).var()
        claimed = torch.tensor([getattr(run, f"{name}_error") for run in runs]).square().mean()
        statistic = float(59 * spread / claimed)
        assert FAILURE_RATE / 2 < stats.chi2.cdf(statistic, 59) < 1 - FAILURE_RATE / 2


# ---- a hard case


def two_modes(D: int = 300) -> RestrictedBoltzmannEnsemble:
    """One hidden unit that turns all visible ones on: 6 nats more likely than off, and found only near β = 1."""
    c = 6 - D * float(torch.log((1 + torch.tensor(2.0).exp()) / 2))
    return RestrictedBoltzmannEnsemble(
        W=Point(torch.full((D, 1), 2.0)), b=Point(torch.zeros(D)), c=Point(torch.tensor([c]))
    )


def test_the_bracket_holds_where_forward_chains_miss_a_mode(generator: torch.Generator) -> None:
    hard = two_modes()
    log_zeta = float(exact.log_zeta(hard))
    rows = (torch.rand(200, hard.D, generator=generator) < hard.mean_v_given_h(torch.ones(1))).double()
    found = annealed_log_partition(
        hard, start=rows, base=torch.zeros(hard.D), n_temperatures=200, n_burn=20, generator=generator
    )
    assert found.forward < log_zeta - 1 < log_zeta + 1 < found.reverse
    assert found.width > 2
    # The forward error does not show it.
    assert abs(found.forward - log_zeta) > 10 * found.forward_error


def test_a_base_near_the_data_finds_the_mode(generator: torch.Generator) -> None:
    hard = two_modes()
    log_zeta = float(exact.log_zeta(hard))
    rows = (torch.rand(200, hard.D, generator=generator) < hard.mean_v_given_h(torch.ones(1))).double()
    found = annealed_log_partition(hard, start=rows, n_temperatures=200, n_burn=20, generator=generator)
    # Some 0.0025 of the mass is in the other mode, which the rows lack.
    assert abs(found.forward - log_zeta) < Z * found.forward_error + 0.01
    assert abs(found.reverse - log_zeta) < Z * found.reverse_error + 0.01


def test_forward_ends_show_only_what_forward_chains_found(generator: torch.Generator) -> None:
    hard = two_modes()
    found = annealed_log_partition(hard, n_temperatures=200, n_burn=20, generator=generator)
    assert found.reverse < float(exact.log_zeta(hard)) - 1


def test_a_small_effective_sample_caps_the_error_at_one_nat(generator: torch.Generator) -> None:
    wild = RestrictedBoltzmannEnsemble(
        W=Point(torch.randn(40, 30, generator=generator) * 2),
        b=Point(torch.zeros(40)),
        c=Point(torch.zeros(30)),
    )
    found = annealed_log_partition(wild, n_temperatures=1, n_chains=50, n_burn=20, generator=generator)
    for error, ess in ((found.forward_error, found.forward_ess), (found.reverse_error, found.reverse_ess)):
        assert 1 <= ess < 10
        assert 0.3 < error < 1 + 1e-9
    assert found.width > 10


# ---- temperatures, noise, progress, errors


@pytest.mark.parametrize("n", [1, 2, 1000])
def test_temperatures_rise_from_0_to_1(n: int) -> None:
    betas = annealed.temperatures(n)
    assert len(betas) == n + 1
    assert (betas[0], betas[-1]) == (0.0, 1.0)
    assert all(x < y for x, y in itertools.pairwise(betas))


def test_the_seed_decides_and_one_key_is_taken(small: RestrictedBoltzmannEnsemble) -> None:
    def run(seed: int) -> tuple[LogPartition, int]:
        g = torch.Generator().manual_seed(seed)
        found = annealed_log_partition(small, n_chains=10, n_temperatures=5, n_burn=5, generator=g)
        return found, rng.draw_key(g)

    twin = torch.Generator().manual_seed(1)
    rng.draw_key(twin)
    assert run(1) == run(1)
    assert run(1)[0] != run(2)[0]
    assert run(1)[1] == rng.draw_key(twin)


def test_few_start_rows_are_shared_and_gray_ones_drawn(generator: torch.Generator) -> None:
    rows = torch.tensor([[0.0, 1.0, 0.0], [1.0, 0.0, 0.5]])
    chosen = annealed._chosen(rows, 100, 3)
    assert int((chosen[:, 0] == 1).sum()) == 50
    assert set(chosen[:, 2].tolist()) == {0.0, 1.0}
    once = annealed._chosen(torch.eye(20), 20, 3)
    assert torch.equal(once.sum(0), torch.ones(20))
    assert not torch.equal(once, torch.eye(20))


def test_resampling_follows_the_weights() -> None:
    v = torch.arange(4.0).unsqueeze(-1)
    log_w = torch.tensor([0.5, 0.25, 0.25, 1e-30]).log()
    assert sorted(annealed._resampled(v, log_w, 3).flatten().tolist()) == [0, 0, 1, 2]


def test_progress_rises_to_1(small: RestrictedBoltzmannEnsemble, generator: torch.Generator) -> None:
    for n in (3, 400):
        fractions: list[float] = []
        annealed_small(small, generator, n_temperatures=n, n_chains=2, n_burn=7, callback=fractions.append)
        assert len(fractions) == min(2 * n + 7, 100)
        assert fractions[-1] == 1.0
        assert all(x < y for x, y in itertools.pairwise(fractions))


def test_no_gradients_are_recorded(generator: torch.Generator) -> None:
    W = Point(torch.ones(3, 2, requires_grad=True))
    found = annealed_log_partition(ensemble().with_laws(W=W), n_temperatures=2, n_burn=0, generator=generator)
    assert math.isfinite(found.forward)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_chains": 1}, r"n_chains must be >= 2, got 1"),
        ({"n_temperatures": 0}, r"n_temperatures must be >= 1, got 0"),
        ({"n_burn": -1}, r"n_burn must be >= 0, got -1"),
        (
            {"base": torch.zeros(4)},
            r"base must have shape \(3,\), got \(4,\); pass one bias per visible unit",
        ),
        ({"base": torch.full((3,), math.inf)}, r"base must be finite, got inf"),
        (
            {"start": torch.zeros(0, 3)},
            r"start must have shape \(N, 3\) with N >= 1, got \(0, 3\); pass rows",
        ),
        ({"start": torch.zeros(3)}, r"start must have shape \(N, 3\) with N >= 1, got \(3,\); pass rows"),
        ({"start": torch.full((2, 3), 2.0)}, r"start must lie in \[0, 1\], got values from 2 to 2"),
    ],
)
def test_bad_arguments(options: dict[str, Any], message: str, generator: torch.Generator) -> None:
    with pytest.raises(ValueError, match=message):
        annealed_log_partition(ensemble(), generator=generator, **options)


def test_real_visible_units_are_refused(generator: torch.Generator) -> None:
    real = RestrictedBoltzmannEnsemble(**ensemble().laws, visible="real")
    with pytest.raises(ValueError, match=r"visible must be 'binary' .* got 'real'; no normalized density"):
        annealed_log_partition(real, generator=generator)
