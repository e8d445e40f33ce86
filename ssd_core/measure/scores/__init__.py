"""Scores of a suite's finished pictures, each by the package that published or keeps it.

A scorer is a module with `score(gallery, scoring)`, imported when it is asked for: some need
packages that nothing else here needs, torchvision among them.
"""

from __future__ import annotations

from importlib import import_module

from ...errors import SSDError
from .gallery import Gallery, Scoring

__all__ = ["SCORERS", "Gallery", "Scoring", "score"]

SCORERS = {"clean-fid": "fid", "hpsv2": "hps", "clip": "clip", "claims": "claims"}


def score(name: str, gallery: Gallery, scoring: Scoring) -> dict[str, float]:
    """What a scorer measures, by name; means of pictures with their standard error, _se."""
    if name not in SCORERS:
        raise SSDError(f"scorer {name!r}: choose one of {', '.join(SCORERS)}")
    return import_module(f".{SCORERS[name]}", __package__).score(gallery, scoring)
