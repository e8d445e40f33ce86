"""Settings by name from elsewhere: a line of a file of prompts, a request to the app.

Other programs' names for our settings are known, and so are settings that only other models have.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import SSDError

ALIASES = {"negative_prompt": "negative", "cfg_scale": "cfg", "guidance_scale": "cfg",
           "guidance": "cfg", "batch_size": "pictures", "num_images": "pictures",
           "subseed": "variation_seed", "subseed_strength": "variation"}
ELSEWHERE = frozenset((
    "steps", "num_inference_steps", "sampler", "sampler_name", "sampler_index", "scheduler",
    "clip_skip", "restore_faces", "tiling", "denoising_strength", "n_iter", "sd_model",
    "seed_resize_from_h", "seed_resize_from_w", "outpath_samples", "outpath_grids",
    "do_not_save_samples", "do_not_save_grid", "eta", "styles"))
LONGEST = 40  # characters of a name in a message


@dataclass(frozen=True)
class Outside:
    """Settings under our names; names that have no meaning here, and names that are unknown."""

    settings: dict[str, Any] = field(default_factory=dict)
    meaningless: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()

    def words(self, known: Collection[str]) -> list[str]:
        """A sentence for each kind of names that are not used."""
        said = []
        if self.meaningless:
            said.append(f"{', '.join(self.meaningless)}: without meaning here")
        if self.unknown:
            said.append(f"{', '.join(name[:LONGEST] for name in self.unknown)}: not a setting"
                        f"{meant(self.unknown, known)}")
        return said


def taken_in(raw: Mapping[str, Any], known: Collection[str]) -> Outside:
    """Sort named values by what they are here; width and height become size.

    A setting that is named twice raises SSDError.
    """
    settings: dict[str, Any] = {}
    meaningless: list[str] = []
    unknown: list[str] = []
    for name, value in raw.items():
        plain = re.sub(r"[\s-]+", "_", name.strip().lower())
        own = name if name in known else ALIASES.get(plain, plain)
        if own in settings:
            raise SSDError(f"{name[:LONGEST]}: {own} is given twice: leave one out")
        if own in known or own in ("width", "height"):
            settings[own] = value
        else:
            (meaningless if own in ELSEWHERE else unknown).append(name)
    return Outside(with_size(settings), tuple(meaningless), tuple(unknown))


def with_size(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings with a size in place of width and height."""
    sides = [settings.pop(name, None) for name in ("width", "height")]
    if sides == [None, None]:
        return settings
    if None in sides or "size" in settings:
        raise SSDError("width, height: give both of them and no size, or a size alone")
    return {**settings, "size": f"{sides[0]}x{sides[1]}"}


def meant(unknown: Collection[str], known: Collection[str]) -> str:
    """The end of a sentence: which settings may be meant."""
    near = [found[0] for name in unknown
            if (found := difflib.get_close_matches(name.lower(), sorted(known), 1))]
    return f"; did you mean {', '.join(near)}?" if near else ""
