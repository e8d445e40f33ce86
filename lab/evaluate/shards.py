"""Decodes many prompts by many methods, batch by batch, so that a run can be interrupted.

Every method decodes a batch before the next batch begins, so that a machine that slows down affects
all of them. Each batch is saved in two files, and a batch whose files exist is not decoded again,
neither by one process nor by many workers. Remove the folder when a method's code has changed.
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

from ssd_core.backbones.base import Backbone
from ssd_core.engine.decode import prepare
from ssd_core.engine.heads import DraftHeads
from ssd_core.engine.methods import AR, Method
from ssd_core.errors import SSDError
from ssd_core.model.sampling import Sampling
from ssd_core.output.guarantees import HELPFUL, guarantee, heads_use
from ssd_core.output.labels import label
from ssd_core.runs.batch.queue import work
from ssd_core.runs.batch.workers import Exists, LoadedModels, LocalWorker, Place, WorkerPool

from ..train.features import load_classifier
from .metrics import Decoded, Trial, decode_all, identical, measure, with_errors


@dataclass(frozen=True)
class Entry:
    """A row of the table: a method, with or without heads."""

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
        """Return the method with unset knobs resolved by the backbone's preset."""
        return self.method.resolve(backbone.preset)


@dataclass(frozen=True)
class BatchTask:
    """A batch of captions by one method; saves tokens and statistics as .npz, metrics as .json."""

    name: str
    entry: Entry
    captions: tuple[str, ...]
    sampling: Sampling

    @property
    def count(self) -> int:
        return len(self.captions)

    def left(self, exists: Exists) -> BatchTask | None:
        return None if exists(f"{self.name}.json") and exists(f"{self.name}.npz") else self

    def run(self, loaded: LoadedModels) -> dict[str, bytes]:
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
    """The conditions that all rows share, and the folder of the decoded batches."""

    trial: Trial
    heads: DraftHeads | None
    folder: Path
    place: Place

    @classmethod
    def of(cls, trial: Trial, heads: DraftHeads | None, runs: Path,
           place: Place | None = None) -> Shards:
        """Choose a folder below `runs` by a hash of the conditions, so that runs do not mix.

        place: where the crew computes; None: where the trial's backbone is.
        """
        backbone, sampling = trial.backbone, trial.sampling
        place = place or Place.of(LoadedModels(backbone))
        conditions = [backbone.sha256, place.dtype, place.device, trial.batch, asdict(sampling)]
        digest = hashlib.sha256(json.dumps(conditions).encode()).hexdigest()[:12]
        return cls(trial, heads, runs / digest, place)

    def label(self, entry: Entry) -> str:
        return entry.label(self.trial.backbone)

    def heads_for(self, entry: Entry) -> DraftHeads | None:
        return self.heads if entry.heads else None

    def sampling(self, entry: Entry, start: int = 0) -> Sampling:
        return replace(self.trial.sampling.offset_seed(start), temperature=entry.temperature)

    def refused(self, entry: Entry) -> str | None:
        """Return why a row cannot be measured here, or None."""
        try:
            prepare(self.trial.backbone, self.trial.captions[:1], entry.method,
                    self.heads_for(entry), self.sampling(entry))
        except SSDError as error:
            return str(error)
        return None

    def task(self, entry: Entry, start: int) -> BatchTask:
        """Return the batch that starts with caption number `start`."""
        own, heads = entry.method_on(self.trial.backbone), self.heads_for(entry)
        used = heads.sha256 if heads and own.uses_heads else None
        key = hashlib.sha256(repr((own, entry.heads, used)).encode()).hexdigest()[:8]
        captions = tuple(self.trial.captions[start : start + self.trial.batch])
        short = "" if len(captions) == self.trial.batch else f"-{len(captions)}"
        return BatchTask(f"{entry.name}-T{entry.temperature:g}-{key}/{start}{short}", entry,
                         captions, self.sampling(entry, start))

    def starts(self) -> range:
        return range(0, len(self.trial.captions), self.trial.batch)

    def draw(self, rows: Sequence[Entry], crew: WorkerPool | None = None,
             label: str = "decode") -> int:
        """Draw all missing batches, each by all rows before the next; return how many pictures.

        crew: None draws in this process.
        """
        tasks = [self.task(entry, start) for start in self.starts() for entry in rows]
        loaded = LoadedModels(self.trial.backbone, self.heads)
        return work(tasks, self.folder, crew or LocalWorker(loaded), label)

    def decoded(self, entry: Entry, start: int) -> Decoded:
        """Read a drawn batch from the folder."""
        with np.load(self.folder / f"{self.task(entry, start).name}.npz") as arrays:
            return Decoded(torch.from_numpy(arrays["tokens"]), [json.loads(str(arrays["stats"]))])

    def all(self, rows: Sequence[Entry], crew: WorkerPool | None = None) -> dict[Entry, Decoded]:
        """Return every row's pictures; draws those that are not in the folder."""
        self.draw(rows, crew)
        return {entry: concatenate([self.decoded(entry, start) for start in self.starts()])
                for entry in rows}

    def row(self, entry: Entry, baseline: Entry) -> dict:
        """Return the metrics of a drawn row; holds one batch at a time in memory.

        baseline: AR at the same temperature, also drawn.
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
                         "guarantee": guarantee(own, backbone, row["identical_tokens"]),
                         **row, **costs(decoded)})
        return rows


def concatenate(parts: Sequence[Decoded]) -> Decoded:
    return Decoded(torch.cat([decoded.tokens for decoded in parts]),
                   [stats for decoded in parts for stats in decoded.stats])


def costs(decoded: Decoded) -> dict[str, float]:
    """Step acceleration per picture and seconds per picture, with errors.

    Several processes may have drawn batches at once, so these seconds only help to plan further
    runs; for comparisons with AR use `bench`.
    """
    fewer = [stats["ar_passes"] / passes for stats in decoded.stats
             for passes in stats["passes_each"]]
    seconds = [stats["seconds"]["total"] / len(stats["passes_each"]) for stats in decoded.stats]
    return with_errors({"step_acceleration": fewer, "seconds_each": seconds})
