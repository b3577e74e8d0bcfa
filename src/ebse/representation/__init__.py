"""Many representations of each input, and the way back."""

from ebse.representation.draws import clamped_draws, map_back

__all__ = ["clamped_draws", "map_back"]
