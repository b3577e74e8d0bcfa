"""Fits to a user's own data, in a run folder that survives interruption and is used from there."""
