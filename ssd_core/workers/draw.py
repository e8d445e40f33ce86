"""The task of drawing prompts into PNGs with recipes, by any method.

Picture n of a run has the run's seed + n, and is the same picture in any batch. Knows no host.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..engine.choice import Machine
from ..engine.choice import at_once as cheapest_batch
from ..engine.decode import generate
from ..engine.events import finished
from ..engine.heads import DraftHeads
from ..engine.methods import AR, Exact, Method
from ..engine.methods.paced import Paced
from ..front.pixels import pixels
from ..front.recipe import make_recipe, png_bytes, read_recipe
from ..front.request import Request
from ..front.words import Words
from ..model.sampling import Sampling
from .task import Loaded, There, batches

MOST_AT_ONCE = 8
EITHER = (AR.name, Exact.name)


@dataclass(frozen=True)
class ToDraw:
    """Picture `number` of a run: its prompt, and its PNG's name relative to the folder.

    drawn: the words that it is drawn from; None: those that were typed.
    """

    number: int
    prompt: str
    file: str
    drawn: Words | None = None


@dataclass(frozen=True)
class How:
    """What all pictures of a run share, as `generate` takes it; sampling has picture 0's seed.

    window: of `exact` on the machine that gives the tasks; no picture depends on it. either: AR and
    `exact` may take turns in one folder, because the pictures are the same.
    """

    method: Method
    sampling: Sampling
    negative: str | None = None
    window: int | None = None
    either: bool = False

    @property
    def drawn_by(self) -> Method:
        """The method with its window."""
        if isinstance(self.method, Exact) and self.method.window is None:
            return replace(self.method, window=self.window)
        return self.method

    def words(self, one: ToDraw) -> Words:
        """What a picture is drawn from."""
        return one.drawn or Words(one.prompt, self.negative)

    def heads(self, loaded: Loaded) -> DraftHeads | None:
        return loaded.heads if self.method.uses_heads else None


@dataclass(frozen=True)
class DrawTask:
    """Pictures that are drawn together."""

    name: str
    pictures: tuple[ToDraw, ...]
    how: How

    @property
    def count(self) -> int:
        return len(self.pictures)

    def left(self, there: There) -> DrawTask | None:
        pictures = tuple(one for one in self.pictures if not there(one.file))
        return replace(self, pictures=pictures) if pictures else None

    def run(self, loaded: Loaded) -> dict[str, bytes]:
        return {file: png for part in together(self.pictures, self.how)
                for file, png in draw(part, self.how, loaded)}


def draw_tasks(pictures: Sequence[ToDraw], how: How, batch: int) -> list[DrawTask]:
    """All pictures in batches; the same tasks in every process that gives the same arguments."""
    parts = (tuple(pictures[i] for i in part) for part in batches(len(pictures), batch))
    return [DrawTask(part[0].file, part, how) for part in parts]


def together(pictures: Sequence[ToDraw], how: How) -> list[list[ToDraw]]:
    """The pictures in runs that one batch can draw: their numbers follow each other, as the seeds
    of a batch do, and they have the same negative prompt.
    """
    runs: list[list[ToDraw]] = []
    for one in pictures:
        last = runs[-1][-1] if runs else None
        if last is not None and last.number + 1 == one.number and (
                how.words(last).negative == how.words(one).negative):
            runs[-1].append(one)
        else:
            runs.append([one])
    return runs


def draw(pictures: Sequence[ToDraw], how: How, loaded: Loaded) -> Iterator[tuple[str, bytes]]:
    """File name and PNG of each picture, drawn as one batch."""
    backbone, heads = loaded.backbone, how.heads(loaded)
    sampling = how.sampling.later(pictures[0].number)
    words = [how.words(one) for one in pictures]
    done = finished(generate(backbone, [one.prompt for one in words], how.drawn_by, heads,
                             sampling, words[0].negative))
    drawn = pixels(backbone, done.tokens)
    for index, (one, picture) in enumerate(zip(pictures, drawn, strict=True)):
        recipe = make_recipe(backbone, heads, how.method, sampling, done.tokens[index], done.stats,
                             index=index, prompt=one.prompt, negative=how.negative, drawn=one.drawn)
        yield one.file, png_bytes(picture, recipe)


def at_once(how: How, prompt: str, loaded: Loaded, free: int | None) -> int:
    """Pictures in a batch: up to MOST_AT_ONCE, fewer if free memory (bytes) has no room for them.
    """
    pictures = MOST_AT_ONCE
    while free is not None and pictures > 1 and Request(
            loaded.backbone, how.heads(loaded), how.method, how.sampling, prompt, how.negative,
            pictures=pictures).bytes_needed > free:
        pictures //= 2
    return pictures


def quickest(first: Request, how: How, sizes: Sequence[int]) -> tuple[How, int]:
    """How this machine draws soonest, and how many pictures at once, one of `sizes`.

    first: the request for one of the pictures. Without figures it is the last size.
    """
    named = first.named or not first.fall_back
    machine = Machine.of(first.sized, first.heads, first.branches)
    found = cheapest_batch(machine, first.asked, sizes, named)
    how = replace(how, either=isinstance(first.asked, Exact) and not named)
    if found is None:
        return how, sizes[-1]
    chosen, window = found.choice.method, getattr(found.choice.method, "window", None)
    if isinstance(first.asked, Exact):
        by_ar = isinstance(chosen, AR)
        how = replace(how, method=AR() if by_ar else first.asked, window=window)
    return how, found.pictures


def as_begun(how: How, asked: Method, pictures: Sequence[ToDraw], folder: Path) -> How:
    """With the window that a stopped run chose, which its other pictures depend on."""
    begun = next((folder / one.file for one in pictures if (folder / one.file).exists()), None)
    if begun is None or not isinstance(asked, Paced) or asked.size is not None:
        return how
    recipe = read_recipe(begun)
    if recipe["method"] != how.method.name or not isinstance(how.method, Paced):
        return how
    return replace(how, method=how.method.sized(recipe["knobs"].get(how.method.paced)))
