"""Scores of a suite's finished pictures, each by the package that published or maintains it.

A scorer is a module with `score(gallery, scoring)`, imported on use: some scorers need packages
that nothing else needs, such as torchvision.
"""

from __future__ import annotations

from importlib import import_module

from ssd_core.errors import SSDError

from .gallery import Gallery, Scoring

__all__ = ["SCORERS", "Gallery", "Scoring", "score"]

SCORERS = {"clean-fid": "fid", "hpsv2": "hps", "clip": "clip", "claims": "claims"}


def score(name: str, gallery: Gallery, scoring: Scoring) -> dict[str, float]:
    """Return {metric: value} of a scorer; means over pictures have a standard error, _se."""
    if name not in SCORERS:
        raise SSDError(f"scorer {name!r}: choose one of {', '.join(SCORERS)}")
    return import_module(f".{SCORERS[name]}", __package__).score(gallery, scoring)
