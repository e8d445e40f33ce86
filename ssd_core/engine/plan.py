"""How many backbone passes a method needs, known before anything runs."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from ..backbones.presets import PAPER

PAPER_AR_PASSES = {setting.grid: setting.ar_passes for setting in PAPER.values()}


@dataclass(frozen=True)
class Plan:
    """Passes of our engine (None where they depend on the data) and of the paper's formula.

    The prefill counts as one pass; guidance branches that share a forward count once. choice: what
    the method chose by itself for the device, in words. usual: passes that such runs took, where
    that is known.
    """

    passes: int | None
    passes_max: int
    paper_passes: int | None
    ar_passes: int
    paper_ar_passes: int | None
    choice: str = ""
    usual: int | None = None

    @property
    def step_acceleration(self) -> float | None:
        return None if self.passes is None else self.ar_passes / self.passes

    def to_json(self) -> dict:
        return {**asdict(self), "step_acceleration": self.step_acceleration}


def blocks(first: int, rows: int, k_v: int) -> list[range]:
    """Rows first..rows-1 in blocks of up to k_v."""
    return [range(y, min(y + k_v, rows)) for y in range(first, rows, k_v)]
