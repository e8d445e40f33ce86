"""The recipe of `train heads`, its checks and its cost."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path

from ..backbones.base import Backbone
from ..engine.heads import DraftHeads, HeadFeatures
from ..errors import SSDError
from ..model.flags import flag
from ..model.grid import Grid
from ..weights.find import HEADS_FILE
from .common import REQUIRED, gigabytes, require_least

KINDS = ("heads", "row")
LOSSES = ("smooth_l1", "scaled", "kl", "scaled+kl")
DISK_BYTES, CHECKPOINT_BYTES, LEARNING_BYTES = 2, 12, 16  # per parameter


@dataclass(frozen=True)
class HeadsRecipe:
    """The paper's Table 8, except the rate for small backbones and the batch of one device."""

    out: Path = flag(REQUIRED, "Folder, or a file that ends with .safetensors.")
    backbone: str = flag("", "Bundled name, file or folder. Default: --out.")
    data: str = flag("", "Folder in which train self-distill drew. Default: --out.")
    start_from: str = flag("", "Heads to continue from, instead of fresh ones: a bundled name, a "
                               "file or a folder. They may be of another backbone with as many "
                               "channels.")
    kind: str = flag("heads", "heads: horizontal and vertical draft heads. row: the row drafter, "
                              "whose cells see their neighbours. Both fit in one file.")
    k_h: int = flag(5, "Horizontal heads.")
    k_v: int = flag(3, "Vertical heads.")
    source: str = flag("h_pre+e", "What goes in: h_pre+e, h_pre, h_post+e, h_post, e.")
    target: str = flag("h_pre", "What is guessed: h_pre, h_post, e.")
    loss: str = flag("smooth_l1", "smooth_l1 (Eq. 3); scaled divides the states by their mean "
                                  "size first; kl compares distributions; scaled+kl.")
    pictures: int = flag(0, "Learn from so many; 0: from all that were drawn.")
    epochs: int = flag(3, "How often each picture is seen, on average.")
    batch: int = flag(16, "Pictures of a step.")
    rate: float = flag(0.0, "Peak learning rate. 0: 1e-3 for a small backbone, else 1e-4.")
    floor: float = flag(0.1, "The last rate, as a share of the peak.")
    drop_text: float = flag(0.1, "Share of pictures that are shown without their text.")
    held_out: int = flag(64, "Pictures that only measure; at most a quarter.")
    seed: int = 0
    device: str = flag("auto", "auto, cpu, cuda, cuda:1, mps, xpu.")
    dtype: str = flag("auto", "Of the backbone: auto, fp32, bf16, fp16, int8, int4. Heads "
                              "learn in fp32.")

    @property
    def file(self) -> Path:
        return self.out if self.out.suffix == ".safetensors" else self.out / HEADS_FILE


def check(recipe: HeadsRecipe) -> None:
    """Raise SSDError for invalid values, before anything is loaded."""
    if recipe.loss not in LOSSES:
        raise SSDError(f"loss {recipe.loss!r}: choose one of {', '.join(LOSSES)}")
    if recipe.kind not in KINDS:
        raise SSDError(f"kind {recipe.kind!r}: choose one of {', '.join(KINDS)}")
    if recipe.kind == "row":
        require_defaults(recipe, "k_h", "k_v", "source", "target", "loss")
    HeadFeatures(recipe.source, recipe.target)
    require_least(recipe, k_h=0, k_v=0, pictures=0, held_out=0, rate=0, epochs=1, batch=1)
    if not recipe.k_h + recipe.k_v:
        raise SSDError("k_h and k_v are both 0: there is nothing to train")
    for name in ("floor", "drop_text"):
        if not 0 <= getattr(recipe, name) <= 1:
            raise SSDError(f"{name} {getattr(recipe, name)}: must lie in 0 .. 1")


def require_defaults(recipe: HeadsRecipe, *names: str) -> None:
    """Raise SSDError if one of these fields is set; the row drafter does not have them."""
    for field in fields(recipe):
        if field.name in names and getattr(recipe, field.name) != field.default:
            raise SSDError(f"{field.name} belongs to draft heads: leave it out with --kind row")


def require_room(recipe: HeadsRecipe, grid: Grid) -> None:
    """Raise SSDError if a head would reach beyond the picture."""
    for name, most in (("k_h", grid.columns - 1), ("k_v", grid.rows - 1)):
        if getattr(recipe, name) > most:
            raise SSDError(f"{name} {getattr(recipe, name)}: pictures of {grid} have room for "
                           f"{most}")


def steps_of(recipe: HeadsRecipe, pictures: int) -> int:
    """Return the number of steps; SSDError if the pictures do not fill one batch."""
    if steps := recipe.epochs * pictures // recipe.batch:
        return steps
    raise SSDError(f"{pictures} pictures in {recipe.epochs} epochs are less than one batch of "
                   f"{recipe.batch}: draw more, or lower --batch")


def cost(recipe: HeadsRecipe, heads: DraftHeads, parameters: int, backbone: Backbone,
         pictures: int, steps: int) -> str:
    """Describe the cost of training in one line; parameters: the trained ones."""
    number = heads.k_h + heads.k_v
    what = (f"a row drafter of {parameters / 1e6:.1f}M parameters" if recipe.kind == "row" else
            f"{number} heads of {parameters / number / 1e6:.1f}M parameters")
    cells = steps * recipe.batch * backbone.grid.cells
    memory, disk, checkpoint = (gigabytes(each * parameters) for each in (
        LEARNING_BYTES, DISK_BYTES, CHECKPOINT_BYTES))
    return (f"{what} for {backbone.name}: "
            f"{steps:,} steps of {recipe.batch} pictures out of {pictures:,}, {cells:,} tokens "
            f"whose states the backbone computes again; about {memory} of memory beside the "
            f"backbone, {disk} in {recipe.file.name} and {checkpoint} in its checkpoint")
