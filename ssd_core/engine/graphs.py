"""Capturable functions, captured once as a CUDA graph and then replayed by one launch.

A forward pass launches hundreds of small kernels; on a fast card the launches take longer than the
computation. `EagerRunner` calls a function; `GraphRunner` captures and replays it. To be
capturable, a function takes tensors of fixed shape, reads no number from the device, makes no
tensor from the host's numbers, and otherwise reads and writes only buffers of the run.

Graphs hold the addresses of a run's buffers. Both outlive the run, so that the next picture replays
them (sessions.py).
"""

from __future__ import annotations

import ctypes
import os
import warnings
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from functools import cached_property, partial
from typing import Any, Protocol, TypeVar

import torch

from ..backbones.base import Backbone, stored_dtype
from ..errors import SSDError
from ..machine_faults import fault_of, note_fault
from .first_replay import ROOM, TOLERANCE, WrittenBuffers, WrongReplay, checked, tensors_in

VARIABLE, MODES = "SSD_GRAPHS", ("auto", "off")
MOST = 48  # graphs; a run with more kinds of passes would replay each too rarely
T = TypeVar("T")
Work = Callable[[], Any]


class PassRunner(Protocol):
    """Calls the capturable functions of a run.

    padded: passes have few, rounded sizes. captured: the graphs that this run has captured.
    """

    padded: bool
    captured: int

    @property
    def nbytes(self) -> int:
        """Memory that graphs keep between replays."""
        raise NotImplementedError

    def __call__(self, fn: Callable[..., T], *args: Any, conditions: Hashable = None) -> T:
        """Return fn(*args): a tensor, a tuple of tensors or None, which belong to the caller.

        args: tensors, and hashable values such as sizes, which become part of the graph.
        conditions: what else does, such as the sampling. None: nothing; then it is a forward pass,
        which writes keys and values, and may be repeated.
        """
        raise NotImplementedError

    @property
    def lasting(self) -> bool:
        """Whether it has graphs that another run can replay."""
        raise NotImplementedError

    def close(self) -> None:
        """Free the memory that further calls would need."""


class EagerRunner:
    """Calls functions directly: one launch per operation."""

    lasting, nbytes = False, 0

    def __init__(self, padded: bool = False) -> None:
        self.padded, self.captured = padded, 0

    def __call__(self, fn: Callable[..., T], *args: Any, conditions: Hashable = None) -> T:
        return fn(*args)

    def close(self) -> None:
        """Free nothing."""


class Recorder(Protocol):
    """Captures work on a kind of device. `nbytes`: memory that its graphs keep between replays."""

    nbytes: int

    def warm_up(self, work: Work) -> Any:
        """Call the work once in the way it will be captured, and return its result."""

    def record(self, work: Work) -> Work:
        """Capture the work without running it; return a function that replays it.

        The replay writes to the same tensors each time. Raises RuntimeError if the work cannot be
        captured.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Free all captured work."""


class FirstCall:
    """What is remembered of the first call of a kind: its input, the sizes of its results, and the
    buffers it wrote to.

    The graph is captured with this input. Its first replay has another, so that a graph that does
    not read its input is found out.
    """

    def __init__(self, args: tuple, result: Any, buffers: Sequence[torch.Tensor]) -> None:
        self.args = tuple(arg.clone(memory_format=torch.contiguous_format)
                          if isinstance(arg, torch.Tensor) else arg for arg in args)
        self.results = [(each.shape, each.dtype, each.device) for each in tensors_in(result)]
        self.buffers = buffers


class GraphRunner:
    """Runs each kind of call eagerly the first time and replays its graph from then on.

    Calls are of one kind if function, shapes and all values but tensors agree. The first replay is
    checked (first_replay.py). If it fails, so is the next one, on other input; a second failure
    raises WrongReplay, and the run must begin again without graphs. If capturing fails, the run
    continues eagerly and warns once. `failure` says what went wrong.
    """

    padded = True

    def __init__(self, recorder: Recorder) -> None:
        self._recorder: Recorder | None = recorder
        self._met: dict[tuple, FirstCall] = {}
        self._captured: dict[tuple, CapturedGraph] = {}
        self._proven: set[tuple] = set()  # kinds whose first replay was right
        self._doubted: set[tuple] = set()  # kinds whose first replay seemed wrong
        self._inside = False
        self.captured = 0
        self.failure = ""

    def __call__(self, fn: Callable[..., T], *args: Any, conditions: Hashable = None) -> T:
        if self._recorder is None or self._inside:  # nested calls belong to the outer graph
            return fn(*args)
        self._inside = True
        try:
            return self._run(self._recorder, (fn, conditions, *map(signature, args)), args)
        finally:
            self._inside = False

    def _run(self, recorder: Recorder, kind: tuple, args: tuple) -> Any:
        fn = kind[0]
        if kind in self._proven:
            return self._captured[kind](args)
        if kind in self._captured:
            return self._checked(kind, args)
        if kind not in self._met:
            if len(self._met) == 2 * MOST:
                return fn(*args)
            result, buffers = self._first_call(recorder, kind, args)
            self._met[kind] = FirstCall(args, result, buffers)
            return result
        if len(self._captured) == MOST:
            return fn(*args)
        try:
            self._captured[kind] = CapturedGraph(recorder, fn, self._met[kind])
            self.captured += 1
        except RuntimeError as error:
            self._give_up(error)
            return fn(*args)
        return self._checked(kind, args)

    def _first_call(self, recorder: Recorder, kind: tuple, args: tuple
                    ) -> tuple[Any, Sequence[torch.Tensor]]:
        """The result of the call, and the buffers that it writes to: those of all passes agree."""
        work = partial(kind[0], *args)
        if (earlier := self._earlier_pass(kind)) is not None:
            return recorder.warm_up(work), self._met[earlier].buffers
        with WrittenBuffers() as written:
            result = recorder.warm_up(work)
        return result, written.tensors

    def _earlier_pass(self, kind: tuple) -> tuple | None:
        """Another kind of the same forward pass, if this is one."""
        return next((met for met in self._met if met[:2] == (kind[0], None)), None)

    def _checked(self, kind: tuple, args: tuple) -> Any:
        """The result of the call, beside which a replay is checked.

        Of all passes over other numbers of cells but the first, three layers are compared.
        """
        fn, replay = kind[0], partial(self._captured[kind], args)
        first = self._earlier_pass(kind)
        few = first is not None and first != kind and first in self._proven
        result, apart = checked(replay, partial(fn, *args), self._met[kind].buffers, few)
        if apart <= TOLERANCE:
            self._proven.add(kind)
        elif kind not in self._doubted:
            self._doubted.add(kind)
        else:
            self.failure = (f"the first replay of a graph differs by {apart:.2g} from the pass "
                            f"that it repeats, {TOLERANCE} is allowed")
            self.close()
            raise WrongReplay(self.failure)
        return result

    @property
    def lasting(self) -> bool:
        """Not if there are too many kinds: all begin anew, since no graph is ever freed alone."""
        return self._recorder is not None and 0 < len(self._captured) < MOST

    @property
    def nbytes(self) -> int:
        return 0 if self._recorder is None else self._recorder.nbytes

    def _give_up(self, error: RuntimeError) -> None:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        self.failure = f"a pass could not be captured: {reason}"
        warnings.warn(f"a forward pass could not be captured as a CUDA graph ({reason}): passes "
                      f"run without graphs, which is slower; set {VARIABLE}=off to skip the "
                      "attempt", RuntimeWarning, stacklevel=2)
        self.close()

    def close(self) -> None:
        for kinds in (self._met, self._captured, self._proven, self._doubted):
            kinds.clear()
        if self._recorder is not None:
            self._recorder.close()
        self._recorder = None


class CapturedGraph:
    """A captured call and its input buffers `args`, which are filled before each replay.

    All memory that outlives the capture is allocated before it. With cudaMallocAsync, ComfyUI's
    default, freeing a tensor that a graph allocated ends the process unless the graph has run.
    """

    def __init__(self, recorder: Recorder, fn: Callable[..., Any], first: FirstCall) -> None:
        self.args = first.args
        results = [torch.empty(shape, dtype=dtype, device=device)
                   for shape, dtype, device in first.results]
        self.replay = recorder.record(partial(called_into, results, fn, *self.args))

    def __call__(self, args: tuple) -> Any:
        """Replay the call; return copies of its results, which the next replay overwrites."""
        for buffer, arg in zip(self.args, args, strict=True):
            if isinstance(arg, torch.Tensor):
                buffer.copy_(arg)
        result = self.replay()
        if isinstance(result, tuple):
            return tuple(tensor.clone() for tensor in result)
        return None if result is None else result.clone()


def called_into(results: Sequence[torch.Tensor], fn: Callable[..., Any], *args: Any) -> Any:
    """Return `results`, in the form of fn(*args), with its numbers."""
    result = fn(*args)
    for buffer, tensor in zip(results, tensors_in(result), strict=True):
        buffer.copy_(tensor)
    return tuple(results) if isinstance(result, tuple) else None if result is None else results[0]


def signature(arg: Any) -> Any:
    """The part of an argument that must agree between two calls of one kind."""
    return (arg.shape, arg.dtype) if isinstance(arg, torch.Tensor) else arg


idle_streams: dict[torch.device, list[torch.cuda.Stream]] = defaultdict(list)


class CudaRecorder:
    """Captures on a stream of its own, into a memory pool that all its graphs share.

    cuBLAS keeps a workspace for every stream that it has used, so streams are used again; but only
    once no graph is left that was captured on them. Since torch 2.11 a graph that is freed takes
    the workspace of its stream with it, whichever graphs still write there (pytorch#193402).
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.pool = torch.cuda.graph_pool_handle()
        self.nbytes = 0  # of the pool, by what each capture has reserved

    @cached_property
    def stream(self) -> torch.cuda.Stream:
        """Its own from the first use on: a run that finds a session needs none."""
        idle = idle_streams[self.device]
        return idle.pop() if idle else torch.cuda.Stream(self.device)

    def warm_up(self, work: Work) -> Any:
        """Call the work on the capture stream, so that libraries prepare for that stream."""
        current = torch.cuda.current_stream(self.device)
        self.stream.wait_stream(current)
        with torch.cuda.stream(self.stream):
            result = work()
        current.wait_stream(self.stream)
        return result

    def record(self, work: Work) -> Work:
        """Unlike `torch.cuda.graph`, neither waits for the card nor empties the allocator's cache.

        What is captured next would then have to be allocated anew.
        """
        graph, reserved = torch.cuda.CUDAGraph(), torch.cuda.memory_reserved(self.device)
        with torch.cuda.device(self.device), torch.cuda.stream(self.stream):
            graph.capture_begin(self.pool, "thread_local")
            try:
                result = work()
            finally:  # an error, too, must end the capture
                graph.capture_end()
        self.nbytes += max(0, torch.cuda.memory_reserved(self.device) - reserved)

        def replay() -> Any:
            graph.replay()
            return result

        return replay

    def close(self) -> None:
        """Return the pool's memory, after the last replays; their graphs are gone by now."""
        if "stream" not in vars(self):
            return
        torch.cuda.synchronize(self.device)
        with torch.cuda.device(self.device):
            torch.cuda.empty_cache()  # otherwise the pool would stay reserved
        trim_graph_memory(self.device)
        idle_streams[self.device].append(self.stream)


def trim_graph_memory(device: torch.device) -> None:
    """Return what cudaMallocAsync keeps for graphs, which torch does not; else do nothing."""
    if not torch.cuda.is_available() or torch.cuda.get_allocator_backend() != "cudaMallocAsync":
        return
    major = str(torch.version.cuda).partition(".")[0]
    name = f"cudart64_{major}.dll" if os.name == "nt" else f"libcudart.so.{major}"
    with suppress(OSError, AttributeError):  # torch has loaded it
        ctypes.CDLL(name).cudaDeviceGraphMemTrim(
            torch.cuda.current_device() if device.index is None else device.index)


def checked_mode(mode: str) -> str:
    if mode not in MODES:
        raise SSDError(f"graphs {mode!r}: choose auto or off")
    return mode


def environment_mode() -> str:
    mode = os.environ.get(VARIABLE) or "auto"
    if mode not in MODES:
        raise SSDError(f"the environment variable {VARIABLE} is {mode!r}: set it to auto or off")
    return mode


def graphs_off_reason(device: torch.device, mode: str = "auto", offloads: bool = False,
                      dtype: str = "", streamed: bool = False) -> str:
    """Why passes on this device run without graphs; empty if they run with graphs.

    mode: the user's choice for the backbone. offloads: whether offload moves the weights. dtype: of
    the stored weights, by the names of `load_backbone`. streamed: whether layers wait elsewhere.
    """
    reasons = ((environment_mode() == "off", f"switched off by {VARIABLE}=off"),
               (mode == "off", "switched off for this backbone"),
               (device.type != "cuda", f"only on CUDA cards, the device is {device.type}"),
               (torch.version.hip is not None, "not tested on ROCm"),
               (offloads, "decoder and picture codec take turns on the card"),
               (streamed, "some layers wait on the CPU"))
    return next((reason for holds, reason in reasons if holds), "") or fault_of(
        path_of(dtype), device)


def path_of(dtype: str, name: str = "") -> str:
    """The name of graphs in this dtype among the paths that machine_faults.py switches off.

    name: of a backbone, for its graphs alone. A wrong replay in a run says little about others.
    """
    return f"graphs of {name} in {dtype}" if name else f"graphs in {dtype}"


def runner(backbone: Backbone) -> PassRunner:
    """The runner for a run on this backbone; close it when the run ends.

    Without graphs, sizes are rounded on every device but a CPU. Many libraries plan for each new
    size, while a CPU would waste time on the surplus cells.
    """
    device = backbone.device
    if graphs_off_reason_of(backbone):
        return EagerRunner(padded=device.type != "cpu")
    return GraphRunner(CudaRecorder(device))


def graphs_off_reason_of(backbone: Backbone, device: torch.device | None = None) -> str:
    """`graphs_off_reason` of a backbone. device: where it will draw, if it is elsewhere now."""
    device, dtype = device or backbone.device, stored_dtype(backbone)
    return graphs_off_reason(
        device, backbone.graphs, backbone.offloader is not None, dtype,
        backbone.decoder.streaming is not None) or fault_of(path_of(dtype, backbone.name), device)


def switch_off_graphs(backbone: Backbone, error: WrongReplay) -> None:
    """Run this backbone without graphs in this dtype from now on, and warn."""
    path = path_of(stored_dtype(backbone), backbone.name)
    warnings.warn(f"{error}: the run began again without graphs, and {path} are off on this "
                  "machine until the program, torch or the driver changes, or until `ssd selftest` "
                  "has passed",
                  RuntimeWarning, stacklevel=2)
    note_fault(path, str(error), backbone.device)


def pool_bytes(work: int, distribution: int) -> int:
    """The bytes that a run with graphs needs beyond the same run without graphs.

    work: temporary bytes of the largest pass or verification, which all graphs share. distribution:
    bytes of p [B, n, V] float32 of the widest pass. Four of these stay allocated: the q that a
    round reads, and the p of a choice, of a round, and of a pass that only computes p. Checks of
    first replays copy buffers, twice.
    """
    return work + 4 * distribution + 2 * ROOM


# Sizes of passes, rounded so that a run has few different ones: a graph is captured for each, and
# some libraries plan for each new size.

CELLS = (1, 2, 8)  # besides these, whole rows
KEYS = 256  # a pass reads, and the cache has, a multiple of this many slots
MANY_KEYS = 1024  # beyond these, twice that: reading more costs less than capturing more


def rounded(count: int, step: int) -> int:
    """The smallest multiple of `step` that is at least `count`."""
    return -(-count // step) * step


def rounded_cells(count: int, row: int) -> int:
    """The smallest size that holds `count` cells; row: slots of a row of the picture."""
    return min(size for size in (*CELLS, rounded(count, row)) if size >= count)


def rounded_keys(stop: int, slots: int) -> int:
    """The number of cache slots that a pass reads if it needs those before `stop`."""
    return min(rounded(stop, KEYS if stop <= MANY_KEYS else 2 * KEYS), slots)
