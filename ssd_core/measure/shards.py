"""Many prompts by many methods, a batch at a time, so that a run can be interrupted.

Every method decodes a batch before the next batch begins: a machine that slows down slows all of
them. Each batch leaves two files below the folder, and a batch whose files are there is not decoded
again, whether one process decodes or many workers do. Remove the folder when a method's code has
changed.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from io import BytesIO
from pathlib import Path

import numpy as np
import torch

from ..backbones.base import Backbone
from ..engine.decode import prepare
from ..engine.heads import DraftHeads
from ..engine.methods import AR, Method
from ..errors import SSDError
from ..front.compare import promise_holds, verdict
from ..front.labels import label
from ..front.promises import HELPFUL, heads_use
from ..model.sampling import Sampling
from ..train.features import load_classifier
from ..workers.crew import Crew, InProcess, Place
from ..workers.task import Loaded, There
from ..workers.work import work
from .metrics import Decoded, Trial, decode_all, identical, measure, with_errors


@dataclass(frozen=True)
class Entry:
    """A row to measure: a method, with or without heads."""

    method: Method
    heads: bool = True
    temperature: float = 1.0

    @property
    def name(self) -> str:
        return self.method.name

    def label(self, backbone: Backbone) -> str:
        bare = ", no heads" if not self.heads and heads_use(self.name) == HELPFUL else ""
        warm = "" if self.temperature == 1 else f", T = {self.temperature:g}"
        return label(self.method_on(backbone)) + bare + warm

    def method_on(self, backbone: Backbone) -> Method:
        """The method with the backbone's own values for what is unset."""
        return self.method.resolve(backbone.preset)


@dataclass(frozen=True)
class BatchTask:
    """A batch of captions by one method: tokens and statistics as .npz, what is measured as .json.
    """

    name: str
    entry: Entry
    captions: tuple[str, ...]
    sampling: Sampling

    @property
    def count(self) -> int:
        return len(self.captions)

    def left(self, exists: There) -> BatchTask | None:
        return None if exists(f"{self.name}.json") and exists(f"{self.name}.npz") else self

    def run(self, loaded: Loaded) -> dict[str, bytes]:
        backbone, heads = loaded.backbone, loaded.heads if self.entry.heads else None
        drawn = decode_all(backbone, heads, self.entry.method, self.captions, self.count,
                           self.sampling)
        measured = measure(backbone, load_classifier(), self.captions, drawn.tokens, self.sampling,
                           self.count)
        buffer = BytesIO()
        np.savez(buffer, tokens=drawn.tokens.cpu().numpy(), stats=json.dumps(drawn.stats[0]))
        return {f"{self.name}.json": json.dumps(measured).encode(),
                f"{self.name}.npz": buffer.getvalue()}


@dataclass
class Shards:
    """What all rows have in common, and the folder of the batches decoded so far."""

    trial: Trial
    heads: DraftHeads | None
    folder: Path
    place: Place

    @classmethod
    def of(cls, trial: Trial, heads: DraftHeads | None, runs: Path,
           place: Place | None = None) -> Shards:
        """A folder below `runs` for these very conditions: nothing of another run is taken.

        place: where the crew computes; None: where the trial's backbone is.
        """
        backbone, sampling = trial.backbone, trial.sampling
        place = place or Place.of(Loaded(backbone))
        same = [backbone.sha256, place.dtype, place.device, trial.batch, asdict(sampling)]
        digest = hashlib.sha256(json.dumps(same).encode()).hexdigest()[:12]
        return cls(trial, heads, runs / digest, place)

    def label(self, entry: Entry) -> str:
        return entry.label(self.trial.backbone)

    def heads_for(self, entry: Entry) -> DraftHeads | None:
        return self.heads if entry.heads else None

    def sampling(self, entry: Entry, start: int = 0) -> Sampling:
        return replace(self.trial.sampling.later(start), temperature=entry.temperature)

    def refused(self, entry: Entry) -> str | None:
        """Why a row cannot be measured here, or None."""
        try:
            prepare(self.trial.backbone, self.trial.captions[:1], entry.method,
                    self.heads_for(entry), self.sampling(entry))
        except SSDError as error:
            return str(error)
        return None

    def task(self, entry: Entry, start: int) -> BatchTask:
        """The batch whose first caption has this number."""
        own, heads = entry.method_on(self.trial.backbone), self.heads_for(entry)
        used = heads.sha256 if heads and own.uses_heads else None
        key = hashlib.sha256(repr((own, entry.heads, used)).encode()).hexdigest()[:8]
        captions = tuple(self.trial.captions[start : start + self.trial.batch])
        short = "" if len(captions) == self.trial.batch else f"-{len(captions)}"
        return BatchTask(f"{entry.name}-T{entry.temperature:g}-{key}/{start}{short}", entry,
                         captions, self.sampling(entry, start))

    def starts(self) -> range:
        return range(0, len(self.trial.captions), self.trial.batch)

    def draw(self, rows: Sequence[Entry], crew: Crew | None = None, label: str = "decode") -> int:
        """Every row's batches that are not in the folder, a batch by all rows before the next one.

        Returns the number of pictures drawn. crew: None draws in this process.
        """
        tasks = [self.task(entry, start) for start in self.starts() for entry in rows]
        loaded = Loaded(self.trial.backbone, self.heads)
        return work(tasks, self.folder, crew or InProcess(loaded), label)

    def decoded(self, entry: Entry, start: int) -> Decoded:
        """One batch that has been drawn, from the folder."""
        with np.load(self.folder / f"{self.task(entry, start).name}.npz") as arrays:
            return Decoded(torch.from_numpy(arrays["tokens"]), [json.loads(str(arrays["stats"]))])

    def all(self, rows: Sequence[Entry], crew: Crew | None = None) -> dict[Entry, Decoded]:
        """Every row's pictures, drawn where they are not in the folder."""
        self.draw(rows, crew)
        return {entry: joined([self.decoded(entry, start) for start in self.starts()])
                for entry in rows}

    def row(self, entry: Entry, baseline: Entry) -> dict:
        """The measured keys of a row that has been drawn; one batch at a time is in memory.

        baseline: AR at the same temperature, drawn too.
        """
        same, stats = [], []
        measured: dict[str, list] = defaultdict(list)
        for start in self.starts():
            own, ar = self.decoded(entry, start), self.decoded(baseline, start)
            same += identical(own.tokens, ar.tokens)
            stats += own.stats
            path = self.folder / f"{self.task(entry, start).name}.json"
            for key, values in json.loads(path.read_text(encoding="utf-8")).items():
                measured[key] += values
        return self.trial.summary(measured, stats, same)

    def measured(self, runs: Mapping[Entry, Decoded]) -> list[dict]:
        """Return one row per entry, compared with AR at the same temperature."""
        rows, backbone = [], self.trial.backbone
        for entry, decoded in runs.items():
            ar = next(other for other in runs if other.name == AR.name
                      and other.temperature == entry.temperature)
            row = self.row(entry, ar)
            own = entry.method_on(backbone)
            rows.append({"method": self.label(entry), "name": entry.name,
                         "heads": entry.heads, "temperature": entry.temperature,
                         "verdict": verdict(own, promise_holds(backbone), row["identical_tokens"],
                                            backbone.grid),
                         **row, **costs(decoded)})
        return rows


def joined(parts: Sequence[Decoded]) -> Decoded:
    return Decoded(torch.cat([decoded.tokens for decoded in parts]),
                   [stats for decoded in parts for stats in decoded.stats])


def costs(decoded: Decoded) -> dict[str, float]:
    """Step acceleration by picture, seconds a picture by batch; both with errors.

    Seconds of batches, which several processes may have drawn at once, serve to plan further runs.
    They are not compared with AR's: `bench` does that, every method at its best.
    """
    fewer = [stats["ar_passes"] / passes for stats in decoded.stats
             for passes in stats["passes_each"]]
    seconds = [stats["seconds"]["total"] / len(stats["passes_each"]) for stats in decoded.stats]
    return with_errors({"step_acceleration": fewer, "seconds_each": seconds})
