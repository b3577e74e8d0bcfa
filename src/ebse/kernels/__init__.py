"""Fused CPU loops, compiled by Numba: each does in one pass what a tensor expression does in several.

Every kernel has a plain torch twin that gives the same result for the same key.
"""
