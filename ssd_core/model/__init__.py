"""The decoder, its cache, the grid, the noise and the sampling of one token."""
