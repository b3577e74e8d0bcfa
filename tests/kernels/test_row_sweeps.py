"""The pass over rows: the kernels against the plain pass, with the same key."""

import numba
import numpy as np
import pytest
import torch
from torch import Tensor

from ebse import rng
from ebse.kernels.row_sweeps import Presence, normal
from ebse.laws import Bernoulli, Gaussian, Law
from ebse.models import RestrictedBoltzmannEnsemble
from ebse.sampling import State, explicit_sweeps
from ebse.sampling._row_sweeps import pass_over_rows, row_pass
from kernels.single import SHAPES, WEIGHTS, chains, ensemble, threads

V_KEY = 3


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("W", sorted(WEIGHTS))
def test_the_pass_is_the_plain_pass(W: str, shape: tuple[int, int]) -> None:
    small = ensemble(W, *shape)
    state, key = chains(60, *shape), 12345
    fused = row_pass(small, units="sampled", chunk_size=1)(state, key)
    plain = pass_over_rows(small, state, key)
    # The same θ, and P(v | h, θ) where the plain pass draws v.
    probability = pass_over_rows(small, state, key, units="mean").v
    u = rng.uniform(rng.subkey(key, V_KEY), (60, shape[0]))
    clear = (u - probability).abs() > 1e-6 * (1 if W != "gaussian" else 5)
    assert clear.double().mean() > 0.99
    assert torch.equal(fused.v[clear], plain.v[clear])
    same = (fused.v == plain.v).all(-1)
    torch.testing.assert_close(fused.h[same], plain.h[same], atol=2e-6, rtol=2e-5)


def test_another_key_is_another_pass() -> None:
    small, state = ensemble("bernoulli", 17, 9), chains(60, 17, 9)
    one_pass = row_pass(small, units="sampled", chunk_size=1)
    assert not torch.equal(one_pass(state, 1).h, one_pass(state, 2).h)


@pytest.mark.parametrize("W", ["bernoulli", "gaussian"])
def test_threads_do_not_change_a_sweep(W: str) -> None:
    small, state = ensemble(W, 40, 33), chains(70, 40, 33)

    def sweep(n_threads: int) -> State:
        with threads(n_threads):
            return explicit_sweeps(small, state, 2, generator=torch.Generator().manual_seed(1))

    for one, two in zip(sweep(1), sweep(2), strict=True):
        assert torch.equal(one, two)


def test_chains_do_not_change_with_their_number() -> None:
    small, state = ensemble("bernoulli", 17, 9), chains(70, 17, 9)
    one_pass = row_pass(small, units="sampled", chunk_size=1)
    whole, some = one_pass(state, 5), one_pass(State(state.v[:13], state.h[:13]), 5)
    assert torch.equal(whole.v[:13], some.v)
    assert torch.equal(whole.h[:13], some.h)


def thresholds(theta_bar: Tensor, logit_p: Tensor) -> tuple[Tensor, Tensor]:
    found = Presence.of(theta_bar.float(), logit_p.float())
    return found.prior, found.tilted


def test_thresholds_are_presences_to_the_last_bit_of_a_word() -> None:
    """word <= threshold has probability q: exact to 2^−31 for small q, and certain where q rounds to 1."""
    p = torch.tensor([[1e-9, 1e-6, 1e-3, 0.5, 0.999, 1 - 1e-6]])
    theta_bar = torch.tensor([[0.5, -2.0, 3.0, 0.1, -1.0, 1.0]])
    prior, tilted = thresholds(theta_bar, torch.logit(p))
    for found, logit in ((prior, torch.logit(p)), (tilted, torch.logit(p) + theta_bar)):
        q = torch.sigmoid(logit)
        error = ((found.double() + 1) * 2.0**-31 - q).abs()
        assert (error < 2.0**-31 + 3e-7 * q).all()
    certain, _ = thresholds(torch.zeros(1, 2), torch.tensor([[40.0, -90.0]]))
    assert certain.tolist() == [[2**31 - 1, -1]]


def test_a_regauged_law_is_always_present_where_its_p_rounds_to_one() -> None:
    law = Bernoulli(torch.full((4, 3), 0.5), 0.5).with_noise(p=0.01)
    heavy = law.with_alpha({"theta_bar": torch.full((4, 3), -25.0), "logit_p": torch.full((4, 3), 25.0)})
    single = ensemble("bernoulli", 4, 3).with_laws(W=_single(heavy))
    state = State(torch.zeros(500, 4), torch.ones(500, 3))
    # Three connections of −25 each: no visible unit is on.
    assert not row_pass(single, units="sampled", chunk_size=1)(_float(state), 3).v.any()


def _single(law: Law) -> Law:
    return law.with_alpha({name: x.float() for name, x in law.alpha.items()})


def _float(state: State) -> State:
    return State(state.v.float(), state.h.float())


def test_normal_numbers_are_inverse_to_the_distribution_function() -> None:
    """To 5e-7 of its size, from the first word to the last."""
    compiled = numba.njit(lambda word: normal(word))
    words = np.unique(np.concatenate([np.linspace(0, 2**31 - 1, 2001).astype(np.int64), 2 ** np.arange(31)]))
    found = torch.tensor([compiled(np.int32(word)) for word in words])
    expected = torch.special.ndtri((torch.from_numpy(words) + 0.5) * 2.0**-31)
    torch.testing.assert_close(found, expected, rtol=5e-7, atol=1e-9)


def test_gradients_and_strides_of_the_inputs_do_not_matter() -> None:
    plain = ensemble("gaussian", 5, 4)
    W = Gaussian(plain.W.alpha["theta_bar"].clone().requires_grad_(), plain.W.alpha["sigma"])
    tracked = RestrictedBoltzmannEnsemble(W=W, b=plain.b, c=plain.c)
    state = chains(6, 5, 4)
    strided = State(state.v.T.contiguous().T, state.h[:1].expand(6, 4))
    dense = State(state.v, state.h[:1].repeat(6, 1))
    g = torch.Generator
    a = explicit_sweeps(tracked, strided, 1, generator=g().manual_seed(3))
    b = explicit_sweeps(plain, dense, 1, generator=g().manual_seed(3))
    assert torch.equal(a.h, b.h)
    assert not a.h.requires_grad
