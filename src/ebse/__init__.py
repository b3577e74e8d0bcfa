"""Energy-based stochastic ensembles: a learned law over models."""

__version__ = "0.1.0"
