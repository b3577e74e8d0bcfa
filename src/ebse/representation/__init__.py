"""Many representations of each input, and the way back."""

from ebse.representation.draws import Read, clamped_draws, map_back, prior_draws, walked_draws

__all__ = ["Read", "clamped_draws", "map_back", "prior_draws", "walked_draws"]
