"""Pictures that a postcard drew itself and that show all that was asked for, as training data.

Painted pictures are flawless, so a backbone that learned from them alone meets its own slips for
the first time while it draws. Fine-tuning on its best own samples is rejection sampling (RAFT,
Dong et al. 2023). A program judges the pixels, so no person has to look.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from tqdm import tqdm

from ..backbones.postcard import Postcard
from ..errors import SSDError
from ..output.pixels import pixels
from ..output.recipe import to_bytes
from ..postcards import FRAMES, Frame, Reading, claims, read
from ..postcards.reading import UNCLEAR, which_hold
from .drawn import Pictures, load_pictures


class Own(NamedTuple):
    """Pictures of one shape: tokens int64 [n, R*C], the ids of their prompts int64 [n, P]."""

    tokens: torch.Tensor
    prompts: torch.Tensor


def own_pictures(backbone: Postcard, folders: Sequence[Path]) -> dict[Frame, Own]:
    """The pictures in the folders that show all that was asked for, by shape.

    Each folder holds pictures that `train self-distill` drew with this backbone, of one size.
    """
    found: dict[Frame, list[Pictures]] = {}
    for folder in folders:
        drawn = load_pictures(folder, backbone)
        frame = next(frame for frame in FRAMES if (frame.width, frame.height) == drawn.size)
        found.setdefault(frame, []).append(drawn.pick(list(good_ones(backbone, drawn))))
    return {frame: joined(parts) for frame, parts in found.items()}


def joined(parts: Sequence[Pictures]) -> Own:
    """All pictures of a shape. SSDError if there are none."""
    if not any(map(len, parts)):
        raise SSDError("own: no picture of a size shows all that was asked for: draw more")
    prompts = torch.stack([ids.long() for part in parts for ids in part.prompts])
    return Own(torch.cat([part.tokens for part in parts]).long().flatten(1), prompts)


def good_ones(backbone: Postcard, drawn: Pictures) -> Iterator[int]:
    """The numbers of the pictures that show all that was asked for and no other thing."""
    view = backbone.resized(drawn.size)
    words = {id_: word for word, id_ in backbone.word_ids.items()}
    shown = zip(drawn.prompts, pixels(view, drawn.tokens.long()), strict=True)
    for number, (ids, picture) in enumerate(tqdm(shown, "judge", len(drawn), mininterval=2.0)):
        caption = " ".join(words[id_] for id_ in ids.tolist() if id_ in words)
        if is_good(caption, read(to_bytes(picture))):
            yield number


def is_good(caption: str, reading: Reading) -> bool:
    """Whether a picture is readable, shows all that a caption claims, and no other thing."""
    asked = claims(caption)
    things = {about.thing for about in asked if about.thing is not None}
    scene = (reading.time, reading.sky, reading.ridge, reading.ground, reading.path)
    return (UNCLEAR not in scene and len(reading.things) == len(things)
            and all(which_hold(reading, asked)))
