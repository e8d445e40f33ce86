"""How many px of other colours there are around the things of a picture."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F

from .objects import HEIGHT, WIDTH

AROUND = 16  # px around a sprite that count
SIDE = 7  # px along a side of the square whose mean a px is compared with


def hue_noise(picture: np.ndarray, corners: list[tuple[int, int]]) -> np.ndarray:
    """How far each px of the boxes of things is from the mean hue of the px around it, [n].

    picture: uint8 [H, W, 3]. corners: (x, y) of the things' sprites. A hue is a colour less the
    mean of its three parts; the distance is Euclidean, of levels 0..255.
    """
    pixels = torch.from_numpy(np.array(picture)).permute(2, 0, 1).double()[None]
    hues = pixels - pixels.mean(1, keepdim=True)
    around = F.avg_pool2d(hues, SIDE, 1, SIDE // 2, count_include_pad=False)
    off = (hues - around).square().sum(1).sqrt()[0].numpy()
    boxes = [off[max(0, y - AROUND) : y + HEIGHT + AROUND, max(0, x - AROUND) : x + WIDTH + AROUND]
             for x, y in corners]
    return np.concatenate([box.ravel() for box in boxes]) if boxes else np.empty(0)
