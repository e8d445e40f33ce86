"""`ssd plan`: count the passes of a method without loading weights."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import torch
import typer

from ..backbones.base import Backbone
from ..backbones.postcard import Postcard
from ..backbones.prompts import alternatives
from ..engine.decode import plan
from ..errors import SSDError
from ..files import require_unicode
from ..model.grid import Grid
from ..output.labels import prior_text
from ..output.unknown import word_notes
from ..output.words import FIELDS, Words, expansions
from ..weights.cards import card_named
from ..weights.catalogue import KnownBackbone
from ..weights.eight_bits import about
from ..weights.find import is_bundled
from ..weights.load import auto_dtype, load_backbone, pick_device
from ..weights.registry import LocalModel
from .options import EXPAND, Json, Knobs, flag
from .output import Reporter, note
from .session import estimates, registry

# The plan's figures in words; a line of its own says the rest.
FIGURES = {"passes": "passes", "prior_passes": "passes, usually", "passes_max": "passes at most",
           "ar_passes": "passes by AR", "step_acceleration": "times as many by AR",
           "paper_passes": "passes in the paper",
           "paper_ar_passes": "passes by AR in the paper", "tuning": "setting"}
Prompt = Annotated[str | None, typer.Argument(help="Show what would be drawn for this prompt.",
                                              show_default=False)]


@dataclass(frozen=True)
class PlanOptions:
    """Backbone or grid."""

    backbone: str | None = flag(None, "Bundled name, file or folder (postcard by default).")
    models_dir: str | None = flag(None, "Folder with ssd_backbones/NAME.")
    grid: str | None = flag(None, "RxC (rows x columns) instead of a backbone.")
    card: str | None = flag(None, "Seconds on a graphics card that is not here, such as "
                                  "\"RTX 3060\", computed.")
    row_end: bool = flag(False, "The grid's rows end with a forced token.")

    def resolved(self) -> tuple[Grid | type[Backbone] | Backbone, bool]:
        """The grid or backbone, and whether it has draft heads."""
        if self.grid is None:
            if self.row_end:
                raise SSDError("--row-end belongs to --grid: a backbone knows its own rows")
            local = self.local
            return unloaded(local.path), local.heads is not None
        if self.backbone is not None:
            raise SSDError("plan takes --grid or --backbone, not both")
        return Grid.parse(self.grid, self.row_end), False

    @property
    def known(self) -> Backbone | KnownBackbone:
        """The backbone whose seconds on a card are asked for."""
        if self.grid is not None:
            raise SSDError("--card needs --backbone: a grid does not know the size of a model")
        from .fit import described

        return described(self.backbone or Postcard.name, self.models_dir)

    @property
    def local(self) -> LocalModel:
        """The backbone in the user's folders."""
        return registry(self.models_dir).named(self.backbone or Postcard.name)


def dtypes_line(path: Path, device: torch.device) -> str:
    """What the automatic dtypes of a backbone are on this machine."""
    return f"dtype auto: {auto_dtype(path, device)}; {about(device)}"


def unloaded(path: Path) -> type[Backbone] | Backbone:
    """A backbone without weights, for its grid and preset: its class, or loaded on meta."""
    return Postcard if is_bundled(path) else load_backbone(
        path, "meta", estimates=estimates(), hashed=False)


@dataclass(frozen=True)
class ExpansionOptions:
    """Expansion of a prompt."""

    negative: str | None = flag(None, "What should not appear in the picture; none: no words.")
    seed: int = flag(0, "Seed of the picture.")
    expand: bool = flag(True, EXPAND)

    def words(self, prompt: str, target: PlanOptions) -> dict[str, str | None]:
        """The words to draw, as fields of a recipe; None where they equal the typed ones."""
        if target.grid is not None:
            raise SSDError("a prompt needs --backbone: a grid does not know what it says")
        require_unicode("prompt", prompt)
        require_unicode("negative prompt", self.negative or "")
        backbone = load_backbone(target.local.path, "meta", hashed=False)
        typed = Words(prompt, self.negative or None)
        prompt = alternatives.resolved(prompt, self.seed).text
        made = expansions(backbone, prompt, self.negative, [self.seed], fill=self.expand)
        for line in (line for expanded in made for line in expanded.notes):
            note(line)
        texts = [expanded.prompt for expanded in made] or [prompt]
        for line in word_notes(backbone, texts, [prompt]):
            note(f"warning: {line}")
        drawn = [Words(expanded.prompt, expanded.negative) for expanded in made]
        chosen = (*drawn, Words(prompt, typed.negative))[0]
        return dict(zip(FIELDS, (None, None) if chosen == typed else
                        (chosen.prompt, chosen.negative), strict=True))


def command(knobs: Knobs, target: PlanOptions, expansion: ExpansionOptions, prompt: Prompt = None,
            json: Json = False) -> None:
    """Count the passes of a method without running it; with a prompt, also show its expansion."""
    method, report = knobs.chosen(), Reporter(json)
    card = None if target.card is None else card_named(target.card)
    words: dict[str, str | None] = {}
    resolved, heads = target.resolved()
    planned = plan(resolved, method, heads=heads, device=pick_device("auto").type)
    counted = planned.to_json()
    if prompt is not None:
        words = expansion.words(prompt, target)
        report.words(filter(None, [words["prompt_expanded"]]), words["negative_expanded"])
    if target.grid is None:
        note(dtypes_line(target.local.path, pick_device("auto")))
    rows = [{"figure": figure, "value": counted[name]} for name, figure in FIGURES.items()
            if counted[name] not in (None, "")]
    report.table({"figure": "figure", method.name: "value"}, rows)
    if source := prior_text(planned):
        report.print(source)
    seconds = {}
    if card is not None:
        from .fit import print_seconds

        seconds = {"seconds": print_seconds(report, card, target.known)}
    report.result({**counted, **words, **seconds})
