"""Draws a small picture for a comparison: its tokens, and the hidden states behind them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import closing
from copy import copy
from dataclasses import dataclass
from itertools import islice

import torch

from ..backbones.base import Backbone
from ..backbones.postcard import Postcard
from ..engine.decode import alone, prepare
from ..engine.events import Pass
from ..engine.graphs import GraphRunner, PassRunner
from ..engine.heads import DraftHeads
from ..engine.methods import Method
from ..errors import SSDError, first_line
from ..model.grid import Grid
from ..model.sampling import Sampling
from ..weights.load import load_backbone, load_heads

ROWS = 10  # of the picture: enough for passes that read two numbers of cache slots
PROMPTS = ("a red house on the left, a lake, at sunset", "a green tree in the snow, at night")
SAMPLING = Sampling(seed=7)
INTERRUPTED = 12  # passes after which a run is interrupted, with graphs in use


class Ended(Exception):
    """A self-test ends before all checks are done: time is up, or the host has other work."""


@dataclass(frozen=True)
class Subject:
    """What is drawn with: a backbone of few rows, and its draft heads.

    dtype: as it was loaded. go_on: called before every pass; raises Ended to draw no further.
    """

    backbone: Backbone
    heads: DraftHeads | None
    dtype: str
    go_on: Callable[[], None] = lambda: None


@dataclass(frozen=True)
class SelfTestPictures:
    """tokens: [B, R, C] int64; hidden: [N, slots, d] float32; both on the CPU.

    failure: why graphs were not used to the end, or why the picture failed; else empty.
    """

    tokens: torch.Tensor
    hidden: torch.Tensor
    failure: str = ""


def load_subject(name: str, device: torch.device, dtype: str, rows: int = ROWS) -> Subject:
    """A postcard with a picture of so many rows. Raises SSDError if it cannot be loaded."""
    backbone = load_backbone(name, str(device), dtype)
    assert isinstance(backbone, Postcard)
    return Subject(with_rows(backbone, rows), load_heads(name, backbone), dtype)


def with_rows(backbone: Postcard, rows: int) -> Postcard:
    """A view of the backbone that draws only the first rows of its picture."""
    view = copy(backbone)
    view.set_grids((Grid(rows, backbone.grid.columns),))
    view.refresh_tables()
    return view


def draw(subject: Subject, method: Method, pictures: int, run: PassRunner,
         passes: int | None = None) -> SelfTestPictures:
    """Draw pictures, or only the first passes of them; the runner is closed.

    Raises Ended if `subject.go_on` does.
    """
    subject.go_on()
    prepared = prepare(subject.backbone, PROMPTS[:pictures], method, subject.heads, SAMPLING)
    state, failure = prepared.allocate(run), ""
    with alone(subject.backbone.device), closing(run), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # the failure is reported instead
        try:
            events = (event for event in prepared.passes(state) if isinstance(event, Pass))
            for _ in islice(events, passes):
                subject.go_on()
        except (SSDError, RuntimeError) as error:  # WrongReplay is one, too
            failure = first_line(error)
        if isinstance(run, GraphRunner):
            failure = run.failure or failure
        return SelfTestPictures(state.picture().cpu(), state.hidden[:, : state.slots].float().cpu(),
                                failure)


def relocate(subject: Subject) -> None:
    """Move all weights away and back, as a host does that needs their memory meanwhile."""
    modules = [subject.backbone, *([subject.heads] if subject.heads is not None else [])]
    device = subject.backbone.device
    with torch.inference_mode(False):
        for module in modules:
            if device.type == "cpu":  # to other addresses
                module._apply(torch.clone)
            else:
                module.to("cpu")
                module.to(device)
        if isinstance(subject.backbone, Postcard):
            subject.backbone.refresh_tables()
