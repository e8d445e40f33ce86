"""What a sampling node asks of the engine, put together from its widgets and links."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from ..ssd_core.backbones.base import Backbone
from ..ssd_core.engine.decode import generate, prompt_branches
from ..ssd_core.engine.events import Event, Finished
from ..ssd_core.engine.methods import SSD, Method
from ..ssd_core.errors import SSDError
from ..ssd_core.front.knobs import sampling_knobs
from ..ssd_core.front.labels import label, without_heads
from ..ssd_core.front.recipe import make_recipe
from ..ssd_core.model.sampling import Sampling
from ..ssd_core.weights.fit import run_bytes
from .schedules import AUTO, idle_knobs, method_of
from .types import TokenPictures
from .weights import Loaded, LoadedBackbone, LoadedHeads
from .widgets import values_of


@dataclass(frozen=True)
class Job:
    """All that is asked of one run; `method` is resolved."""

    model: LoadedBackbone
    heads: LoadedHeads | None
    method: Method
    sampling: Sampling
    prompt: str
    negative: str | None
    size: tuple[int, int] | None
    pictures: int = 1
    keep: torch.Tensor | None = None
    keep_rows: int = 0
    note: str | None = None  # where the run is not what the widgets say

    def __post_init__(self) -> None:
        check_pairing(self.model, self.heads)

    @property
    def backbone(self) -> Backbone:
        """The model's, drawing the size that was asked for."""
        return self.model.module.resized(self.size)

    @property
    def label(self) -> str:
        return label(self.method)

    @property
    def weights(self) -> list[Loaded]:
        return [self.model, self.heads] if self.used_heads else [self.model]

    @property
    def used_heads(self):
        """The heads that the method drafts with, if it does."""
        return self.heads.module if self.heads and self.method.uses_heads else None

    @property
    def bytes_needed(self) -> int:
        """Beyond the weights: keys and values, the widest pass, or the picture's pixels."""
        module = self.backbone
        cfg = module.preset.cfg if self.sampling.cfg is None else self.sampling.cfg
        longest = max(map(len, prompt_branches(module, [self.prompt], self.negative, cfg)))
        return run_bytes(module, self.pictures, cfg != 1, self.method.widest_pass(module.grid),
                         self.keep_rows, longest)

    def events(self) -> Generator[Event, None, None]:
        """The run; whatever is wrong with the job is told here, before it begins."""
        return generate(self.backbone, [self.prompt] * self.pictures, self.method,
                        self.used_heads, self.sampling, self.negative, keep=self.keep,
                        keep_rows=self.keep_rows)

    def recipes(self, finished: Finished) -> tuple[dict, ...]:
        return tuple(make_recipe(self.backbone, self.used_heads, self.method, self.sampling,
                                 tokens, finished.stats, index=n, prompt=self.prompt,
                                 negative=self.negative, keep_rows=self.keep_rows)
                     for n, tokens in enumerate(finished.tokens))

    @property
    def notes(self) -> list[str]:
        """What its user should see on the node and in the report."""
        module = self.model.module
        words = ", ".join(module.unknown_words(f"{self.prompt} {self.negative or ''}"))
        ignored = f"{module.name} does not know, and ignores: {words}" if words else None
        return [note for note in (self.note, ignored) if note]


def check_pairing(model: LoadedBackbone, heads: LoadedHeads | None) -> None:
    """Refuse heads of another backbone, with both names."""
    if heads is None:
        return
    made_for = heads.module.metadata.get("backbone_sha256", "")
    if made_for != model.module.sha256:
        raise SSDError(f"the heads {heads.path.parent.name}/{heads.path.name} were made for "
                       f"{heads.module.metadata.get('backbone')} ({made_for[:10]}), the connected "
                       f"backbone is {model.module.name} ({model.module.sha256[:10]}): connect "
                       "the backbone that Load Draft Heads has")


def sampling_of(widgets: Mapping[str, Any]) -> Sampling:
    """Sampling from the widgets; a cfg between 0 and 1 means that there is no guidance."""
    knobs = values_of(sampling_knobs(), widgets)
    if knobs["cfg"] is not None:
        knobs["cfg"] = max(knobs["cfg"], 1.0)
    return Sampling(**knobs)


def size_of(text: str) -> tuple[int, int] | None:
    """(width, height) of the widget's "192x192"; None for auto."""
    width, _, height = text.partition("x")
    return (int(width), int(height)) if height else None


def kept(keep: TokenPictures | None, rows: int, model: LoadedBackbone) -> torch.Tensor | None:
    """The tokens to keep from; SSDError where only one of keep and keep_rows is given."""
    if (keep is None) != (rows == 0):
        raise SSDError("keep and keep_rows go together: connect the tokens and say how many of "
                       "their rows stand, or neither")
    return None if keep is None else keep.for_backbone(model.module)


def chosen_method(method: Method | None, preset: str, widgets: Mapping[str, Any],
                  model: LoadedBackbone, heads: LoadedHeads | None) -> tuple[Method, str | None]:
    """The resolved method of a run, and a note where it is not what the widgets say: these do
    not matter where a method is connected."""
    if method is not None:
        note = "the connected method draws: preset, k_h, k_v, r and i of this node are not used"
        return method.resolved(model.module.preset), note
    method, note = method_of(preset, widgets), idle_knobs(preset, widgets)
    if heads is None and isinstance(method, SSD):
        method = without_heads(method)
        note = ("there are no draft heads: drawn by 'rows', the same schedule without heads "
                f"(approximate); load heads for SSD, or choose preset '{AUTO}'")
    return method.resolved(model.module.preset), note
