"""Shared by all decoding commands: loading, notes, and runs with a progress bar."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path

import torch
from tqdm import tqdm

from ..backbones.base import Backbone
from ..backbones.estimates import Estimates
from ..engine.events import Event, Finished, Pass, Started
from ..engine.heads import DraftHeads
from ..engine.methods import Method
from ..errors import SSDError
from ..kept_files import cache_folder
from ..measure.machine import OtherWork, processor, waiting
from ..output.unknown import objects_in, require_known
from ..runs.batch.models import ModelSpec
from ..runs.batch.open import WorkerOptions
from ..runs.batch.task import LoadedModels
from ..runs.batch.workers import Place
from ..runs.request import Request, Result
from ..weights.find import portable
from ..weights.load import load_backbone, load_heads
from ..weights.model_size import stored_dtype
from ..weights.registry import ModelRegistry
from .options import MODELS, Loading
from .output import note
from .rows import RowsInTerminal


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
    backbone = load_backbone(path, estimates=estimates(), **loading.options).resized(size)
    heads = None
    if any(method.uses_heads for method in methods):
        heads = local.heads_for(path, loading.heads, backbone.sha256)
        mismatch = local.heads_mismatch(path, backbone.sha256) if loading.heads is None else None
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
