"""Fits to a user's own data: read, trained in a run folder that survives interruption, and used from there."""
