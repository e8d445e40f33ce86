"""A part of card_session.py: is a replayed graph that differs from its pass wrong, or rounded?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain, product

import torch
import torch.nn.functional as F
from card_kernels import Row, backend
from card_tools import SHOWN, Card, pass_over, state_amid

from ssd_core.engine.first_replay import POISON, difference
from ssd_core.engine.graphs import Work
from ssd_core.engine.state import DecodeState

Written = tuple[torch.Tensor, ...]


def replay_causes(card: Card) -> Iterator[Row]:
    """Are passes repeatable: called again, on the stream of captures, and as replays of a graph?

    By the metric of the check of first replays. Decides whether differences are rounding, which
    the check allows; whether one operation is to blame; or whether there is an error to be found.
    """
    backbone, heads = card.backbone("Lumina-mGPT-7B-768")
    width = backbone.grid.width
    start = width + width // 4
    state = state_amid(backbone, heads, width, start)
    kernels = ("default", "efficient") if card.real else ("default",)
    for kernel, cells in product(kernels, (1, 2, width, 2 * width)):
        try:
            with backend(kernel, card):
                row = compared(card, state, start, cells)
        except RuntimeError as error:  # a kernel that is not there, or a pass that no graph takes
            row = {"replay": str(error).splitlines()[0][:SHOWN]}
        yield {"attention": kernel, "cells": cells, **row}
    layer = backbone.decoder.layers[0]
    x = card.random(2, backbone.hidden_size)
    for name, work in {
            "norm": lambda: F.rms_norm(x, x.shape[-1:], layer.attention_norm),
            "qkv": lambda: F.linear(x, layer.qkv), "gate_up": lambda: F.linear(x, layer.gate_up),
            "out with residual": lambda: torch.addmm(x, x, layer.out.t())}.items():
        yield {"operation": name, "replay": operation_replayed(card, work)}


def compared(card: Card, state: DecodeState, start: int, cells: int) -> Row:
    """The largest difference between what a pass writes and what its first call wrote."""
    work, places = pass_over(state, start, cells), places_written(state, start, cells)
    first, again = after(work, places), after(work, places)
    beside = after(partial(card.on_capture_stream, work), places)
    replayed, repeated = card.replaying(work, partial(after_replays, places=places))
    return {"called again": furthest(again, first), "capture stream": furthest(beside, first),
            "replayed again": furthest(repeated, replayed), "replay": furthest(replayed, first),
            **{f"replay, {name}": difference(found, expected) for name, found, expected
               in zip(("h", "keys", "values"), replayed, first, strict=True)},
            "first layer": first_layer(replayed[1:], first[1:])}


def places_written(state: DecodeState, start: int, cells: int) -> list[list[torch.Tensor]]:
    """The hidden states [n, d], keys and values [layers, heads, n, D] of these cells, of each
    sequence.
    """
    spans = [(number, slice(length + start, length + start + cells))
             for number, length in enumerate(state.lengths.tolist())]
    return [list(state.hidden[:, start + 1 : start + cells + 1]),
            *([buffer[:, number, :, span] for number, span in spans]
              for buffer in (state.cache.keys, state.cache.values))]


def after(work: Work, places: list[list[torch.Tensor]]) -> Written:
    """Copies of what is there after the work, with the sequences as second dimension."""
    work()
    return tuple(torch.stack(each, 1) for each in places)


def after_replays(replay: Work, places: list[list[torch.Tensor]]) -> list[Written]:
    """`after` two replays; the first begins with POISON, so that what it leaves out is seen."""
    for place in chain(*places):
        place.fill_(POISON)
    return [after(replay, places) for _ in range(2)]


def furthest(found: Written, expected: Written) -> float:
    return max(map(difference, found, expected))


def first_layer(found: Written, expected: Written) -> int | None:
    """The first layer whose keys or values [layers, ...] have other bits; None: all are equal."""
    layers = zip(*found, *expected, strict=True)
    return next((number for number, (keys, values, own_keys, own_values) in enumerate(layers)
                 if not (keys.equal(own_keys) and values.equal(own_values))), None)


def operation_replayed(card: Card, work: Callable[[], torch.Tensor]) -> float:
    """How far one operation's replay is from a call."""
    expected = work()
    found = torch.empty_like(expected)

    def replayed(replay: Work) -> float:
        found.fill_(POISON)
        replay()
        return difference(found, expected)

    return card.replaying(lambda: found.copy_(work()), replayed)
