"""Finds out which ways to compute work on this machine, and writes a page about it to share."""
