"""Kernels that a forward pass launches, verification and drafts included: counted, not timed.

    python benchmarks/launches.py [NAME ...] [--out FILE.md]

An operation counts if its result is new memory or is written in place; views cost nothing. Counted
on a CPU, at true depth but narrow: a card launches the same operations, and libraries may split one
into several kernels. One picture, guidance on, median over the passes of a picture's first rows.
With graphs, a replay counts as one launch, beside the copies into and out of its buffers.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Generator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any
from unittest.mock import patch

import torch
from conditions import CPU, conditions, table, write_page
from random_backbones import random_backbone, random_heads, scaled
from script import described, options, postcard
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from ssd_core import Pass, Sampling, generate
from ssd_core.backbones.base import Backbone
from ssd_core.engine import decode
from ssd_core.engine.events import Event
from ssd_core.engine.graphs import EagerRunner, GraphRunner, Work
from ssd_core.engine.heads import DraftHeads
from ssd_core.engine.methods import AR, SSD, Exact, Method, Rows
from ssd_core.weights.catalogue import known

NAMES = ("Janus-Pro-1B", "Janus-Pro-7B", "Lumina-mGPT-7B-768", "Emu3-Gen", "SimpleAR-0.5B-RL",
         "Lumina-mGPT-2.0", "Emu3.5-Image", "GLM-Image")  # finetunes launch what their base does
METHODS = {"ar": AR(), "ssd r=2": SSD(k_h=5, k_v=1, rounds=2, incremental=0),
           "exact": Exact(), "rows": Rows(k_h=5, k_v=1, rounds=2)}
EVENTS, FIRST = 90, 20  # events that are read of a run, and the first that is counted


class Launches(TorchDispatchMode):
    """Counts operations whose result does not share its memory with their inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.count, self.replaying = 0, False

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        result = operation(*args, **kwargs)
        known = {tensor.untyped_storage().data_ptr() for tensor in tree_leaves((args, kwargs))
                 if isinstance(tensor, torch.Tensor)}
        made = [tensor for tensor in tree_leaves(result) if isinstance(tensor, torch.Tensor)]
        writes = any(argument.alias_info is not None and argument.alias_info.is_write
                     for argument in operation._schema.arguments)
        new = writes or any(tensor.untyped_storage().data_ptr() not in known for tensor in made)
        self.count += new and not self.replaying
        return result


class Replays:
    """Replaces captured graphs: repeats the work and counts it as one launch."""

    def __init__(self, launches: Launches) -> None:
        self.launches = launches

    def warm_up(self, work: Work) -> Any:
        return work()

    def record(self, work: Work) -> Work:
        def replay() -> Any:
            self.launches.count += 1
            self.launches.replaying = True
            try:
                return work()
            finally:
                self.launches.replaying = False

        return replay

    def close(self) -> None:
        """Do nothing: no graph was captured."""


def counted(backbone: Backbone, heads: DraftHeads, method: Method,
            with_graphs: bool = False) -> dict[str, int]:
    """Launches by the stage of a pass, such as "horizontal/1" or "commit"."""
    launches = Launches()
    run = GraphRunner(Replays(launches)) if with_graphs else EagerRunner()
    with patch.object(decode, "runner", lambda backbone: run):
        return counted_in(generate(backbone, "a house", method, heads, Sampling(cfg=2.0)), launches)


def counted_in(run: Generator[Event, None, None], launches: Launches) -> dict[str, int]:
    """The same for the first events of a run."""
    counts, before = defaultdict(list), 0
    events = iter(run)
    with launches:
        for number, event in enumerate(islice(events, EVENTS)):
            if isinstance(event, Pass):
                stage = f"{event.stage}/{event.round}" if event.round else event.stage
                if number >= FIRST:
                    counts[stage].append(launches.count - before)
            before = launches.count
    run.close()
    return {stage: round(statistics.median(each)) for stage, each in counts.items()}


def subjects(names: Sequence[str]):
    """(name, backbone, heads) of the catalogue's rows at true depth; of postcard too if no names
    were asked for.
    """
    if not names:
        loaded = postcard()
        yield "postcard (6 layers)", loaded.backbone, loaded.heads
    for name in names or NAMES:
        row = known(name)
        narrow = scaled(row)
        narrow = replace(narrow, shape=replace(narrow.shape, layers=row.shape.layers))
        backbone = random_backbone(narrow, CPU, torch.float32)
        yield f"{name} ({row.shape.layers} layers)", backbone, random_heads(backbone, 5, 4)


def main() -> None:
    parser = options(__doc__, "launches.md")
    parser.add_argument("names", nargs="*", metavar="NAME", help="of the catalogue; default: all")
    args = parser.parse_args()
    rows = []
    for name, backbone, heads in subjects(args.names):
        for label, method in METHODS.items():
            ways = (counted(backbone, heads, method, graphs) for graphs in (False, True))
            rows.append([name, label, *(", ".join(f"{k} {n}" for k, n in sorted(counts.items()))
                                        for counts in ways)])
            print(*rows[-1], flush=True)
    head = ["backbone", "decoding", "launches by kind of pass", "with graphs"]
    write_page(args.out, "Launches a pass", f"{described(__doc__)} {conditions()}. Made by "
               "`python benchmarks/launches.py`.", table(head, rows))


if __name__ == "__main__":
    main()
