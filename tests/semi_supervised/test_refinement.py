"""Refinement: losses against loops, the adversarial step, running statistics, and the heads."""

import copy
import math
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from ebse.semi_supervised import _refinement
from ebse.semi_supervised._encoder import dense_network, info_nce
from ebse.semi_supervised._refinement import Heads, Refinement, divergence, information_loss
from ebse.semi_supervised.contrastive import ClusterHeads
from monte_carlo import means_depart

SIZES = (3, 5)


def log_probabilities(n: int = 4, seed: int = 0, *, grad: bool = False) -> list[Tensor]:
    """Of n rows for two clusterings, in float64."""
    generator = torch.Generator().manual_seed(seed)
    made = [functional.log_softmax(torch.randn(n, k, generator=generator).double(), 1) for k in SIZES]
    return [one.requires_grad_(grad) for one in made]


PRIORS = [torch.tensor(p, dtype=torch.float64) for p in ([0.2, 0.3, 0.5], [0.1, 0.1, 0.2, 0.3, 0.3])]

# ---- losses


def test_divergence_is_a_sum_over_rows_and_clusters() -> None:
    p, q = log_probabilities(), log_probabilities(seed=1)
    total = 0.0
    for one, other in zip(p, q, strict=True):
        for row, row_q in zip(one.tolist(), other.tolist(), strict=True):
            total += sum(math.exp(a) * (a - b) for a, b in zip(row, row_q, strict=True)) / 4 / 2
    assert float(divergence(p, q)) == pytest.approx(total, rel=1e-10)
    assert float(divergence(p, p)) == pytest.approx(0, abs=1e-12)


def test_divergence_moves_the_second_alone() -> None:
    p, q = log_probabilities(grad=True), log_probabilities(seed=1, grad=True)
    divergence(p, q).backward()  # type: ignore[no-untyped-call]
    assert all(one.grad is None for one in p)
    assert all(one.grad is not None and one.grad.abs().max() > 0 for one in q)


def test_information_loss_is_a_sum_over_rows_and_clusters() -> None:
    log_p = log_probabilities()
    total = 0.0
    for one, prior in zip(log_p, PRIORS, strict=True):
        rows = one.exp().tolist()
        entropy = -sum(p * math.log(p) for row in rows for p in row) / 4
        means = [sum(row[k] for row in rows) / 4 for k in range(len(prior))]
        marginal = sum(m * math.log(m / q) for m, q in zip(means, prior.tolist(), strict=True))
        total += (entropy + _refinement.BALANCE * marginal) / 2
    assert float(information_loss(log_p, PRIORS)) == pytest.approx(total, rel=1e-10)


def test_gradients_are_those_of_the_losses() -> None:
    scores = [torch.randn(4, k, dtype=torch.float64).requires_grad_() for k in SIZES]
    p = log_probabilities()

    def as_log(some: tuple[Tensor, ...]) -> list[Tensor]:
        return [functional.log_softmax(one, 1) for one in some]

    assert torch.autograd.gradcheck(lambda *some: divergence(p, as_log(some)), scores)
    assert torch.autograd.gradcheck(lambda *some: information_loss(as_log(some), PRIORS), scores)


def test_information_is_largest_for_sure_clusters_of_the_sizes_of_the_prior() -> None:
    """Four rows in two clusters; each flaw alone has a larger loss."""
    prior = [torch.tensor([0.5, 0.5])]
    sure, flat = 20.0 * torch.eye(2)[[0, 0, 1, 1]], torch.zeros(4, 2)
    best, unsure, unequal = (
        float(information_loss([functional.log_softmax(scores, 1)], prior))
        for scores in (sure, flat, sure[[0, 0, 0, 0]])
    )
    assert best == pytest.approx(0, abs=1e-4)
    assert unsure > 0.1
    assert unequal > 0.1


def test_clusters_that_no_row_has_leave_the_loss_finite() -> None:
    log_p = torch.tensor([[0.0, -200.0]]).expand(4, 2).clone().requires_grad_()
    loss = information_loss([log_p], [torch.tensor([1 - _refinement.SMALLEST, _refinement.SMALLEST])])
    (gradient,) = torch.autograd.grad(loss, log_p)
    assert math.isfinite(loss.item())
    assert torch.isfinite(gradient).all()


# ---- an update

N, P = 40, 12


def trained() -> tuple[Refinement, Tensor]:
    """A small network with heads, whose clusters depend on the rows, and some rows."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(N, P, generator=generator)
    net, heads = dense_network(P, 10, 6, seed=0), Heads(SIZES, 6, seed=0)
    priors = [np.full(k, 1 / k) for k in SIZES]
    options: dict[str, Any] = {"learning_rate": 1e-3, "temperature": 0.2, "step": 0.3}
    return Refinement(net, heads, priors, n_updates=50, **options), x


def radii() -> Tensor:
    return torch.linspace(0.5, 2, N)[:, None]


def inputs_of(refinement: Refinement, x: Tensor, viewed: Tensor | None, seed: int = 1) -> list[Tensor]:
    """What the network is given in one update."""
    given: list[Tensor] = []
    hook = refinement.net.register_forward_pre_hook(lambda _, args: given.append(args[0].detach().clone()))
    refinement.update(x, viewed, radii(), generator=torch.Generator().manual_seed(seed))
    hook.remove()
    return given


def log_p(refinement: Refinement, x: Tensor) -> list[Tensor]:
    return refinement.heads(functional.normalize(refinement.net(x), dim=1))


def test_the_adversarial_step_changes_clusters_more_than_random_ones() -> None:
    """Of the same lengths, in pairs; the twin has a random step in place of the adversarial one."""
    before, x = trained()
    lengths = before.length * radii()
    generator = torch.Generator().manual_seed(2)

    def change(step: Tensor) -> float:
        with torch.no_grad():
            return math.log(divergence(log_p(before, x), log_p(before, x + step)))

    def random_change() -> float:
        return change(functional.normalize(torch.randn(N, P, generator=generator), dim=1) * lengths)

    def adversarial_change(seed: int) -> float:
        moved = inputs_of(trained()[0], x, None, seed=seed)[2]
        torch.testing.assert_close((moved - x).norm(dim=1, keepdim=True), lengths, rtol=1e-4, atol=1e-5)
        return change(moved - x)

    more = torch.tensor([adversarial_change(seed) - random_change() for seed in range(25)]).double()
    as_much = torch.tensor([random_change() - random_change() for _ in range(25)]).double()
    zero = torch.zeros(()).double()
    assert more.mean() > 0
    assert means_depart(more, zero)
    assert not means_depart(as_much, zero)


def test_the_probe_is_small_and_random() -> None:
    _, probe, _ = inputs_of(*trained(), None)
    _, other, _ = inputs_of(*trained(), None, seed=2)
    x = trained()[1]
    expected = _refinement.PROBE * radii()
    torch.testing.assert_close((probe - x).norm(dim=1, keepdim=True), expected, rtol=1e-3, atol=1e-5)
    assert not torch.equal(probe, other)


def test_the_loss_is_the_sum_of_its_parts() -> None:
    refinement, x = trained()
    before = copy.deepcopy(refinement)
    viewed = x + 0.1
    given: list[Tensor] = []
    refinement.net.register_forward_pre_hook(lambda _, args: given.append(args[0].detach().clone()))
    loss = refinement.update(x, viewed, radii(), generator=torch.Generator().manual_seed(1))
    assert torch.equal(given[0], x)
    assert torch.equal(given[3], viewed)
    with torch.no_grad():
        p = log_p(before, x)
        expected = divergence(p, log_p(before, given[2])) + divergence(p, log_p(before, viewed))
        expected += _refinement.INFORMATION * information_loss(p, refinement.priors)
        z = functional.normalize(before.net(x), dim=1)
        expected += _refinement.CONTRAST * info_nce(z, refinement.temperature)
    assert loss == pytest.approx(float(expected), rel=1e-5)


def running(net: nn.Module) -> list[Tensor]:
    norms = [m for m in net.modules() if isinstance(m, nn.BatchNorm1d)]
    return [x for m in norms for x in (m.running_mean, m.running_var) if x is not None]


def test_running_statistics_are_those_of_rows_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bit for bit; the twin counts adversarial rows and views, too."""
    refinement, x = trained()
    clean = copy.deepcopy(refinement.net)
    clean(x)
    momenta = [m.momentum for m in clean.modules() if isinstance(m, nn.BatchNorm1d)]
    refinement.update(x, x + 1, radii(), generator=torch.Generator().manual_seed(1))
    assert len(running(clean)) == 4
    assert all(torch.equal(a, b) for a, b in zip(running(refinement.net), running(clean), strict=True))
    assert [m.momentum for m in refinement.net.modules() if isinstance(m, nn.BatchNorm1d)] == momenta
    monkeypatch.setattr(_refinement, "_running_statistics_kept", nullcontext)
    broken, _ = trained()
    broken.update(x, x + 1, radii(), generator=torch.Generator().manual_seed(1))
    assert not any(torch.equal(a, b) for a, b in zip(running(broken.net), running(clean), strict=True))


def test_running_statistics_count_again_after_an_error() -> None:
    refinement, x = trained()
    momenta = [m.momentum for m in refinement.net.modules() if isinstance(m, nn.BatchNorm1d)]
    with pytest.raises(RuntimeError):
        refinement.update(x, x[:, :3], radii(), generator=torch.Generator().manual_seed(1))
    assert [m.momentum for m in refinement.net.modules() if isinstance(m, nn.BatchNorm1d)] == momenta


def test_losses_fall() -> None:
    refinement, x = trained()
    generator = torch.Generator().manual_seed(1)
    losses = [refinement.update(x, None, radii(), generator=generator) for _ in range(50)]
    assert np.mean(losses[:5]) > np.mean(losses[-5:])


def test_rows_without_a_radius_stay_where_they_are() -> None:
    """Those with many duplicates: no step, and no NaN."""
    refinement, x = trained()
    given: list[Tensor] = []
    refinement.net.register_forward_pre_hook(lambda _, args: given.append(args[0].detach().clone()))
    generator = torch.Generator().manual_seed(1)
    assert math.isfinite(refinement.update(x, None, torch.zeros(N, 1), generator=generator))
    assert all(torch.equal(one, x) for one in given)
    assert all(torch.isfinite(p).all() for p in refinement.net.parameters())


def test_same_generator_same_update_other_seed_other_update() -> None:
    def loss(seed: int) -> float:
        refinement, x = trained()
        return refinement.update(x, None, radii(), generator=torch.Generator().manual_seed(seed))

    state = torch.get_rng_state()
    assert loss(1) == loss(1)
    assert loss(1) != loss(2)
    # The user's own generator is left alone.
    assert torch.equal(state, torch.get_rng_state())


def test_training_is_in_single_precision_whatever_the_default() -> None:
    """Networks and rows are in single precision, whatever torch's default is."""
    refinement, x = trained()
    torch.set_default_dtype(torch.float64)
    generator = torch.Generator().manual_seed(1)
    assert math.isfinite(refinement.update(x, None, radii().float(), generator=generator))


# ---- heads


def grouped(n: int = 90) -> tuple[Any, Any]:
    """Rows of length 1 in three groups, and two clusterings of which the second is coarser."""
    rng = np.random.default_rng(0)
    group = np.arange(n) % 3
    z = np.eye(4)[group] + 0.2 * rng.normal(size=(n, 4))
    z /= np.linalg.norm(z, axis=1, keepdims=True)
    return z.astype(np.float32), [group, np.minimum(group, 1)]


def accuracy(heads: Heads, z: Any, clusters: Any) -> list[float]:
    with torch.no_grad():
        found = heads(torch.from_numpy(z))
    return [float((p.argmax(1).numpy() == one).mean()) for p, one in zip(found, clusters, strict=True)]


def test_heads_fit_clusters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clusters of groups; the twin, of rows in random order, cannot be fitted."""
    monkeypatch.setattr(_refinement, "N_HEAD_STEPS", 60)
    z, clusters = grouped()
    before = z.copy()
    heads = Heads((3, 2), 4, seed=0)
    heads.fit(z, clusters, seed=0)
    assert accuracy(heads, z, clusters) == [1.0, 1.0]
    np.testing.assert_array_equal(z, before)
    anyhow = [np.random.default_rng(1).permutation(one) for one in clusters]
    twin = Heads((3, 2), 4, seed=0)
    twin.fit(z, anyhow, seed=0)
    assert max(accuracy(twin, z, anyhow)) < 0.9


def test_heads_depend_on_their_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_refinement, "N_HEAD_STEPS", 3)
    z, clusters = grouped()

    def weights(first: int, batches: int) -> Tensor:
        heads = Heads((3, 2), 4, seed=first)
        heads.fit(z, clusters, seed=batches)
        return heads.linear.weight.detach()

    state = torch.get_rng_state()
    assert torch.equal(weights(0, 0), weights(0, 0))
    assert not torch.equal(weights(0, 0), weights(1, 0))
    assert not torch.equal(weights(0, 0), weights(0, 1))
    assert torch.equal(state, torch.get_rng_state())


def test_probabilities_of_every_clustering_sum_to_one() -> None:
    z, _ = grouped()
    found = Heads(SIZES, 4, seed=0)(torch.from_numpy(z))
    assert [one.shape for one in found] == [(90, 3), (90, 5)]
    for one in found:
        torch.testing.assert_close(one.exp().sum(1), torch.ones(90))


@pytest.mark.parametrize("sizes", [SIZES, (1,), (2, 1, 4)])
def test_heads_in_numpy_are_those_in_torch(sizes: tuple[int, ...]) -> None:
    """√p of all clusterings side by side, on the unit sphere."""
    z, _ = grouped()
    heads = Heads(sizes, 4, seed=0)
    W, b = (x.detach().numpy() for x in (heads.linear.weight, heads.linear.bias))
    found = ClusterHeads(np.ascontiguousarray(W.T) * np.float32(_refinement.INVERSE_TEMPERATURE), b, sizes)(z)
    with torch.no_grad():
        expected = torch.cat([p.exp().sqrt() for p in heads(torch.from_numpy(z))], 1) / len(sizes) ** 0.5
    np.testing.assert_allclose(found, expected.numpy(), atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)
    assert found.dtype == np.float32


def test_large_scores_do_not_overflow() -> None:
    heads = ClusterHeads(
        np.eye(2, 2, dtype=np.float32) * np.float32(1e4), np.zeros(2, dtype=np.float32), (2,)
    )
    np.testing.assert_allclose(heads(np.eye(2, dtype=np.float32)), np.eye(2), atol=1e-6)
