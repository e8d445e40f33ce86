"""`ssd evaluate --suite`: draw a benchmark's prompts into the folders that its scorer reads."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from ssd_core.cli.options import Canvas, Knobs, Loading, SamplingOptions, flag
from ssd_core.cli.output import Reporter, note
from ssd_core.cli.paths import check_folder, nearest_folder
from ssd_core.cli.render import print_warnings
from ssd_core.cli.session import load_for
from ssd_core.engine.decode import prepare
from ssd_core.errors import SSDError
from ssd_core.output.drawing import Drawing
from ssd_core.output.recipe import read_recipe
from ssd_core.runs.batch.render import RenderSettings, at_once
from ssd_core.runs.batch.workers import WorkerOptions, crew_of
from ssd_core.runs.request import Request

from ..evaluate.suites import suite_named
from ..evaluate.suites.run import SuiteRun


@dataclass(frozen=True)
class Suite:
    """Benchmarks of the papers."""

    suite: str | None = flag(None, "geneval, dpg or coco: draw its prompts (--prompts) into --out, "
                                   "for its official scorer.")
    samples: int | None = flag(None, "Pictures of each prompt. Default: the suite's own number, "
                                     "4 for geneval and dpg, 1 for coco.")


@dataclass(frozen=True)
class SuitePaths:
    """Paths of a suite's prompts and pictures, and the pictures per batch."""

    prompts: Path
    out: Path
    batch: int | None

    def __post_init__(self) -> None:
        if not self.prompts.exists():
            raise SSDError(f"prompts {self.prompts}: no such file or folder; give the suite's own "
                           "prompts")
        check_folder(nearest_folder(self.out / "picture.png"))


def draw(benchmark: Suite, canvas: Canvas, place: SuitePaths, knobs: Knobs,
         drawing: SamplingOptions, workers: WorkerOptions, loading: Loading,
         report: Reporter) -> None:
    """Draw the missing pictures of a suite, and report the folder."""
    layout, method = suite_named(benchmark.suite or ""), knobs.chosen()
    loaded, models = load_for(workers, loading, [method], canvas.pixels())
    first = Request(loaded.backbone, loaded.heads,
                    Drawing("", canvas.negative, method, drawing.sampling()),
                    fall_back=knobs.method is None)
    # No window is chosen for this machine: a benchmark's pictures are the same on every machine.
    how = RenderSettings(first.drawing.method, first.sampling, first.drawing.negative)
    run = SuiteRun.of(layout, place.prompts, place.out, how, loaded, benchmark.samples)
    texts = [item.prompt for item in run.record.items]
    prepare(loaded.backbone, texts[:1], how.method, how.heads(loaded), how.sampling, how.negative)
    print_warnings(first, texts, strict=False)
    with crew_of(workers, loaded, models, note) as crew:
        batch = place.batch or at_once(how, max(texts, key=len), loaded, crew.place.free)
        made = run.draw(crew, batch)
    result = {"suite": layout.name, "method": how.method.name, "backbone": loaded.backbone.name,
              "prompts": len(texts), "pictures": len(run.pictures), "drawn_now": made,
              "passes": mean(read_recipe(place.out / picture.file)["passes"]
                             for picture in run.pictures),
              "folder": str(place.out / layout.scored_folder)}
    report.print(summary(result))
    report.result(result)


def summary(result: dict) -> str:
    return (f"{result['suite']}: {result['pictures']} pictures of {result['prompts']} prompts by "
            f"{result['method']} in {result['passes']:.1f} passes each, {result['drawn_now']} "
            f"drawn now\n  for the scorer: {result['folder']}")
