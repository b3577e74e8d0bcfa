"""Data sets with known answers."""

from ebse.data.manifolds import MANIFOLDS, Manifold, Projection

__all__ = ["MANIFOLDS", "Manifold", "Projection"]
