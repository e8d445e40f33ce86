"""One of every method, so that a new one is tested wherever "all methods" is meant."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from ssd_core.engine.methods import METHODS, Method


def one_of_each(**knobs: Any) -> list[Method]:
    """Every method, with those of the knobs that it has."""
    knobs = {"fewer": 1.0, **knobs}  # small grids would leave `rolling` no passes
    return [kind(**{f.name: knobs[f.name] for f in fields(kind) if f.name in knobs})
            for kind in METHODS.values()]
