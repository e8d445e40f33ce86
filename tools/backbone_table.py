"""The tables of docs/backbones.md: from the catalogue, its advice and the estimate of memory."""

from __future__ import annotations

from pathlib import Path

from method_tables import rows_of

from ssd_core.backbones.base import Preset
from ssd_core.engine.methods import Rows
from ssd_core.weights.advice import ADVICE, advice_on, sizes_text
from ssd_core.weights.catalogue import CATALOGUE, GB, KnownBackbone
from ssd_core.weights.fit import fit

PAGE = Path(__file__).resolve().parents[1] / "docs" / "backbones.md"

COLUMNS = ("folder in `ssd_backbones`", "files from", "GB on disk", "licence", "grid",
           "pixels", "preset: k_h, k_v, r, i; cfg", "GiB to draw: bf16", "int8", "int4",
           "tested against")
ADVISED = ("model", "good prompts", "weak points", "reported in")
DTYPES = ("bf16", "int8", "int4")


def repositories(row: KnownBackbone) -> str:
    return ", ".join(f"[{source.repo}](https://huggingface.co/{source.repo})"
                     + (f" into `{source.folder}`" if source.folder else "")
                     for source in row.sources)


def schedule(preset: Preset) -> str:
    return (f"{preset.k_h}, {preset.k_v}, {preset.rounds}, {preset.incremental}; "
            f"{preset.cfg:g}")


def memory(row: KnownBackbone, dtype: str) -> str:
    """GiB for one picture by `rows` with the preset and guidance."""
    return f"{fit(row, Rows(), dtype=dtype, device='meta').needed / 2**30:.1f}"


def cells(row: KnownBackbone) -> list[str]:
    disk = f"{row.about_bytes / GB:.1f}" if row.about_bytes else "see `download`"
    licence = f"[{row.licence.name}]({row.licence.link})"
    return [f"`{row.name}`", repositories(row), disk, licence, str(row.grid), sizes_text(row),
            schedule(row.preset), *(memory(row, dtype) for dtype in DTYPES),
            advice_on(row).oracle]


def advice() -> list[list[str]]:
    """A line for each advice, with the models that it is about."""
    names: dict = {}
    for row in CATALOGUE.values():
        names.setdefault(advice_on(row), []).append(f"`{row.name}`")
    return [[", ".join(models), known.prompts, known.weak,
             ", ".join(f"[{name}]({link})" for name, link in known.sources)]
            for known, models in names.items()]


def with_table(text: str, columns: tuple[str, ...], lines: list[list[str]]) -> str:
    """The page with new rows in the table that begins with these columns."""
    before, _, after = rows_of(text, f"| {columns[0]} |")
    return before + "".join(f"| {' | '.join(line)} |\n" for line in lines) + after


def require_advice() -> None:
    """Raise an error if a family of the catalogue has no advice."""
    for family in sorted({row.family for row in CATALOGUE.values()} - ADVICE.keys()):
        raise SystemExit(f"the family {family} has no advice: add it to ADVICE in "
                         "ssd_core/weights/advice.py, and its Chinese to the notes of "
                         "ssd_core/assets/chinese.json")


def pages() -> dict[Path, str]:
    """The page with its tables up to date."""
    require_advice()
    text = with_table(PAGE.read_text(encoding="utf-8"), ADVISED, advice())
    return {PAGE: with_table(text, COLUMNS, list(map(cells, CATALOGUE.values())))}
