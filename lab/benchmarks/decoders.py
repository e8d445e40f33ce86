"""Halos, borders of cells, sharpness and claims of what a postcard's decoder makes of tokens.

    python lab/benchmarks/run.py decoders [BACKBONE ...] [--pictures 256] [--sheets FOLDER]

The first backbone draws held-out captions by AR, half of them in the square, a quarter in each
other shape; the decoder of every backbone named decodes the same tokens, and those of the painted
pictures of the captions' scenes. Speckle: the median, over the px of all boxes of things and 16 px
around them, of the distance of a px's hue from the mean hue of the 7 x 7 px around it (0 to 255;
blur lowers it, so read it with the gradient). Grid: steps between neighbouring px on borders of
cells, divided by those within. Gradient: mean step, divided by that of the painted pictures.
Claims: the share of the captions' claims that hold. dB: against the painted picture, within 16 px
of things, on things, elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

import numpy as np
import torch
from conditions import conditions, table, write_page
from PIL import Image
from script import described, options

from ssd_core import Sampling, load_backbone
from ssd_core.backbones.codecs.vq import VQTokenizer
from ssd_core.backbones.postcard.words.captions import fresh_caption
from ssd_core.backbones.postcard.words.world import Frame, Scene, scene_of
from ssd_core.engine.methods import AR
from ssd_lab.evaluate.metrics import decode_all
from ssd_lab.postcards import check, paint
from ssd_lab.postcards.checker import outlined
from ssd_lab.postcards.claims import claims
from ssd_lab.postcards.halos import hue_noise
from ssd_lab.postcards.objects import corner, cover_of, shift_of
from ssd_lab.postcards.seams import grid_ratio
from ssd_lab.train.backbone import require_postcard, view_of
from ssd_lab.train.blend import near_things
from ssd_lab.train.data import HELD_OUT, counts_by_shape, to_signed
from ssd_lab.train.tokenizer import psnr_of

HEAD = ["decoder", "pictures", "speckle", "grid", "gradient", "claims", "all claims",
        "dB around things", "on things", "elsewhere"]
BATCH = 16
SHOWN = 1.7  # size at which the app shows a picture, times its px
PER_PAGE = 3  # pictures of a sheet
Corners = list[list[tuple[int, int]]]


@dataclass(frozen=True)
class Held:
    """Held-out scenes of one shape: their painted pictures and the tokens drawn from captions."""

    frame: Frame
    seeds: range
    painted: np.ndarray
    drawn: torch.Tensor

    @property
    def scenes(self) -> list[Scene]:
        return [scene_of(seed) for seed in self.seeds]

    @property
    def corners(self) -> Corners:
        """Where the painter puts the sprites of each scene."""
        return [[corner(thing.kind, thing.place, self.frame, shift_of(scene, thing, self.frame))
                 for thing in scene.things] for scene in self.scenes]


def held_out(name: str, count: int) -> list[Held]:
    """Scenes of all shapes, and the pictures that a backbone draws of them."""
    backbone, held, first = require_postcard(load_backbone(name)), [], HELD_OUT
    for frame, number in counts_by_shape(count, 0.5).items():
        seeds = range(first, first + number)
        captions = [fresh_caption(seed, 0) for seed in seeds]
        drawn = decode_all(view_of(backbone, frame), None, AR(), captions, BATCH, Sampling())
        painted = np.stack([paint(scene_of(seed), frame) for seed in seeds])
        held.append(Held(frame, seeds, painted, drawn.tokens))
        first += number
    return held


@torch.inference_mode()
def decoded(codec: VQTokenizer, tokens: torch.Tensor) -> np.ndarray:
    """uint8 [n, H, W, 3]."""
    parts = [codec.decode(part).clamp(-1, 1) for part in tokens.split(BATCH)]
    return ((torch.cat(parts).permute(0, 2, 3, 1) + 1) * 127.5).round().byte().numpy()


def steps_of(pictures: np.ndarray) -> float:
    """The mean difference between neighbouring px."""
    return mean(float(np.abs(np.diff(pictures.astype(np.int16), axis=axis)).mean())
                for axis in (1, 2))


def figures(held: Sequence[Held], pictures: Sequence[np.ndarray],
            corners: Sequence[Corners]) -> dict[str, float]:
    """The figures of pictures of each shape, but for dB."""
    listed = [(picture, places, seed) for h, shape, of in zip(held, pictures, corners, strict=True)
              for picture, places, seed in zip(shape, of, h.seeds, strict=True)]
    checked = [check(picture, claims(fresh_caption(seed, 0))) for picture, _, seed in listed]
    weights = [shape.size for shape in pictures]
    return {
        "speckle": float(np.median(np.concatenate([hue_noise(p, c) for p, c, _ in listed]))),
        "grid": mean(grid_ratio(picture) for picture, *_ in listed),
        "gradient": float(np.average([*map(steps_of, pictures)], weights=weights)
                          / np.average([steps_of(h.painted) for h in held], weights=weights)),
        "claims": mean(holds for each in checked for holds in each),
        "whole": mean(all(each) for each in checked)}


def likeness(held: Sequence[Held], pictures: Sequence[np.ndarray]) -> list[float]:
    """dB around things, on things and elsewhere."""
    errors: list[list[np.ndarray]] = [[], [], []]
    for h, shape in zip(held, pictures, strict=True):
        off = ((shape.astype(np.float32) - h.painted) / 127.5) ** 2
        for seed, scene, error in zip(h.seeds, h.scenes, off, strict=True):
            thing = cover_of(scene, h.frame) > 0.5
            near = near_things(seed, thing.shape).numpy()
            for group, mask in zip(errors, (near & ~thing, thing, ~near), strict=True):
                group.append(error[mask].ravel())
    return [psnr_of(float(np.concatenate(group).mean())) for group in errors]


def row(name: str, kind: str, values: dict[str, float],
        likenesses: Sequence[float] = ()) -> list[str]:
    return [name, kind, f"{values['speckle']:.2f}", f"{values['grid']:.2f}",
            f"{values['gradient']:.2f}", f"{values['claims']:.3f}", f"{values['whole']:.3f}",
            *([f"{value:.2f}" for value in likenesses] or ["", "", ""])]


def rows(names: Sequence[str], held: Sequence[Held], sheets: Path | None) -> Iterator[list[str]]:
    """The table's lines; writes the sheets of drawn pictures."""
    places, drawn = [h.corners for h in held], []
    yield row("painter", "painted", figures(held, [h.painted for h in held], places))
    found: list[Corners] = []
    for name in names:
        codec = load_backbone(name, "cpu", "fp32").picture_codec
        assert isinstance(codec, VQTokenizer)
        shown = [decoded(codec, h.drawn) for h in held]
        found = found or [[[(thing.x, thing.y) for thing in outlined(picture).values()]
                           for picture in shape] for shape in shown]
        yield row(name, "drawn", figures(held, shown, found))
        again = [decoded(codec, codec.encode(to_signed(h.painted))) for h in held]
        yield row(name, "encoded", figures(held, again, places), likeness(held, again))
        drawn.append(shown)
    if sheets:
        write_sheets(drawn, sheets)


def write_sheets(drawn: Sequence[Sequence[np.ndarray]], folder: Path) -> None:
    """The same pictures by every decoder side by side, as large as the app shows them, in PNG."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, shapes in enumerate(zip(*drawn, strict=True)):
        for first in range(0, min(len(shapes[0]), 8 * PER_PAGE), PER_PAGE):
            lines = [np.concatenate([shape[n] for shape in shapes], 1)
                     for n in range(first, min(first + PER_PAGE, len(shapes[0])))]
            page = Image.fromarray(np.concatenate(lines))
            size = round(SHOWN * page.width), round(SHOWN * page.height)
            page.resize(size, Image.Resampling.BICUBIC).save(folder / f"{number}-{first}.png")


def main() -> None:
    parser = options(__doc__, "decoders.md")
    parser.add_argument("backbones", nargs="*", default=["postcard"], metavar="BACKBONE",
                        help="bundled names, files or folders; the first one draws")
    parser.add_argument("--pictures", type=int, default=256)
    parser.add_argument("--sheets", type=Path, metavar="FOLDER", help="for PNG files to look at")
    args = parser.parse_args()
    held = held_out(args.backbones[0], args.pictures)
    write_page(args.out, "Decoders of postcards", f"{conditions()}.", described(__doc__),
               table(HEAD, list(rows(args.backbones, held, args.sheets))))


if __name__ == "__main__":
    main()
