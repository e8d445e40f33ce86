"""Measure the speed of methods and the quality of their pictures."""
