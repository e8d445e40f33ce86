"""The page of a self-test that is worth sharing: one Markdown file and one picture.

It holds no path, no host name and no name of a person. Its first line holds the figures for the
table of docs/results.md (tools/card_table.py).
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

from ..backbones.base import Backbone
from ..engine.heads import DraftHeads
from ..files import atomic_write, write_text
from ..measure.tables import table
from ..output.labels import percent
from ..weights.eight_bits import about_int8
from .checks import Finding
from .measuring import GIB, Launched, Measured, dtypes_line, dtypes_table, measure
from .suite import SelfTest
from .tuning import step_times_table, tunings_line, tunings_table

MARK = "<!-- ssd-card "
QUALITY = 85  # of the WebP


def write(folder: Path, test: SelfTest, backbone: Backbone,
          heads: DraftHeads | None) -> tuple[Path, Path]:
    """Measure a backbone, and write the page and its picture; returns their paths."""
    measured = measure(backbone, heads, test.machine)
    name = file_name(measured)
    page, picture = folder / f"{name}.md", folder / f"{name}.webp"
    with atomic_write(picture) as temporary:
        measured.comparison.sheet().save(temporary, "WEBP", quality=QUALITY)
    write_text(page, page_of(measured, test, picture.name))
    return page, picture


def file_name(measured: Measured) -> str:
    """Device, backbone, dtype and torch, in letters that every file system takes."""
    where = measured.conditions
    return re.sub(r"[^a-z0-9.]+", "-", f"{where.device} {measured.backbone} {measured.dtype} torch "
                                       f"{where.pytorch.partition('+')[0]}".lower()).strip("-")


def page_of(measured: Measured, test: SelfTest, picture: str) -> str:
    where = measured.conditions
    parts = [f"{MARK}{json.dumps(figures(measured, test))} -->",
             f"# {measured.backbone} in {measured.dtype} on {where.device}",
             conditions_table(measured),
             "## Self-test", f"{test.summary}.", paths_table(test.done), off_lines(test),
             "## Passes by width", widths_line(measured), widths_table(measured),
             "## Choices", tunings_line(), tunings_table(measured.tuned),
             step_times_table(measured.tuned),
             "## Dtypes", f"{dtypes_line(measured.products)} {about_int8(test.machine.device)}.",
             dtypes_table(measured.products),
             "## Methods", speeds_line(measured), speeds_table(measured),
             f"![The same picture by each method]({picture})",
             "## Memory", memory_line(measured),
             "## Equal bits", bits_line(), bits_table(measured)]
    return "\n\n".join(part.rstrip("\n") for part in parts if part) + "\n"


def figures(measured: Measured, test: SelfTest) -> dict:
    """What the table of docs/results.md shows of this page."""
    speeds = {row["method"]: row for row in measured.speeds}
    return {"device": measured.conditions.device, "backbone": measured.backbone,
            "dtype": measured.dtype, "torch": measured.conditions.pytorch.partition("+")[0],
            "day": measured.conditions.day, "copy_gb": round(measured.copied / 1e9),
            "ar_seconds": round(speeds["ar"]["median_seconds"], 3),
            **{name: round(speeds[name]["ratio_to_ar"], 2) if name in speeds else None
               for name in ("exact", "rolling", "ssd", "rows")},
            "same": measured.comparison.results["exact"].share, "switched_off": sorted(test.faults)}


def conditions_table(measured: Measured) -> str:
    where = measured.conditions
    rows = [("device", where.device), ("its memory", gib(where.memory)), ("driver", where.driver),
            ("PyTorch", where.pytorch), ("CUDA or ROCm", where.cuda), ("Python", where.python),
            ("system", where.system), ("ssd-decoding", where.program), ("date", where.day),
            ("other programs", measured.load),
            ("bandwidth of a copy", f"{measured.copied / 1e9:.0f} GB/s")]
    return table(["condition", "here"], [[name, value] for name, value in rows if value])


def paths_table(done: Sequence[Finding]) -> str:
    """A row for each path: how many checks it had, and how many it passed."""
    paths = dict.fromkeys(finding.path for finding in done)
    rows = [[path, str(len(own)), str(sum(not finding.problem for finding in own))]
            for path in paths
            if (own := [finding for finding in done if finding.path == path])]
    return table(["path", "checks", "passed"], rows)


def off_lines(test: SelfTest) -> str:
    lines = [f"- Switched off: {path} ({reason})." for path, reason in test.faults.items()]
    lines += [f"- Not offered here: {dtype}." for dtype in test.left_out]
    return "\n".join(lines)


def widths_line(measured: Measured) -> str:
    return ("One pass in the middle of a picture, with probabilities and the choice of tokens. "
            "Bytes are those of layers, image head, keys and values. Weights that fit into a "
            "processor's caches are read faster than a copy moves them.")


def widths_table(measured: Measured) -> str:
    first = measured.widths[0].best
    rows = [[str(width.cells), f"{width.ms:.2f}",
             "-" if width.graphs_ms is None else f"{width.graphs_ms:.2f}",
             f"{width.best / first:.2f}", f"{width.bytes_per_second / 1e9:.1f}",
             percent(width.bytes_per_second / measured.copied)] for width in measured.widths]
    return table(["cells", "ms", "ms with graphs", "single-cell passes", "GB/s",
                  "of the copy's"], rows)


def speeds_line(measured: Measured) -> str:
    return ("Medians of runs that took turns, without pixels. Every method counts with the "
            "number of threads that is best for it, AR too. Launches are operations that write "
            "memory, counted in a run of their own; a replay counts as one.")


def speeds_table(measured: Measured) -> str:
    rows = [[name, str(row["passes"]), f"{row['median_seconds']:.3f}", f"{row['ratio_to_ar']:.2f}",
             f"{1000 * row['seconds_per_pass']:.2f}",
             percent(measured.read[name] / row["seconds_per_pass"] / measured.copied),
             *launches(measured.launches[name]), result.guarantee, percent(result.share or 0.0)]
            for row in measured.speeds for name in [row["method"]]
            for result in [measured.comparison.results[name]]]
    return table(["method", "passes", "seconds", "times faster than AR", "ms a pass",
                  "of the copy's bandwidth", "launches a pass", "with graphs", "guarantee",
                  "tokens that are AR's"], rows)


def launches(found: Launched) -> tuple[str, str]:
    return f"{found.direct:.0f}", "-" if found.graphs is None else f"{found.graphs:.0f}"


def memory_line(measured: Measured) -> str:
    expected = f"`fit` expects {gib(measured.fitted)} beyond the weights for `exact`"
    if measured.peak is None:
        return f"{expected}; what a run takes is not measured on this device."
    return f"{expected}; the run took at most {gib(measured.peak)}."


def bits_line() -> str:
    return ("How much the logits of a cell change with the width of its pass, in the first layers "
            "and extrapolated to all. Where it is 0, `exact` draws AR's tokens in any dtype. "
            "Passes replayed as graphs are compared with direct ones.")


def bits_table(measured: Measured) -> str:
    rows = [[name, "takes no such pass" if found.direct is None else f"{found.direct:.2g}",
             "-" if found.graphs is None else f"{found.graphs:.2g}"]
            for name, found in measured.rounding.items()]
    return table(["attention kernel", "root-mean-square difference of logits", "with graphs"], rows)


def gib(count: int | None) -> str:
    return "" if count is None else f"{count / GIB:.2f} GiB"
