"""The task of drawing prompts as PNGs with recipes, by any method.

Picture n of a run has the run's seed + n and is the same in any batch. Knows no host.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ...engine.decode import generate
from ...engine.events import finished
from ...engine.heads import DraftHeads
from ...engine.methods import AR, Exact, Method
from ...engine.tuning import Machine, filled
from ...engine.tuning import at_once as cheapest_batch
from ...model.grid import Grid
from ...model.sampling import Sampling
from ...output.guarantees import guarantee_holds
from ...output.pixels import pixels
from ...output.recipe import make_recipe, png_bytes
from ...output.words import Words
from ..request import Request
from .task import LoadedModels, PicturesTask, batches, fitting_batch, in_groups

MOST_AT_ONCE = 8
EITHER = (AR.name, Exact.name)


@dataclass(frozen=True)
class RenderItem:
    """Picture `number` of a run: its prompt, and its PNG's name relative to the folder.

    drawn: the words it is drawn from; None: the typed ones.
    """

    number: int
    prompt: str
    file: str
    drawn: Words | None = None


@dataclass(frozen=True)
class RenderSettings:
    """The settings that all pictures of a run share; sampling has picture 0's seed.

    window: of `exact` on the machine that hands out tasks; no picture depends on it. either: AR and
    `exact` may both draw pictures of the run, because theirs are the same.
    """

    method: Method
    sampling: Sampling
    negative: str | None = None
    window: int | None = None
    either: bool = False

    @classmethod
    def of(cls, first: Request) -> RenderSettings:
        """Those of a run whose first picture is requested."""
        either = (isinstance(first.asked, (AR, Exact)) and first.fall_back and not first.named
                  and guarantee_holds(first.sized))
        return cls(first.recorded, first.sampling, first.negative, either=either)

    @property
    def drawn_by(self) -> Method:
        """The method with its window."""
        if isinstance(self.method, Exact) and self.method.window is None:
            return replace(self.method, window=self.window)
        return self.method

    def on(self, grid: Grid, device: str) -> RenderSettings:
        """These settings with the method's window: the default for this type of device."""
        return replace(self, method=filled(self.method, grid, device))

    def words(self, picture: RenderItem) -> Words:
        """The words a picture is drawn from."""
        return picture.drawn or Words(picture.prompt, self.negative)

    def heads(self, loaded: LoadedModels) -> DraftHeads | None:
        return loaded.heads if self.method.uses_heads else None


@dataclass(frozen=True)
class DrawTask(PicturesTask):
    """Pictures that are drawn together."""

    pictures: tuple[RenderItem, ...]
    how: RenderSettings

    def run(self, loaded: LoadedModels) -> dict[str, bytes]:
        return {file: png for part in together(self.pictures, self.how)
                for file, png in draw(part, self.how, loaded)}


def draw_tasks(pictures: Sequence[RenderItem], how: RenderSettings, batch: int) -> list[DrawTask]:
    """All pictures in batches; equal arguments give equal tasks in every process."""
    parts = (tuple(pictures[i] for i in part) for part in batches(len(pictures), batch))
    return [DrawTask(part[0].file, part, how) for part in parts]


def together(pictures: Sequence[RenderItem], how: RenderSettings) -> list[list[RenderItem]]:
    """The pictures in groups that can be drawn as a batch.

    Their numbers are consecutive, as the seeds of a batch are, and the negative prompt is the same.
    """
    return in_groups(pictures, lambda last, picture: (
        last.number + 1 == picture.number
        and how.words(last).negative == how.words(picture).negative))


def draw(pictures: Sequence[RenderItem], how: RenderSettings,
         loaded: LoadedModels) -> Iterator[tuple[str, bytes]]:
    """File name and PNG of each picture, drawn as a batch."""
    backbone, heads = loaded.backbone, how.heads(loaded)
    how = how.on(backbone.grid, backbone.device.type)
    sampling = how.sampling.offset_seed(pictures[0].number)
    drawn_from = [how.words(picture) for picture in pictures]
    done = finished(generate(backbone, [words.prompt for words in drawn_from], how.drawn_by, heads,
                             sampling, drawn_from[0].negative))
    decoded = pixels(backbone, done.tokens)
    for index, (picture, image) in enumerate(zip(pictures, decoded, strict=True)):
        recipe = make_recipe(backbone, heads, how.method, sampling, done.tokens[index], done.stats,
                             index=index, prompt=picture.prompt, negative=how.negative,
                             drawn=picture.drawn)
        yield picture.file, png_bytes(image, recipe)


def at_once(how: RenderSettings, prompt: str, loaded: LoadedModels, free: int | None) -> int:
    """The number of pictures in a batch: MOST_AT_ONCE, or fewer if free memory (bytes) is short."""
    if free is None:
        return MOST_AT_ONCE
    return fitting_batch(MOST_AT_ONCE, free, lambda pictures: Request(
        loaded.backbone, how.heads(loaded), how.method, how.sampling, prompt, how.negative,
        pictures=pictures).bytes_needed)


def quickest(first: Request, how: RenderSettings, sizes: Sequence[int]) -> tuple[RenderSettings,
                                                                                 int]:
    """The settings with which this machine draws soonest, and a batch size out of `sizes`.

    first: the request for one of the pictures. Without measurements it is the last size.
    """
    machine = Machine.of(first.sized, first.heads, first.branches)
    fastest = cheapest_batch(machine, first.asked, sizes, named=not how.either)
    if fastest is None:
        return how, sizes[-1]
    chosen, window = fastest.tuning.method, getattr(fastest.tuning.method, "window", None)
    if isinstance(first.asked, Exact):
        by_ar = isinstance(chosen, AR)
        how = replace(how, method=AR() if by_ar else first.asked, window=window)
    return how, fastest.pictures
