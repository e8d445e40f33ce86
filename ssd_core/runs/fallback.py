"""The method that runs if the requested one lacks draft heads. Knows no host."""

from __future__ import annotations

from ..backbones.base import Preset
from ..engine.methods import SSD, Method, Rows

FALLBACK_NOTE = ("there are no draft heads: drawn by 'rows', the same schedule without heads "
             "(approximate); load heads for SSD, or choose 'exact' for the picture that AR draws")


def resolved_method(method: Method, preset: Preset, heads: bool,
                    fall_back: bool = True) -> tuple[Method, str | None]:
    """The method that will run with this preset, and a note if it is not the requested one.

    Without heads, SSD falls back to `rows`, the same schedule without training, unless fall_back is
    False. Raises SSDError for knobs out of range.
    """
    if heads or not fall_back or not isinstance(method, SSD):
        return method.resolve(preset), None
    rows = Rows(method.k_h, method.k_v, method.rounds, method.incremental,
                method.acceptance, method.fused_commit, method.tolerance)
    return rows.resolve(preset), FALLBACK_NOTE
