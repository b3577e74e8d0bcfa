"""Gibbs and Metropolis chains on ensembles, and log-likelihoods by annealed importance sampling."""

from ebse.sampling.annealed import LogPartition, annealed_log_partition
from ebse.sampling.clamped import clamped_sweeps
from ebse.sampling.collapsed import collapsed_sweeps
from ebse.sampling.conditional import conditional_sweeps
from ebse.sampling.explicit import explicit_sweeps
from ebse.sampling.general import ModelState, general_sweeps, start_chains
from ebse.sampling.likelihood import LogLikelihood, log_likelihood
from ebse.sampling.sites import linear_sweeps
from ebse.sampling.state import State, Units

__all__ = [
    "LogLikelihood",
    "LogPartition",
    "ModelState",
    "State",
    "Units",
    "annealed_log_partition",
    "clamped_sweeps",
    "collapsed_sweeps",
    "conditional_sweeps",
    "explicit_sweeps",
    "general_sweeps",
    "linear_sweeps",
    "log_likelihood",
    "start_chains",
]
