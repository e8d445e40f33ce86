"""The table of docs/backbones.md, from the catalogue and the estimate of memory."""

from __future__ import annotations

from pathlib import Path

from method_tables import rows_of

from ssd_core.backbones.base import Preset
from ssd_core.backbones.chameleon import sizes_for
from ssd_core.backbones.emu3 import RATIOS
from ssd_core.backbones.emu3_5 import GRIDS
from ssd_core.backbones.lumina2 import Lumina2
from ssd_core.engine.methods import Rows
from ssd_core.weights.catalogue import CATALOGUE, GB, KnownBackbone
from ssd_core.weights.fit import fit

PAGE = Path(__file__).resolve().parents[1] / "docs" / "backbones.md"

COLUMNS = ("folder in `ssd_backbones`", "files from", "GB on disk", "licence", "grid",
           "pixels", "preset: k_h, k_v, r, i; cfg", "GiB to draw: bf16", "int8", "int4",
           "tested against")
DTYPES = ("bf16", "int8", "int4")
CHAMELEON, WRITTEN_OUT = "transformers' Chameleon", "its equations written out"
ORACLES = {"Janus-Pro": "transformers' Janus", "LlamaGen": WRITTEN_OUT, "Tar": WRITTEN_OUT,
           "Lumina-mGPT": CHAMELEON, "Lumina-mGPT 2.0": CHAMELEON, "Anole": CHAMELEON,
           "Emu3": "transformers' Emu3", "Emu3.5": "transformers' Qwen3",
           "SimpleAR": "transformers' Qwen2; its codec's equations written out",
           "GLM-Image": "transformers' GLM-Image"}


def repositories(row: KnownBackbone) -> str:
    return ", ".join(f"[{source.repo}](https://huggingface.co/{source.repo})"
                     + (f" into `{source.folder}`" if source.folder else "")
                     for source in row.sources)


def pixels(row: KnownBackbone) -> str:
    """The default size, and how many others are allowed."""
    others = {"Lumina-mGPT": len(sizes_for(row.size[0])), "Emu3": len(RATIOS),
              "Lumina-mGPT 2.0": len(Lumina2.sizes), "Emu3.5": len(GRIDS)}.get(row.family, 1)
    if row.family == "GLM-Image":
        return "{}x{} and any sides of 256 to 2048 in steps of 32".format(*row.size)
    more = f" and {others - 1} other shapes" if others > 1 else ""
    return "{}x{}".format(*row.size) + more


def schedule(preset: Preset) -> str:
    return (f"{preset.k_h}, {preset.k_v}, {preset.rounds}, {preset.incremental}; "
            f"{preset.cfg:g}")


def memory(row: KnownBackbone, dtype: str) -> str:
    """GiB for one picture by `rows` with the preset and guidance."""
    return f"{fit(row, Rows(), dtype=dtype, device='meta').needed / 2**30:.1f}"


def cells(row: KnownBackbone) -> list[str]:
    disk = f"{row.about_bytes / GB:.1f}" if row.about_bytes else "see `download`"
    licence = f"[{row.licence.name}]({row.licence.link})"
    return [f"`{row.name}`", repositories(row), disk, licence, str(row.grid), pixels(row),
            schedule(row.preset), *(memory(row, dtype) for dtype in DTYPES),
            ORACLES[row.family]]


def pages() -> dict[Path, str]:
    """The page with its table up to date."""
    before, _, after = rows_of(PAGE.read_text(encoding="utf-8"), f"| {COLUMNS[0]} |")
    rows = "".join(f"| {' | '.join(line)} |\n" for line in map(cells, CATALOGUE.values()))
    return {PAGE: before + rows + after}
