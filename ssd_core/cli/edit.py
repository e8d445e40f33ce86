"""`ssd edit`: change a picture by its words, and keep the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from ..backbones.base import Backbone
from ..engine.edits.words import Edit
from ..errors import SSDError
from ..model.knobs import specs
from ..output.changed_words import changed_words
from ..output.packed import tokens_sha256
from ..output.recipe import opened, recipe_of, tokens_from_png
from ..output.words import Words
from ..runs.request import Request, Result
from .generate import draw
from .like import Source
from .options import Canvas, Json, Knobs, Loading, SamplingOptions, flag, knob_flags
from .output import Reporter, note
from .paths import check_writable, free
from .session import load, print_notes

Picture = Annotated[Path, typer.Argument(help="The PNG to edit.", show_default=False)]
NewWords = Annotated[str, typer.Argument(help="What it should show.", show_default=False)]


@dataclass(frozen=True)
class WordsOptions:
    """The edit."""

    old: str | None = flag(None, "The words of the picture as it is. Default: those of its recipe.",
                           "--from")
    knobs: Mapping[str, Any] = knob_flags(spec for spec in specs(Edit) if spec.name != "old_prompt")
    out: Path | None = flag(None, "FILE.png. Default: a new file named after the picture.")


def command(context: typer.Context, picture: Picture, prompt: NewWords, editing: WordsOptions,
            knobs: Knobs, drawing: SamplingOptions, canvas: Canvas, loading: Loading,
            json: Json = False) -> None:
    """Edit a picture by its words: what they change is drawn anew, the rest stays."""
    report = Reporter(json)
    with opened(picture) as image:
        recipe = recipe_of(picture, image)
    source = Source.of_recipe(recipe, context)
    path = editing.out or free(lambda end: [picture.with_name(f"{picture.stem}-edit{end}.png")])[0]
    check_writable([path])
    method, canvas = knobs.chosen(), source.picture(canvas)
    backbone, heads = load(source.loading(loading), [method], canvas.pixels())
    keep, how = tokens_from_png(picture, backbone)
    report.print(f"editing {picture} ({how})")
    old, new = words_of(backbone, recipe, editing.old, prompt)
    report.words([new] if new != prompt else [], None)
    request = Request(backbone, heads, method, source.sampling(drawing), prompt, canvas.negative,
                      keep=keep, old_prompt=old, fixed=(Words(new, canvas.negative or None),),
                      fall_back=False, **editing.knobs)
    print_notes(request)
    (result,) = draw([request], [path])
    report_on(result, path, report)


def words_of(backbone: Backbone, recipe: Mapping | None, old: str | None,
             new: str) -> tuple[str, str]:
    """Old and new words to draw from."""
    if old is not None:
        return old, new
    if recipe is None:
        raise SSDError("the picture has no recipe that tells its words: say with --from what it "
                       "shows")
    return changed_words(backbone, recipe, new)


def report_on(result: Result, path: Path, report: Reporter) -> None:
    """Print what was kept and drawn; as JSON with the share of cells drawn anew (`mask_share`)."""
    edit, stats = result.edit, result.measured
    assert edit is not None
    for line in edit.notes:
        note(line)
    report.print(f"{stats['passes']} passes, {stats['seconds']['total']:.2f} s\n  {path}")
    report.result({"method": result.request.method.name, "backbone": result.request.backbone.name,
                   "passes": stats["passes"], "ar_passes": stats["ar_passes"],
                   "seconds": stats["seconds"]["total"], "kept_share": edit.kept_share,
                   "mask_share": 1 - edit.kept_share, "held": stats["edit"]["things"][0],
                   "notes": list(edit.notes), "old_prompt": result.request.old_prompt,
                   "prompt_drawn": result.request.words[0].prompt,
                   "seed": result.request.sampling.seed, "image": str(path),
                   "tokens_sha256": tokens_sha256(result.tokens[0])})
