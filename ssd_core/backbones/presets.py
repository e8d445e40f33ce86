"""Default settings of every published model, defined only here.

Backbones, the catalogue, plans and the nodes' preset lists read them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..model.grid import Grid
from ..model.knobs import derived
from ..model.sampling import Sampling


@dataclass(frozen=True)
class Preset:
    """A backbone's defaults: the SSD schedule (paper, Table 9) and its authors' sampling.

    What their own programs do, with file and line, is in docs/backbones.md.
    """

    k_h: int = 5
    k_v: int = 1
    rounds: int = 2
    incremental: int = 0
    cfg: float = 1.0
    min_p: float = 0.0
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0


def resolve_sampling(sampling: Sampling, preset: Preset) -> Sampling:
    """Return the sampling with unset values replaced by the preset's."""
    return derived(sampling, **{name: getattr(preset, name)
                                for name in ("cfg", "min_p", "temperature", "top_k", "top_p")
                                if getattr(sampling, name) is None})


@dataclass(frozen=True)
class PaperSetting:
    """A model with the paper's schedule; ar_passes: the paper's AR count (Tables 1 and 6)."""

    grid: Grid
    preset: Preset
    ar_passes: int


PAPER = {
    "Janus-Pro": PaperSetting(
        Grid(24, 24), Preset(k_h=5, k_v=1, rounds=2, cfg=5.0), 576),
    # The paper counts both guidance branches separately, and row ends too.
    "Lumina-mGPT": PaperSetting(
        Grid(48, 48, True), Preset(k_h=5, k_v=2, rounds=5, incremental=4, cfg=4.0, top_k=2000),
        4704),
    "Emu3": PaperSetting(
        Grid(90, 90, True), Preset(k_h=5, k_v=1, rounds=6, cfg=3.0, top_k=2048), 8190),
}

POSTCARD = Preset(k_h=5, k_v=1, rounds=2, cfg=2.0, min_p=0.05)
JANUS, LUMINA, EMU3 = (setting.preset for setting in PAPER.values())
# 64 columns lie between the paper's 48 (5 rounds) and 90 (6): a row at a time, 5 rounds.
SIMPLEAR = Preset(k_h=5, k_v=1, rounds=5, cfg=6.0)
ANOLE = replace(LUMINA, cfg=3.0, temperature=0.7, top_k=0, top_p=0.9)
# The paper has no schedules for these; sampling is the authors'. Lumina-mGPT 2.0's rows are as long
# and as fine as Emu3's (96 and 90 cells of 8 px), so they get as many rounds.
LUMINA_2 = replace(EMU3, cfg=4.0, top_k=4096)
# Emu3.5's rows of 64 cells lie between Lumina-mGPT's 48 (5 rounds) and Emu3's 90 (6 rounds).
EMU3_5 = replace(EMU3, rounds=5, cfg=5.0, top_k=5120)
LLAMAGEN_CLASSES, LLAMAGEN_TEXT = Preset(cfg=4.0, top_k=2000), Preset(cfg=7.5, top_k=1000)
TAR = Preset(cfg=4.0)
# The paper's rounds lie between Janus-Pro's 2 for 24 columns and Emu3's 6 for 90. Temperature and
# top-p are those of the generation_config.json that the authors publish with the weights. At
# temperature 0 the codes fall into flat areas, as users report.
GLM_IMAGE = Preset(k_h=5, k_v=1, rounds=3, temperature=0.9, top_p=0.75)
