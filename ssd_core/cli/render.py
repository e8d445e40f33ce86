"""`ssd render`: draw every prompt of a file, on one machine or many; can be resumed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from ..backbones.base import Backbone
from ..backbones.prompts import alternatives
from ..engine.decode import prepare
from ..errors import SSDError
from ..files import slug
from ..model.sampling import Sampling
from ..output.drawing import Drawing
from ..output.knobs import check_pictures
from ..output.labels import label
from ..output.unknown import require_known, word_notes
from ..output.words import words_to_draw
from ..runs.batch.prompts import SEEDS, PromptLine, read_prompts
from ..runs.batch.queue import missing, work
from ..runs.batch.render import (
    RenderItem,
    RenderSettings,
    agreed,
    as_begun,
    at_once,
    draw_tasks,
    named_as,
    quickest,
    require_same,
    there_already,
)
from ..runs.batch.workers import WorkerOptions, crew_of
from ..runs.request import Request
from .options import EXPAND, CanvasOptions, Json, Knobs, Loading, SamplingOptions, flag
from .output import Reporter, note
from .paths import check_folder, nearest_folder
from .session import load_for

LONGEST = 40  # characters of a prompt in a file name
NAMED = 20  # unknown words in a warning
NAMED_LINES = 3  # whose settings are not used

File = Annotated[Path, typer.Argument(
    metavar="PROMPTS.txt", show_default=False,
    help="Text file in UTF-8, one prompt a line. Blank lines and lines that begin with # do not "
         "count. Or a .jsonl file, with a prompt or an object with the key prompt on every line.")]


@dataclass(frozen=True)
class RenderOptions:
    """Output."""

    out: Path = flag(Path("renders"), "Folder. Existing pictures are not drawn again.")
    each: int = flag(1, "Pictures of every prompt. Picture n of the run uses seed + n.")
    batch: int = flag(0, "Pictures per batch. 0: up to 8, as memory allows.")
    expand: bool = flag(True, EXPAND)

    def __post_init__(self) -> None:
        if self.each < 1:
            raise SSDError("each must be at least 1")
        if self.batch:
            check_pictures(self.batch, "batch")


def command(prompts: File, rendering: RenderOptions, knobs: Knobs, drawing: SamplingOptions,
            canvas: CanvasOptions, workers: WorkerOptions, loading: Loading,
            json: Json = False) -> None:
    """Draw every prompt of a file as PNGs with recipes; resumes a stopped run."""
    report, out, method = Reporter(json), rendering.out, knobs.chosen()
    check_folder(nearest_folder(out / "picture.png"))
    loaded, models = load_for(workers, loading, [method], canvas.pixels())
    backbone, asked = loaded.backbone, read_prompts(prompts, loaded.backbone)
    lines = [line.prompt for line in asked]
    first = Request(backbone, loaded.heads, Drawing(lines[0], canvas.negative, method,
                                                    drawing.sampling()),
                    fall_back=knobs.method is None)
    how = as_begun(RenderSettings.of(first), first.drawing.method, out)
    prepare(backbone, lines[:1], how.method, how.heads(loaded), how.sampling, how.negative)
    for line in asked:
        line.require_shared(replace(first.drawing, sampling=first.sampling, size=backbone.size))
    require_drawable(backbone, lines, prompts)
    print_unused(asked)
    print_warnings(first, lines, canvas.strict_words)
    pictures = to_draw(asked, rendering.each, first.sampling)
    pictures = [worded(picture, how, first, rendering.expand) for picture in pictures]
    existing = there_already(pictures, how, out)
    require_same(existing, how, loaded, out)
    pictures = named_as(existing, pictures)
    with crew_of(workers, loaded, models, note) as crew:
        batch = rendering.batch or at_once(how, max(lines, key=len), loaded, crew.place.free)
        sizes = (batch,) if rendering.batch else (1, min(batch, len(pictures)))
        how = how.on(backbone.grid, crew.place.device)
        how, begun = agreed(out, how, loaded, lambda: quickest(first, how, sizes), bool(existing))
        batch = rendering.batch or begun
        tasks, started = draw_tasks(pictures, how, batch), time.perf_counter()
        left = sum(task.count for task in missing(tasks, out))
        note(f"{backbone.name} draws {left:,} of {len(pictures):,} pictures by "
             f"{label(how.drawn_by)} into {out}, {batch} at once")
        made, seconds = work(tasks, out, crew, "render"), time.perf_counter() - started
    report.print(f"{made:,} pictures drawn in {seconds:.0f} s")
    report.result({"out": str(out), "method": how.method.name, "backbone": backbone.name,
                   "prompts": len(lines), "pictures": len(pictures), "drawn_now": made,
                   "seconds": seconds})


def to_draw(lines: Sequence[PromptLine], each: int, sampling: Sampling) -> list[RenderItem]:
    """`each` pictures of every prompt, named by number and prompt; of `{a|b}` in a prompt each
    picture's seed draws one. A line's own seed is that of its first picture.
    """
    typed = [(line, n) for line in lines for n in range(each)]
    pictures = []
    for number, ((line, n), seed) in enumerate(zip(typed, sampling.seeds(len(typed)), strict=True)):
        own = None if line.seed is None else (line.seed + n) % SEEDS
        text = alternatives.resolved(line.prompt, seed if own is None else own).text
        pictures.append(RenderItem(number, text, file_name(number, text), None, line.negative, own))
    return pictures


def worded(picture: RenderItem, how: RenderSettings, first: Request, fill: bool) -> RenderItem:
    """The picture with the words it is drawn from, by its own seed, as `generate` does."""
    typed, seed = how.typed(picture), how.sampling_of(picture).seed
    drawn = words_to_draw(first.backbone, typed, seed, first.sampling.cfg != 1, fill)
    return picture if drawn == typed else replace(picture, drawn=drawn)


def print_unused(lines: Sequence[PromptLine]) -> None:
    """Print what the lines tell and nothing reads, of the first ones."""
    notes = [words for line in lines for words in line.notes]
    for words in notes[:NAMED_LINES]:
        note(f"warning: {words}")
    if (more := len(notes) - NAMED_LINES) > 0:
        note(f"warning: and {more:,} more of such lines")


def file_name(number: int, prompt: str) -> str:
    """Such as 000007-a-red-house.png: letters and digits of any script, safe on every system."""
    words = slug(prompt, LONGEST)
    return f"{number:06d}-{words}.png" if words else f"{number:06d}.png"


def require_drawable(backbone: Backbone, prompts: Sequence[str], file: Path) -> None:
    """Raise SSDError, before anything is drawn, for prompts of unknown words alone."""
    bad = [prompt for prompt in prompts if backbone.names_nothing_known(prompt)]
    if bad:
        raise SSDError(f"{file}: {len(bad):,} of {len(prompts):,} prompts name nothing that "
                       f"{backbone.name} knows, first {bad[0][:LONGEST]!r}: change or remove them")


def print_warnings(request: Request, prompts: Sequence[str], strict: bool) -> None:
    """Print warnings about method and words; with `strict`, raise SSDError for unknown words."""
    if request.note and request.note != request.tuning.note:  # which concerns a single picture
        note(f"warning: {request.note}")
    texts = [*prompts, request.drawing.negative or ""]
    if strict:
        require_known(request.backbone, texts)
    for line in word_notes(request.backbone, texts, prompts, NAMED):
        note(f"warning: {line}")
