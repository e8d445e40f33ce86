"""`ssd bench`: how long methods take, with AR in the same run."""

from __future__ import annotations

from dataclasses import dataclass

from ..backbones.presets import guidance_of
from ..errors import SSDError
from ..front.request import Request
from ..measure.bench import bench
from .options import Drawing, Json, Loading, Picture, flag
from .output import Reporter
from .session import Bars, conditions, load, tell_notes
from .specs import parse_methods

COLUMNS = {"method": "method", "passes": "passes", "median s": "median_seconds",
           "times faster than AR": "ratio_to_ar", "step ratio": "step_acceleration",
           "ms/pass": "ms_per_pass", "tokens/s": "tokens_per_second", "prefill s": "prefill",
           "draft s": "draft", "verify s": "verify", "commit s": "commit"}


@dataclass(frozen=True)
class Course:
    """Measurement."""

    methods: str = flag("ar,ssd,ssd:fused_commit=true,exact",
                        "Separated by commas; knobs as in ssd:rounds=1. AR always runs.")
    prompt: str = flag("a red house on a lake, before the hills", "Text prompt.")
    repeats: int = flag(3, "Measured runs of every method, interleaved.")
    warmup: int = flag(1, "Unmeasured runs of every method before that.")
    batch: int = flag(1, "Pictures per run.")


def command(course: Course, drawing: Drawing, loading: Loading, json: Json = False) -> None:
    """Measure seconds, passes and speed of methods against AR in the same run."""
    report, sampling, methods = Reporter(json), drawing.sampling(), parse_methods(course.methods)
    if course.repeats < 1 or course.warmup < 0:
        raise SSDError("repeats must be at least 1 and warmup at least 0")
    pictures = Picture(batch=course.batch).batch
    backbone, heads = load(loading, [method for _, method in methods])
    requests = [(label, Request(backbone, heads, method, sampling, course.prompt,
                                pictures=pictures, fall_back=False)) for label, method in methods]
    for _, request in requests:
        request.check()  # before any of them runs
    tell_notes(requests[0][1])
    rows = bench(requests, course.repeats, course.warmup, Bars())
    where = conditions(backbone)
    report.table(COLUMNS, [{**row, **row["seconds"], "ms_per_pass": 1000 * row["seconds_per_pass"]}
                           for row in rows])
    report.say(", ".join(f"{key} {value}" for key, value in where.items()))
    report.result({"results": rows, **where, "batch": course.batch, "repeats": course.repeats,
                   "cfg": guidance_of(sampling, backbone.preset)})
