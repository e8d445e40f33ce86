"""A run as every host requests it (`Request`), and its outcome (`Result`). Knows no host."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property

import torch

from ..arguments import require_fields
from ..backbones.base import Backbone, Preset
from ..backbones.presets import resolve_sampling
from ..backbones.prompts import alternatives
from ..backbones.prompts.expanded import Expanded
from ..engine.decode import (
    PreparedRun,
    check_needs,
    check_size,
    plan_of,
    prepare,
    prompt_branches,
)
from ..engine.events import Event, FinalRows, Finished, Pass, Plan
from ..engine.heads import DraftHeads
from ..engine.methods import SSD, Method, Rows
from ..engine.own_runs import note
from ..engine.region import Region, region_of
from ..engine.step_times import note_rest, note_step_times, step_times_of
from ..engine.tuning import Machine, Tuning, filled, sooner_alone, threads, tune
from ..errors import SSDError
from ..model.grid import Grid
from ..model.knobs import derived
from ..model.sampling import Sampling
from ..output import labels
from ..output.drawing import Drawing, drawing_of
from ..output.guarantees import guarantee, guarantee_holds, guarantee_text
from ..output.kept_pixels import as_large_as, check_pixels, with_kept_pixels
from ..output.kept_pixels import size_of as size_of_pixels
from ..output.knobs import check_pictures
from ..output.pixels import pixels
from ..output.preview import Preview
from ..output.recipe import make_recipe, other_dtype
from ..output.unknown import misplaced_in, unknown_in, word_notes
from ..output.words import Words, drawn_words, expansions, shared
from ..weights.fit import run_bytes
from ..weights.model_size import stored_dtype
from .edited import Edited
from .scheduling import timed

FALLBACK_NOTE = ("there are no draft heads: drawn by 'rows', the same schedule without heads "
             "(approximate); load heads for SSD, or choose 'exact' for the picture that AR draws")


@dataclass(eq=False)
class Request:
    """A drawing with a loaded model: a run, checked and prepared once.

    A host sets the fields; afterwards they hold the values that the run will use, and nobody
    changes them.

    backbone: as loaded; `sized` is the same with the size of this run.
    heads: the draft heads; None if the method uses none.
    drawing: what was asked for: with its method resolved, its size and cfg, and the alternative of
        its prompt that the seed draws.
    fall_back: see `resolved_method`, whose note becomes `note`.
    named: the user asked for this very method, as in a comparison, so that no quicker one replaces
        it; implied if fall_back is False.
    device: where the run will draw, if the backbone is elsewhere now.
    threads: the exact number of threads; None: the quickest.
    drawn_before: a line about the picture that a recipe draws again, for `notes`.
    note: why another method draws than the one that was asked for.
    tuning: what was set for this machine, and its cost.
    alone: whether the pictures are done sooner one after the other, see `parts`.
    method: the method that draws, which `drawing.method` may not be.

    Raises SSDError if size, method and heads do not fit together; `check` checks the other fields.
    """

    backbone: Backbone
    heads: DraftHeads | None
    drawing: Drawing
    fall_back: bool = True
    named: bool = False
    device: torch.device | None = None
    threads: int | None = None
    drawn_before: str | None = None
    note: str | None = field(default=None, init=False)
    tuning: Tuning = field(init=False)
    alone: bool = field(default=False, init=False)
    method: Method = field(init=False)
    grid: Grid = field(init=False)
    _prepared: PreparedRun | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        require_fields(self)
        drawing = self.drawing
        backbone = self.backbone.resized(self._size).drawn_from(drawing.sources)
        self.grid = backbone.grid
        method, self.note = resolved_method(
            drawing.method, backbone.preset, self.heads is not None, self.fall_back)
        self.heads = self.heads if method.uses_heads else None
        check_needs(method, backbone, self.heads)
        self.drawing = replace(
            drawing, method=method,
            prompt=alternatives.resolved(drawing.prompt, drawing.sampling.seed).text,
            negative=backbone.own_words.asked(drawing.negative), size=backbone.size,
            keep_pixels=as_large_as(drawing.keep_pixels, backbone),
            sampling=resolve_sampling(drawing.sampling, backbone.preset))
        self._tune(backbone)

    @property
    def _size(self) -> tuple[int, int] | None:
        """The size asked for; else that of the kept pixels, if the backbone draws it."""
        own = size_of_pixels(self.drawing.keep_pixels)
        asked = check_size(self.drawing.size)
        return own if asked is None and own in self.backbone.sizes else asked

    def _tune(self, backbone: Backbone) -> None:
        """Tune for this machine: the window, AR in place of `exact`, pictures one by one or
        together.
        """
        asked, pictures, region = self.drawing.method, self.pictures, None
        with suppress(SSDError):  # `check` says what does not fit
            region = self.region if pictures > 0 else None
        self.tuning = Tuning(asked)
        if region is not None:
            machine = Machine.of(backbone, self.heads, self.branches, region, self.device)
            named = self.named or not self.fall_back or not guarantee_holds(backbone)
            if self.drawing.edit is not None:  # its cost is not known
                method = machine.with_window(asked, pictures)
                self.tuning = Tuning(method, threads=threads(machine, method, pictures))
            else:
                self.tuning = tune(machine, asked, pictures, named)
                self.alone = pictures > 1 and sooner_alone(machine, asked, self.tuning, pictures,
                                                           named)
        self.method = filled(self.tuning.method, self.grid, self.device_type)
        self.heads = self.heads if self.tuning.method.uses_heads else None
        self.note = self.note or self.tuning.note

    @classmethod
    def of_recipe(cls, recipe: Mapping, backbone: Backbone, heads: DraftHeads | None,
                  device: torch.device | None = None) -> Request:
        """The request that draws the picture of a checked recipe again.

        Raises SSDError if backbone or heads are not those of the recipe. AR's picture does not
        depend on heads: any will do for it, or none.
        """
        drawing = drawn_again(recipe)
        require_models(recipe, backbone, heads, drawing.method)
        if draws_ars_picture(drawing.method) and (heads is None or heads.row is None):
            drawing = replace(drawing, method=by_any_heads(drawing.method))
        return cls(backbone, None if recipe["heads"] is None else heads, drawing,
                   fall_back=False, device=device,
                   drawn_before=other_dtype(recipe, backbone))

    def by(self, method: Method) -> Request:
        """The same by another method."""
        return replace(self, drawing=replace(self.drawing, method=method))

    # What was asked for

    @property
    def prompt(self) -> str:
        return self.drawing.prompt

    @property
    def sampling(self) -> Sampling:
        return self.drawing.sampling

    @property
    def pictures(self) -> int:
        return self.drawing.pictures

    @property
    def size(self) -> tuple[int, int]:
        return self.drawing.size or self.backbone.size

    # The run
    @property
    def sized(self) -> Backbone:
        """The backbone at this run's size; made anew, as its tables follow the weights' device."""
        return self.backbone.resized(self.size).drawn_from(self.drawing.sources)

    def check(self) -> None:
        """Raise SSDError if the run cannot start; computes nothing."""
        self.events().close()

    def check_words(self) -> None:
        """Raise SSDError for prompts that no method would take."""
        drawn = self.words
        prompt_branches(self.sized, [words.prompt for words in drawn], drawn[0].negative,
                        self.sampling.cfg)

    def prepare(self) -> PreparedRun:
        """The run, checked and resolved at the first call; nothing is allocated. Raises SSDError.

        Later calls only renew the view of the backbone, because weights may have moved.
        """
        if self._prepared is None:
            self._prepared = self._checked()
        else:
            self._prepared = self._prepared.over(self.sized)
        return self._prepared

    def _checked(self) -> PreparedRun:
        drawing, drawn = self.drawing, self.words
        check_pictures(drawing.pictures)
        check_pixels(drawing.keep_pixels, self.size, drawing.pictures)
        run = prepare(self.sized, [words.prompt for words in drawn], self.method, self.heads,
                      drawing.sampling, drawn[0].negative, keep=drawing.keep,
                      keep_rows=drawing.keep_rows, keep_mask=drawing.keep_mask, edit=drawing.edit,
                      threads=self.threads or self.tuning.threads, device=self.device_type)
        return replace(run, plan=replace(run.plan, tuning=self.tuning_text or run.plan.tuning),
                       graphs=self.tuning.graphs)

    def events(self) -> Generator[Event, None, None]:
        """Run and yield events. Raises SSDError, if at all, before the run starts."""
        return self.prepare().events()

    def run(self, on_event: Callable[[Event], None] = lambda event: None) -> Result:
        """Run to the end. on_event is called with every event."""
        return Result(self).run(on_event)

    def parts(self) -> list[Request]:
        """The requests that draw these pictures soonest: this one, or one per picture."""
        check_pictures(self.pictures)
        keep = self.drawing.keep
        legal = keep is None or len(keep) in (1, self.pictures)
        if not (self.alone and legal):  # the run itself refuses an illegal keep
            return [self]
        return [replace(self, drawing=self.drawing.of_picture(n)) for n in range(self.pictures)]

    def learn(self) -> None:
        """Measure step times on the weights' current device, if unknown, for later requests."""
        step_times_of(self.sized, self.pictures, self.branches, self.heads)

    @property
    def branches(self) -> int:
        """2 with guidance."""
        return 1 if self.sampling.cfg == 1 else 2

    @property
    def device_type(self) -> str:
        """The type of the device that will draw."""
        return (self.device or self.backbone.device).type

    @property
    def plan(self) -> Plan:
        """The plan; its `tuning` says what was set for this machine, and its cost."""
        if self.drawing.edit is not None:
            return self.prepare().plan
        known = plan_of(self.sized, self.method, self.region, self.heads is not None,
                        self.device_type)
        return replace(known, tuning=self.tuning_text or known.tuning)

    @property
    def region(self) -> Region:
        """The cells to draw; raises SSDError if the kept ones do not fit."""
        return region_of(self.grid, self.pictures, self.drawing.keep_rows, self.drawing.keep_mask)

    @property
    def tuning_text(self) -> str:
        """A line with the tuning for this machine and its cost; empty if unknown."""
        each = f"{self.pictures} pictures one after the other, each "
        return each + self.parts()[0].tuning.text if self.alone else self.tuning.text

    @cached_property
    def expansions(self) -> list[Expanded]:
        """The expanded prompt of each picture; [] if nothing is added to it and nothing moved."""
        drawing = self.drawing
        if drawing.fixed or drawing.edit:
            return []
        return expansions(self.backbone, drawing.prompt, drawing.negative, self.seeds,
                          drawing.open, drawing.expand)

    @cached_property
    def words(self) -> tuple[Words, ...]:
        """The words of each picture; without guidance, none of the negations in the prompt."""
        expanded = [Words(made.prompt, made.negative) for made in self.expansions]
        negative = self.drawing.negative
        drawn = expanded or self.drawing.fixed or (Words(self.prompt, negative),)
        if self.sampling.cfg == 1 and not negative:
            drawn = [replace(words, negative=None) for words in drawn]
        return shared(drawn, max(1, self.pictures))

    @property
    def label(self) -> str:
        return labels.label(self.drawing.method if self.tuning.stands_in else self.method)

    @property
    def seeds(self) -> list[int]:
        return self.drawing.seeds

    @property
    def sizes(self) -> tuple[tuple[int, int], ...]:
        """All (width, height) in px that the backbone supports, this run's size first."""
        return self.sized.sizes

    @property
    def unknown_words(self) -> list[str]:
        """Words of both prompts that the backbone ignores."""
        return unknown_in(self.backbone, self.texts)

    @property
    def typed(self) -> list[str]:
        """The typed prompt; [] if it is not what is drawn, as words are fixed."""
        return [] if self.drawing.fixed else [self.prompt]

    @property
    def misplaced_words(self) -> list[str]:
        """Words of both prompts that the backbone knows only in other phrases."""
        return misplaced_in(self.backbone, self.texts)

    @property
    def texts(self) -> list[str]:
        """Prompt and negative prompt of the first picture, as drawn."""
        return [self.words[0].prompt, self.words[0].negative or ""]

    @property
    def notes(self) -> list[str]:
        """Sentences to show the user beside the pictures."""
        moved = self.expansions[0].notes if self.expansions else []
        about = [*word_notes(self.backbone, self.texts, self.typed),
                 *self.backbone.own_words.notes(self.words[0].prompt, self.words[0].negative,
                                                self.sampling.cfg != 1),
                 *self.backbone.notes(self.sampling)]
        drafts = self.heads.note_on(self.backbone) if self.heads else None
        return [note for note in (self.note, self.drawn_before, drafts, *moved, *about) if note]

    @property
    def bytes_needed(self) -> int:
        """Peak memory beyond the weights: keys, values and the widest pass, or the pixels."""
        run, grid = self.prepare(), self.grid
        return run_bytes(run.backbone, -(-run.sequences // self.branches), self.branches > 1,
                         run.method.pass_width(grid), run.widest_rows,
                         max(map(len, run.branches)), run.method.scratch(grid), self.device)

    def preview(self, send: Callable[[dict], None], *, node: str | None = None, panel: int = 0,
                notes: Sequence[str] = ()) -> Preview:
        """A preview panel for the run; notes: sentences to show beside the pictures."""
        return Preview(self.sized, self.method, send, label=self.label, node=node, panel=panel,
                       pictures=self.pictures, keep=self.drawing.keep,
                       own=self.drawing.keep_pixels, keep_rows=self.region.kept_rows, notes=notes,
                       known=kept_by(self) if self.drawing.keep_mask is not None else None)

    def recipe(self, index: int, tokens: torch.Tensor, stats: Mapping) -> dict:
        """The recipe of picture `index` with tokens [R, C]."""
        drawn = replace(self.drawing, keep=self.parent, method=self.recorded, fixed=self.words)
        return make_recipe(self.sized, self.heads, drawn.of_picture(index), tokens, stats)

    @property
    def parent(self) -> torch.Tensor | None:
        """`keep`, if more than the rows that the picture shows anyway is needed to draw again."""
        drawing = self.drawing
        partly = drawing.keep_mask is not None or drawing.edit is not None
        return drawing.keep if partly or self.recorded.starts_from_parent(masked=False) else None

    @property
    def recorded(self) -> Method:
        """The method for recipes, without what changes no picture: window, guesses, a stand-in."""
        asked = self.drawing.method
        own = self.tuning.stands_in or type(self.method) is type(asked)
        same = own and self.method.guarantee == "identical"
        usual = {"guess": "auto"} if same and hasattr(asked, "guess") else {}
        return replace(asked, **usual) if same else self.method

    @cached_property
    def _identity(self) -> tuple:
        return identity(self)

    def __eq__(self, other: object) -> bool:
        """Whether both draw the same pictures by the same method."""
        return isinstance(other, Request) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)


@dataclass(frozen=True)
class Picture:
    """A picture of a run.

    pixels: [H, W, 3] float 0..1 on the CPU. tokens: [R, C] int64. stats: of its run, as `Finished`
    has them. guarantee: a word of docs/contract.md.
    """

    pixels: torch.Tensor
    tokens: torch.Tensor
    recipe: dict
    stats: Mapping
    guarantee: str


@dataclass
class Result:
    """The outcome of a run so far, to be read at any time.

    Call `run`, or `take` with every event. An interrupted `run` leaves the rows that were final.
    Passes and step times of a finished run are recorded for later plans.

    rows: number of final rows. seconds: the run's own time. stats: None until it has finished.
    share: of tokens equal to AR's, None if AR did not run too (see `compare_with_ar`). edit: of a
    finished edit by words. pixels_took: the seconds in which the first picture was decoded.
    """

    request: Request
    rows: int = field(init=False)
    passes: int = 0
    seconds: float = 0.0
    stats: Mapping | None = None
    share: float | None = None
    edit: Edited | None = None
    pixels_took: float = 0.0
    _final: list[FinalRows] = field(default_factory=list, repr=False)

    def __post_init__(self) -> None:
        self.rows = self.request.region.kept_rows  # the first Rows event includes them

    def run(self, on_event: Callable[[Event], None] = lambda event: None) -> Result:
        """Run the request to the end. on_event is called with every event that was processed."""
        for seconds, event in timed(self.request.events()):
            self.take(event, seconds)
            on_event(event)
        return self

    def take(self, event: Event, seconds: float | None = None) -> None:
        """Process an event. seconds: the run's own time so far, if known."""
        if seconds is not None:
            self.seconds = seconds
        if isinstance(event, Pass):
            self.passes = event.index
        elif isinstance(event, FinalRows):
            self.rows = event.last
            self._final.append(event)
        elif isinstance(event, Finished):
            self.stats = event.stats
            self._final = [FinalRows(0, self.rows, event.tokens)]
            keep = self.request.drawing.keep
            if event.object_cells is not None and keep is not None:
                self.edit = Edited.of(keep, event.tokens, event.object_cells, event.stats)
            self._record(event.stats)

    def _record(self, stats: Mapping) -> None:
        """Record passes and step times of a finished run for later plans; those of an edit, or of
        a run that read source pictures in place of a sketch, say nothing about other runs.
        """
        run, backbone = self.request, self.request.sized
        if run.drawing.edit is not None or backbone.sources:
            return
        note(backbone, run.method, run.heads, run.sampling, stats, partly=not run.region.whole)
        note_step_times(backbone, run.method, run.heads is not None, run.sampling, run.pictures,
                        stats, run.tuning.graphs)

    @property
    def tokens(self) -> torch.Tensor:
        """[B, R, C] int64 on the CPU; zeros in rows that are not final."""
        grid = self.request.grid
        tokens = torch.zeros(self.request.pictures, grid.rows, grid.columns, dtype=torch.long)
        for rows in self._final:
            tokens[:, rows.first : rows.last] = rows.tokens.cpu()
        return tokens

    @property
    def finished(self) -> bool:
        return self.stats is not None

    @property
    def measured(self) -> Mapping:
        """The statistics of a finished run."""
        assert self.stats is not None
        return self.stats

    @property
    def stopped_rows(self) -> int | None:
        """The final rows of a stopped run, 0 if it finished none; None if the run finished."""
        drew = self.rows > self.request.region.kept_rows
        return None if self.finished else self.rows if drew else 0

    def pictures(self) -> Iterator[Picture]:
        """The pictures of a finished run, decoded one after the other."""
        decoded = self._timed(pixels(self.request.sized, self.tokens))
        shown = finished_pictures(self.request, self.edit, decoded)
        for picture, tokens, recipe in zip(shown, self.tokens, self.recipes(), strict=True):
            yield Picture(picture, tokens, recipe, self.measured, self.guarantee)

    def _timed(self, decoded: Iterator[torch.Tensor]) -> Iterator[torch.Tensor]:
        """The pictures; the seconds of the first one are recorded for later plans."""
        begun = time.perf_counter()
        first = next(decoded)
        self.pixels_took, run = time.perf_counter() - begun, self.request
        if self.stats is not None:
            note_rest(run.sized, run.heads is not None, run.branches, run.pictures, self.stats,
                      self.pixels_took)
        yield first
        yield from decoded

    def recipes(self) -> list[dict]:
        """One recipe per picture; those of a stopped run state how many rows were final."""
        stats = self.stats or {"passes": self.passes, "seconds": {"total": self.seconds}}
        stopped = {} if self.finished else {"stopped_rows": self.rows}
        return [{**self.request.recipe(index, tokens, stats), **stopped}
                for index, tokens in enumerate(self.tokens)]

    @property
    def guarantee(self) -> str:
        """The guarantee of the pictures, as a word of docs/contract.md."""
        return guarantee(self.request.method, self.request.sized, self.share)

    @property
    def guarantee_text(self) -> str:
        """The same as a sentence."""
        return guarantee_text(self.request.method, self.request.sized, self.share)


def resolved_method(method: Method, preset: Preset, heads: bool,
                    fall_back: bool = True) -> tuple[Method, str | None]:
    """The method that will run with this preset, and a note if it is not the requested one.

    Without heads, SSD falls back to `rows`, the same schedule without training, unless fall_back is
    False. Raises SSDError for knobs out of range.
    """
    if heads or not fall_back or not isinstance(method, SSD):
        return method.resolve(preset), None
    rows = Rows(method.k_h, method.k_v, method.rounds, method.incremental,
                method.acceptance, method.fused_commit)
    return rows.resolve(preset), FALLBACK_NOTE


def drawn_again(recipe: Mapping) -> Drawing:
    """The drawing of a checked recipe, by the words that its picture was drawn from."""
    return replace(drawing_of(recipe), fixed=(drawn_words(recipe),))


def draws_ars_picture(method: Method) -> bool:
    """Whether a method draws AR's picture whatever drafts its tokens."""
    return method.guarantee == "identical"


def by_any_heads(method: Method) -> Method:
    """The same without a row drafter."""
    return derived(method, drafter="heads") if method.needs_row_drafter() else method


def require_models(recipe: Mapping, backbone: Backbone, heads: DraftHeads | None,
                   method: Method) -> None:
    """Raise SSDError if backbone or heads are not those of the recipe; method: the recipe's."""
    name = recipe["backbone"]["name"]
    if name == backbone.name and recipe["backbone"]["sha256"] != backbone.sha256:
        raise SSDError(f"the picture was drawn by other weights of {name} than those that are "
                       f"loaded; only its prompt can be drawn anew: {recipe['prompt']!r}")
    own_heads = None if draws_ars_picture(method) else recipe["heads"]
    for what, loaded, wanted in (
            ("backbone", backbone.sha256, recipe["backbone"]["sha256"]),
            ("draft heads", heads and heads.sha256, own_heads)):
        if wanted not in (loaded, None):
            raise SSDError(
                f"the recipe was made with {what} {wanted[:10]}, but {loaded[:10]} is loaded: "
                "load the recipe's own first" if loaded else
                f"the recipe was made with {what} {wanted[:10]}, and none are loaded: load the "
                "recipe's own first")


def identity(request: Request) -> tuple:
    """Equal for requests that draw the same pictures by the same method.

    Different objects may hold the weights.
    """
    drawing = request.drawing
    top = None if drawing.keep is None else drawing.keep[:, : drawing.keep_rows]
    tables = [each if each is None else each.tolist()
              for each in (top, request.parent, drawing.keep_mask, *request.sized.sources)]
    return (request.backbone.sha256, stored_dtype(request.backbone),
            request.heads and request.heads.sha256, request.recorded, drawing.sampling,
            request.words, request.size, drawing.pictures, drawing.keep_rows, drawing.edit,
            str(tables))


def kept_by(request: Request) -> torch.Tensor | None:
    """bool [B or 1, R, C]: the cells that retain their own pixels; None if there are none.

    Rows that are kept by number retain theirs only if the request has the pixels: the rest of
    their picture may not be drawn, and the codec also reads the cells below them.
    """
    drawing = request.drawing
    if drawing.keep is None or (drawing.keep_mask is None and drawing.keep_pixels is None):
        return None
    known = ~request.region.mask
    return known if known.any() else None


def finished_pictures(request: Request, edit: Edited | None,
                      drawn: Iterable[torch.Tensor]) -> Iterator[torch.Tensor]:
    """The decoded pictures [H, W, 3] of a run, one after the other, kept cells with their own
    pixels. Every host passes its pictures through here. edit: the outcome of an edit by words.
    """
    drawing = request.drawing
    known = kept_by(request) if edit is None else edit.untouched
    if known is None or drawing.keep is None:
        return iter(drawn)
    return with_kept_pixels(request.sized, drawn, known, drawing.keep, drawing.keep_pixels)
