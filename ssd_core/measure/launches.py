"""Kernels that a forward pass launches, verification and drafts included: counted, not timed.

An operation counts if its result is new memory or is written in place; views cost nothing, nor does
memory that nothing is written to. A card launches the same operations, and libraries may split one
into several kernels. A replay of a graph counts as one launch, beside the copies into and out of
its buffers.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from itertools import chain, islice
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from ..engine.decode import PreparedRun, alone
from ..engine.events import Pass
from ..engine.graphs import EagerRunner, GraphRunner, PassRunner, Recorder, Work

MOST, FIRST = 90, 20  # passes of a run that are counted, and the first that counts


class Launches(TorchDispatchMode):
    """Counts operations whose result does not share its memory with their inputs."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """As in `WrittenBuffers`."""
        return False

    def __init__(self) -> None:
        super().__init__()
        self.count, self._paused = 0, False

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (),
                           kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        known = {tensor.untyped_storage().data_ptr() for tensor in tree_leaves((args, kwargs))
                 if isinstance(tensor, torch.Tensor)}
        made = [tensor for tensor in tree_leaves(result) if isinstance(tensor, torch.Tensor)]
        writes = any(argument.alias_info is not None and argument.alias_info.is_write
                     for argument in func._schema.arguments)
        new = writes or any(tensor.untyped_storage().data_ptr() not in known for tensor in made)
        bare = func.overloadpacket.__name__.startswith(("empty", "new_empty"))
        self.count += new and not bare and not self._paused
        return result

    @contextmanager
    def paused(self) -> Iterator[None]:
        self._paused = True
        try:
            yield
        finally:
            self._paused = False


class CountedGraphs:
    """A recorder whose replays count as one launch.

    recorder: captures the work; None: a replay repeats it, as a device without graphs can.
    """

    def __init__(self, launches: Launches, recorder: Recorder | None = None) -> None:
        self.launches, self.recorder, self.nbytes = launches, recorder, 0

    def warm_up(self, work: Work) -> Any:
        return work() if self.recorder is None else self.recorder.warm_up(work)

    def record(self, work: Work) -> Work:
        with self.launches.paused():
            replay = work if self.recorder is None else self.recorder.record(work)

        def counted_replay() -> Any:
            self.launches.count += 1
            with self.launches.paused():
                return replay()

        return counted_replay

    def close(self) -> None:
        if self.recorder is not None:
            self.recorder.close()


RunnerOf = Callable[[Launches], PassRunner]


def directly(launches: Launches) -> PassRunner:
    """A runner without graphs; its passes have the sizes that they have on a card."""
    return EagerRunner(padded=True)


def by_graphs(recorder: Recorder | None = None) -> RunnerOf:
    """Makes runners with graphs; recorder: of `CountedGraphs`."""
    return lambda launches: GraphRunner(CountedGraphs(launches, recorder))


def counted(prepared: PreparedRun, runner_of: RunnerOf = directly) -> dict[str, list[int]]:
    """Launches of each of a run's first passes by their stage, such as "horizontal/1" or "commit".

    Leaves out those before FIRST, or the first half of a short run. Raises WrongReplay if a graph
    replays a wrong pass.
    """
    launches, counts = Launches(), list[tuple[str, int]]()
    with closing(runner_of(launches)) as run, alone(prepared.backbone.device):
        passes = prepared.passes(prepared.allocate(run))
        with closing(passes), launches:
            for event in islice((each for each in passes if isinstance(each, Pass)), MOST):
                stage = f"{event.stage}/{event.round}" if event.round else event.stage
                event.detached()  # a host's copy
                counts.append((stage, launches.count))
                launches.count = 0
    by_stage = defaultdict(list)
    for stage, count in counts[min(FIRST, len(counts) // 2):]:
        by_stage[stage].append(count)
    return dict(by_stage)


def medians(counts: Mapping[str, Sequence[int]]) -> dict[str, int]:
    """The median launches of a pass by stage."""
    return {stage: round(statistics.median(each)) for stage, each in counts.items()}


def mean(counts: Mapping[str, Sequence[int]]) -> float:
    """The mean launches of a pass."""
    return statistics.mean(chain.from_iterable(counts.values()))
