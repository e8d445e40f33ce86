"""The rows of the latest interrupted run, saved in ComfyUI's user folder.

The file holds recipes in the form that a saved PNG has, so a restart of ComfyUI loses nothing.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from pathlib import Path

from ..ssd_core.errors import SSDError
from ..ssd_core.files import json_of, small_text, write_text
from ..ssd_core.output.recipe import checked
from ..ssd_core.runs.request import Result
from . import folders

NO_RUN = ("no interrupted run is kept: it is kept when a run is stopped after at least one row "
          "was drawn")


def file() -> Path:
    return folders.own_folder() / "unfinished.json"


def keep(results: Sequence[Result]) -> str | None:
    """Save the rows that the runs of an interrupted node have drawn; earlier ones are replaced.

    Finished runs are saved too, because an interrupted node returns no picture. Returns a sentence
    for the node, None if nothing was saved.
    """
    if not any(result.finished or result.stopped_rows for result in results):
        return None
    begun = [result for result in results if result.rows]
    recipes = [recipe | {"stopped_rows": result.rows}
               for result in begun for recipe in result.recipes()]
    try:
        write_text(file(), json.dumps({"recipes": recipes}))
    except SSDError as error:
        logging.warning("SSD: the interrupted run is not kept: %s", error)
        return None
    rows = "; ".join(f"{result.rows} of {result.request.grid.rows} rows" for result in begun)
    return (f"Stopped after {rows}. They are kept: Finish draws the rest if nothing is connected "
            "to its 'run'.")


def load() -> tuple[dict, ...]:
    """The recipes of the latest interrupted run; raises SSDError if there is none."""
    try:
        recipes = json_of(small_text(file()))["recipes"]
        return tuple(checked(file(), recipe) for recipe in recipes)
    except FileNotFoundError as error:
        raise SSDError(NO_RUN) from error
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise SSDError(f"{file()} cannot be read ({type(error).__name__}): delete it") from error


def fingerprint() -> str:
    """A key that changes when the saved rows do."""
    return folders.fingerprint(file() if file().is_file() else None)
