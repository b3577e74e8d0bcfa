"""A user's own data: read, learned from in a folder that survives, and used from there."""
