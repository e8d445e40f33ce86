"""What the commands that decode have in common: load, check words, run with a progress bar."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from ..backbones.base import Backbone
from ..engine.decode import generate
from ..engine.events import Event, Finished, Pass, Started
from ..engine.heads import DraftHeads
from ..engine.methods import Method
from ..errors import SSDError
from ..front.shelf import Shelf
from ..model.sampling import Sampling
from ..weights.load import load_backbone, load_heads
from .options import MODELS, Loading, Picture
from .output import note


@dataclass(frozen=True)
class Loaded:
    backbone: Backbone
    heads: DraftHeads | None


def load(loading: Loading, methods: Iterable[Method],
         size: tuple[int, int] | None = None) -> Loaded:
    """The backbone drawing `size`, and the heads where one of the methods has a use for them."""
    there = shelf(loading.models_dir)
    path = there.backbone_path(loading.backbone)
    backbone = load_backbone(path, loading.device, loading.dtype, loading.offload).resized(size)
    heads = None
    if any(method.uses_heads for method in methods):
        heads = there.heads_for(path, loading.heads, backbone.sha256)
        if loading.heads is None and (misfit := there.misfit(path, backbone.sha256)):
            raise SSDError(misfit)  # a script should not go on with another method's speed
    return Loaded(backbone, load_heads(heads, backbone) if heads else None)


def shelf(models_dir: str | None) -> Shelf:
    """What lies in a models folder; without one, where `download` puts backbones."""
    if models_dir and not Path(models_dir).is_dir():
        raise SSDError(f"models-dir {models_dir}: no such folder")
    return Shelf.below(models_dir or MODELS)


def check_words(backbone: Backbone, prompt: str, picture: Picture) -> None:
    """Name the words that the backbone does not know; refuse them under --strict-words."""
    unknown = backbone.unknown_words(f"{prompt} {picture.negative or ''}")
    if not unknown:
        return
    words = ", ".join(unknown)
    if picture.strict_words:
        raise SSDError(f"words unknown to {backbone.name}: {words}; say it otherwise")
    note(f"warning: words unknown to {backbone.name}, which say nothing to it: {words}")


class Bars:
    """One progress bar a run, over its passes, on stderr where that is a terminal."""

    def __init__(self) -> None:
        self.bar = tqdm(disable=True)

    def __call__(self, label: str, event: Event) -> None:
        if isinstance(event, Started):
            total = event.plan.passes or event.plan.passes_max
            self.bar = tqdm(total=total, desc=label, unit="pass", disable=None, leave=False,
                            file=sys.stderr)
        elif isinstance(event, Pass):
            self.bar.update()
        elif isinstance(event, Finished):
            self.bar.close()


def decode(loaded: Loaded, prompts: Sequence[str], method: Method, sampling: Sampling,
           label: str, **options: Any) -> Finished:
    """Run to the end behind a progress bar; options are those of `generate`."""
    bars = Bars()
    for event in generate(loaded.backbone, prompts, method, loaded.heads, sampling, **options):
        bars(label, event)
        if isinstance(event, Finished):
            return event
    raise RuntimeError("a run ended before it had finished")


def pictures(backbone: Backbone, tokens: torch.Tensor) -> torch.Tensor:
    """Tokens [B, R, C] -> pictures [B, H, W, 3], one at a time to spare memory."""
    with torch.inference_mode():
        return torch.cat([backbone.decode(one[None]).cpu() for one in tokens])


def conditions(backbone: Backbone) -> dict:
    """What a measurement depends on."""
    return {"backbone": backbone.name, "device": str(backbone.device),
            "dtype": str(backbone.dtype).removeprefix("torch."),
            "threads": torch.get_num_threads(), "torch": torch.__version__}
