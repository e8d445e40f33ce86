"""Static work, captured once as a CUDA graph and then replayed by one launch.

A forward pass launches hundreds of small kernels; on a fast card that takes longer than computing
them. The same function runs either way: `Eager` calls it, `Graphs` captures and replays it. For
that it must be static. Tensors of fixed shape go in; it asks the device for no number and makes no
tensor of the host's numbers; everything else it reads or writes is a buffer of the run.

Graphs and their memory pool belong to one run. They are freed before pixels are decoded, and when a
run is cancelled.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from functools import cache, partial
from typing import Any, Protocol, TypeVar

import torch

from ..backbones.base import Backbone
from ..errors import SSDError

VARIABLE, MODES = "SSD_GRAPHS", ("auto", "off")
MOST = 48  # graphs of a run; a run with more kinds of passes has too few of each
T = TypeVar("T")
Work = Callable[[], Any]


class Run(Protocol):
    """How the static work of a run is done. `padded`: passes have few, rounded sizes."""

    padded: bool

    def __call__(self, work: Callable[..., T], *given: Any) -> T:
        """work(*given): a tensor, a tuple of tensors or None, which belong to the caller.

        given: tensors, and values that are part of the work, such as sizes; these are hashable.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Free what is held for further calls."""


class Eager:
    """Calls the work: one launch per operation."""

    def __init__(self, padded: bool = False) -> None:
        self.padded = padded

    def __call__(self, work: Callable[..., T], *given: Any) -> T:
        return work(*given)

    def close(self) -> None:
        """Nothing is held."""


class Recorder(Protocol):
    """Captures work on a kind of device."""

    def warm_up(self, work: Work) -> Any:
        """Do the work once in the way it will be captured, and return what it returns."""

    def record(self, work: Work) -> Work:
        """Capture the work without doing it. What is returned does it into the same tensors.

        Raises RuntimeError if the work cannot be captured.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Free all that was captured."""


class Graphs:
    """Does a work of one kind eagerly the first time, and by replaying a graph from then on.

    Works are of one kind if function, shapes and all values but tensors agree. If capturing fails,
    the run goes on eagerly and warns once.
    """

    padded = True

    def __init__(self, recorder: Recorder) -> None:
        self._recorder: Recorder | None = recorder
        self._met: set[tuple] = set()
        self._recorded: dict[tuple, Recorded] = {}
        self._inside = False

    def __call__(self, work: Callable[..., T], *given: Any) -> T:
        if self._recorder is None or self._inside:  # work that calls other work is captured whole
            return work(*given)
        self._inside = True
        try:
            return self._done(self._recorder, work, given)
        finally:
            self._inside = False

    def _done(self, recorder: Recorder, work: Callable[..., T], given: tuple) -> T:
        kind = (work, *map(signature, given))
        if kind not in self._met:
            self._met.add(kind)
            return recorder.warm_up(partial(work, *given))
        if kind not in self._recorded:
            if len(self._recorded) == MOST:
                return work(*given)
            try:
                self._recorded[kind] = Recorded(recorder, work, given)
            except RuntimeError as error:
                self._give_up(error)
                return work(*given)
        return self._recorded[kind](given)

    def _give_up(self, error: RuntimeError) -> None:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        warnings.warn(f"a forward pass could not be captured as a CUDA graph ({reason}): passes "
                      f"run without graphs, which is slower; set {VARIABLE}=off to skip the "
                      "attempt", RuntimeWarning, stacklevel=2)
        self.close()

    def close(self) -> None:
        self._met.clear()
        self._recorded.clear()
        if self._recorder is not None:
            self._recorder.close()
        self._recorder = None


class Recorded:
    """A captured work with the tensors that it reads: they are filled, then the work replayed."""

    def __init__(self, recorder: Recorder, work: Callable[..., Any], given: tuple) -> None:
        self.given = tuple(one.clone(memory_format=torch.contiguous_format)
                           if isinstance(one, torch.Tensor) else one for one in given)
        self.replay = recorder.record(partial(work, *self.given))

    def __call__(self, given: tuple) -> Any:
        """Do the work; copies of what it returns, since other graphs may write there."""
        for own, one in zip(self.given, given, strict=True):
            if isinstance(one, torch.Tensor):
                own.copy_(one)
        found = self.replay()
        if isinstance(found, tuple):
            return tuple(one.clone() for one in found)
        return None if found is None else found.clone()


def signature(given: Any) -> Any:
    """What must agree between two calls of one kind."""
    return (given.shape, given.dtype) if isinstance(given, torch.Tensor) else given


@cache
def capture_stream(device: torch.device) -> torch.cuda.Stream:
    """One stream for all runs: cuBLAS keeps a workspace for every stream that it has met."""
    return torch.cuda.Stream(device)


class CudaRecorder:
    """Captures on a stream for captures, into a memory pool that all graphs of the run share."""

    def __init__(self, device: torch.device) -> None:
        self.device, self.stream = device, capture_stream(device)
        self.pool = torch.cuda.graph_pool_handle()
        self.graphs: list[torch.cuda.CUDAGraph] = []

    def warm_up(self, work: Work) -> Any:
        """On the stream of captures, so that libraries prepare for it; others wait for the end."""
        usual = torch.cuda.current_stream(self.device)
        self.stream.wait_stream(usual)
        with torch.cuda.stream(self.stream):
            found = work()
        usual.wait_stream(self.stream)
        return found

    def record(self, work: Work) -> Work:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.device(self.device), torch.cuda.stream(self.stream):  # even after an error
            with torch.cuda.graph(graph, self.pool, self.stream, "thread_local"):
                found = work()
        self.graphs.append(graph)

        def replay() -> Any:
            graph.replay()
            return found

        return replay

    def close(self) -> None:
        if not self.graphs:
            return
        torch.cuda.synchronize(self.device)
        for graph in self.graphs:
            graph.reset()
        self.graphs.clear()
        with torch.cuda.device(self.device):
            torch.cuda.empty_cache()  # a pool without graphs would otherwise stay reserved


def checked_mode(mode: str) -> str:
    if mode not in MODES:
        raise SSDError(f"graphs {mode!r}: choose auto or off")
    return mode


def environment_mode() -> str:
    mode = os.environ.get(VARIABLE) or "auto"
    if mode not in MODES:
        raise SSDError(f"the environment variable {VARIABLE} is {mode!r}: set it to auto or off")
    return mode


def why_eager(device: torch.device, mode: str = "auto", turns: bool = False) -> str:
    """Why passes on this device run without graphs; empty if they run with graphs.

    mode: what the user chose for the backbone. turns: whether offload moves the weights.
    """
    reasons = ((environment_mode() == "off", f"switched off by {VARIABLE}=off"),
               (mode == "off", "switched off for this backbone"),
               (device.type != "cuda", f"only on CUDA cards, the device is {device.type}"),
               (torch.version.hip is not None, "not tested on ROCm"),
               (turns, "decoder and picture codec take turns on the card"))
    return next((reason for holds, reason in reasons if holds), "")


def runner(backbone: Backbone) -> Run:
    """How a run on this backbone does its static work; close it when the run ends.

    Without graphs, sizes are rounded on every device but a CPU: many libraries plan for each size
    that they meet, while a CPU would compute the surplus for nothing.
    """
    device = backbone.device
    if why_eager(device, backbone.graphs, backbone.turns is not None):
        return Eager(padded=device.type != "cpu")
    return Graphs(CudaRecorder(device))


def pool_bytes(work: int, distribution: int) -> int:
    """Memory that the graphs of a run hold besides that of the same run without graphs.

    work: bytes that the largest pass or judge needs for itself. distribution: bytes of p [B, n, V]
    float32 of the widest pass. The graphs share the first. Four of the second stay: the q that a
    round reads, and the p of a choice, of a round, and of a pass that only computes p.
    """
    return work + 4 * distribution
