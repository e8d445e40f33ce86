"""Trains draft heads by smooth L1 to the frozen backbone's hidden states (stage 4; SSD Eq. 3).

A tenth of the prompts is dropped, so that the branch without text drafts as well. The recipe offers
other losses and the other predictors of the paper's Table 3. With `kind` "row" the row drafter
learns instead (train/row.py), with "both" one after the other; a kind that does not learn keeps its
weights in the file. Several processes share every batch (train/processes.py) and reach the same
weights as a single process.

The pictures are those of `train self-distill`, or the PNGs that somebody has drawn
(`pictures_from`). From one's own pictures the drafts in use go on learning, and what brings no more
than these, or than none, is not kept (train/judging.py).

All heads learn from the same teacher pass but are independent of one another. States are computed
from tokens batch by batch and never stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext, suppress
from copy import copy, deepcopy
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from pathlib import Path
from statistics import mean, stdev

import torch
import torch.nn.functional as F
from torch import nn

from ..backbones.base import Backbone
from ..backbones.presets import Preset
from ..engine.heads import (
    HORIZONTAL,
    VERTICAL,
    DraftHeads,
    HeadFeatures,
    heads_to_start_from,
    save_heads,
    stored_heads,
)
from ..errors import SSDError
from ..model.grid import Grid
from ..model.knobs import flag
from ..model.sampling import guide
from ..weights.find import HEADS_FILE, find_path
from ..weights.load import auto_dtype, load_backbone, pick_device
from ..weights.memory import MemoryEstimate, Setting, empty_caches, is_out_of_memory
from ..weights.model_size import ModelSize
from ..weights.quantize import unquantise_image_head
from ..weights.registry import ModelRegistry
from . import HEADS, KINDS, LEAST_STEPS, ROW, judging, row
from .checkpoints import Checkpoint, Stopped, Watch, shapes_of, training_steps
from .common import (
    Say,
    cosine,
    gigabytes,
    remember_rates,
    require_least,
    set_rate,
    silent,
    take_step,
)
from .judging import Judgement
from .own_pictures import OwnPictures, note_lesson, own_pictures
from .picture_files import KEPT_PROMPTS, Pictures, load_pictures
from .processes import ALONE, Team, joined
from .teacher import branch, teach
from .versions import save_version

CELLS_AT_ONCE = 16 * 576  # of all pictures in a teacher pass; larger batches go in parts
Measure = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
NUMBERS_AT_ONCE = 1 << 27  # of a distribution over codes in one chunk
LOSSES = ("smooth_l1", "scaled", "kl", "scaled+kl")
DISK_BYTES, CHECKPOINT_BYTES, LEARNING_BYTES = 2, 12, 16  # per parameter
LARGE = 512  # hidden size from which the paper's rate suits
K_H, K_V = 5, 3  # heads of the bundled model
TRAINED = ("scale", "loss", "pictures", "steps", "row_pictures", "row_steps")  # of a file
BATCH, OWN_BATCH = 16, 4  # pictures of a step; the second of one's own pictures
STATES = 22  # float32 hidden states of a cell alive at once, of teacher and head: measured
# Adds the gradients of a batch, with up to so many cells in a pass; returns the batch's loss.
Learn = Callable[[Pictures, list[bool], int], float]


def offsets(heads: DraftHeads, columns: int):
    """Yield (name, head, distance in raster cells) of every head; row ends do not count."""
    for d, head in enumerate(heads.horizontal, 1):
        yield f"{HORIZONTAL}+{d}", head, d
    for d, head in enumerate(heads.vertical, 1):
        yield f"{VERTICAL}+{d}", head, d * columns


def distance(estimate: torch.Tensor, goal: torch.Tensor, loss: str, scale: float, heads: DraftHeads,
             backbone: Backbone) -> torch.Tensor:
    """One head's loss for estimate and goal [B, n, d]; `loss` names the terms of the sum.

    smooth_l1 alone is the summand of SSD Eq. 3.
    """
    total = estimate.new_zeros(())
    for part in loss.split("+"):
        if part == "kl":
            target_probs = code_logits(heads, backbone, goal).softmax(-1)
            draft = code_logits(heads, backbone, estimate).log_softmax(-1)
            total = total + F.kl_div(draft, target_probs, reduction="none").sum(-1).mean()
        else:
            unit = scale if part == "scaled" else 1.0
            total = total + F.smooth_l1_loss(estimate / unit, goal / unit)
    return total


def code_logits(heads: DraftHeads, backbone: Backbone, estimate: torch.Tensor) -> torch.Tensor:
    """float32 [..., codes] from states of any dtype."""
    return heads.space.logits(backbone, estimate.to(backbone.dtype))


def learn_heads(heads: DraftHeads, backbone: Backbone, batch: Pictures, drop: list[bool],
                cells: int, measure: Measure, team: Team = ALONE) -> float:
    """Add the gradients of this process's share of a batch; return its part of the loss.

    The sum over processes is Eq. 3 summed over heads. drop: which pictures of the batch get no
    text. A batch is processed in parts that fit into memory; every head frees its activations
    before the next.
    """
    total, mine, backbone = 0.0, team.share(len(batch)), backbone.resized(batch.size)
    without_text = iter(drop[mine.start : mine.stop])
    for part in batch.pick(mine).parts(most_at_once(backbone.grid, cells)):
        prompts = [branch(backbone, ids.tolist(), next(without_text)) for ids in part.prompts]
        hidden, embedding = teach(backbone, prompts, part.tokens, team)
        goal = heads.space.goal(hidden, embedding)
        for _, head, step in offsets(heads, backbone.grid.columns):
            with team.autocast(backbone.device):
                estimate = head(hidden[:, :-step], embedding[:, :-step]).float()
                loss = measure(estimate, goal[:, step:]) * (len(part) / len(batch))
            loss.backward()
            total += loss.item()
    return total


def most_at_once(grid: Grid, cells: int = 0) -> int:
    """Pictures in one teacher pass over up to so many cells; 0: CELLS_AT_ONCE."""
    return max(1, (cells or CELLS_AT_ONCE) // grid.cells)


def teacher_parts(backbone: Backbone, drawn: Pictures,
                  team: Team = ALONE) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Yield h_pre, e [2B, R*C, d] of held-out pictures: B with their text, then B without.

    The backbone has their size.
    """
    for part in drawn.parts(max(1, most_at_once(backbone.grid) // 2)):
        prompts = [branch(backbone, ids.tolist(), without_text)
                   for without_text in (False, True) for ids in part.prompts]
        yield teach(backbone, prompts, part.tokens.repeat(2, 1, 1), team)


@torch.no_grad()
def mean_size(backbone: Backbone, drawn: Pictures, team: Team = ALONE) -> float:
    """Mean |h_pre| over a few pictures; the `scale` in the heads' files."""
    backbone = backbone.resized(drawn.size)
    return mean(hidden.abs().mean().item() for hidden, _ in teacher_parts(backbone, drawn, team))


@torch.no_grad()
def variance(heads: DraftHeads, backbone: Backbone, drawn: Sequence[Pictures],
             team: Team = ALONE) -> float:
    """Mean squared error of the last head on held-out pictures."""
    errors = []
    for group in drawn:
        view = backbone.resized(group.size)
        *_, (_, head, step) = offsets(heads, view.grid.columns)
        for hidden, embedding in teacher_parts(view, group, team):
            goal = heads.space.goal(hidden, embedding)[:, step:]
            errors.append(F.mse_loss(head(hidden[:, :-step], embedding[:, :-step]), goal).item())
    return mean(errors)


@torch.no_grad()
def acceptance(heads: DraftHeads, backbone: Backbone, drawn: Sequence[Pictures],
               team: Team = ALONE, go_on: Callable[[], None] = lambda: None
               ) -> dict[str, dict[str, float]]:
    """Mean over cells of sum(min(p, q)), the probability that a draft token is accepted, by offset.

    drawn: held-out pictures, by size. `acceptance_se`: standard errors over pictures. Every process
    measures its share of them. go_on: called for every pass; it may raise to stop.
    """
    by_process = [measured for group in drawn for measured in team.gathered(overlaps_by_offset(
        heads, backbone.resized(group.size), group, team, go_on))]
    names = dict.fromkeys(name for measured in by_process for name in measured)
    each = {name: [value for measured in by_process for value in measured.get(name, ())]
            for name in names}
    return {"acceptance": {name: mean(values) for name, values in each.items()},
            "acceptance_se": {name: stdev(values) / len(values)**0.5 if len(values) > 1 else 0.0
                              for name, values in each.items()}}


def overlaps_by_offset(heads: DraftHeads, backbone: Backbone, drawn: Pictures,
                       team: Team, go_on: Callable[[], None]) -> dict[str, list[float]]:
    """Return `overlaps` of this process's pictures by offset of each head, and of the row drafter.
    """
    each: dict[str, list[float]] = {}
    for hidden, embedding in teacher_parts(backbone, drawn.pick(team.share(len(drawn))), team):
        go_on()
        for name, head, step in offsets(heads, backbone.grid.columns):
            estimate = head(hidden[:, :-step], embedding[:, :-step])
            overlap = overlaps(backbone, partial(code_logits, heads, backbone), estimate,
                               hidden[:, step:])
            each[name] = each.get(name, []) + overlap.tolist()
        if heads.row is not None:
            estimate = row.last_estimate(heads, backbone.grid, hidden, embedding)
            each["row"] = each.get("row", []) + overlaps(
                backbone, backbone.logits, estimate.to(backbone.dtype), hidden).tolist()
    return each


def overlaps(backbone: Backbone, logits_of: Callable[[torch.Tensor], torch.Tensor],
             estimate: torch.Tensor, hidden: torch.Tensor) -> torch.Tensor:
    """Mean over cells of sum(min(p, q)) [B], from estimates and exact states [2B, n, d].

    logits_of: converts estimates to the draft's logits.
    """
    cells = max(1, NUMBERS_AT_ONCE // (len(hidden) * backbone.codes))
    shared = []
    for draft, exact in zip(estimate.split(cells, 1), hidden.split(cells, 1), strict=True):
        draft_probs = guided_probs(backbone, logits_of(draft))
        target_probs = guided_probs(backbone, backbone.logits(exact.to(backbone.dtype)))
        shared.append(torch.minimum(draft_probs, target_probs).sum(-1))
    return torch.cat(shared, 1).mean(-1)


def guided_probs(backbone: Backbone, logits: torch.Tensor) -> torch.Tensor:
    """Logits [2B, n, V] of both branches -> probabilities [B, n, V] at the preset's guidance."""
    return guide(logits, backbone.preset.cfg).softmax(-1)


@dataclass(frozen=True)
class HeadsRecipe:
    """The paper's Table 8, except the rate for small backbones and the batch of one device."""

    out: Path | None = flag(None, "Folder, or a file that ends with .safetensors. Default with "
                                  "--pictures-from: where the backbone's drafts are looked for, "
                                  "below --models-dir.")
    backbone: str = flag("", "Bundled name, name below --models-dir, file or folder. Default: "
                             "--out.")
    data: str = flag("", "Folder in which train self-distill drew. Default: --out.")
    pictures_from: list[str] | None = flag(
        None, "Folder of PNGs that you drew with this backbone, to learn from instead; may be "
              "given several times. The drafts in use go on learning, and what brings no more "
              "than before is not kept.")
    models_dir: str = flag("models", "Folder with ssd_backbones/NAME and ssd_heads/NAME.")
    lora: list[str] | None = flag(None, "A LoRA with which the pictures were drawn, FILE or "
                                        "FILE:STRENGTH; may be given several times.")
    start_from: str = flag("", "Heads to continue from, instead of fresh ones: a bundled name, a "
                               "file or a folder. They may be of another backbone with as many "
                               "channels.")
    kind: str = flag(HEADS, "heads: horizontal and vertical draft heads. row: the row drafter, "
                            "whose cells see their neighbours. both: one after the other, in one "
                            "file.")
    k_h: int = flag(0, f"Horizontal heads. 0: {K_H}; with --pictures-from as many as there are, "
                       "else as the model's own schedule needs.")
    k_v: int = flag(0, f"Vertical heads. 0: {K_V}, and so on.")
    source: str = flag("h_pre+e", "What goes in: h_pre+e, h_pre, h_post+e, h_post, e.")
    target: str = flag("h_pre", "What is guessed: h_pre, h_post, e.")
    loss: str = flag("smooth_l1", "smooth_l1 (Eq. 3); scaled divides the states by their mean "
                                  "size first; kl compares distributions; scaled+kl.")
    pictures: int = flag(0, "Learn from so many; 0: from all that were drawn.")
    epochs: int = flag(3, "How often each picture is seen, on average; with --pictures-from for "
                          f"at least {LEAST_STEPS[HEADS]} steps, the row drafter for "
                          f"{LEAST_STEPS[ROW]}.")
    batch: int = flag(0, f"Pictures of a step. 0: {BATCH}; with --pictures-from {OWN_BATCH}.")
    rate: float = flag(0.0, "Peak learning rate. 0: 1e-3 for a small backbone, else 1e-4.")
    floor: float = flag(0.1, "The last rate, as a share of the peak.")
    drop_text: float = flag(0.1, "Share of pictures that are shown without their text.")
    held_out: int = flag(64, "Pictures that only measure; at most a quarter. With "
                             "--pictures-from they are chosen by their tokens.")
    seed: int = 0
    device: str = flag("auto", "auto, cpu, cuda, cuda:1, mps, xpu.")
    dtype: str = flag("auto", "Of the backbone: auto, fp32, bf16, fp16, int8, int4. Heads "
                              "learn in fp32.")

    @property
    def file(self) -> Path:
        assert self.out is not None
        return self.out if self.out.suffix == ".safetensors" else self.out / HEADS_FILE

    @property
    def step_pictures(self) -> int:
        return self.batch or (OWN_BATCH if self.pictures_from else BATCH)


def check(recipe: HeadsRecipe) -> None:
    """Raise SSDError for invalid values, before anything is loaded."""
    if recipe.loss not in LOSSES:
        raise SSDError(f"loss {recipe.loss!r}: choose one of {', '.join(LOSSES)}")
    if recipe.kind not in KINDS:
        raise SSDError(f"kind {recipe.kind!r}: choose one of {', '.join(KINDS)}")
    if recipe.kind == ROW:
        require_defaults(recipe, "k_h", "k_v", "source", "target", "loss")
    if recipe.pictures_from and recipe.data:
        raise SSDError("data and pictures_from both name pictures to learn from: leave one out")
    HeadFeatures(recipe.source, recipe.target)
    require_least(recipe, k_h=0, k_v=0, pictures=0, held_out=0, rate=0, epochs=1, batch=0)
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


def steps_of(recipe: HeadsRecipe, kind: str, pictures: int) -> int:
    """Return the number of steps; SSDError if the pictures do not fill one batch."""
    steps = recipe.epochs * pictures // recipe.step_pictures
    if recipe.pictures_from:
        return max(steps, LEAST_STEPS[kind])
    if steps:
        return steps
    raise SSDError(f"{pictures} pictures in {recipe.epochs} epochs are less than one batch of "
                   f"{recipe.step_pictures}: draw more, or lower --batch")


def cost(run: Run, lesson: Lesson) -> str:
    """Describe the cost of a lesson in one line."""
    recipe, backbone, parameters = run.recipe, run.backbone, lesson.parameters
    number = run.heads.k_h + run.heads.k_v
    what = (f"a row drafter of {parameters / 1e6:.1f}M parameters" if lesson.kind == ROW else
            f"{number} heads of {parameters / number / 1e6:.1f}M parameters")
    cells = lesson.steps * recipe.step_pictures * backbone.grid.cells
    working = working_bytes(ModelSize.of(backbone), lesson.kind, recipe.step_pictures)
    memory, disk, checkpoint = map(gigabytes, (
        LEARNING_BYTES * parameters + working, DISK_BYTES * parameters,
        CHECKPOINT_BYTES * parameters))
    return (f"{what} for {backbone.name}: "
            f"{lesson.steps:,} steps of {recipe.step_pictures} pictures out of "
            f"{sum(map(len, run.shown)):,}, {cells:,} tokens "
            f"whose states the backbone computes again; about {memory} of memory beside the "
            f"backbone, {disk} in {recipe.file.name} and {checkpoint} in its checkpoint")


def working_bytes(model: ModelSize, kind: str, pictures: int) -> int:
    """The activations of a lesson whose steps have so many pictures: a part's teacher pass, or
    what learns from it.
    """
    pictures, slots = min(pictures, most_at_once(model.grid)), model.prompt_slots + model.grid.slots
    layer = MemoryEstimate(model, Setting(pictures, guided=False), slots).layer
    learns = (4 * STATES * pictures * model.grid.cells * model.shape.hidden if kind == HEADS else
              row.working_bytes(model, pictures))
    return layer + learns


@dataclass(frozen=True)
class Lesson:
    """What one kind of drafts learns, and from which step it goes on."""

    kind: str
    learn: Learn
    checkpoint: Checkpoint
    start: int
    steps: int

    @property
    def parameters(self) -> int:
        return sum(weight.numel() for weight in self.checkpoint.model.parameters())

    def summary(self, recipe: HeadsRecipe, scale: float, pictures: int) -> dict:
        """The metadata of its part of the file."""
        counts = {"pictures": pictures, "steps": self.steps}
        if self.kind == ROW:
            return {f"row_{key}": count for key, count in counts.items()}
        return {"scale": scale, "loss": recipe.loss, **counts}


@dataclass(frozen=True)
class Run:
    """A training run that is ready to start.

    shown, held_out: pictures by size. own: what is known about one's own pictures; None for those
    of `train self-distill`. before: the drafts in use, in float32, if one's own pictures teach.
    """

    recipe: HeadsRecipe
    backbone: Backbone
    heads: DraftHeads
    shown: Sequence[Pictures]
    held_out: Sequence[Pictures]
    own: OwnPictures | None
    before: DraftHeads | None
    lessons: Sequence[Lesson]
    summary: dict  # for the file
    team: Team

    @property
    def steps(self) -> int:
        """Of all lessons together."""
        return sum(lesson.steps for lesson in self.lessons)


def train(recipe: HeadsRecipe, say: Say = silent) -> dict:
    """Train, save the recipe's file and return held-out acceptance by offset."""
    with joined(recipe.device) as team:
        with team.agreeing() as facts:
            check(recipe)
            recipe = with_places(recipe)
            backbone = load_teacher(recipe, team)
            run = prepare(recipe, backbone, current_drafts(recipe, backbone), team)
            for lesson in run.lessons:
                say(cost(run, lesson))
                if lesson.start:
                    say(f"{lesson.checkpoint.path}: goes on from step {lesson.start:,}; processes "
                        f"then {lesson.checkpoint.wrote}, now {team.size}")
            if run.own:
                say(run.own.line)
            facts |= {"the backbone": run.backbone.sha256, "the number of pictures":
                      sum(map(len, (*run.shown, *run.held_out))),
                      "the steps to go on from": [lesson.start for lesson in run.lessons]}
        return learn(run)


def learn(run: Run, watch: Watch | None = None) -> dict:
    """Run all lessons, save what is to be kept and return its measurements.

    watch: told how many of `run.steps` are done, also while drafts are measured afterwards; returns
    whether to go on, else Stopped is raised. The next run of the same recipe then goes on from
    there.
    """
    done, judgements = 0, list[Judgement]()
    for lesson in run.lessons:
        descend(run, lesson, watch and partial(watch_from, watch, done))
        done += lesson.steps
        if run.own is not None and lesson.start < lesson.steps:
            judgements.append(keep_better(run, lesson, judgements,
                                          partial(require_going_on, watch, done)))
    return save_and_measure(run, judgements, partial(require_going_on, watch, run.steps))


def require_going_on(watch: Watch | None, steps: int) -> None:
    """Raise Stopped if a host stops the run after so many steps."""
    if watch is not None and not watch(steps):
        raise Stopped


def watch_from(watch: Watch, earlier: int, step: int) -> bool:
    """`watch` for a lesson that begins after so many steps of others."""
    return watch(earlier + step)


def prepare(recipe: HeadsRecipe, backbone: Backbone, current: DraftHeads | None = None,
            team: Team = ALONE) -> Run:
    """Check everything and make it ready; SSDError if something does not fit.

    backbone: may be in use for drawing; it is not changed. current: the drafts in use, in float32.
    """
    check(recipe)
    if recipe.step_pictures < team.size:
        raise SSDError(f"batch {recipe.step_pictures}: {team.size} processes need a picture each; "
                       "raise --batch")
    own = own_pictures(recipe.pictures_from, backbone) if recipe.pictures_from else None
    if own is not None:
        own.require_enough(backbone)
        if current is not None and not recipe.start_from:
            own.require_new(backbone, KINDS[recipe.kind], recipe.file)
        shown, held_out = first_of(own.shown, recipe.pictures), own.held_out
        recipe = as_before(recipe, current, backbone.preset)
    else:
        shown, held_out = self_drawn(recipe, backbone)
        recipe, current = replace(recipe, k_h=recipe.k_h or K_H, k_v=recipe.k_v or K_V), None
    backbone = backbone.resized(shown[0].size)
    generator = torch.Generator().manual_seed(recipe.seed)
    recipe = replace(recipe, rate=recipe.rate or (1e-4 if backbone.hidden_size >= LARGE else 1e-3))
    heads, count = start(recipe, backbone, generator, current), sum(map(len, shown))
    scale = mean_size(backbone, shown[0].pick(range(min(8, len(shown[0])))), team)
    lessons = [lesson_of(recipe, kind, heads, backbone, generator, scale, count, team)
               for kind in KINDS[recipe.kind]]
    summary = training_metadata(heads)
    for lesson in lessons:
        summary |= lesson.summary(recipe, scale, count)
    return Run(recipe, backbone, heads, shown, held_out, own, current, lessons, summary, team)


def self_drawn(recipe: HeadsRecipe,
               backbone: Backbone) -> tuple[tuple[Pictures, ...], tuple[Pictures, ...]]:
    """(shown, held out) of the pictures of `train self-distill`."""
    folder = Path(recipe.data or recipe.file.parent)
    backbone.cache_prompts(folder / KEPT_PROMPTS)
    drawn = load_pictures(folder, backbone)
    available = len(drawn) - min(recipe.held_out, len(drawn) // 4)
    shown = min(recipe.pictures or available, available)
    held_out = drawn.pick(range(available, len(drawn)))
    return (drawn.pick(range(shown)),), (held_out,) if len(held_out) else ()


def first_of(groups: Sequence[Pictures], count: int) -> tuple[Pictures, ...]:
    """The first so many pictures of all sizes together; 0: all."""
    chosen: list[Pictures] = []
    left = count or sum(map(len, groups))
    for group in groups:
        chosen += [group.pick(range(min(left, len(group))))] if left else []
        left -= min(left, len(group))
    return tuple(chosen)


def as_before(recipe: HeadsRecipe, current: DraftHeads | None, preset: Preset) -> HeadsRecipe:
    """The recipe for draft heads of the number and kind in use, so that they can go on learning;
    without any, for as many as the model's own schedule needs.
    """
    if recipe.kind == ROW:
        return recipe
    if current is None or not current.k_h + current.k_v:
        return replace(recipe, k_h=recipe.k_h or preset.k_h, k_v=recipe.k_v or preset.k_v)
    return replace(recipe, k_h=current.k_h, k_v=current.k_v, source=current.space.source,
                   target=current.space.target)


def with_places(recipe: HeadsRecipe) -> HeadsRecipe:
    """The recipe with the paths of the backbone and of the file; SSDError if one is missing."""
    if not recipe.backbone:
        if recipe.out is None:
            raise SSDError("backbone: name the model whose drafts learn, as in --backbone postcard")
        return recipe
    models = ModelRegistry.below(recipe.models_dir)
    path = models.backbone_path(recipe.backbone)
    if recipe.out is None and not recipe.pictures_from:
        raise SSDError("out: name a folder for the draft heads, or learn from your own pictures "
                       "by --pictures-from FOLDER")
    return replace(recipe, backbone=str(path), out=recipe.out or models.drafts_file(path))


def current_drafts(recipe: HeadsRecipe, backbone: Backbone) -> DraftHeads | None:
    """The drafts in the recipe's file, else those in use for the backbone, in float32."""
    if not recipe.pictures_from:
        return None
    if recipe.file.exists():
        with suppress(SSDError):
            return stored_heads(recipe.file, backbone).float()
    path = ModelRegistry.below(recipe.models_dir).heads_for(
        Path(recipe.backbone or recipe.file.parent), hashes=backbone.hashes)
    return stored_heads(path, backbone).float() if path else None


def load_teacher(recipe: HeadsRecipe, team: Team) -> Backbone:
    """Load the teacher backbone; auto does not choose int8, which is for drawing."""
    source, dtype = recipe.backbone or recipe.file.parent, recipe.dtype
    if dtype == "auto" and auto_dtype(source, pick_device(team.device)) == "int8":
        dtype = "fp32"
    local = ModelRegistry.below(recipe.models_dir)
    return load_backbone(source, team.device, dtype, lora=list(map(local.lora, recipe.lora or ())))


def with_gradients(backbone: Backbone) -> Backbone:
    """A view whose image head lets gradients pass, also where the backbone draws in integers."""
    view = copy(backbone)
    for name in ("_parameters", "_modules", "_buffers"):
        view.__dict__[name] = dict(getattr(backbone, name))
    unquantise_image_head(view)
    return view


def lesson_of(recipe: HeadsRecipe, kind: str, heads: DraftHeads, backbone: Backbone,
              generator: torch.Generator, scale: float, pictures: int, team: Team) -> Lesson:
    """A lesson of this kind, where its checkpoint goes on. scale: mean |h_pre|."""
    checkpoint = checkpoint_of(recipe, kind, heads, generator, team)
    backbone = with_gradients(backbone)
    if kind == ROW:
        learn: Learn = partial(row.learn, heads, backbone, generator=generator, team=team)
    else:
        measure = partial(distance, loss=recipe.loss, scale=scale, heads=heads, backbone=backbone)
        learn = partial(learn_heads, heads, backbone, measure=measure, team=team)
    start = checkpoint.resume(or_afresh=bool(recipe.pictures_from))
    return Lesson(kind, learn, checkpoint, start, steps_of(recipe, kind, pictures))


def training_metadata(heads: DraftHeads) -> dict[str, object]:
    """Return the metadata of an earlier run of `train heads`."""
    return {key: heads.metadata[key] for key in TRAINED if key in heads.metadata}


def start(recipe: HeadsRecipe, backbone: Backbone, generator: torch.Generator,
          current: DraftHeads | None = None) -> DraftHeads:
    """Return the drafts to train, in float32, with the part that does not learn from the file.

    current: the drafts in use, from which both parts start where they have them.
    """
    earlier = current or earlier_heads(recipe, backbone)
    if recipe.kind == ROW:
        heads = deepcopy(earlier) if earlier else DraftHeads(backbone.hidden_size, 0, 0)
    else:
        require_room(recipe, backbone.grid)
        heads = DraftHeads(backbone.hidden_size, recipe.k_h, recipe.k_v,
                           earlier.metadata if earlier else None,
                           HeadFeatures(recipe.source, recipe.target))
        heads.row = deepcopy(earlier.row) if earlier else None
        for _, head, _ in offsets(heads, backbone.grid.columns):
            head.initialise(generator)
    if ROW in KINDS[recipe.kind]:
        heads.row = row.fresh_drafter(backbone.hidden_size, generator)
    for kind in KINDS[recipe.kind]:
        if recipe.start_from:
            copy_weights(recipe, kind, backbone, heads)
        elif current and (known := trained_part(current, kind)) is not None:
            goal = trained_part(heads, kind)
            if goal is not None and are_alike(goal, known):
                goal.load_state_dict(known.state_dict())
    return heads.to(backbone.device)


def copy_weights(recipe: HeadsRecipe, kind: str, backbone: Backbone, heads: DraftHeads) -> None:
    """Copy the part that learns from the heads to start from; SSDError if they lack it."""
    source = heads_to_start_from(find_path(recipe.start_from, HEADS_FILE), backbone)
    goal, found = trained_part(heads, kind), trained_part(source, kind)
    same_space = kind == ROW or (heads.space.source, heads.space.target) == (
        source.space.source, source.space.target)
    if goal is None or found is None or not same_space or not are_alike(goal, found):
        raise SSDError(f"start_from {recipe.start_from}: has no {kind} of this kind and "
                       "number; give the flags with which they were trained, or leave it out")
    goal.load_state_dict(found.state_dict())


def are_alike(first: nn.Module, second: nn.Module) -> bool:
    """Whether one takes the other's weights."""
    return shapes_of(first.state_dict()) == shapes_of(second.state_dict())


def trained_part(heads: DraftHeads, kind: str) -> nn.Module | None:
    """Return what a run of this kind trains; None for a row drafter that is not there."""
    return heads.row if kind == "row" else nn.ModuleList((heads.horizontal, heads.vertical))


def earlier_heads(recipe: HeadsRecipe, backbone: Backbone) -> DraftHeads | None:
    """Read the heads of an earlier run for this backbone from the recipe's file, in float32.

    New draft heads replace a file of another backbone; a row drafter raises SSDError for it.
    """
    if not recipe.file.exists():
        return None
    with suppress(SSDError) if recipe.kind == "heads" else nullcontext():
        return stored_heads(recipe.file, backbone).float()
    return None


def checkpoint_of(recipe: HeadsRecipe, kind: str, heads: DraftHeads, generator: torch.Generator,
                  team: Team) -> Checkpoint:
    """Return a checkpoint of the part that this lesson trains, and of its optimizer."""
    model = trained_part(heads, kind)
    assert model is not None
    model.requires_grad_()
    optimizers = remember_rates([torch.optim.AdamW(model.parameters(), recipe.rate,
                                                   betas=(0.9, 0.95), weight_decay=0.01)])
    suffix = ".row.ckpt" if kind == ROW else ".ckpt"
    return Checkpoint(recipe.file.with_suffix(suffix), model, optimizers, generator, team)


def descend(run: Run, lesson: Lesson, watch: Watch | None = None) -> None:
    """Run a lesson's steps. Every process draws the same batches and computes its share of each.
    """
    recipe, checkpoint, room = run.recipe, lesson.checkpoint, Room(CELLS_AT_ONCE)
    weights, generator = list(checkpoint.model.parameters()), checkpoint.generator
    for step in training_steps(lesson.kind, lesson.steps, checkpoint, start=lesson.start,
                               report=lambda: f"loss {checkpoint.mean:.3f}", watch=watch):
        batch = batch_of(run.shown, recipe.step_pictures, generator)
        drop = torch.rand(recipe.step_pictures, generator=generator) < recipe.drop_text
        set_rate(checkpoint.optimizers, cosine(step, lesson.steps, warmup=20, floor=recipe.floor))
        loss = room.take(lesson.learn, batch, drop.tolist(), weights)
        checkpoint.recent.append(run.team.total(loss, weights[0].device))
        run.team.sum_gradients(weights)
        take_step(checkpoint.optimizers, weights)


def batch_of(shown: Sequence[Pictures], count: int, generator: torch.Generator) -> Pictures:
    """Pictures of one size, drawn by chance; each size as often as there are pictures of it."""
    group = shown[0]
    if len(shown) > 1:
        sizes = torch.tensor([len(each) for each in shown], dtype=torch.float)
        group = shown[int(torch.multinomial(sizes, 1, generator=generator))]
    return group.pick(torch.randint(len(group), (count,), generator=generator).tolist())


@dataclass
class Room:
    """How many cells fit into a teacher pass and its gradients, found by trying."""

    cells: int

    def take(self, learn: Learn, batch: Pictures, drop: list[bool],
             weights: Sequence[nn.Parameter]) -> float:
        """Learn from a batch in parts, in smaller ones where memory runs out."""
        while True:
            try:
                return learn(batch, drop, self.cells)
            except Exception as error:
                least = batch.tokens[0].numel()
                if not is_out_of_memory(error):
                    raise
                if self.cells <= least:
                    raise SSDError("out of memory: draft heads cannot learn beside this backbone; "
                                   "load it in int8, let only the row drafter learn, or close "
                                   "other programs") from error
                self.cells = max(least, self.cells // 2)
            for weight in weights:
                weight.grad = None
            empty_caches()


def save_and_measure(run: Run, judgements: Sequence[Judgement], go_on: Callable[[], None]) -> dict:
    """Save the file, unless the judgements have, and return its measurements.

    go_on: as of `acceptance`.
    """
    recipe, backbone, heads = run.recipe, run.backbone, run.heads.requires_grad_(False).eval()
    if run.own is None:
        with_variance(run)
        if run.team.first:
            save_heads(heads, recipe.file, backbone, run.summary)
    measured = acceptance(heads, backbone, run.held_out, run.team, go_on)
    judged = outcome(run, judgements) if run.own is not None else {}
    if run.own is not None:
        note_lesson(backbone, KINDS[recipe.kind], len(run.own))
        for lesson in run.lessons:
            lesson.checkpoint.remove()
    recent = run.lessons[-1].checkpoint
    last = {"last_loss": recent.mean} if recent.recent else {}
    return {"stage": "heads", "kind": recipe.kind, "processes": run.team.size, **last,
            **asdict(heads.space), **run.summary, **measured, **judged}


def with_variance(run: Run) -> None:
    """Measure what guessed embeddings need to become a distribution."""
    if run.recipe.target == "e" and len(run.held_out):
        run.heads.space = replace(run.heads.space, variance=variance(
            run.heads, run.backbone, run.held_out, run.team))


def keep_better(run: Run, lesson: Lesson, earlier: Sequence[Judgement],
                go_on: Callable[[], None]) -> Judgement:
    """Save what a lesson from one's own pictures taught if it wins, else give the drafts of its
    kind their earlier weights back.

    earlier: of the lessons before. go_on: as of `acceptance`.
    """
    kind = lesson.kind
    lesson.checkpoint.let_go()
    with_variance(run)
    known = None if run.before is None else trained_part(run.before, kind)
    in_use = known is not None and next(known.parameters(), None) is not None
    learned = deepcopy(run.heads).requires_grad_(False).eval()
    judgement = judging.judged(kind, learned, deepcopy(run.before) if in_use else None,
                                run.backbone, run.held_out, run.team, go_on)
    if not judgement.wins:
        forget(run, kind)
    elif run.team.first:
        save = partial(save_heads, learned_so_far(run, kind), run.recipe.file, run.backbone,
                       run.summary)
        if any(each.wins for each in earlier):  # the file is of this very run
            save()
        else:
            save_version(run.recipe.file, save)
    return judgement


def learned_so_far(run: Run, kind: str) -> DraftHeads:
    """The drafts after the lesson of this kind: a row drafter that is still to learn is not among
    them, but the one in use is.
    """
    if kind == ROW or ROW not in KINDS[run.recipe.kind]:
        return run.heads
    heads = deepcopy(run.heads)
    heads.row = None if run.before is None else deepcopy(run.before.row)
    return heads


def forget(run: Run, kind: str) -> None:
    """Give the drafts of a kind the weights of those in use; without any they go."""
    known = None if run.before is None else trained_part(run.before, kind)
    goal = trained_part(run.heads, kind)
    if known is not None and goal is not None and are_alike(goal, known):
        goal.load_state_dict(known.state_dict())
    elif kind == ROW:
        run.heads.row = None
    else:
        run.heads.horizontal, run.heads.vertical = nn.ModuleList(), nn.ModuleList()


def outcome(run: Run, judgements: Sequence[Judgement]) -> dict:
    """What was judged and kept, and what was left out."""
    assert run.own is not None
    saved = [each.kind for each in judgements if each.wins]
    place = f"saved as {run.recipe.file}" if saved else "not kept"
    if run.before is not None:
        place += "; the earlier ones are kept beside it" if saved else "; those in use stay"
    return {"judged": {each.kind: each.to_json() for each in judgements}, "saved": saved,
            "sentences": [f"{each.sentence}." for each in judgements] + [
                f"{place[0].upper()}{place[1:]}."],
            "left_out": dict(run.own.left_out), "held_out": sum(map(len, run.held_out)),
            "approximate": run.own.approximate}
