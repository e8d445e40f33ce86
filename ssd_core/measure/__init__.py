"""Timing and quality of methods."""
