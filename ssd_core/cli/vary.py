"""`ssd vary`: draw variations of a saved picture."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import torch
import typer

from ..backbones.base import Backbone
from ..engine.heads import DraftHeads
from ..engine.methods import Method, default_method
from ..errors import SSDError
from ..model.knobs import coerce
from ..model.noise import STRENGTHS, varied_cells
from ..model.sampling import Sampling
from ..output.drawing import Drawing, method_of
from ..output.knobs import check_pictures
from ..output.picture_files import pixels_of
from ..output.recipe import recipe_tokens, tokens_from_png
from ..runs.request import Request, drawn_again
from .generate import draw, result_of, summary
from .like import RunSettings, drawable, named_in, recipe_in
from .options import Json, Loading, flag
from .output import Reporter, note
from .paths import batch_paths, check_writable, free
from .session import load, print_notes

Picture = Annotated[Path, typer.Argument(help="A PNG that was saved with its settings, or any "
                                              "picture with --from.", show_default=False)]
AGAIN = ("the picture is a variation itself: these are variations of the same picture that it "
         "varies")


@dataclass(frozen=True)
class VaryOptions:
    """Variations."""

    strength: str = flag("subtle", f"How much differs: {', '.join(STRENGTHS)}.")
    variation: float | None = flag(None, "Share of the cells that draw anew, 0 to 1, instead of "
                                         "--strength.")
    count: int = flag(4, "Number of variations.")
    variation_seed: int = flag(1, "Number of the first variation; the next one is 1 more. "
                                  "They begin behind the picture's seed if that is among them.")
    words: str | None = flag(None, "What a picture without settings shows; only the cells that "
                                   "draw anew change.", "--from")
    out: Path | None = flag(None, "FILE.png; several make FILE-0.png, FILE-1.png, ... Default: "
                                  "new files named after the picture.")

    def __post_init__(self) -> None:
        check_pictures(self.count, "count")
        if self.strength not in STRENGTHS:
            raise SSDError(f"strength {self.strength[:40]!r}: choose one of "
                           f"{', '.join(STRENGTHS)}")
        if self.variation is not None and not 0 < self.variation <= 1:
            raise SSDError(f"variation {self.variation}: must lie above 0, at most 1")

    @property
    def share(self) -> float:
        return STRENGTHS[self.strength] if self.variation is None else self.variation

    def sampling(self, own: Sampling) -> Sampling:
        """The picture's own sampling, varied. Its own seed among the numbers would vary nothing:
        then they begin behind it.
        """
        first = self.variation_seed
        if first <= own.seed < first + self.count:
            first = (own.seed + 1) % (1 << 64)
        return replace(own, variation=self.share, variation_seed=first)


def command(context: typer.Context, picture: Picture, varying: VaryOptions, loading: Loading,
            json: Json = False) -> None:
    """Draw variations of a picture, each a picture of its own with the recipe inside."""
    report = Reporter(json)
    recipe = recipe_in(picture)
    if recipe is None and varying.words is None:
        raise SSDError(f"{picture}: this picture has no settings in it: say with --from what it "
                       "shows")
    source = RunSettings(None if varying.words else recipe, named_in(context))
    method = default_method() if source.recipe is None else method_of(source.recipe)
    paths = batch_paths(varying.out, varying.count) if varying.out else free(
        lambda ending: batch_paths(Path(f"{picture.stem}-vary{ending}.png"), varying.count))
    check_writable(paths)
    backbone, heads = load(source.loading(loading), [method])
    if source.recipe is None:
        request, own = of_photograph(picture, varying, method, backbone)
    else:
        request = of_recipe(source.recipe, varying, backbone, heads)
        own = recipe_tokens(source.recipe)
    print_notes(request)
    done = draw(request.parts(), paths)
    method_name, typed = done[0].request.method.name, request.prompt
    result = {**result_of(done, paths, method_name, typed), "variation": varying.share,
              "variation_seeds": request.sampling.variation_seeds(varying.count),
              "kept": [(tokens == own).float().mean().item()
                       for run in done for tokens in run.tokens]}
    report.print(summary(result))
    report.print(f"  tokens kept: {', '.join(f'{share:.0%}' for share in result['kept'])}")
    report.result(result)


def of_recipe(recipe: Mapping, varying: VaryOptions, backbone: Backbone,
              heads: DraftHeads | None) -> Request:
    """Variations of a picture with a recipe: its noise, but for a share of the cells.

    First guesses are the picture's own tokens, where that changes nothing but the passes.
    """
    if recipe.get("variation"):
        note(AGAIN)
    request = Request.of_recipe(recipe, backbone, heads)
    drawing = drawn_again(recipe)
    method: Any = drawing.method
    if method.guarantee == "identical" and hasattr(method, "guess") and drawing.keep is None:
        drawing = replace(drawing, keep=recipe_tokens(recipe)[None],
                          method=replace(method, guess="parent"))
    return replace(request, drawing=replace(
        drawing, sampling=varying.sampling(drawing.sampling), pictures=varying.count))


def of_photograph(path: Path, varying: VaryOptions, method: Method,
                  backbone: Backbone) -> tuple[Request, torch.Tensor]:
    """Variations of any picture: a share of its cells is drawn anew, all others stay.

    Also its tokens [R, C].
    """
    with drawable(path, backbone.sizes) as (png, _):
        pixels = pixels_of(png)[None]
        sized = backbone.resized((pixels.shape[2], pixels.shape[1]))
        tokens, _ = tokens_from_png(png, sized)
    sampling = varying.sampling(Sampling())
    masks = [~varied_cells(sized.grid, seed, varying.share)
             for seed in sampling.variation_seeds(varying.count)]
    drawing = Drawing(coerce("from", varying.words, str), None, method, sampling, sized.size,
                      varying.count, keep=tokens, keep_mask=torch.stack(masks), keep_pixels=pixels)
    return Request(backbone, None, drawing, named=True), tokens[0]
