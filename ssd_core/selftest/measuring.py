"""The measurements of a report: what depends on a pass's width, and which way is the fastest.

Passes by width, methods side by side, the change of logits with the width of a pass for each of
PyTorch's attention kernels, and a layer's products in the dtype of a backbone and in 8 bits.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, nullcontext, suppress
from dataclasses import dataclass
from datetime import date

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from .. import __version__
from ..backbones.base import Backbone
from ..backbones.invariance import Work, rounding
from ..backbones.presets import resolve_sampling
from ..engine.first_replay import WrongReplay
from ..engine.graphs import GraphRunner, Recorder, runner
from ..engine.heads import DraftHeads
from ..engine.methods import AR, SSD, Exact, Method, Rolling, Rows
from ..engine.step_times import Passes, device_name
from ..errors import SSDError
from ..machine_faults import driver_version
from ..measure.bench import Entrant, bench
from ..measure.launches import by_graphs, counted, mean
from ..measure.machine import OtherWork, copy_bandwidth, read_bytes
from ..measure.tables import table
from ..model.sampling import Sampling
from ..output.drawing import Drawing
from ..runs.comparison import Comparison, compare
from ..runs.request import Request
from ..weights.eight_bits import EIGHT_BITS, Times, numbers, timed
from ..weights.fit import fit
from ..weights.load import passes_on
from ..weights.model_size import SHORT_NAMES, stored_dtype
from ..weights.quantize import quantiser
from .machine import Machine
from .tuning import Tuned, tuned

CHOSEN = "as PyTorch chooses"
KERNELS = {"flash": SDPBackend.FLASH_ATTENTION, "cuDNN": SDPBackend.CUDNN_ATTENTION,
           "memory-efficient": SDPBackend.EFFICIENT_ATTENTION, "math": SDPBackend.MATH}
ROWS = 8  # of the picture, in the widest pass
ROWS_OF_A_PASS = (1, 4)  # of the picture; beside a single cell
PROMPT = "a red house on the left, a green tree on the right, a lake, at sunset"
METHODS: tuple[Method, ...] = (AR(), Exact(), Rolling(), SSD())
WITHOUT_HEADS: tuple[Method, ...] = (*METHODS[:3], Rows())
WIDTHS_LIMIT = 10.0  # s for the widths of one kind of pass
GIB = 2**30


@dataclass(frozen=True)
class Rounding:
    """Root-mean-square difference of logits between passes of different width.

    0: a cell has the same bits in all of them. None: the kernel does not take these passes, or
    there are no graphs. graphs: passes replayed as graphs, compared with a direct one.
    """

    direct: float | None
    graphs: float | None


def rounding_by_kernel(backbone: Backbone, machine: Machine) -> dict[str, Rounding]:
    """The rounding by attention kernel. A device other than a card has one kernel."""
    kernels = KERNELS if backbone.device.type == "cuda" else {}
    return {name: Rounding(rounding_with(backbone, kernel, None),
                           machine.recorder and rounding_with(backbone, kernel, machine.recorder))
            for name, kernel in {CHOSEN: None, **kernels}.items()}


def rounding_with(backbone: Backbone, kernel: SDPBackend | None,
                  recorder: Callable[[], Recorder] | None) -> float | None:
    """One figure of a `Rounding`; recorder: of `Machine`, None: without graphs."""
    try:
        with nullcontext() if kernel is None else sdpa_kernel(kernel):
            passes = passes_on(backbone, ROWS * backbone.grid.width)
            if recorder is None:
                return max(rounding(backbone, widths) for widths in passes)
            with closing(recorder()) as graphs:
                return max(rounding(backbone, widths, lambda work: replayed(graphs, work))
                           for widths in passes)
    except RuntimeError:  # no available kernel, or passes that cannot be captured
        return None


def replayed(recorder: Recorder, work: Work) -> torch.Tensor:
    """What a captured graph of the work gives."""
    recorder.warm_up(work)
    result: torch.Tensor = recorder.record(work)()
    return result.clone()


def times_by_dtype(backbone: Backbone, branches: int) -> dict[str, Times]:
    """Milliseconds of one layer's feed-forward products, by dtype and by cells of a pass.

    The matrices have a layer's shapes. Leaves out what the device or the installation lacks.
    """
    row = backbone.grid.width
    widths = (1, *(row * count for count in ROWS_OF_A_PASS))
    plain = backbone.dtype if backbone.dtype in SHORT_NAMES else torch.float32
    found = {SHORT_NAMES[plain]: timed(matrices(backbone, plain), widths, branches, plain)}
    for kind in EIGHT_BITS:
        inputs = torch.bfloat16 if kind == "fp8" else plain
        with suppress(SSDError, RuntimeError):  # not offered here
            become = quantiser(kind, backbone.device)
            quantised = [become(weight) for weight in matrices(backbone, inputs)]
            found[kind] = timed(quantised, widths, branches, inputs)
    return found


def matrices(backbone: Backbone, dtype: torch.dtype) -> list[torch.Tensor]:
    """Matrices with the shapes of a layer's feed-forward network."""
    s = backbone.decoder.shape
    return [numbers(*shape, backbone.device, dtype)
            for shape in ((2 * s.ffn, s.hidden), (s.hidden, s.ffn))]


def fastest_eight_bits(found: Mapping[str, Times]) -> str | None:
    """The 8-bit dtype whose passes of a row and more take the least time; None if there is none."""
    offered = [kind for kind in EIGHT_BITS if kind in found]
    return min(offered, key=lambda kind: sum(list(found[kind].values())[1:]), default=None)


def dtypes_line(found: Mapping[str, Times]) -> str:
    best = fastest_eight_bits(found)
    chosen = f" Of the 8-bit dtypes {best} is the fastest here for rows." if best else ""
    return ("The products of one layer's feed-forward network, with guidance if the backbone uses "
            f"it; int8 includes any rounding of activations.{chosen}")


def dtypes_table(found: Mapping[str, Times]) -> str:
    widths = next(iter(found.values()))
    rows = [[str(cells), *(f"{each[cells]:.3f}" for each in found.values())] for cells in widths]
    return table(["cells", *(f"{name}, ms" for name in found)], rows)


@dataclass(frozen=True)
class Conditions:
    """What the figures depend on. memory: of the device, in bytes, None if unknown."""

    device: str
    driver: str
    pytorch: str
    cuda: str
    python: str
    system: str
    program: str
    day: str
    memory: int | None

    @classmethod
    def of(cls, device: torch.device) -> Conditions:
        card = device.type == "cuda"
        memory = torch.cuda.get_device_properties(device).total_memory if card else None
        return cls(device_name(device), driver_version() if card else "", torch.__version__,
                   torch.version.cuda or torch.version.hip or "", platform.python_version(),
                   f"{platform.system()} {platform.machine()}", __version__,
                   str(date.today()), memory)


@dataclass(frozen=True)
class Width:
    """A pass over some cells: milliseconds with and without graphs, and what it reads a second."""

    cells: int
    ms: float
    graphs_ms: float | None
    bytes_per_second: float

    @property
    def best(self) -> float:
        return min(self.ms, self.graphs_ms or self.ms)


@dataclass(frozen=True)
class Launched:
    """Mean kernel launches of a pass, directly and replayed; None without graphs."""

    direct: float
    graphs: float | None


@dataclass(frozen=True)
class Measured:
    """All figures of a report about one backbone.

    copied: bytes a second of a copy. speeds: rows of `bench`. load: how busy other programs were.
    peak: bytes that `exact` took beyond the weights, None if unknown; fitted: what `fit` expects.
    rounding: of `rounding_by_kernel`. tuned: the choices by batch size. launches: of a pass, by
    method. read: bytes that a pass of each method must read. products: of `times_by_dtype`.
    """

    conditions: Conditions
    backbone: str
    dtype: str
    copied: float
    widths: Sequence[Width]
    speeds: Sequence[Mapping]
    comparison: Comparison
    load: str
    peak: int | None
    fitted: int
    rounding: Mapping[str, Rounding]
    tuned: Sequence[Tuned]
    launches: Mapping[str, Launched]
    read: Mapping[str, int]
    products: Mapping[str, Times]


def measure(backbone: Backbone, heads: DraftHeads | None, machine: Machine) -> Measured:
    """Measure a loaded backbone; takes a minute or two."""
    device, work = backbone.device, OtherWork()
    copied = copy_bandwidth(device)
    widths = widths_of(backbone, heads)
    peak = peak_bytes(backbone, heads)
    methods = {method.name: method for method in (WITHOUT_HEADS if heads is None else METHODS)}
    comparison = compare(backbone, PROMPT, methods, heads, Sampling(seed=7))
    entrants = [Entrant(label, Request(backbone, heads, drawing(method), fall_back=False))
                for label, method in methods.items()]
    speeds = bench(entrants)
    estimate = fit(backbone, Exact(), device=str(device), heads=heads)
    return Measured(Conditions.of(device), backbone.name, stored_dtype(backbone), copied, widths,
                    speeds, comparison, work.words(), peak,
                    estimate.cache + estimate.activations + estimate.graphs,
                    rounding_by_kernel(backbone, machine),
                    tuned(backbone, heads, branches_of(backbone)),
                    {entrant.label: launched(entrant.request, machine) for entrant in entrants},
                    {entrant.label: pass_bytes(entrant.request) for entrant in entrants},
                    times_by_dtype(backbone, branches_of(backbone)))


def launched(request: Request, machine: Machine) -> Launched:
    """Launches of a pass, counted in a run of their own."""
    run, graphs = request.prepare(), None
    if machine.recorder is not None:
        with suppress(WrongReplay):
            graphs = mean(counted(run, by_graphs(machine.recorder())))
    return Launched(mean(counted(run)), graphs)


def pass_bytes(request: Request) -> int:
    """The bytes that a pass in the middle of the picture must read."""
    backbone, grid = request.backbone, request.grid
    cells = request.method.for_device(grid, backbone.device.type).pass_width(grid)
    return read_bytes(backbone, request.branches, middle_of(backbone) + cells)


def middle_of(backbone: Backbone) -> int:
    """Cache slots before the middle of a picture."""
    return backbone.prompt_limit + backbone.grid.slots // 2


def widths_of(backbone: Backbone, heads: DraftHeads | None) -> list[Width]:
    """Passes of growing width in the middle of a picture, with graphs too where there are any."""
    passes = Passes(backbone, 1, branches_of(backbone), heads)
    step_times = passes.direct((torch.get_num_threads(),), WIDTHS_LIMIT)
    with closing(runner(backbone)) as run, suppress(WrongReplay):
        if isinstance(run, GraphRunner):
            step_times = passes.replayed(run, step_times, WIDTHS_LIMIT)
    branches, middle = branches_of(backbone), middle_of(backbone)
    return [Width(cells, ms, step_times.replays.get(cells),
                  1000 * read_bytes(backbone, branches, middle + cells)
                  / min(ms, step_times.replays.get(cells, ms)))
            for cells, ms in next(iter(step_times.ms.values()), {}).items()]


def branches_of(backbone: Backbone) -> int:
    return 1 if resolve_sampling(Sampling(), backbone.preset).cfg == 1 else 2


def peak_bytes(backbone: Backbone, heads: DraftHeads | None) -> int | None:
    """Peak memory of a picture by `exact` beyond the weights; None on a CPU."""
    device = backbone.device
    if device.type != "cuda":
        return None
    torch.cuda.synchronize(device)
    before = torch.cuda.memory_allocated(device)
    torch.cuda.reset_peak_memory_stats(device)
    Request(backbone, heads, drawing(Exact()), fall_back=False).run()
    return torch.cuda.max_memory_allocated(device) - before


def drawing(method: Method) -> Drawing:
    """What every measurement draws."""
    return Drawing(PROMPT, None, method, Sampling(seed=7))
