"""General ensembles: linear energies by tilts, any energy by Monte Carlo."""

from typing import Any

import pytest
import torch

from ebse.laws import Gaussian, Point
from ebse.models import EnergyEnsemble, LinearEnsemble


def energy(v: torch.Tensor, h: torch.Tensor, theta: dict[str, torch.Tensor]) -> torch.Tensor:
    return -(theta["a"] * h).sum(-1)


HALF: Any = 2.5
ARRAY: Any = torch.zeros(2)
LAWS: Any = {"a": Gaussian(torch.zeros(2), 1.0)}


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda: EnergyEnsemble(energy, {}, n_visible=2, n_hidden=2),
            ValueError,
            "laws must name at least one law",
        ),
        (
            lambda: EnergyEnsemble(energy, {"a": ARRAY}, n_visible=2, n_hidden=2),
            TypeError,
            r"laws\['a'\] must be a law, got Tensor; wrap an array: Point\(array\)",
        ),
        (
            lambda: EnergyEnsemble(energy, LAWS, n_visible=0, n_hidden=2),
            ValueError,
            "n_visible must be >= 1, got 0",
        ),
        (
            lambda: EnergyEnsemble(energy, LAWS, n_visible=HALF, n_hidden=2),
            TypeError,
            "n_visible must be a whole",
        ),
        (
            lambda: LinearEnsemble(lambda v, h: {"a": h[..., :1]}, LAWS, n_visible=2, n_hidden=2),
            ValueError,
            r"statistics must give 'a' in shape \(2,\) for v of shape \(2,\), got \(1,\); its last axes",
        ),
        (
            lambda: LinearEnsemble(lambda v, h: {}, LAWS, n_visible=2, n_hidden=2),
            ValueError,
            r"statistics and laws must have the same names, got \[\] and \['a'\]; give each",
        ),
    ],
)
def test_constructor_errors(make: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()  # type: ignore[operator]


def test_an_energy_of_the_wrong_shape_is_named() -> None:
    wrong = EnergyEnsemble(lambda v, h, theta: theta["a"] * h, LAWS, n_visible=2, n_hidden=2)
    with pytest.raises(
        ValueError, match=r"energy must give one number per row, shape \(5,\), got \(5, 2\); sum"
    ):
        wrong.energy(torch.zeros(5, 2), torch.zeros(5, 2), {"a": torch.zeros(5, 2)})


def test_joint_energy_adds_the_potential() -> None:
    model = EnergyEnsemble(energy, LAWS, n_visible=2, n_hidden=2)
    theta = {"a": torch.tensor([[0.5, -1.0]])}
    found = model.joint_energy(torch.zeros(1, 2), torch.ones(1, 2), theta)
    expected = 0.5 + (0.25 + 1.0) / 2 + torch.tensor(2 * torch.pi).log()
    torch.testing.assert_close(found, expected[None])


def test_laws_can_be_exchanged() -> None:
    model = EnergyEnsemble(energy, LAWS, n_visible=2, n_hidden=2).with_laws(a=Point(torch.ones(2)))
    assert isinstance(model.laws["a"], Point)
