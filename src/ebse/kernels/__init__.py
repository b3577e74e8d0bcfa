"""Fused CPU loops, compiled by Numba: each does in one pass what a tensor expression does in several.

Every kernel has a plain torch twin that gives the same result for the same key, up to float32 rounding:
a unit may differ where its u lies within 1e-6 of its probability.
"""
