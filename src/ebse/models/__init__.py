"""Ensembles of energy-based models: restricted Boltzmann, linear in θ, and general."""

from ebse.models.energy import EnergyEnsemble, LinearEnsemble
from ebse.models.rbse import RestrictedBoltzmannEnsemble, Theta
from ebse.models.storage import load_ensemble, save_ensemble

__all__ = [
    "EnergyEnsemble",
    "LinearEnsemble",
    "RestrictedBoltzmannEnsemble",
    "Theta",
    "load_ensemble",
    "save_ensemble",
]
