"""Ensembles of energy-based models: the restricted Boltzmann one, and any other."""

from ebse.models.energy import EnergyEnsemble, LinearEnsemble
from ebse.models.rbse import RestrictedBoltzmannEnsemble, Theta

__all__ = ["EnergyEnsemble", "LinearEnsemble", "RestrictedBoltzmannEnsemble", "Theta"]
