"""M-steps: what an M-step is, and the two there are."""
