"""Fused CPU loops, compiled by Numba: each computes in one pass what tensor expressions compute in several.

Every kernel has a plain torch version with the same result for the same key, up to float32 rounding: a unit
may differ where its u is within 1e-6 of its probability. Results do not depend on the number of threads.
"""
