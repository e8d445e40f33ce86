"""`ssd edit`: change a picture by its words, and keep the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import torch
import typer

from ..backbones.base import Backbone
from ..backbones.prompts import alternatives
from ..engine.edits.words import Edit
from ..engine.region import region_of
from ..engine.run_statistics import together
from ..errors import SSDError
from ..model.knobs import specs
from ..output.changed_words import changed_words
from ..output.drawing import Drawing
from ..output.knobs import check_pictures
from ..output.packed import tokens_sha256
from ..output.picture_files import (
    mask_note,
    mask_of_box,
    mask_of_file,
    opened,
    pixels_of,
    redrawn_cells,
    transparent_part,
)
from ..output.recipe import tokens_from_png
from ..output.unknown import require_something_known, word_notes
from ..output.words import Words
from ..runs.cost_estimate import cost_estimate
from ..runs.request import Request, Result
from ..runs.suggestions import best_first, fit_of
from .generate import all_drawn, save_all
from .like import RunSettings, drawable, recipe_in, told_in
from .options import Canvas, Json, Knobs, Loading, SamplingOptions, flag, knob_flags
from .output import Reporter, note
from .paths import batch_paths, check_writable, free
from .session import load, print_notes

Picture = Annotated[Path, typer.Argument(help="The picture to edit.", show_default=False)]
NewWords = Annotated[str, typer.Argument(help="What it should show.", show_default=False)]


@dataclass(frozen=True)
class EditOptions:
    """The edit."""

    old: str | None = flag(None, "The words of the picture as it is. Default: those that are in "
                                 "the file, whichever program wrote them.", "--from")
    knobs: Mapping[str, Any] = knob_flags(spec for spec in specs(Edit) if spec.name != "old_prompt")
    mask: Path | None = flag(None, "Picture that is white, or transparent, where the edited one is "
                                   "drawn anew. Without --mask, --box or --rows what is "
                                   "transparent in the edited picture is drawn anew, or the words "
                                   "decide where.")
    box: str | None = flag(None, "X,Y,WIDTH,HEIGHT in pixels: draw this anew.")
    keep_rows: int | None = flag(None, "Draw all token rows but the first ROWS anew.", "--rows")
    suggest: int = flag(1, "Number of suggestions, each with the next seed. Those come first that "
                           "fit best what follows the region.")
    out: Path | None = flag(None, "FILE.png; several make FILE-0.png, FILE-1.png, ... Default: "
                                  "new files named after the picture.")

    def __post_init__(self) -> None:
        check_pictures(self.suggest, "suggest")

    def paths(self, picture: Path) -> list[Path]:
        """The files to write, those of the best suggestions first."""
        if self.out:
            return batch_paths(self.out, self.suggest)
        return free(lambda ending: batch_paths(
            picture.with_name(f"{picture.stem}-edit{ending}.png"), self.suggest))

    def keep_mask(self, backbone: Backbone, picture: Path) -> torch.Tensor | None:
        """The cells [R, C] that stay whatever the words say; None: no region is given, neither by
        a flag nor, without --from, by what is transparent in the picture.
        """
        named = [each for each in (self.mask, self.box, self.keep_rows) if each is not None]
        if len(named) > 1:
            raise SSDError("--mask, --box, --rows: give one of them")
        if self.keep_rows is not None:
            return ~region_of(backbone.grid, 1, self.keep_rows).mask[0] if self.keep_rows else None
        if self.mask is not None:
            return ~redrawn_cells(mask_of_file(self.mask, backbone.size), backbone.grid)[0]
        if self.box is not None:
            x, y, width, height = numbers(self.box)
            mask = mask_of_box(x, y, width, height, backbone.size)
            return ~redrawn_cells(mask, backbone.grid)[0]
        clear = None
        if self.old is None:
            with opened(picture) as image:
                clear = transparent_part(image, backbone.size)
        if clear is not None:
            with suppress(SSDError):  # too small for a cell
                return ~redrawn_cells(clear, backbone.grid)[0]
        return None


def numbers(box: str) -> list[int]:
    """X,Y,WIDTH,HEIGHT as numbers."""
    each = [part.strip() for part in box.split(",")]
    if len(each) != 4 or not all(part.isascii() and part.isdecimal() for part in each):
        raise SSDError(f"box {box[:30]!r}: write x,y,width,height in pixels, such as 0,96,128,96")
    return [int(part) for part in each]


def command(context: typer.Context, picture: Picture, prompt: NewWords, editing: EditOptions,
            knobs: Knobs, drawing: SamplingOptions, canvas: Canvas, loading: Loading,
            json: Json = False) -> None:
    """Edit a picture by its words, or draw a region of it anew; the rest stays."""
    report = Reporter(json)
    recipe = recipe_in(picture)
    source = RunSettings.of_recipe(recipe, context)
    paths = editing.paths(picture)
    check_writable(paths)
    method, canvas = knobs.chosen(), source.picture(canvas)
    backbone, heads = load(source.loading(loading), [method], canvas.pixels())
    legal = (backbone.sizes_of_grid, backbone.size) if canvas.size else (backbone.sizes,)
    with drawable(picture, *legal) as (png, fitting):
        pixels = pixels_of(png)[None]
        if not canvas.size:
            backbone = backbone.resized((pixels.shape[2], pixels.shape[1]))
        keep, how = tokens_from_png(png, backbone)
    report.print(f"editing {picture} ({fitting}{how})")
    mask = editing.keep_mask(backbone, picture)
    if mask is not None:
        note(f"redraws {int((~mask).sum())} of {mask.numel()} cells")
    if editing.mask is not None and (line := mask_note(editing.mask)):
        note(f"warning: {line}")
    by_words = mask is None or bool({"old", "reach", "hold"} & source.flags_set)
    sampling = source.sampling(drawing)
    prompt = alternatives.resolved(prompt, sampling.seed).text
    old, new = words_of(backbone, recipe, editing.old or told_in(picture).get("prompt"), prompt,
                        by_words)
    report.words([new] if new != prompt else [], None)
    for line in word_notes(backbone, [editing.old or ""], []):
        note(f"warning: --from: {line}")
    wanted = Drawing(prompt, canvas.negative, method, sampling, backbone.size, editing.suggest,
                     keep=keep, keep_mask=mask, keep_pixels=pixels,
                     edit=Edit(old or "", **editing.knobs) if by_words else None,
                     fixed=(Words(new, canvas.negative or None),))
    request = Request(backbone, heads, wanted, fall_back=False)
    print_notes(request)
    if by_words and (slower := cost_estimate(request).note):
        note(slower)
    with all_drawn(request.parts(), paths) as done:
        fits = [fit for result in done for fit in fit_of(result)] if len(paths) > 1 else [0.0]
        order = best_first(fits)
        save_all(done, [paths[order.index(n)] for n in range(len(paths))])
    record = outcome(done, fits, paths)
    for line in record["notes"]:
        note(line)
    report.print(f"{record['passes']} passes, {record['seconds']:.2f} s")
    for suggestion in record["suggestions"]:
        report.print(f"  {suggestion['image']}")
    report.result(record)


def words_of(backbone: Backbone, recipe: Mapping | None, old: str | None, new: str,
             needed: bool) -> tuple[str | None, str]:
    """Old and new words to draw from. needed: whether the old ones decide what stays."""
    require_something_known(backbone, new)
    if old is not None:
        return old, new
    if recipe is not None:
        return changed_words(backbone, recipe, new)
    if needed:
        raise SSDError("the picture does not tell its words: say with --from what it "
                       "shows, or name a region with --mask, --box or --rows")
    return None, new


def outcome(done: Sequence[Result], fits: Sequence[float], paths: Sequence[Path]) -> dict:
    """The runs as a JSON object; what a picture has of its own is the best suggestion's.

    fits: of each picture, see `fit_of`. paths: of the best picture first.
    """
    request, stats = done[0].request, together([result.measured for result in done])
    words = request.drawing.edit
    drawn = [(result, n) for result in done for n in range(result.request.pictures)]
    every = [suggestion(*drawn[n], fits[n], path)
             for n, path in zip(best_first(fits), paths, strict=True)]
    edits = [result.edit for result in done if result.edit]
    notes = dict.fromkeys(line for edit in edits for line in edit.notes)
    return {"method": request.method.name, "backbone": request.backbone.name,
            "passes": stats["passes"], "ar_passes": stats["ar_passes"],
            "seconds": stats["seconds"]["total"],
            "mask_share": 1 - every[0]["kept_share"],
            "objects": stats["edit"]["objects"][0] if edits else [], "notes": list(notes),
            "old_prompt": words.old_prompt if words else None,
            "prompt_drawn": request.words[0].prompt,
            **every[0], "suggestions": every}


def suggestion(result: Result, n: int, fit: float, path: Path) -> dict:
    """Picture n of a run: the share of its cells that stayed, and how well it fits.

    Words may let any cell stay; all cells of a region are drawn anew, even if a token comes again.
    """
    keep, tokens = result.request.drawing.keep, result.tokens[n]
    assert keep is not None
    stayed = tokens == keep[0] if result.edit else ~result.request.region.mask[0]
    return {"image": str(path), "seed": result.request.seeds[n], "fit": fit,
            "kept_share": stayed.float().mean().item(),
            "tokens_sha256": tokens_sha256(tokens)}
