"""The number of forward passes that a method needs, counted before a run starts."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from ..backbones.presets import PAPER

PAPER_AR_PASSES = {setting.grid: setting.ar_passes for setting in PAPER.values()}


@dataclass(frozen=True)
class Plan:
    """Passes of this engine (None if they depend on the picture) and of the paper's formula.

    The prefill counts as one pass. Guidance branches that share a forward pass count once. tuning:
    the method's tuning for this device, in words. prior_passes: the passes of similar runs, if
    known.
    """

    passes: int | None
    passes_max: int
    paper_passes: int | None
    ar_passes: int
    paper_ar_passes: int | None
    tuning: str = ""
    prior_passes: int | None = None

    @property
    def step_acceleration(self) -> float | None:
        return None if self.passes is None else self.ar_passes / self.passes

    def to_json(self) -> dict:
        return {**asdict(self), "step_acceleration": self.step_acceleration}


def blocks(first: int, rows: int, k_v: int) -> list[range]:
    """Split rows first..rows-1 into blocks of up to k_v rows."""
    return [range(y, min(y + k_v, rows)) for y in range(first, rows, k_v)]
