"""The things of a saved picture, and what a click on each may choose."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import torch

from ssd_core import SSDError
from ssd_core.backbones.base import Backbone
from ssd_core.engine.edits.words import require_editable
from ssd_core.output.picture_files import upright
from ssd_core.output.recipe import reason_to_encode, recipe_of, recipe_tokens
from ssd_core.output.touchable import touchable
from ssd_core.output.words import drawn_words

from .entries import key_of, require_picture
from .history import History
from .jobs import Worker
from .library import Library
from .pictures import decoded
from .runs import remembered_recipe, stopped_rows

MOST = 8  # pictures whose things are kept
BUSY = {"busy": True}
NOTHING: dict[str, Any] = {"prompt": None, "negative": None, "rows": None, "columns": None,
                           "seed": None, "things": [], "scene": []}


class RunBegins(Exception):
    """A run is asked for while a picture is read."""


class Things:
    """Read one picture at a time, while nothing runs; the latest ones are kept."""

    def __init__(self) -> None:
        self._reading = Lock()
        self._known: OrderedDict[tuple, dict] = OrderedDict()

    def of(self, library: Library, history: History, worker: Worker, path: Path,
           chinese: bool) -> dict:
        """What `touchable` tells of a picture, with the words and the seed of its recipe.

        `BUSY` if a run has the machine; it waits for one pass at most.
        """
        loaded = library.current
        key = loaded.identity, key_of(path), chinese

        def give_way() -> None:
            if worker.running is not None or worker.is_asked:
                raise RunBegins

        with self._reading:
            try:
                if key not in self._known:
                    give_way()
                    self._known[key] = read(history, path, loaded.backbone, chinese, give_way)
            except RunBegins:
                return BUSY
            self._known.move_to_end(key)
            if len(self._known) > MOST:
                self._known.popitem(last=False)
            return self._known[key]

    def drop(self) -> None:
        """Keep nothing of the backbone that is loaded now."""
        with self._reading:
            self._known.clear()


def read(history: History, path: Path, backbone: Backbone, chinese: bool,
         give_way: Callable[[], None]) -> dict:
    """See `Things.of`; `NOTHING` of a picture that this backbone did not draw to its end."""
    require_picture(path)
    with decoded(path) as image:
        shown = upright(image)
        recipe, pixels = recipe_of(path, image), np.array(shown)
    if shown.size not in backbone.sizes:
        return NOTHING
    sized = backbone.resized(shown.size)
    if reason_to_encode(recipe, sized, pixels) is not None:
        recipe = remembered_recipe(history, path, sized)
    if recipe is None or stopped_rows(recipe, sized.grid.rows) or not takes_edits(sized):
        return NOTHING
    words = drawn_words(recipe)
    return {"prompt": words.prompt, "negative": words.negative,
            "seed": str(recipe["seed"]) if "seed" in recipe else None,
            **touchable(sized, recipe_tokens(recipe), words.prompt, chinese=chinese,
                        guidance=recipe.get("cfg"), pixels=torch.from_numpy(pixels).float() / 255,
                        before_pass=give_way)}


def takes_edits(backbone: Backbone) -> bool:
    """Whether the words of a picture can be changed; see `require_editable`."""
    try:
        require_editable(backbone)
    except SSDError:
        return False
    return True
