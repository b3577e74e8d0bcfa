"""An ensemble whose effective parameters are computed once gives the same numbers."""

import pytest
import torch

from ebse.models import exact
from examples import LAWS, ensemble


@pytest.mark.parametrize("name", sorted(LAWS))
def test_frozen_is_the_same_ensemble(name: str) -> None:
    small = ensemble(name, b="gaussian", c="gaussian")
    frozen = small.frozen()
    v, h = exact.states(small.D), exact.states(small.K)
    torch.testing.assert_close(frozen.mean_h_given_v(v), small.mean_h_given_v(v))
    torch.testing.assert_close(frozen.mean_v_given_h(h), small.mean_v_given_h(h))
    torch.testing.assert_close(frozen.free_energy(v), small.free_energy(v))
    torch.testing.assert_close(exact.log_joint_vh(frozen), exact.log_joint_vh(small))
    assert frozen.effective() is frozen.effective()


def test_other_laws_make_other_effective_parameters() -> None:
    small = ensemble("gaussian").frozen()
    other = small.with_laws(W=LAWS["point"]((3, 2)))
    assert torch.equal(other.effective().W, LAWS["point"]((3, 2)).effective())
