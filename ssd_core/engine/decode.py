"""The decoding loop: check the input, prefill, run the method, yield events.

It draws no pictures and prints nothing. To cancel a run, stop iterating.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice

import torch

from ..arguments import checked
from ..backbones.base import Backbone, Preset
from ..backbones.presets import resolve_sampling
from ..backbones.prompts import alternatives
from ..backbones.prompts.own_words import is_none
from ..backbones.sessions import release_all
from ..errors import SSDError
from ..files import require_unicode
from ..model.attention_kernel import one_attention_kernel
from ..model.grid import Grid
from ..model.knobs import coerce
from ..model.sampling import Sampling
from ..model.surroundings import undisturbed
from .edits.maps import read
from .edits.rule import Rule
from .edits.words import Edit, Revision, require_editable
from .events import Event, FinalRows, Finished, Plan, Started
from .first_replay import WrongReplay
from .graphs import (
    EagerRunner,
    GraphRunner,
    PassRunner,
    graphs_off_reason_of,
    runner,
    switch_off_graphs,
)
from .heads import DraftHeads
from .methods import AR, Method
from .prior_passes import prior_of
from .region import Region, region_of
from .repeat_near_ties import margin, repeats
from .run_statistics import Stopwatch, nothing_drawn, statistics
from .sessions import RunShape, is_ready, state_of
from .sketches import enlarged, fitted, joined, prompts_after, with_sketch
from .state import DecodeState
from .threads import Fixed, Threads, under_way, using_threads

WHOLE = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


def generate(backbone: Backbone, prompts: str | Sequence[str], method: Method,
             heads: DraftHeads | None = None, sampling: Sampling = Sampling(),  # noqa: B008
             negative: str | None = None, size: tuple[int, int] | None = None,
             keep: torch.Tensor | None = None, keep_rows: int = 0, threads: int | None = None,
             keep_mask: torch.Tensor | None = None,
             edit: Edit | None = None) -> Generator[Event, None, None]:
    """Decode one picture per prompt, all in one batch, and yield the events of the run.

    Takes the arguments of `prepare`, which raises SSDError for wrong input before anything runs.
    """
    return prepare(backbone, prompts, method, heads, sampling, negative, size, keep, keep_rows,
                   threads, keep_mask, edit).events()


@checked("size", "keep", "keep_rows", "keep_mask")
@undisturbed()
def prepare(backbone: Backbone, prompts: str | Sequence[str], method: Method,
            heads: DraftHeads | None = None, sampling: Sampling = Sampling(),  # noqa: B008
            negative: str | None = None, size: tuple[int, int] | None = None,
            keep: torch.Tensor | None = None, keep_rows: int = 0, threads: int | None = None,
            keep_mask: torch.Tensor | None = None, edit: Edit | None = None,
            device: str | None = None) -> PreparedRun:
    """Check and resolve the input of a run without allocating anything. Raises SSDError.

    prompts: of `{a|b}` the seed draws one. size: (width, height) in pixels, one of backbone.sizes.
    keep: tokens [B or 1, R, C]. Those where keep_mask, bool [R, C] or [B or 1, R, C], is True stay,
    and the rest is decoded around them; keep_rows is short for a mask of the first rows. Image i
    uses seed + i. threads: the exact number; None: on a CPU torch's own, fewer while other programs
    need the cores. edit: the prompts are new words of the pictures `keep`, which decide what stays;
    keep_mask limits where they may act. device: the type of the device that will draw, if the
    backbone is elsewhere now.
    """
    prompts = [prompts] if isinstance(prompts, str) else list(prompts)
    backbone = backbone.resized(check_size(size))
    method, sketch = method.resolve(backbone.preset), backbone.sketch()
    sampling = resolve_sampling(sampling, backbone.preset)
    prompts = [alternatives.resolved(prompt, sampling.seed).text for prompt in prompts]
    region = region_of(backbone.grid, len(prompts), keep_rows, keep_mask)
    picture = None if keep is None else check_tokens(backbone, keep, len(prompts))
    check_picture(method, backbone, region, picture, edit)
    known = None if region.whole else picture
    from_parent = edit is not None or method.starts_from_parent(masked=keep_mask is not None)
    parent = picture if from_parent else None
    check_needs(method, backbone, heads)
    method.check_region(region)
    with alone(backbone.device):
        branches = prompt_branches(backbone, prompts, negative, sampling.cfg)
        revision = None if edit is None else Revision.of(
            backbone, edit, prompts,
            prompt_branches(backbone, [edit.old_prompt] * len(prompts), negative, sampling.cfg))
    passes = plan_of(backbone, method, region, heads is not None, device, revision)
    first = None
    if sketch is not None:
        small, method = fitted(method, sketch.grid, backbone.grid)
        first = prepare(sketch, prompts, small, heads, sampling, threads=threads, device=device)
    method = method.for_device(backbone.grid, device or backbone.device.type)
    return PreparedRun(backbone, method, heads, sampling, branches, len(prompts), passes, known,
                       region, threads, parent, revision, first)


@dataclass(frozen=True)
class PreparedRun:
    """The resolved input of one run, which `events` starts.

    method: resolved, with its window. branches: prompt ids of all sequences, [cond; uncond] with
    guidance. pictures: B. keep: tokens [B, R, C], None if no cell is known. parent: tokens
    [B, R, C] that first guesses may take, and that an edit begins with. revision: of an edit.
    sketch: the run before this one, for models that draw a sketch first. graphs: whether passes are
    replayed as CUDA graphs where they can be.
    """

    backbone: Backbone
    method: Method
    heads: DraftHeads | None
    sampling: Sampling
    branches: list[list[int]]
    pictures: int
    plan: Plan
    keep: torch.Tensor | None
    region: Region
    threads: int | None
    parent: torch.Tensor | None = None
    revision: Revision | None = None
    sketch: PreparedRun | None = None
    graphs: bool = True

    def over(self, backbone: Backbone) -> PreparedRun:
        """The same run with another view of its backbone, made after the weights have moved."""
        first, sketch = self.sketch, backbone.sketch()
        return replace(self, backbone=backbone, sketch=None if first is None or sketch is None
                       else first.over(sketch))

    @property
    def sequences(self) -> int:
        """The most sequences of a pass: guidance branches, and those of an edit's objects."""
        return len(self.branches) + (self.pictures * len(self.revision.without)
                                     if self.revision else 0)

    @property
    def widest_rows(self) -> int:
        """The rows of the widest stretch of known cells, which one pass feeds."""
        return self.region.widest_rows if self.revision is None else self.backbone.grid.rows

    def events(self) -> Generator[Event, None, None]:
        """Run and yield the events. Raises SSDError if the backbone was loaded without values."""
        device = self.backbone.device
        if device.type == "meta":
            raise SSDError(f"{self.backbone.name} was loaded without its values (device meta): "
                           "load it on auto or cpu")
        return self._run(device, Threads.of(self.threads, device))

    def _run(self, device: torch.device, threads: Threads | Fixed
             ) -> Generator[Event, None, None]:
        """Run each step inside `alone` with its own number of threads.

        Between events the caller's settings apply.
        """
        event: Event | None = Started(self.plan, self.prepares)
        with closing(self._drawn(threads)) as events, under_way():
            while event is not None:
                yield event.detached()
                with alone(device), using_threads(threads()):
                    event = next(events, None)

    def _drawn(self, threads: Threads | Fixed) -> Generator[Event, None, None]:
        """The events after the first one."""
        if self.sketch is not None:
            return with_sketch(self.sketch._drawn(threads), lambda codes: self._after(
                codes)._drawn(threads), self.backbone.grid, self.plan)
        if self.revision is not None and all(self.revision.same):
            return self._as_it_was(self.revision)
        return self._decoded(threads)

    def _decoded(self, threads: Threads | Fixed) -> Generator[Event, None, None]:
        """The events of all passes, and the last one.

        If a graph replays a wrong pass, the run begins again without graphs; if memory is short
        while sessions hold some, it begins again without these. It repeats the same events, so
        those that were yielded already are left out.
        """
        graphs, yielded, retried = self.graphs, 0, False
        clock = Stopwatch(self.backbone.device)
        while True:
            held = self.backbone.session.nbytes > 0
            try:
                with self._state(graphs, clock) as (state, rule):
                    with closing(self.passes(state, rule)) as events:
                        for event in islice(events, yielded, None):
                            yield event
                            yielded += 1
                    stats = {**statistics(state, self.plan), "threads": sorted(threads.used)}
                    tokens = state.picture().clone()
                yield Finished(tokens, stats) if rule is None else Finished(
                    tokens, {**stats, "edit": rule.to_json()}, rule.object_cells)
                return
            except WrongReplay as error:
                switch_off_graphs(self.backbone, error)
                graphs = False
            except torch.OutOfMemoryError:
                if retried or not (release_all() or held):
                    raise
                retried = True

    @contextmanager
    def _state(self, graphs: bool, clock: Stopwatch
               ) -> Iterator[tuple[DecodeState, Rule | None]]:
        """The state of one attempt, and the rule of an edit."""
        # without graphs passes have rounded sizes on a card, and where graphs have just failed
        padded = self.backbone.device.type != "cpu" or graphs != self.graphs
        run = runner(self.backbone) if graphs else EagerRunner(padded)
        rule = None if self.revision is None else self._rule(self.revision)
        shape = self.shape if isinstance(run, GraphRunner) else None
        with state_of(self.backbone, shape, self.branches, self.sampling,
                      margin(self.backbone, self.sampling), partial(self.allocate, run, rule),
                      self.method.pass_width(self.backbone.grid)) as state:
            state.clock = clock
            yield state, rule

    @property
    def prepares(self) -> bool:
        """Whether the run captures graphs that later ones replay, too."""
        shape = self.shape
        return (self.graphs and shape is not None and not graphs_off_reason_of(self.backbone)
                and not is_ready(self.backbone, shape))

    @property
    def shape(self) -> RunShape | None:
        """What runs have in common that can share buffers; None if this run shares with none."""
        backbone, grid = self.backbone, self.backbone.grid
        own = any(each is not None for each in (self.keep, self.parent, self.revision))
        if own or not self.method.shares_buffers or backbone.sources or backbone.first_slot:
            return None
        hides = any(map(backbone.masked_prompt_slots, self.branches))
        return RunShape(grid, backbone.size, backbone.device, backbone.dtype, self.pictures,
                        len(self.branches), self.heads, self.method.scratch(grid), hides)

    def _after(self, sketch: torch.Tensor) -> PreparedRun:
        """The run that draws the picture after its sketch, by `guess` from its cells above."""
        parent = self.parent
        if parent is None and self.method.starts_from_parent(masked=False):
            parent = enlarged(sketch, self.backbone.grid)
        return replace(self, branches=prompts_after(self.backbone, self.branches, sketch),
                       parent=parent, sketch=None)

    def allocate(self, run: PassRunner, rule: Rule | None = None) -> DecodeState:
        """The state before the first pass. run: calls its capturable functions."""
        branches = [*self.branches, *(rule.branches if rule else [])]
        objects = len(rule.branches) // self.pictures if rule else 0
        guided = self.method.starts_from_parent(masked=True)
        return DecodeState(self.backbone, branches, self.pictures, self.sampling, self.heads,
                           self.method.scratch(self.backbone.grid), run,
                           margin(self.backbone, self.sampling, objects), self.region, self.keep,
                           self.parent if rule is None or guided else None, rule)

    def _rule(self, revision: Revision) -> Rule:
        """The rule of an edit, after a pass over the old picture under its old words."""
        assert self.parent is not None
        without = [ids for old, _ in revision.without for ids in old]
        before = read(self.backbone, [*revision.before, *without], self.sampling, self.parent)
        return Rule(revision, before)

    def _as_it_was(self, revision: Revision) -> Generator[Event, None, None]:
        """The events of an edit whose words say what the old ones do: nothing is drawn."""
        assert self.parent is not None
        yield FinalRows(0, self.backbone.grid.rows, self.parent)
        none: list[list[str]] = [[] for _ in revision.same]
        edit = {"objects": none, "missing": none}
        yield Finished(self.parent, {**nothing_drawn(self.plan, self.pictures), "edit": edit},
                       torch.zeros_like(self.parent, dtype=torch.bool))

    def passes(self, state: DecodeState, rule: Rule | None = None
               ) -> Generator[Event, None, None]:
        """Run all passes, from the prefill on, and yield their events; the caller is `alone`."""
        if rule is None:
            prefill = state.prefill()
        else:
            yield state.record_pass("prefill", 0, 0, 0)  # over the old picture under its old words
            prefill = rule.begin(state)
        state.clock.lap("prefill")
        yield prefill
        state.clock.restart()
        reported = 0  # rows
        for event in self.method.steps(state):
            yield event
            if (done := final_rows(state)) > reported:
                yield rows_event(state, reported, done)
                reported = done
            state.clock.restart()
        if (done := final_rows(state)) > reported:
            yield rows_event(state, reported, done)


def final_rows(state: DecodeState) -> int:
    """The number of rows that are final in every picture; known cells always are."""
    return state.region.next(min(state.final, state.slots)) // state.grid.width


def rows_event(state: DecodeState, first: int, last: int) -> FinalRows:
    """The event of rows first..last-1."""
    require_finite(state, last)
    return FinalRows(first, last, state.picture()[:, first:last])


def require_finite(state: DecodeState, rows: int) -> None:
    """Raise SSDError if the hidden state that predicts the last cell drawn in these rows is not
    finite.
    """
    drawn = state.region.count(0, rows * state.grid.width)
    if drawn and not state.hidden[:, state.region.slots[drawn - 1]].isfinite().all():
        raise SSDError(state.backbone.overflowed())


@contextmanager
def alone(device: torch.device) -> Iterator[None]:
    """Switch off gradients and what others set in torch, which would change the picture."""
    with undisturbed(), torch.inference_mode(), one_attention_kernel(device):
        yield


def prompt_branches(backbone: Backbone, prompts: list[str], negative: str | None,
                    cfg: float) -> list[list[int]]:
    """Prompt ids of all sequences: the prompts, then with guidance the unconditional ones."""
    texts = (*(("prompt", prompt) for prompt in prompts), ("negative", negative or ""))
    for name, text in texts:
        require_unicode(name, coerce(name, text, str))
    if not prompts or any(not prompt.strip() for prompt in prompts):
        raise SSDError("the prompt is empty: say what the picture should show")
    cond = [backbone.tokenize(prompt) for prompt in prompts]
    negative = backbone.own_words.asked(negative)
    if cfg == 1:
        if negative and not is_none(negative):
            raise SSDError("a negative prompt needs guidance: raise cfg above 1")
        return cond
    if negative:
        if not backbone.takes_negative:
            raise SSDError(f"{backbone.name} takes no negative prompt: leave it empty")
        words = "" if is_none(negative) else negative
        return cond + [backbone.tokenize_negative(words)] * len(cond)
    return cond + [backbone.unconditional(ids) for ids in cond]


def check_needs(method: Method, backbone: Backbone, heads: DraftHeads | None) -> None:
    """Raise SSDError if the backbone or the heads lack what the method needs."""
    method.check_backbone(backbone)
    if heads is not None and method.uses_heads:
        heads.require_backbone(backbone)
    needed = method.heads_needed(backbone.grid)
    if needed is None:
        return
    if heads is None:
        raise SSDError(f"method {method.name} drafts with heads and none are loaded: load heads, "
                       "or use rows or exact, which need none")
    heads.require(*needed, method.needs_row_drafter())


def check_picture(method: Method, backbone: Backbone, region: Region,
                  picture: torch.Tensor | None, edit: Edit | None) -> None:
    """Raise SSDError if a picture to keep or to edit is missing, or if the method cannot edit."""
    if edit is not None:
        require_editable(backbone)
        if picture is None:
            raise SSDError("old_prompt: there is no picture to edit; give its tokens (keep)")
        if not method.takes_words:
            raise SSDError(f"method {method.name} cannot edit by words: use exact, or ar, which "
                           "draws the same in more passes")
    if picture is None and not region.whole:
        what = f"keep_rows {region.kept_rows}" if region.kept_rows else "keep_mask"
        raise SSDError(f"{what}: there is nothing to keep; give the tokens (keep)")


def check_size(size: tuple[int, int] | None) -> tuple[int, int] | None:
    if size is None:
        return None
    if not isinstance(size, tuple | list) or len(size) != 2:
        raise SSDError(f"size {str(size)[:40]!r}: give (width, height) in pixels")
    return tuple(coerce("size", side, int) for side in size)


def check_tokens(backbone: Backbone, keep: torch.Tensor, pictures: int) -> torch.Tensor:
    """The tokens [B, R, C]; raises SSDError if they do not fit the backbone."""
    grid = backbone.grid
    if not isinstance(keep, torch.Tensor) or keep.dtype not in WHOLE:
        raise SSDError(f"keep: must be a tensor of whole numbers, not "
                       f"{getattr(keep, 'dtype', type(keep).__name__)}; give tokens, not pixels")
    if tuple(keep.shape[1:]) != (grid.rows, grid.columns) or len(keep) not in (1, pictures):
        raise SSDError(f"keep: tokens of shape {tuple(keep.shape)} do not fit {pictures} pictures "
                       f"of {grid}")
    if keep.min() < 0 or keep.max() >= backbone.codes:
        raise SSDError(f"keep: tokens must lie in 0 .. {backbone.codes - 1}")
    return keep.expand(pictures, -1, -1)


@checked("keep_rows", "keep_mask")
@undisturbed()
def plan(grid_or_backbone: Grid | Backbone | type[Backbone], method: Method, keep_rows: int = 0,
         heads: bool = False, device: str | None = None,
         keep_mask: torch.Tensor | None = None) -> Plan:
    """Count the forward passes of a method on a Grid or a backbone, without running anything.

    keep_rows, keep_mask: as in `prepare`. heads: whether draft heads are available. device: the
    type of the device that will decode; by default the backbone's own device, or "cpu" for a Grid.
    """
    grid = grid_or_backbone if isinstance(grid_or_backbone, Grid) else grid_or_backbone.grid
    batched = isinstance(keep_mask, torch.Tensor) and keep_mask.dim() == 3
    pictures = len(keep_mask) if keep_mask is not None and batched else 1
    region = region_of(grid, pictures, keep_rows, keep_mask)
    preset = Preset() if isinstance(grid_or_backbone, Grid) else grid_or_backbone.preset
    return plan_of(grid_or_backbone, method.resolve(preset), region, heads, device)


def plan_of(grid_or_backbone: Grid | Backbone | type[Backbone], method: Method, region: Region,
            heads: bool = False, device: str | None = None,
            edit: Revision | None = None) -> Plan:
    """`plan` for a region; method: resolved."""
    device, grid = device or device_of(grid_or_backbone), region.grid
    prior = None if isinstance(grid_or_backbone, Grid) or edit else prior_of(
        grid_or_backbone, method.for_device(grid, device), heads, region)
    sketch = grid_or_backbone.sketch() if isinstance(grid_or_backbone, Backbone) else None
    own, method = (method, method) if sketch is None else fitted(method, sketch.grid, grid)
    known = method.plan(region) if edit is None else edited_plan(method.plan(region), edit)
    if isinstance(grid_or_backbone, Backbone) and may_repeat(grid_or_backbone, method):
        known = replace(known, passes_max=known.passes_max + known.ar_passes)
    plan = replace(known, tuning=method.tuning(grid, device))
    if prior is not None and known.passes is None:
        plan = replace(plan, prior_passes=prior.passes, prior_pictures=prior.pictures,
                       stand_in=prior.stand_in)
    return plan if sketch is None else joined(own.plan(sketch.grid), plan)


def edited_plan(plan: Plan, edit: Revision) -> Plan:
    """The plan of an edit by words: one more pass, over the old picture; none without a change."""
    if all(edit.same):
        return replace(plan, passes=0, passes_max=0, paper_passes=None)
    passes = None if plan.passes is None else plan.passes + 1
    return replace(plan, passes=passes, passes_max=plan.passes_max + 1, paper_passes=None)


def device_of(target: Grid | Backbone | type[Backbone]) -> str:
    """The device type of a loaded backbone; "cpu" for a Grid, a class or a backbone on meta."""
    if not isinstance(target, Backbone) or target.device.type == "meta":
        return "cpu"
    return target.device.type


def may_repeat(backbone: Backbone, method: Method) -> bool:
    """Whether runs of the method repeat near ties, see repeat_near_ties.py."""
    coupled = getattr(method, "acceptance", None) == "coupled"
    return (not isinstance(method, AR) and bool(backbone.rounding) and repeats(backbone)
            and (coupled or method.guarantee_on(backbone.grid) == "identical"))
