"""What the pictures of a backbone took on this machine, by method: recorded, and told.

They are in the backbone's `estimates`, without words or pixels. Knows no host.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, fields
from hashlib import sha256
from statistics import fmean

from ..backbones.base import Backbone
from ..backbones.estimates import LAST, DrawnPicture
from ..backbones.presets import resolve_sampling
from ..model.sampling import Sampling
from .heads import DraftHeads
from .methods import Method, Rolling
from .methods.window import Tunable
from .step_times import arithmetic, device_name

UNSET = Sampling()


def kind_of(method: Method, heads: bool) -> tuple[str, str] | None:
    """(name, drafter) of a method whose passes depend on its window alone, else None.

    None also if any other knob differs from its default.
    """
    if not isinstance(method, Tunable):
        return None
    knobs = {f.name: getattr(method, f.name) for f in fields(method)}
    own = {name: knobs[name] for name in ("window", "cells", "drafter", "fewer") if name in knobs}
    if method != type(method)(**own):
        return None
    name = f"{method.name}-{method.times_fewer:g}" if isinstance(method, Rolling) else method.name
    return name, knobs.get("drafter", "none") if heads else "none"


def name_of(method: Method) -> str:
    """Its name, with the knobs besides the window on which its passes depend."""
    if kind := kind_of(method, heads=False):
        return kind[0]
    knobs = {f.name: getattr(method, f.name) for f in fields(method)}
    return " ".join([method.name, *(
        f"{f.name}={knobs[f.name]}" for f in fields(method)
        if knobs[f.name] not in (None, f.default) and f.name not in ("window", "drafter"))])


def key_of(method: Method, backbone: Backbone | type[Backbone], heads: bool) -> str:
    """ "NAME/WINDOW/DRAFTER": pictures of the same key take about as many passes."""
    own = getattr(method, "drafter", "heads") if heads else "none"
    _, drafter = kind_of(method, heads) or (None, own)
    window = method.window_on(backbone.grid) if isinstance(method, Tunable) else 0
    return f"{name_of(method)}/{window}/{drafter}"


def note(backbone: Backbone, method: Method, heads: DraftHeads | None, sampling: Sampling,
         stats: Mapping, partly: bool = False) -> None:
    """Record the pictures of a finished run if its sampling is the default.

    heads: those that drafted. partly: some cells were known.
    """
    used, default = (resolve_sampling(each, backbone.preset) for each in (sampling, UNSET))
    plain = all(getattr(used, name) == getattr(default, name)
                for name in ("temperature", "top_k", "top_p", "min_p"))
    if not plain or partly or not backbone.sha256:
        return
    if isinstance(method, Tunable):
        method = method.for_device(backbone.grid, backbone.device.type)
    key, each = key_of(method, backbone, heads is not None), stats["passes_each"]
    drawn_by = ("" if heads is None else heads.sha256[:16], place_of(backbone))
    seconds, accepted = stats["seconds"]["total"] / len(each), first_acceptance(stats)
    backbone.estimates.pictures.add(prefix_of(backbone) + key, [
        DrawnPicture(int(time.time()), *drawn_by, passes, seconds, accepted) for passes in each])


def first_acceptance(stats: Mapping) -> float | None:
    """The mean share of first drafts that a run kept; None without drafts."""
    shares = [share for key, share in stats["acceptance"].items() if key.endswith("/1")]
    return fmean(shares) if shares else None


def place_of(backbone: Backbone) -> str:
    """A hash of the device and its arithmetic, on which seconds depend."""
    text = f"{device_name(backbone.device)} {arithmetic(backbone)}"
    return sha256(text.encode()).hexdigest()[:8]


def prefix_of(backbone: Backbone | type[Backbone]) -> str:
    return f"{backbone.sha256[:16]}/{backbone.grid}/"


def own_pictures(backbone: Backbone | type[Backbone]) -> dict[str, list[DrawnPicture]]:
    """The last pictures of this backbone and size by `key_of`, those of the latest run last.

    Of each key only those that were drafted by the same heads as the latest one.
    """
    prefix = prefix_of(backbone)
    found = {key.removeprefix(prefix): pictures
             for key, pictures in backbone.estimates.pictures.entries.items()
             if key.startswith(prefix)}
    return {key: [each for each in pictures if each.heads == pictures[-1].heads]
            for key, pictures in found.items()}


@dataclass(frozen=True)
class KnownMethod:
    """What a method takes here, a mean over `pictures` pictures with the window used last.

    method: its name, with the knobs that are not the default. heads: as of DrawnPicture. seconds:
    of a picture, without pixels, on the device used last. acceptance: the share of first drafts
    that the model kept; None without drafts.
    """

    method: str
    window: int
    drafter: str
    heads: str
    pictures: int
    passes: float
    seconds: float
    acceptance: float | None

    @classmethod
    def of(cls, key: str, pictures: list[DrawnPicture]) -> KnownMethod:
        name, window, drafter = key.split("/")
        last = pictures[-1]
        accepted = [each.acceptance for each in pictures if each.acceptance is not None]
        return cls(name, int(window), drafter, last.heads, len(pictures),
                   fmean(each.passes for each in pictures),
                   fmean(each.seconds for each in pictures if each.place == last.place),
                   fmean(accepted) if accepted else None)


def known_of(backbone: Backbone) -> list[KnownMethod]:
    """What is known of the methods that drew with this backbone at its size, the latest last."""
    found: dict[tuple[str, str], KnownMethod] = {}
    for key, pictures in own_pictures(backbone).items():
        known = KnownMethod.of(key, pictures)
        found.pop((known.method, known.drafter), None)
        found[known.method, known.drafter] = known
    return list(found.values())


def series_of(backbone: Backbone) -> list[tuple[str, DrawnPicture]]:
    """(method as of KnownMethod, picture) of the last LAST pictures of this backbone at its size,
    by any heads; the latest last.
    """
    prefix = prefix_of(backbone)
    drawn = [(key.removeprefix(prefix).split("/")[0], each)
             for key, pictures in backbone.estimates.pictures.entries.items()
             if key.startswith(prefix) for each in pictures]
    return sorted(drawn, key=lambda pair: pair[1].when)[-LAST:]
