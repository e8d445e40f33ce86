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
from ..model.sampling import Sampling
from ..weights.catalogue import CATALOGUE
from ..weights.load import HEADS_FILE, load_backbone, load_heads, resolve
from .options import MODELS, Loading, Picture
from .output import note


@dataclass(frozen=True)
class Loaded:
    backbone: Backbone
    heads: DraftHeads | None


def load(loading: Loading, methods: Iterable[Method],
         size: tuple[int, int] | None = None) -> Loaded:
    """The backbone drawing `size`, and the heads where one of the methods has a use for them."""
    if loading.models_dir and not Path(loading.models_dir).is_dir():
        raise SSDError(f"models-dir {loading.models_dir}: no such folder")
    backbone = load_backbone(require_here(loading, find_backbone(loading)), loading.device,
                             loading.dtype, loading.offload).resized(size)
    path = find_heads(loading) if any(method.uses_heads for method in methods) else None
    return Loaded(backbone, load_heads(path, backbone) if path else None)


def find_backbone(loading: Loading) -> str:
    """What `load_backbone` takes."""
    return in_models_dir(loading, "ssd_backbones", loading.backbone) or loading.backbone


def require_here(loading: Loading, path: str) -> str:
    """`path`, or SSDError for a known backbone that is not on the disk yet."""
    if path in CATALOGUE and not Path(path).exists():
        folder = loading.models_dir or MODELS
        raise SSDError(f"backbone {path}: is not in {Path(folder, 'ssd_backbones')}: fetch it with "
                       f"`python -m ssd_core download {path} --models-dir {folder}`, or name its "
                       "folder")
    return path


def find_heads(loading: Loading) -> Path | None:
    """The heads' file: the named one, else the one that lies with the backbone, if one does."""
    if loading.heads == "none":
        return None
    there = in_models_dir(loading, "ssd_heads", loading.heads or loading.backbone)
    if loading.heads or there:
        return resolve(there or loading.heads, HEADS_FILE, "draft heads")
    backbone = Path(find_backbone(loading))
    try:
        return resolve(backbone.parent if backbone.is_file() else backbone, HEADS_FILE, "heads")
    except SSDError:
        return None  # the method says what it lacks, if it cannot do without


def in_models_dir(loading: Loading, folder: str, name: str) -> str | None:
    """DIR/folder/name where --models-dir has it, or where `download` puts it without one."""
    path = Path(loading.models_dir or MODELS, folder, name)
    return str(path) if path.exists() else None


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
        self.bar: tqdm | None = None

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
    return event


def pictures(backbone: Backbone, tokens: torch.Tensor) -> torch.Tensor:
    """Tokens [B, R, C] -> pictures [B, H, W, 3], one at a time to spare memory."""
    with torch.inference_mode():
        return torch.cat([backbone.decode(one[None]).cpu() for one in tokens])


def conditions(backbone: Backbone) -> dict:
    """What a measurement depends on."""
    return {"backbone": backbone.name, "device": str(backbone.device),
            "dtype": str(backbone.dtype).removeprefix("torch."),
            "threads": torch.get_num_threads(), "torch": torch.__version__}
