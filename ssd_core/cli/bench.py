"""`ssd bench`: time methods, each at its best, with AR in the same run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ..backbones.base import Backbone
from ..backbones.presets import resolve_sampling
from ..engine.methods import AR
from ..errors import SSDError
from ..measure.bench import AR_DTYPES, Entrant, bench
from ..measure.machine import OtherWork
from ..output.drawing import Drawing
from ..runs.request import Request
from ..weights.load import DTYPES, plain_name
from ..weights.memory import WEIGHT_BYTES, free_bytes
from ..weights.quantize import KINDS
from .options import Json, Loading, PictureOptions, SamplingOptions, flag
from .output import Reporter, note
from .session import Bars, conditions, load, machine, print_notes
from .specs import parse_methods

COLUMNS = {"method": "method", "dtype": "dtype", "threads": "threads", "passes": "passes",
           "median s": "median_seconds", "faster than AR": "ratio_to_ar",
           "in its dtype": "ratio_in_dtype", "step ratio": "step_acceleration",
           "ms/pass": "ms_per_pass", "tokens/s": "tokens_per_second", "prefill s": "prefill",
           "draft s": "draft", "verify s": "verify", "commit s": "commit"}


@dataclass(frozen=True)
class BenchOptions:
    """Measurement."""

    methods: str = flag("ar,ssd,ssd:fused_commit=true,exact",
                        "Separated by commas; knobs as in ssd:rounds=1. AR always runs.")
    prompt: str = flag("a red house on a lake, before the hills", "Text prompt.")
    repeats: int = flag(3, "Measured runs of every method and number of threads, interleaved.")
    warmup: int = flag(1, "Unmeasured runs of every method before that.")
    batch: int = flag(1, "Pictures per run.")
    ar_dtypes: str = flag(",".join(AR_DTYPES), "AR is timed in these dtypes too, if they "
                          "load here; 'faster than AR' is against the fastest. none: only in the "
                          "methods' own dtype.")

    def further_dtypes(self) -> list[str]:
        """The dtypes of AR, checked."""
        typed = [name.strip() for name in self.ar_dtypes.split(",")]
        names = [plain_name(name) for name in typed if name != "none"]
        legal = (*DTYPES, *KINDS)
        if unknown := next((name for name in names if name not in legal), None):
            raise SSDError(f"ar-dtypes {unknown!r}: choose none, or some of {', '.join(legal)}")
        return names


def command(course: BenchOptions, drawing: SamplingOptions, loading: Loading,
            json: Json = False) -> None:
    """Measure seconds, passes and speed of methods against AR at its best in the same run.

    On a CPU every method is timed with one thread and with all, and counts with the faster one.
    """
    report, sampling, methods = Reporter(json), drawing.sampling(), parse_methods(course.methods)
    if course.repeats < 1 or course.warmup < 0:
        raise SSDError("repeats must be at least 1 and warmup at least 0")
    pictures, others = PictureOptions(batch=course.batch).batch, course.further_dtypes()
    backbone, heads = load(loading, [method for _, method in methods])
    wanted = Drawing(course.prompt, None, sampling=sampling, pictures=pictures)
    entrants = [Entrant(label, Request(backbone, heads, replace(wanted, method=method),
                                       fall_back=False))
                for label, method in methods]
    for entrant in entrants:
        entrant.request.check()  # before any of them runs
    print_notes(entrants[0].request)
    entrants += ar_in(others, entrants, loading)
    work = OtherWork()
    rows = bench(entrants, course.repeats, course.warmup, Bars())
    where = {**conditions(backbone), **machine(work)}
    print_results(report, rows, where)
    report.result({"results": rows, **where, "batch": course.batch, "repeats": course.repeats,
                   "cfg": resolve_sampling(sampling, backbone.preset).cfg})


def ar_in(dtypes: Sequence[str], entrants: Sequence[Entrant], loading: Loading
          ) -> Iterator[Entrant]:
    """AR for the same pictures in every other dtype that loads here, with a note if one does not.
    """
    first = entrants[0]
    for dtype in dict.fromkeys(dtypes):
        if dtype == first.dtype:
            continue
        try:
            check_room(first.request.backbone, dtype)
            backbone, _ = load(replace(loading, dtype=dtype), [])
            drawing = replace(first.request.drawing, method=AR())
            request = replace(first.request, backbone=backbone, heads=None, drawing=drawing)
            request.check()
        except SSDError as error:
            note(f"AR in {dtype} is left out: {error}")
            continue
        yield Entrant(AR.name, request)


def check_room(backbone: Backbone, dtype: str) -> None:
    """Raise SSDError if the weights in this dtype do not fit beside those that are loaded."""
    free = free_bytes(backbone.device)
    needed = WEIGHT_BYTES[dtype] * sum(weight.numel() for weight in backbone.parameters())
    if free is not None and needed > free:
        raise SSDError(f"its weights take {needed / 2**30:.1f} GiB, {free / 2**30:.1f} are free")


def print_results(report: Reporter, rows: list[dict], where: dict) -> None:
    report.table(COLUMNS, [{**row, **row["seconds"], "ms_per_pass": 1000 * row["seconds_per_pass"]}
                           for row in rows])
    report.print("'faster than AR' is against the fastest AR of this table, 'in its dtype' against "
               "the fastest AR in the same dtype")
    report.print(", ".join(f"{key} {value}" for key, value in where.items()))
