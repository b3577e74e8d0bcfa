"""Laws of random parameters, each given by its cumulant generating function K(t)."""

from ebse.laws.bernoulli import Bernoulli
from ebse.laws.gaussian import Gaussian
from ebse.laws.laplace import Laplace
from ebse.laws.law import Alpha, Law
from ebse.laws.levels import Levels
from ebse.laws.point import Point
from ebse.laws.spike_slab import SpikeSlab
from ebse.laws.uniform import Uniform

__all__ = [
    "Alpha",
    "Bernoulli",
    "Gaussian",
    "Laplace",
    "Law",
    "Levels",
    "Point",
    "SpikeSlab",
    "Uniform",
]
