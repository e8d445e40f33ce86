"""How fast this machine computes: speed, bandwidth, launches, and what else it is doing."""
