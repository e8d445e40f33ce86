"""Known models that are not here: what Load Model says of them, and their download.

Nothing is asked of the network until a person presses Download. The quote comes first, and a
download begins only with the bytes that it named.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import comfy.model_management as mm
import folder_paths
from server import PromptServer

from ..ssd_core.errors import SSDError
from ..ssd_core.weights.catalogue import CATALOGUE, KnownBackbone, known
from . import folders, weights
from .language import translated


@cache
def downloads():
    """The downloads of this ComfyUI, of which one runs at a time."""
    from ..ssd_core.weights.downloads import Downloads

    return Downloads(Path(folder_paths.models_dir))


def absent() -> dict[str, int | None]:
    """By name, about how many bytes each known model that is not here takes."""
    here = folders.registry().backbones()
    return {name: row.about_bytes for name, row in CATALOGUE.items() if name not in here}


def offer(name: str, dtype: str, language: str) -> dict[str, Any] | None:
    """What to know of a model before it is downloaded; None unless it is known and not here."""
    if name not in absent():
        return None
    row = CATALOGUE[name]
    facts = {"memory": memory_line(row, dtype), "time": time_line(row, dtype), "note": row.note}
    return {"title": row.title, "licence": licence(row, language),
            "facts": {fact: translated(text, language) for fact, text in facts.items() if text}}


def licence(row: KnownBackbone, language: str) -> dict[str, str]:
    return {"name": row.licence.name, "link": row.licence.link,
            "restricts": translated(row.licence.restricts, language)}


def memory_line(row: KnownBackbone, dtype: str) -> str:
    """Whether a picture fits once ComfyUI has unloaded all else; empty where nobody knows."""
    from ..ssd_core.engine.methods import AR
    from ..ssd_core.weights.fit import fit, gib

    device = mm.get_torch_device()
    if device.type == "privateuseone":  # DirectML's memory is not known
        return ""
    try:
        memory = fit(row, AR(), dtype=dtype, device=str(device), free=int(weights.room_on(device)))
    except SSDError as error:
        return str(error)
    free = memory.free or 0
    if not memory.fits and device.type != "cpu" and memory.needed - memory.waiting <= free:
        return (f"about {gib(memory.needed)} are needed, {gib(free)} are free: some layers must "
                "wait beside the card, which is slow")
    return memory.advice


def time_line(row: KnownBackbone, dtype: str) -> str:
    """About how long a picture takes, by the speed of this machine's memory; empty while it is
    busy, because the speed is measured.
    """
    from ..ssd_core.measure.expected import in_units, picture_seconds

    if PromptServer.instance.prompt_queue.get_tasks_remaining():
        return ""
    seconds = picture_seconds(row, dtype, mm.get_torch_device())
    return "" if seconds is None else "a picture: roughly {} {} or less".format(*in_units(seconds))


def quote(name: str, language: str) -> dict[str, Any]:
    """Size, place and licence of a download, asked for at the Hub."""
    from ..ssd_core.weights import hub

    row = known(name)
    quoted = hub.quote(name, folder_paths.models_dir)
    where = quoted.destination.relative_to(Path(folder_paths.models_dir).parent).as_posix()
    return {"bytes": quoted.bytes, "missing": quoted.missing, "where": where,
            "licence": licence(row, language)}


def progress(language: str) -> dict[str, Any]:
    """The download that is going on, or the last one; name is None without one."""
    if (last := downloads().last) is None:
        return {"name": None}
    return {"name": last.name, "done": last.done, "total": last.total, "over": last.over.is_set(),
            "cancelled": last.cancelled,
            "error": translated(last.error, language) if last.error else None}
