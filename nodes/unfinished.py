"""The rows of the latest interrupted run, kept in a file of ComfyUI's user folder.

They are recipes as a saved PNG has them, so a restart of ComfyUI loses nothing.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from pathlib import Path

from ..ssd_core.errors import SSDError
from ..ssd_core.files import written_whole
from ..ssd_core.front.recipe import checked
from ..ssd_core.front.request import Result
from . import folders

NONE_KEPT = ("no interrupted run is kept: it is kept when a run is stopped after at least one row "
             "was drawn")


def file() -> Path:
    return folders.own_folder() / "unfinished.json"


def keep(results: Sequence[Result]) -> str | None:
    """Keep what the runs of an interrupted node have drawn, in place of what was kept before.

    Runs that had finished are kept too, since the node has given their pictures to nobody, and so
    are those that others had begun. Returns a sentence for the node, None if no row was drawn.
    """
    if not any(one.finished or one.stopped_rows for one in results):
        return None
    begun = [one for one in results if one.rows]
    recipes = [recipe | {"stopped_rows": one.rows} for one in begun for recipe in one.recipes()]
    try:
        with written_whole(file()) as temporary:
            temporary.write_text(json.dumps({"recipes": recipes}), encoding="utf-8")
    except SSDError as error:
        logging.warning("SSD: the interrupted run is not kept: %s", error)
        return None
    rows = "; ".join(f"{one.rows} of {one.request.grid.rows} rows" for one in begun)
    return f"Stopped after {rows}. They are kept: Unfinished Run and Finish draw the rest."


def kept() -> tuple[dict, ...]:
    """The recipes of the latest interrupted run; SSDError if there is none."""
    try:
        kept_recipes = json.loads(file().read_text(encoding="utf-8"))["recipes"]
        return tuple(checked(file(), recipe) for recipe in kept_recipes)
    except FileNotFoundError as error:
        raise SSDError(NONE_KEPT) from error
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise SSDError(f"{file()} cannot be read ({type(error).__name__}): delete it") from error


def fingerprint() -> str:
    """A key that changes with what is kept."""
    return folders.fingerprint(file() if file().is_file() else None)
