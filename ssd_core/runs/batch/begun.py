"""The settings of an unfinished run, in its folder: the process that begins it writes them, under a
lock, and every other process draws by them. Knows no host.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from ...engine.methods import Method
from ...engine.methods.tunable import Tunable
from ...errors import SSDError
from ...files import write_text
from ...output.recipe import method_of, refuse_newer_recipe
from .finished import require_equal, wanted_of
from .queue import TaskLocks, claimed
from .render import RenderItem, RenderSettings
from .task import LoadedModels

FILE, RUN = ".render.json", "render"
ANY = RenderItem(0, "", "")  # the settings are those of all pictures, whatever their prompts
Decide = Callable[[], tuple[RenderSettings, int]]


def agreed(folder: Path, how: RenderSettings, loaded: LoadedModels, decide: Decide,
           existing: bool) -> tuple[RenderSettings, int]:
    """The settings and the batch size of the folder's run; the first process decides them.

    existing: whether the folder has pictures of the run. A run that has none, and that no process
    is drawing, has not begun. Raises SSDError if a run that has begun draws other pictures.
    """
    with TaskLocks(folder).held(RUN):
        begun = read(folder)
        if begun is None or not (existing or claimed(folder)):
            how, batch = decide()
            write_text(folder / FILE, json.dumps({
                "settings": wanted_of(ANY, how, loaded), "window": how.window, "batch": batch}))
            return how, batch
    require_equal(folder / FILE, begun["settings"], wanted_of(ANY, how, loaded), how, loaded)
    if how.either:
        how = replace(how, method=method_of(begun["settings"]))
    return replace(how, window=begun["window"]), begun["batch"]


def read(folder: Path) -> dict | None:
    """What `agreed` has written; None if no run has begun. Raises SSDError if it is damaged."""
    path = folder / FILE
    try:
        begun = json.loads(path.read_text(encoding="utf-8"))
        refuse_newer_recipe(path, begun["settings"])
        method_of(begun["settings"])
        return {"settings": begun["settings"], "batch": int(begun["batch"]),
                "window": None if begun["window"] is None else int(begun["window"])}
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise SSDError(f"{path}: damaged: remove it, then the run goes on") from error


def as_begun(how: RenderSettings, asked: Method, folder: Path) -> RenderSettings:
    """The settings with the window of the run in the folder, if that was left to the program.

    It may have begun on another type of device, and pictures depend on it.
    """
    if (begun := read(folder)) is None or not isinstance(asked,
                                                         Tunable) or asked.window is not None:
        return how
    settings: Mapping = begun["settings"]
    if settings["method"] != how.method.name or not isinstance(how.method, Tunable):
        return how
    return replace(how,
                   method=how.method.with_window(settings["knobs"].get(how.method.window_knob)))
