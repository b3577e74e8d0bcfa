"""Markov chains on ensembles: collapsed, explicit, clamped, and general."""

from ebse.sampling.clamped import clamped_sweeps
from ebse.sampling.collapsed import collapsed_sweeps
from ebse.sampling.explicit import explicit_sweeps
from ebse.sampling.general import ModelState, general_sweeps, start_chains
from ebse.sampling.sites import linear_sweeps
from ebse.sampling.state import State, Units

__all__ = [
    "ModelState",
    "State",
    "Units",
    "clamped_sweeps",
    "collapsed_sweeps",
    "explicit_sweeps",
    "general_sweeps",
    "linear_sweeps",
    "start_chains",
]
