"""Restricted Boltzmann ensembles against loops over states and parameters."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.neural_network import BernoulliRBM

from ebse.laws import Bernoulli, Gaussian, Law, Point
from ebse.models import RestrictedBoltzmannEnsemble, Theta
from examples import LAWS, ensemble
from oracles import atoms, binary, ensemble_weight, joint_table, law_expectation, rbm_energy

MIXES = [(name, "point", "point") for name in sorted(LAWS)]
MIXES += [("bernoulli", "gaussian", "laplace"), ("gaussian", "bernoulli", "levels")]
MIXES += [("spike_slab", "uniform", "spike_slab"), ("levels", "laplace", "uniform")]


@pytest.fixture(params=MIXES, ids="-".join)
def small(request: pytest.FixtureRequest) -> RestrictedBoltzmannEnsemble:
    return ensemble(*request.param)


def _close(found: torch.Tensor, expected: object) -> None:
    torch.testing.assert_close(found, torch.as_tensor(expected), rtol=1e-10, atol=1e-12)


def test_log_weight_integrates_theta_out(small: RestrictedBoltzmannEnsemble) -> None:
    for v, h in itertools.product(binary(3), binary(2)):
        found = small.log_weight(torch.tensor(v), torch.tensor(h))
        _close(found, math.log(ensemble_weight(small.laws, v, h)))


def test_collapse_agrees_with_a_sum_over_every_theta() -> None:
    """All 2^11 (and 2^8 · 4³) parameter arrays, summed one by one: no factorization is used."""
    for W, b, c in [("bernoulli", "bernoulli", "bernoulli"), ("bernoulli", "levels", "point")]:
        small = ensemble(W, b, c, D=3 if b == "bernoulli" else 2, K=2)
        for v in ((1.0,) * small.D, (0.0, 1.0, 1.0)[: small.D]):
            h, total = (1.0, 0.0), 0.0
            for (p, W_), (q, b_), (r, c_) in itertools.product(*map(atoms, small.laws.values())):
                total += p * q * r * math.exp(-rbm_energy(v, h, W_, b_, c_))
            _close(small.log_weight(torch.tensor(v), torch.tensor(h)), math.log(total))


def test_effective_parameters_are_those_of_an_rbm_with_the_same_weights(
    small: RestrictedBoltzmannEnsemble,
) -> None:
    theta = small.effective()
    for v, h in itertools.product(binary(3), binary(2)):
        V, H = torch.tensor(v).double(), torch.tensor(h).double()
        _close(-small.energy(V, H, theta), small.log_weight(V, H))
        _close(small.energy(V, H, theta), rbm_energy(v, h, *theta))


def test_free_energy_sums_over_h(small: RestrictedBoltzmannEnsemble) -> None:
    for v in binary(3):
        weight = sum(ensemble_weight(small.laws, v, h) for h in binary(2))
        _close(small.free_energy(torch.tensor(v)), -math.log(weight))


def test_conditionals_with_theta_integrated_out(small: RestrictedBoltzmannEnsemble) -> None:
    table = joint_table(small.laws).reshape((2,) * 5)  # axes v0 v1 v2 h0 h1
    for v in binary(3):
        p = table[v] / table[v].sum()
        _close(small.mean_h_given_v(torch.tensor(v)), [p[1, :].sum(), p[:, 1].sum()])
    for h in binary(2):
        p = table[..., h[0], h[1]] / table[..., h[0], h[1]].sum()
        _close(small.mean_v_given_h(torch.tensor(h)), [p[1].sum(), p[:, 1].sum(), p[:, :, 1].sum()])


def test_conditionals_given_theta(small: RestrictedBoltzmannEnsemble, generator: torch.Generator) -> None:
    v, h = torch.ones(4, 3), torch.tensor([[1.0, 0.0]]).expand(4, 2)
    theta = small.sample_theta_given_vh(v, h, generator=generator)
    for n in range(4):
        W, b, c = (x[n] for x in theta)
        for target, given, found in (
            ("h", (1, 0, 1), small.mean_h_given_v(torch.tensor((1.0, 0.0, 1.0)).expand(4, 3), theta)[n]),
            ("v", (1, 0), small.mean_v_given_h(torch.tensor((1.0, 0.0)).expand(4, 2), theta)[n]),
        ):
            size = 2 if target == "h" else 3
            weights = {}
            for x in binary(size):
                v_, h_ = (given, x) if target == "h" else (x, given)
                weights[x] = math.exp(-rbm_energy(v_, h_, W, b, c))
            for k in range(size):
                _close(found[k], sum(w for x, w in weights.items() if x[k]) / sum(weights.values()))
        free = -math.log(sum(math.exp(-rbm_energy((1, 0, 1), x, W, b, c)) for x in binary(2)))
        _close(small.free_energy(torch.tensor((1.0, 0.0, 1.0)), Theta(W, b, c)), free)


def test_posterior_mean_of_theta(small: RestrictedBoltzmannEnsemble) -> None:
    v, h = (1.0, 0.0, 1.0), (0.0, 1.0)
    found = small.mean_theta_given_vh(torch.tensor(v), torch.tensor(h))
    for i, j in itertools.product(range(3), range(2)):
        expected = _tilted_mean(small.W, (i, j), v[i] * h[j])
        assert found.W[i, j].item() == pytest.approx(expected, rel=1e-10, abs=1e-11)
        assert found.b[i].item() == pytest.approx(_tilted_mean(small.b, (i,), v[i]), rel=1e-10, abs=1e-11)
        assert found.c[j].item() == pytest.approx(_tilted_mean(small.c, (j,), h[j]), rel=1e-10, abs=1e-11)
    average = small.average()
    assert average.W[2, 1].item() == pytest.approx(_tilted_mean(small.W, (2, 1), 0.0), rel=1e-10)


def _tilted_mean(law: Law, element: tuple[int, ...], t: float) -> float:
    top = law_expectation(law, element, lambda x: x * math.exp(t * x))
    return top / law_expectation(law, element, lambda x: math.exp(t * x))


# ---- the two readings of values between 0 and 1


def test_probabilities_of_binary_units_act_linearly() -> None:
    small = ensemble("bernoulli", "gaussian", "levels")
    v, h = torch.tensor([0.3, 1.0, 0.6]), torch.tensor([0.25, 0.5])
    W, b, c = small.effective()
    _close(small.log_weight(v, h), v @ W @ h + v @ b + c @ h)
    # The mean over binary draws is the value at their probabilities.
    mean = torch.tensor(0.0)
    for x in binary(3):
        p = math.prod(float(q if bit else 1 - q) for bit, q in zip(x, v, strict=True))
        mean = mean + p * small.log_weight(torch.tensor(x).double(), h)
    _close(small.log_weight(v, h), mean)


@pytest.mark.parametrize("W", sorted(LAWS))
def test_real_visibles_tilt_by_their_value(W: str) -> None:
    small = RestrictedBoltzmannEnsemble(
        W=LAWS[W]((3, 2)), b=LAWS["gaussian"]((3,)), c=LAWS["bernoulli"]((2,)), visible="real"
    )
    v = (0.3, 1.0, 0.6)
    weights = {h: ensemble_weight(small.laws, v, h) for h in binary(2)}
    total = sum(weights.values())
    V = torch.tensor(v)
    _close(small.free_energy(V), -math.log(total))
    _close(small.mean_h_given_v(V)[0], sum(w for h, w in weights.items() if h[0]) / total)
    for h, weight in weights.items():
        _close(small.log_weight(V, torch.tensor(h)), math.log(weight))
    if W not in ("point", "levels"):
        linear = small.with_laws(W=Point(small.W.effective())).mean_h_given_v(V)
        assert (small.mean_h_given_v(V) - linear).abs().max() > 1e-3


def test_real_visibles_come_down_as_means(generator: torch.Generator) -> None:
    small = RestrictedBoltzmannEnsemble(
        W=LAWS["gaussian"]((3, 2)), b=LAWS["point"]((3,)), c=LAWS["point"]((2,)), visible="real"
    )
    h = torch.tensor([[1.0, 0.0], [0.2, 0.7]])
    assert torch.equal(small.sample_v_given_h(h, generator=generator), small.mean_v_given_h(h))


# ---- limits and peers


@pytest.mark.parametrize(("law", "gap"), [("bernoulli", 1e-9), ("gaussian", 1e-9)])
def test_without_noise_the_ensemble_is_the_rbm(law: str, gap: float) -> None:
    theta_bar = LAWS["point"]((3, 2)).alpha["theta_bar"]
    W = Bernoulli(theta_bar, 1 - gap) if law == "bernoulli" else Gaussian(theta_bar, gap)
    noisy = RestrictedBoltzmannEnsemble(W=W, b=LAWS["point"]((3,)), c=LAWS["point"]((2,)))
    rbm = noisy.with_laws(W=Point(theta_bar))
    torch.testing.assert_close(joint_table(noisy.laws), joint_table(rbm.laws), rtol=1e-7, atol=0)
    for found, expected in zip(noisy.effective(), rbm.effective(), strict=True):
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-7)


def test_with_noise_the_average_model_is_not_the_effective_one() -> None:
    small = ensemble("bernoulli")
    assert (small.average().W - small.effective().W).abs().max() > 0.1


def test_agreement_with_scikit_learn(generator: torch.Generator) -> None:
    """Free energies and hidden means of BernoulliRBM at equal weights, RBM and regauged RBSE alike."""
    D, K = 7, 5
    rng = np.random.default_rng(0)
    peer = BernoulliRBM(n_components=K)
    peer.components_ = rng.normal(size=(K, D))
    peer.intercept_visible_, peer.intercept_hidden_ = rng.normal(size=D), rng.normal(size=K)
    x = rng.integers(0, 2, (20, D)).astype(float)
    rbm = RestrictedBoltzmannEnsemble(
        W=Point(torch.tensor(peer.components_.T)),
        b=Point(torch.tensor(peer.intercept_visible_)),
        c=Point(torch.tensor(peer.intercept_hidden_)),
    )
    for ours in (rbm, rbm.with_noise(p=0.1), rbm.with_noise(sigma=0.7)):
        _close(ours.mean_h_given_v(torch.tensor(x)), peer.transform(x))
        _close(ours.free_energy(torch.tensor(x)), peer._free_energy(x))


# ---- bad input


GOOD: dict[str, Any] = {"W": Point(torch.zeros(3, 2)), "b": Point(torch.zeros(3)), "c": Point(torch.zeros(2))}


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (
            {"W": Point(torch.zeros(2, 3))},
            ValueError,
            r"W must have shape \(D, K\) = \(3, 2\) .* got \(2, 3\); transpose",
        ),
        ({"W": torch.zeros(3, 2)}, TypeError, r"W must be a law, got Tensor; wrap an array: Point\(array\)"),
        (
            {"b": Point(torch.zeros(3, 1))},
            ValueError,
            r"b must have 1 axes, got shape \(3, 1\); W is \(D, K\)",
        ),
        ({"c": Point(torch.zeros(2).float())}, ValueError, r"must share one floating type, got .* convert"),
        ({"visible": "gray"}, ValueError, r"visible must be one of 'binary', 'real', got 'gray'; pick"),
    ],
)
def test_constructor_errors(change: dict[str, object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        RestrictedBoltzmannEnsemble(**{**GOOD, **change})


@pytest.mark.parametrize(
    ("v", "error", "message"),
    [
        (torch.zeros(4, 2), ValueError, r"v must have shape \(..., 3\), got \(4, 2\); the last axis counts"),
        (torch.tensor([0.0, 1.0, math.nan]), ValueError, r"v must lie in \[0, 1\], got NaN; scale .* impute"),
        (torch.tensor([0.0, 2.0, 1.0]), ValueError, r"v must lie in \[0, 1\], got values from 0 to 2; scale"),
        (
            torch.tensor([0.0, -1.0, 1.0]),
            ValueError,
            r"v must lie in \[0, 1\], got values from -1 to 1; scale",
        ),
        ([0.0, 1.0, 1.0], TypeError, r"v must be a torch.Tensor, got list; wrap it with torch.as_tensor"),
    ],
)
def test_bad_units_are_named(v: object, error: type[Exception], message: str) -> None:
    small = RestrictedBoltzmannEnsemble(**GOOD)
    for call in (small.mean_h_given_v, small.free_energy, lambda v: small.log_weight(v, torch.zeros(2))):
        with pytest.raises(error, match=message):
            call(v)  # type: ignore[arg-type]


def test_bad_hidden_units_are_named() -> None:
    small = RestrictedBoltzmannEnsemble(**GOOD)
    with pytest.raises(ValueError, match=r"h must have shape \(..., 2\), got \(3,\)"):
        small.mean_v_given_h(torch.zeros(3))


def test_sampling_needs_a_generator() -> None:
    small = RestrictedBoltzmannEnsemble(**GOOD)
    v, h = torch.zeros(3), torch.zeros(2)
    for call in (
        lambda: small.sample_h_given_v(v, generator=None),  # type: ignore[arg-type]
        lambda: small.sample_v_given_h(h, generator=None),  # type: ignore[arg-type]
        lambda: small.sample_theta_given_vh(v, h, generator=None),  # type: ignore[arg-type]
    ):
        with pytest.raises(TypeError, match=r"generator must be a torch.Generator, got None; make one with"):
            call()


def test_an_unknown_letter_is_refused() -> None:
    with pytest.raises(
        TypeError, match=r"laws must be named W, b or c, got \['w'\]; write with_laws\(W=law\)"
    ):
        RestrictedBoltzmannEnsemble(**GOOD).with_laws(w=Point(torch.zeros(3, 2)))
