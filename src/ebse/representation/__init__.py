"""Many representations of each input, and the way back."""

from ebse.representation.draws import Read, clamped_draws, map_back, walked_draws

__all__ = ["Read", "clamped_draws", "map_back", "walked_draws"]
