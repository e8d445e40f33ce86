"""`ssd generate`: draw a prompt and save the pictures with their recipe."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from ..backbones.base import Backbone
from ..backbones.prompts import alternatives
from ..engine.run_statistics import together
from ..errors import SSDError
from ..output.drawing import Drawing
from ..output.labels import accepted, prior_text
from ..output.packed import tokens_sha256
from ..output.picture_files import pixels_of
from ..output.recipe import save_png, tokens_from_png
from ..output.words import Words, inherited
from ..runs.request import Request, Result
from .like import Like, RunSettings, drawable, recipe_in
from .options import Json, Knobs, Loading, PictureOptions, SamplingOptions, flag
from .output import Reporter, note
from .paths import batch_paths, check_writable, free
from .saving import kept_when_stopped, saving
from .session import decode, load, print_notes

Prompt = Annotated[str, typer.Argument(help="What the picture should show.", show_default=False)]
OwnPrompt = Annotated[str | None, typer.Argument(
    help="What the picture should show; with --like the picture's own if left out.",
    show_default=False)]


@dataclass(frozen=True)
class KeepOptions:
    """Keep the top of a picture."""

    keep: Path | None = flag(None, "Picture whose top rows are kept; needs --keep-rows.")
    keep_rows: int = flag(0, "Number of token rows to keep.")

    def __post_init__(self) -> None:
        if self.keep_rows and self.keep is None:
            raise SSDError("--keep-rows needs --keep: the picture whose rows to keep")
        if self.keep is not None and self.keep_rows == 0:
            raise SSDError("--keep needs --keep-rows: how many of its rows to keep")

    def options(self, backbone: Backbone, typed: Words, report: Reporter) -> dict:
        """The drawing's fields keep and keep_rows, and fixed if the prompt is the parent's."""
        if self.keep is None:
            return {}
        with drawable(self.keep, backbone.sizes_of_grid, backbone.size) as (png, fitting):
            tokens, how = tokens_from_png(png, backbone)
        report.print(f"keeping {self.keep_rows} rows of {self.keep} ({fitting}{how})")
        words = inherited(recipe_in(self.keep), typed)
        return {"keep": tokens, "keep_rows": self.keep_rows, **({"fixed": words} if words else {})}


@dataclass(frozen=True)
class SourceOptions:
    """Draw from other pictures."""

    source: list[Path] | None = flag(None, "Picture of any kind to draw from besides the words; "
                                           "repeat it for several. For GLM-Image.")

    def options(self, backbone: Backbone) -> dict:
        """The drawing's field sources."""
        if not self.source:
            return {}
        return {"sources": backbone.read_sources([pixels_of(path) for path in self.source])}


@dataclass(frozen=True)
class OutputOptions:
    """Output."""

    out: Path | None = flag(None, "FILE.png; a batch makes FILE-0.png, FILE-1.png, ... "
                                  "Default: a new file named after backbone and seed.")


def command(context: typer.Context, knobs: Knobs, drawing: SamplingOptions, picture: PictureOptions,
            keeping: KeepOptions, drawn_from: SourceOptions, saving: OutputOptions, like: Like,
            loading: Loading, prompt: OwnPrompt = None, json: Json = False) -> None:
    """Draw a prompt and save the picture(s) with the recipe inside."""
    report, source = Reporter(json), RunSettings.of(like, context)
    method, sampling = source.method(knobs), source.sampling(drawing)
    typed, picture, loading = (source.prompt(prompt), source.picture(picture),
                               source.loading(loading))
    text = alternatives.resolved(typed, sampling.seed).text
    stem = Path(loading.backbone).stem
    paths = batch_paths(saving.out, picture.batch) if saving.out else free(
        lambda ending: batch_paths(Path(f"{stem}-{sampling.seed}{ending}.png"), picture.batch))
    check_writable(paths)
    backbone, heads = load(loading, [method], picture.pixels())
    wanted = Drawing(text, picture.negative, method, sampling, pictures=picture.batch,
                     expand=picture.expand,
                     **{**source.options(backbone, heads),
                        **keeping.options(backbone, Words(text, picture.negative or None), report),
                        **drawn_from.options(backbone)})
    request = Request(backbone, heads, wanted, fall_back=not source.names_method,
                      drawn_before=source.drawn_before(backbone))
    request.check()
    print_notes(request, picture.strict_words)
    print_words(request, report, typed)
    for line in filter(None, (request.tuning_text, prior_text(request.plan))):
        note(line)
    done = draw(request.parts(), paths)
    result = result_of(done, paths, done[0].request.method.name, typed)
    report.print(summary(result))
    report.result(result)


def draw(parts: Sequence[Request], paths: list[Path]) -> list[Result]:
    """Draw and save all pictures; every part draws the same number."""
    with all_drawn(parts, paths) as done:
        save_all(done, paths)
    return done


@contextmanager
def all_drawn(parts: Sequence[Request], paths: list[Path]) -> Iterator[list[Result]]:
    """Draw all pictures, which the block saves; Ctrl-C saves what there is by then."""
    done, each = [Result(part) for part in parts], len(paths) // len(parts)
    runs = [(result, paths[n * each : (n + 1) * each]) for n, result in enumerate(done)]
    with kept_when_stopped(runs):
        for result in done:
            decode(result, result.request.method.name)
        yield done


def print_words(request: Request, report: Reporter, typed: str) -> None:
    """Print the words that will be drawn, if they differ from the typed ones."""
    drawn = expanded([request], typed)
    report.words(drawn["prompt_expanded"] or (), drawn["negative_expanded"])


def expanded(requests: Sequence[Request], typed: str) -> dict:
    """The words drawn, by picture, and the negative prompt; None if they equal the typed ones."""
    drawn = [words for request in requests for words in request.words]
    same = all(words == Words(typed, requests[0].drawing.negative) for words in drawn)
    return {"prompt_expanded": None if same else [words.prompt for words in drawn],
            "negative_expanded": None if same else drawn[0].negative}


def save_all(done: Sequence[Result], paths: list[Path]) -> None:
    """Save one PNG per picture, with its recipe."""
    drawn = (picture for result in done for picture in result.pictures())
    with saving() as save:
        for path, picture in zip(paths, drawn, strict=True):
            save(path, partial(save_png, picture=picture.pixels, recipe=picture.recipe))


def result_of(done: Sequence[Result], paths: list[Path], label: str, typed: str) -> dict:
    """One run, or several of one picture each, as a JSON object."""
    stats, request = together([run.measured for run in done]), done[0].request
    same = ("passes", "ar_passes", "step_acceleration", "tokens_per_second", "acceptance")
    return {"method": label, "backbone": request.backbone.name,
            **{key: stats[key] for key in same}, **expanded([run.request for run in done], typed),
            "seconds": stats["seconds"]["total"], "seconds_by_stage": dict(stats["seconds"]),
            "seeds": [seed for run in done for seed in run.request.seeds],
            "images": [str(path) for path in paths],
            "tokens_sha256": [tokens_sha256(tokens) for run in done for tokens in run.tokens]}


def summary(result: dict) -> str:
    """The same as text."""
    passes = f"{result['passes']} passes"
    if result["passes"] != result["ar_passes"]:
        passes += (f" (AR takes {result['ar_passes']}, {result['step_acceleration']:.2f} times as "
                   "many)")
    lines = [f"{result['method']}: {passes}, {result['seconds']:.2f} s, "
             f"{result['tokens_per_second']:.0f} tokens/s"]
    if result["acceptance"]:
        lines.append(f"  {accepted(result['acceptance'])}")
    return "\n".join([*lines, *(f"  {path}" for path in result["images"])])
