"""The decoder, its cache, the grid, the noise field and the sampling of a token."""
