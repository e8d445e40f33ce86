"""What learned drafts bring: pictures are drawn with them, with those in use, and with none.

Draft heads are judged by `ssd`, whose pictures should be likely to the model, and the row drafter
by `exact`, which draws AR's picture in as few passes as its first guesses allow. The prompts are
those of pictures that nobody has learned from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import mean, stdev

import torch

from ..backbones.base import Backbone
from ..backbones.presets import resolve_sampling
from ..engine.decode import PreparedRun, alone, plan_of
from ..engine.events import Finished
from ..engine.heads import DraftHeads
from ..engine.methods import SSD, Exact, Method
from ..engine.region import region_of
from ..model.sampling import Sampling, guide
from ..runs.request import resolved_method
from . import HEADS, ROW
from .picture_files import Pictures
from .processes import Team
from .teacher import branch, teach

JUDGED = 6  # pictures that are drawn, each as often as there are drafts to compare
NUMBERS_AT_ONCE = 1 << 27  # of a distribution over codes in one chunk


@dataclass(frozen=True)
class Judgement:
    """What the new drafts of a kind, those in use and none take; less is better.

    new, before, none: of the same pictures, passes of `exact` for a row drafter, nats a token of
    the pictures by `ssd` for heads. before is empty if no drafts of the kind were in use.
    """

    kind: str
    new: Sequence[float]
    before: Sequence[float]
    none: Sequence[float]

    @property
    def wins(self) -> bool:
        """Whether the new ones are better than either, by more than one standard error."""
        return all(is_less(self.new, other) for other in (self.before, self.none) if other)

    def to_json(self) -> dict:
        return {"new": mean(self.new), "before": mean(self.before) if self.before else None,
                "none": mean(self.none), "pictures": len(self.new), "wins": self.wins}

    @property
    def sentence(self) -> str:
        """What the drafts bring, in words."""
        digits = 0 if self.kind == ROW else 2
        rivals = [f"{mean(each):.{digits}f} {how}" for each, how in (
            (self.before, "with those in use"), (self.none, "without")) if each]
        what = ("Row drafter: Faithful takes {} passes" if self.kind == ROW else
                "Draft heads: pictures by ssd cost the model {} nats a token")
        return (f"{what.format(f'{mean(self.new):.{digits}f}')}, {', '.join(rivals)}; less is "
                f"better ({len(self.new)} of your prompts)")


def is_less(own: Sequence[float], other: Sequence[float]) -> bool:
    """Whether the first is less on average, by more than the standard error of the differences."""
    gains = [theirs - ours for ours, theirs in zip(own, other, strict=True)]
    return mean(gains) > (stdev(gains) / len(gains) ** 0.5 if len(gains) > 1 else 0.0)


def judged(kind: str, new: DraftHeads, before: DraftHeads | None, backbone: Backbone,
           held_out: Sequence[Pictures], team: Team, go_on: Callable[[], None]) -> Judgement:
    """Draw the prompts of up to JUDGED held-out pictures. go_on: called for every pass."""
    def figures(heads: DraftHeads | None) -> list[float]:
        own = None if heads is None else heads.to(backbone.device, backbone.dtype)
        return [figure for group in groups for process in team.gathered(
            [figure_of(method, own, backbone.resized(group.size), group.prompts[i], i, go_on)
             for i in team.share(len(group))]) for figure in process]

    method = SSD().resolve(backbone.preset) if kind == HEADS else Exact(drafter="row")
    if isinstance(method, SSD):  # the same schedule for all, as far as their heads reach
        reach = [each for each in (new, before) if each is not None]
        method = replace(method, k_h=min(method.k_h or 1, *(each.k_h for each in reach)),
                         k_v=min(method.k_v or 1, *(each.k_v for each in reach)))
    groups = first(held_out, JUDGED)
    return Judgement(kind, figures(new), [] if before is None else figures(before), figures(None))


def first(held_out: Sequence[Pictures], count: int) -> list[Pictures]:
    """The first pictures of all sizes, so many in all."""
    groups = []
    for group in held_out:
        groups.append(group.pick(range(min(count, len(group)))))
        count -= len(groups[-1])
    return [group for group in groups if len(group)]


def figure_of(method: Method, heads: DraftHeads | None, backbone: Backbone, prompt: torch.Tensor,
              seed: int, go_on: Callable[[], None]) -> float:
    """The passes of one picture, or its nats a token."""
    branches = [prompt.tolist()]
    if backbone.preset.cfg != 1:
        branches.append(branch(backbone, branches[0], without_text=True))
    done = drawn(method, heads, backbone, branches, seed, go_on)
    if isinstance(method, Exact):
        return float(done.stats["passes"])
    return nats(backbone, branches, done.tokens)


def drawn(method: Method, heads: DraftHeads | None, backbone: Backbone, branches: list[list[int]],
          seed: int, go_on: Callable[[], None]) -> Finished:
    """Draw one picture by this method, or by what stands in for it without drafts."""
    if heads is None and isinstance(method, Exact):
        method = Exact()
    method, _ = resolved_method(method, backbone.preset, heads is not None)
    method = method.for_device(backbone.grid, backbone.device.type)
    region = region_of(backbone.grid, 1, 0, None)
    run = PreparedRun(backbone, method, heads, resolve_sampling(Sampling(seed=seed),
                                                                backbone.preset),
                      branches, 1, plan_of(backbone, method, region, heads is not None), None,
                      region, None)
    for event in run.events():
        go_on()
        if isinstance(event, Finished):
            return event
    raise AssertionError("a run ends with Finished")


def nats(backbone: Backbone, branches: list[list[int]], tokens: torch.Tensor) -> float:
    """Nats a token of a picture [1, R, C] under the guided backbone at temperature 1."""
    with alone(backbone.device):
        hidden, _ = teach(backbone, branches, tokens.repeat(len(branches), 1, 1))
        cells = max(1, NUMBERS_AT_ONCE // (len(hidden) * backbone.codes))
        surprise = []
        for states, codes in zip(hidden.split(cells, 1), tokens.flatten(1).split(cells, 1),
                                 strict=True):
            logits = backbone.logits(states.to(backbone.dtype))
            log_probs = guide(logits, backbone.preset.cfg).log_softmax(-1)
            surprise.append(-log_probs.gather(-1, codes[..., None])[..., 0])
        return float(torch.cat(surprise, 1).mean())
