"""Prompts of the papers' benchmarks, with folders as their official scorers read them."""

from __future__ import annotations

from ssd_core.errors import SSDError

from .base import Item, ScorerLayout
from .coco import COCO
from .dpg import DPG
from .geneval import GENEVAL

__all__ = ["SUITES", "Item", "ScorerLayout", "suite_named"]

SUITES = {layout.name: layout for layout in (GENEVAL, DPG, COCO)}


def suite_named(name: str) -> ScorerLayout:
    if name not in SUITES:
        raise SSDError(f"suite {name!r}: choose one of {', '.join(SUITES)}")
    return SUITES[name]
