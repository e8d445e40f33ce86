"""The section of a report on what tuning selects by batch size: window, AR or `exact`, graphs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from ..backbones.base import Backbone
from ..backbones.estimates import StepTimes
from ..engine.heads import DraftHeads
from ..engine.methods import AR, Exact
from ..engine.step_times import AT_MOST, measured
from ..engine.tuning import Machine, Tuning, tune
from ..measure.tables import table

BATCHES = (1, 2, 4, 8)


@dataclass(frozen=True)
class Tuned:
    """What was chosen for a number of pictures at once, and the step times it was chosen by."""

    pictures: int
    step_times: StepTimes
    ar: Tuning
    exact: Tuning


def tuned(backbone: Backbone, heads: DraftHeads | None, branches: int) -> list[Tuned]:
    """Measure each batch size and choose; leaves out those for which memory is too small."""
    most = torch.get_num_threads() if backbone.device.type == "cpu" else 1
    found = []
    for pictures in BATCHES:
        try:
            step_times = measured(backbone, pictures, branches, heads, sorted({1, most}), AT_MOST)
        except torch.OutOfMemoryError:
            break
        if step_times is not None and step_times.ms:
            found.append(tunings_of(backbone, heads, pictures, step_times, most))
    return found


def tunings_of(backbone: Backbone, heads: DraftHeads | None, pictures: int, step_times: StepTimes,
               threads: int) -> Tuned:
    """What these step times leads to."""
    machine = Machine(backbone, lambda pictures: step_times, heads is not None, threads,
                      device=backbone.device.type)
    return Tuned(pictures, step_times, *(tune(machine, method, pictures, named=True)
                                         for method in (AR(), Exact())))


def tunings_line() -> str:
    return ("What the program chooses here by the times of passes and the usual number of them; "
            "times include the capture of graphs. Seconds are estimates.")


def tunings_table(found: Sequence[Tuned]) -> str:
    rows = [[str(each.pictures), seconds(each.ar, each.pictures), graphs(each.ar),
             str(getattr(each.exact.method, "window", None) or "-"),
             "-" if each.exact.cost is None else f"{each.exact.cost.passes:.0f}",
             seconds(each.exact, each.pictures), graphs(each.exact)] for each in found]
    return table(["pictures at once", "AR, s a picture", "AR's graphs", "window of exact", "passes",
                  "exact, s a picture", "its graphs"], rows)


def step_times_table(found: Sequence[Tuned]) -> str:
    """Milliseconds of a pass by its cells, for each batch size; with graphs behind the stroke."""
    widths = sorted({cells for each in found for cells in least(each.step_times)})
    rows = [[str(cells), *(both(least(each.step_times).get(cells),
                                each.step_times.replays.get(cells))
                           for each in found)] for cells in widths]
    return table(["cells", *(f"{each.pictures} at once, ms" for each in found)], rows)


def least(step_times: StepTimes) -> dict[int, float]:
    """Milliseconds by cells, with the number of threads that is best for each width."""
    widths = sorted({cells for each in step_times.ms.values() for cells in each})
    return {cells: min(each[cells] for each in step_times.ms.values() if cells in each)
            for cells in widths}


def both(direct: float | None, replay: float | None) -> str:
    words = ["-" if ms is None else f"{ms:.2f}" for ms in (direct, replay)]
    return words[0] if replay is None else " / ".join(words)


def seconds(tuning: Tuning, pictures: int) -> str:
    return "-" if tuning.cost is None else f"{tuning.cost.seconds / pictures:.3f}"


def graphs(tuning: Tuning) -> str:
    known = None if tuning.cost is None else tuning.cost.graphs
    return {None: "-", True: "on", False: "off"}[known]
