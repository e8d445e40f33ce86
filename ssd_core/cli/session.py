"""Shared by all decoding commands: loading, notes, and runs with a progress bar and rows.

A line of the terminal shows two rows of cells, as half blocks. A terminal with too few colours or
without the character shows only the progress bar.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.text import Text
from tqdm import tqdm

from ..backbones.base import Backbone
from ..backbones.estimates import Estimates
from ..engine.events import Event, FinalRows, Finished, Pass, Started
from ..engine.heads import DraftHeads
from ..engine.methods import Method
from ..errors import SSDError
from ..kept_files import cache_folder
from ..measure.machine import OtherWork, processor, waiting
from ..output.palette import palette
from ..output.unknown import objects_in, require_known
from ..runs.batch.workers import LoadedModels, ModelSpec, Place, WorkerOptions
from ..runs.request import Request, Result
from ..weights.find import portable
from ..weights.load import load_backbone, load_heads
from ..weights.model_size import stored_dtype
from ..weights.registry import NONE, ModelRegistry
from .options import MODELS, Loading
from .output import note

HALF = "▀"  # its upper half has the text's colour, its lower half the background's
COLOURS = ("256", "truecolor")


def shows_colours(console: Console) -> bool:
    """Whether the console is a terminal that shows half blocks in colours."""
    try:
        HALF.encode(console.encoding)
    except (UnicodeError, LookupError):
        return False
    return console.is_terminal and not console.no_color and console.color_system in COLOURS


class RowsInTerminal:
    """Call it with every event of a run. Pictures of a batch are side by side."""

    def __init__(self, request: Request, console: Console | None = None) -> None:
        self.request = request
        self.console = console or Console(file=sys.stderr)
        self.shown = shows_colours(self.console)
        self.upper: np.ndarray | None = None  # a row that waits for the one below it
        width = request.pictures * (request.grid.columns + 1) - 1
        self.step = -(-width // self.console.width)  # shows every step-th cell, so that a row fits

    def __call__(self, event: Event) -> None:
        if self.shown and isinstance(event, FinalRows):
            cells = palette(self.request.sized).of(event.tokens.cpu().numpy())
            for number in range(event.first, event.last):
                if number % self.step == 0:
                    self.take(side_by_side(cells[:, number - event.first])[:: self.step])
        elif self.shown and isinstance(event, Finished):
            self.end()

    def take(self, row: np.ndarray) -> None:
        """Print a row [C, 3] uint8 together with the next one."""
        if self.upper is None:
            self.upper = row
        else:
            self.print(self.upper, row)
            self.upper = None

    def end(self) -> None:
        """Print a last row without another one below it."""
        if self.upper is not None:
            self.print(self.upper, None)
            self.upper = None

    def print(self, upper: np.ndarray, lower: np.ndarray | None) -> None:
        with tqdm.external_write_mode(file=self.console.file):
            self.console.print(line(upper, lower), no_wrap=True, crop=True)


def side_by_side(rows: np.ndarray) -> np.ndarray:
    """[B, C, 3] -> [B * (C + 1) - 1, 3], with a black cell between two pictures."""
    gap = np.zeros_like(rows[:, :1])
    return np.concatenate((rows, gap), 1).reshape(-1, 3)[:-1]


def line(upper: np.ndarray, lower: np.ndarray | None) -> Text:
    text = Text()
    for cell, colour in enumerate(upper.tolist()):
        below = f" on {rgb(lower[cell].tolist())}" if lower is not None else ""
        text.append(HALF, f"{rgb(colour)}{below}")
    return text


def rgb(colour: list[int]) -> str:
    red, green, blue = colour
    return f"rgb({red},{green},{blue})"


@cache
def estimates() -> Estimates:
    """What runs of all commands took, stored in the user's cache."""
    return Estimates.stored_in(cache_folder())


def load(loading: Loading, methods: Iterable[Method],
         size: tuple[int, int] | None = None) -> tuple[Backbone, DraftHeads | None]:
    """The backbone at `size`, and draft heads if one of the methods uses them."""
    loaded, _ = load_with_paths(loading, methods, size)
    return loaded.backbone, loaded.heads


def load_with_paths(loading: Loading, methods: Iterable[Method],
                    size: tuple[int, int] | None) -> tuple[LoadedModels, ModelSpec]:
    """The same, with the names and paths by which other processes load them."""
    local = registry(loading.models_dir)
    path = local.backbone_path(loading.backbone)
    loading = replace(loading, lora=[local.lora(named) for named in loading.lora or ()
                                   if named != NONE])
    backbone = load_backbone(path, estimates=estimates(), **loading.options).resized(size)
    heads = None
    if any(method.uses_heads for method in methods):
        heads = local.heads_for(path, loading.heads, backbone.hashes)
        mismatch = local.heads_mismatch(path, backbone.hashes) if loading.heads is None else None
        if mismatch:
            raise SSDError(mismatch)  # a script must not silently get another speed
    models = ModelSpec(portable(path), portable(heads) if heads else None, size,
                       **loading.options)
    return LoadedModels(backbone, load_heads(heads, backbone) if heads else None), models


def load_for(workers: WorkerOptions, loading: Loading, methods: Iterable[Method],
             size: tuple[int, int] | None = None) -> tuple[LoadedModels, ModelSpec]:
    """The arguments of `crew_of`; without weights if only other processes draw."""
    if not workers.apart:
        return load_with_paths(loading, methods, size)
    loaded, models = load_with_paths(replace(loading, device="meta", offload=False), methods, size)
    return loaded, replace(models, device=loading.device, offload=loading.offload)


def registry(models_dir: str | None) -> ModelRegistry:
    """The contents of a models folder, by default the one that `download` uses."""
    expected = Path(MODELS)  # made by `download`; until then it does not exist
    if models_dir and Path(models_dir) != expected and not Path(models_dir).is_dir():
        raise SSDError(f"models-dir {models_dir}: no such folder")
    return ModelRegistry.below(models_dir or MODELS)


def print_notes(request: Request, strict_words: bool = False) -> None:
    """Print the request's notes. strict_words: raise SSDError for unknown words."""
    if strict_words:
        require_known(request.backbone, request.texts, objects_in(request.backbone, request.typed))
    for line in request.notes:
        note(f"warning: {line}")


class Bars:
    """One progress bar per run, counting passes, on stderr if that is a terminal."""

    def __init__(self) -> None:
        self.bar = tqdm(disable=True)

    def __call__(self, label: str, event: Event) -> None:
        if isinstance(event, Started):
            plan = event.plan
            total = plan.passes or plan.prior_passes or min(plan.passes_max, plan.ar_passes)
            self.bar = tqdm(total=total, desc=label, unit="pass", disable=None, leave=False,
                            file=sys.stderr)
        elif isinstance(event, Pass):
            self.bar.update()
        elif isinstance(event, Finished):
            self.close()

    def close(self) -> None:
        self.bar.close()


def decode(result: Result, label: str) -> None:
    """Run its request to the end, with a progress bar and, if the terminal can show them, rows."""
    bars, rows = Bars(), RowsInTerminal(result.request)

    def show(event: Event) -> None:
        bars(label, event)
        rows(event)

    try:
        result.run(show)
    finally:
        bars.close()


def conditions(backbone: Backbone, place: Place | None = None) -> dict:
    """The conditions of a measurement. place: of the workers; None: of this process."""
    device = place.device if place else backbone.device
    return {"backbone": backbone.name, "device": str(device),
            "dtype": place.dtype if place else stored_dtype(backbone),
            "threads": torch.get_num_threads(), "torch": torch.__version__}


def machine(work: OtherWork) -> dict:
    """The machine of a measurement. work: watched since before it began."""
    return {"processor": processor() + waiting(), "load": work.words()}
