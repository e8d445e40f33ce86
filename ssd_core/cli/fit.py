"""`ssd fit`: estimate a run's memory before anything is downloaded or loaded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from ..backbones.base import Backbone
from ..errors import SSDError
from ..model.grid import size_of
from ..output.labels import known_lines
from ..train.expected import learning_fit
from ..weights.cards import COMPUTED_ONLY, Card, card_named, seconds_on
from ..weights.catalogue import CATALOGUE, KnownBackbone, known
from ..weights.fit import fit
from ..weights.load import load_backbone
from ..weights.memory import WEIGHT_BYTES
from ..weights.model_size import ModelSize
from ..weights.quantize import ABOUT
from .options import Json, Knobs, flag
from .output import Reporter
from .session import estimates, registry

Name = Annotated[str, typer.Argument(metavar="NAME_OR_PATH", show_default=False,
                                     help="Backbone: bundled, known (download --list) or a path.")]
DESKTOP = 2**30  # bytes of a card that the driver and the desktop take
PARTS = ("weights", "cache", "activations", "pixels", "graphs", "needed", "free")


@dataclass(frozen=True)
class FitOptions:
    """The run to estimate."""

    batch: int = flag(1, "Pictures per run.")
    dtype: str = flag("auto", f"auto, {', '.join(WEIGHT_BYTES)}. {ABOUT}.")
    device: str = flag("auto", "auto, cpu, cuda, cuda:1, mps, xpu.")
    cfg: float | None = flag(None, "Guidance; 1 runs one branch. Default: the backbone's own.")
    size: str | None = flag(None, "WxH in pixels. Default: the backbone's own.")
    offload: bool = flag(False, "Decoder and picture codec take turns on the device.")
    card: str | None = flag(None, "Of a graphics card that is not here, such as \"RTX 3060\": "
                                  "whether it fits, and seconds by each quality, computed.")
    learn: bool = flag(False, "Also whether draft heads can learn from your pictures beside it.")
    models_dir: str | None = flag(None, "Folder with ssd_backbones/NAME.")


def command(name: Name, estimate: FitOptions, knobs: Knobs, json: Json = False) -> None:
    """Estimate a run's memory on the device, and suggest a setting that would fit."""
    report = Reporter(json)
    guided = None if estimate.cfg is None else estimate.cfg != 1
    target = described(name, estimate.models_dir)
    size = size_of(estimate.size)
    if isinstance(target, Backbone):
        target = target.resized(size)
    method = knobs.chosen()
    card = None if estimate.card is None else card_named(estimate.card)
    place = {"device": estimate.device} if card is None else {
        "device": "meta", "free": card.memory * 2**30 - DESKTOP}
    memory = fit(target, method, estimate.batch, estimate.dtype, guided, size,
                 offload=estimate.offload, **place)
    rows = [{"part": part, "gib": value if value is None else value / 2**30}
            for part, value in memory.to_json().items() if part in PARTS]
    report.table({"of the memory": "part", "GiB": "gib"}, rows)
    report.print(f"{target.name}: {memory.advice}")
    for line in known_lines(target) if isinstance(target, Backbone) else ():
        report.print(line)
    seconds = card and print_seconds(report, card, target, estimate.dtype)
    learning = {}
    if estimate.learn:
        free = None if memory.free is None else memory.free - memory.weights
        learning = learning_fit(target, free)
        report.print(learning["advice"])
    report.result({"name": target.name, "method": method.name, "batch": estimate.batch,
                   **memory.to_json(), **({"learning": learning} if learning else {}),
                   **({"card": card.name, "seconds": seconds} if card else {})})


def print_seconds(report: Reporter, card: Card, target: ModelSize | Backbone | KnownBackbone,
                  dtype: str = "auto") -> dict[str, str]:
    """Print, and return, the seconds of a picture by each quality on a card that is not here."""
    seconds = seconds_on(card, ModelSize.of(target), dtype)
    report.table({f"on {card.name}": "quality", "a picture": "seconds"},
                 [{"quality": title, "seconds": each} for title, each in seconds.items()])
    report.print(COMPUTED_ONLY)
    return seconds


def described(name: str, models_dir: str | None) -> Backbone | KnownBackbone:
    """A backbone on this machine, by its files' headers, else a row of the catalogue."""
    try:
        path = registry(models_dir).backbone_path(name)
    except SSDError:
        if name.lower() not in map(str.lower, CATALOGUE):
            raise
        return known(name)
    return load_backbone(path, "meta", estimates=estimates(), hashed=False)
