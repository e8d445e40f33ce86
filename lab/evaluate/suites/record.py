"""suite.json beside a suite's pictures: their prompts, and how they were drawn.

A resumed run compares it with its own settings; scorers find pictures and prompts in it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from ssd_core.errors import SSDError, first_line
from ssd_core.files import refuse_newer, write_text
from ssd_core.output.recipe import settings
from ssd_core.runs.batch.render import RenderItem, RenderSettings
from ssd_core.runs.batch.workers import LoadedModels

from . import SUITES, Item, ScorerLayout, suite_named

FILE, KIND, VERSION = "suite.json", "ssd-suite", 1
WANTED = "a folder that 'evaluate --suite' has written"


@dataclass(frozen=True)
class Record:
    """samples: pictures of each prompt. drawn_by: see `conditions`; empty until it is known."""

    layout: ScorerLayout
    samples: int
    items: Sequence[Item]
    drawn_by: Mapping[str, object]

    def write(self, folder: Path) -> None:
        prompts = [{"name": item.name, "prompt": item.prompt} for item in self.items]
        data = {"version": VERSION, "suite": self.layout.name, "samples": self.samples,
                "drawn_by": self.drawn_by, "prompts": prompts}
        write_text(folder / FILE, json.dumps(data, indent=1) + "\n")

    def pictures(self) -> list[tuple[str, str]]:
        """Path below the folder and prompt of every picture, prompt by prompt."""
        return [(self.layout.picture(item, sample), item.prompt)
                for item in self.items for sample in range(self.samples)]

    def difference(self, other: Record) -> str | None:
        """Describe the first difference between two runs; None if there is none."""
        if self.layout != other.layout:
            return f"suite {self.layout.name}, not {other.layout.name}"
        if prompts_of(self) != prompts_of(other):
            return f"other prompts, {len(self.items)} of them"
        mine, others = ({"samples": record.samples, **record.drawn_by} for record in (self, other))
        return next((f"{key} {mine.get(key)}, not {others.get(key)}"
                     for key in {**mine, **others} if mine.get(key) != others.get(key)), None)


def prompts_of(record: Record) -> list[tuple[str, str]]:
    return [(item.name, item.prompt) for item in record.items]


def conditions(how: RenderSettings, loaded: LoadedModels, dtype: str) -> dict[str, object]:
    """Return the settings that determine a run's pictures, besides prompts, as JSON values.

    dtype: of the weights where the pictures are drawn.
    """
    known = settings(loaded.backbone, how.heads(loaded), how.drawing(RenderItem(0, "", "")))
    backbone, knobs = known.pop("backbone"), {f.name: known.pop(f.name) for f in fields(how.method)}
    for other in ("version", "dtype", "prompt", "keep_rows", "pictures", "expand", "open"):
        known.pop(other)
    return json.loads(json.dumps({
        "backbone": backbone["name"], "weights": backbone["sha256"],
        "dtype": dtype, **known,
        **{f"{how.method.name} {name}": value for name, value in knobs.items()}}))


def read_record(folder: Path) -> Record:
    """The record of a folder. Raises SSDError if there is none, or if it is damaged."""
    path = folder / FILE
    if not path.is_file():
        raise SSDError(f"{folder}: holds no {FILE}: name {WANTED}")
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        refuse_newer(path, f"{KIND}/{data['version']}", f"{KIND}/{VERSION}")
        return record_of(data)
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise SSDError(f"{path}: damaged ({first_line(error, 80)}): draw the suite again "
                       "into another folder") from error


def record_of(data: dict) -> Record:
    """Parse a record; raises ValueError, TypeError or KeyError if it is invalid."""
    if data["version"] != VERSION:
        raise ValueError(f"version {str(data['version'])[:20]}")
    if data["suite"] not in SUITES:
        raise ValueError(f"suite {str(data['suite'])[:20]!r} is unknown")
    layout, samples = suite_named(data["suite"]), data["samples"]
    if not isinstance(samples, int) or not 1 <= samples <= layout.most:
        raise ValueError(f"samples {str(samples)[:20]}")
    items = [Item(prompt["name"], prompt["prompt"]) for prompt in data["prompts"]]
    for item in items:
        if not item.name or Path(item.name).name != item.name or not isinstance(item.prompt, str):
            raise ValueError(f"{str(item.name)[:40]!r} cannot name a picture")
    return Record(layout, samples, items, dict(data["drawn_by"]))
