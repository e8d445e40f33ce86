"""Many prompts by many methods, a batch at a time, so that a run can be interrupted.

Every method decodes a batch before the next batch begins: a machine that slows down slows all of
them. Each batch is a file below the folder, and a file that is there is not decoded again. Remove
the folder when a method's code has changed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import torch

from ..backbones.base import Backbone
from ..engine.decode import generate
from ..engine.heads import DraftHeads
from ..engine.methods import AR, Method
from ..errors import SSDError
from ..files import written_whole
from ..front.compare import verdict
from ..front.labels import label
from ..front.promises import HELPFUL, heads_use
from ..model.sampling import Sampling
from ..train.common import Say, silent
from .evaluate import Decoded, Trial, decode_all, with_errors


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
        return label(self.method.resolved(backbone.preset)) + bare + warm


@dataclass
class Shards:
    """What all rows have in common, and the folder of the batches decoded so far."""

    trial: Trial
    heads: DraftHeads | None
    folder: Path

    @classmethod
    def of(cls, trial: Trial, heads: DraftHeads | None, runs: Path) -> Shards:
        """A folder below `runs` for these very conditions: nothing of another run is taken."""
        backbone, sampling = trial.backbone, trial.sampling
        same = [backbone.sha256, heads and heads.sha256, str(backbone.dtype),
                backbone.device.type, trial.batch, asdict(sampling)]
        digest = hashlib.sha256(json.dumps(same).encode()).hexdigest()[:12]
        return cls(trial, heads, runs / digest)

    def label(self, entry: Entry) -> str:
        return entry.label(self.trial.backbone)

    def heads_for(self, entry: Entry) -> DraftHeads | None:
        return self.heads if entry.heads else None

    def sampling(self, entry: Entry, start: int = 0) -> Sampling:
        own = self.trial.sampling
        return replace(own, seed=own.seed + start, temperature=entry.temperature)

    def refused(self, entry: Entry) -> str | None:
        """Why a row cannot be measured here, or None."""
        try:
            generate(self.trial.backbone, self.trial.captions[:1], entry.method,
                     self.heads_for(entry), self.sampling(entry)).close()
        except SSDError as error:
            return str(error)
        return None

    def decoded(self, entry: Entry, start: int) -> Decoded:
        """One batch, from the folder if it is there."""
        own = entry.method.resolved(self.trial.backbone.preset)
        key = hashlib.sha256(repr((own, entry.heads)).encode()).hexdigest()[:8]
        path = self.folder / f"{entry.name}-T{entry.temperature:g}-{key}" / f"{start}.npz"
        if not path.exists():
            self.decode(entry, start, path)
        with np.load(path) as kept:
            return Decoded(torch.from_numpy(kept["tokens"]), [json.loads(str(kept["stats"]))])

    def decode(self, entry: Entry, start: int, path: Path) -> None:
        trial = self.trial
        outcome = decode_all(trial.backbone, self.heads_for(entry), entry.method,
                             trial.captions[start : start + trial.batch], trial.batch,
                             self.sampling(entry, start))
        path.parent.mkdir(parents=True, exist_ok=True)
        with written_whole(path) as temporary, open(temporary, "wb") as file:
            np.savez(file, tokens=outcome.tokens.cpu().numpy(), stats=json.dumps(outcome.stats[0]))

    def all(self, rows: Sequence[Entry], say: Say = silent) -> dict[Entry, Decoded]:
        """Every row's pictures; a batch by all rows before the next one."""
        found: dict[Entry, list[Decoded]] = {entry: [] for entry in rows}
        for start in range(0, len(self.trial.captions), self.trial.batch):
            for entry in rows:
                say(f"captions {start}..: {self.label(entry)}")
                found[entry].append(self.decoded(entry, start))
        return {entry: Decoded(torch.cat([one.tokens for one in parts]),
                               [stats for one in parts for stats in one.stats])
                for entry, parts in found.items()}

    def measured(self, found: Mapping[Entry, Decoded]) -> list[dict]:
        """One row per entry, beside AR's of the same temperature."""
        rows, backbone = [], self.trial.backbone
        for entry, decoded in found.items():
            ar = next(one for other, one in found.items()
                      if other.name == AR.name and other.temperature == entry.temperature)
            row = self.trial.row(decoded, ar.tokens.to(backbone.device))
            own = entry.method.resolved(backbone.preset)
            rows.append({"method": self.label(entry), "name": entry.name,
                         "heads": entry.heads, "temperature": entry.temperature,
                         "verdict": verdict(own, backbone.dtype, row["identical_tokens"]),
                         **row, **speeds(decoded, ar)})
        return rows


def speeds(decoded: Decoded, ar: Decoded) -> dict[str, float]:
    """Step acceleration by picture, wall-clock acceleration by batch; both with errors."""
    fewer = [stats["ar_passes"] / passes for stats in decoded.stats
             for passes in stats["passes_each"]]
    faster = [base["seconds"]["total"] / own["seconds"]["total"]
              for base, own in zip(ar.stats, decoded.stats, strict=True)]
    seconds = [stats["seconds"]["total"] / len(stats["passes_each"]) for stats in decoded.stats]
    return with_errors({"step_acceleration": fewer, "wall_clock_acceleration": faster,
                        "seconds_each": seconds})
