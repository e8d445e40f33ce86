"""The sizes that each family draws, (width, height) in px, known without its module."""

from __future__ import annotations

from ..model.grid import Grid

# postcard: the square is the first; its pictures may be twice the size.
POSTCARD_GRIDS = (Grid(24, 24), Grid(18, 32), Grid(32, 18))
POSTCARD_PATCH = 16

LUMINA_STEP = 32  # of Lumina-mGPT's size tokens
MAX_ASPECT = 4
TWO_PANELS = (512, 1024)  # of both panels, as its Omni was trained

EMU3_PATCH = 8
EMU3_AREA = 720 * 720  # of its training pictures, at any aspect ratio
EMU3_RATIOS = ((1, 1), (5, 4), (4, 5), (4, 3), (3, 4), (3, 2), (2, 3), (16, 9), (9, 16), (2, 1),
               (1, 2))

EMU3_5_PATCH = 16
EMU3_5_GRIDS = ((64, 64), (55, 73), (73, 55), (47, 85), (85, 47), (52, 78), (78, 52), (41, 97))
EMU3_5 = tuple((columns * EMU3_5_PATCH, rows * EMU3_5_PATCH) for rows, columns in EMU3_5_GRIDS)

GLM_IMAGE = ((1024, 1024), (1152, 896), (896, 1152), (1216, 832), (832, 1216), (1344, 768),
             (768, 1344), (1152, 768), (768, 1152), (512, 512), (768, 768), (1536, 1024),
             (1024, 1536), (1536, 1536), (2048, 1152), (1152, 2048), (2048, 2048))


def postcard(grid: Grid, scale: int = 1) -> tuple[int, int]:
    """scale: one of its codec's."""
    return grid.columns * POSTCARD_PATCH * scale, grid.rows * POSTCARD_PATCH * scale


def lumina(target: int) -> tuple[tuple[int, int], ...]:
    """Those that a Lumina-mGPT for target x target was trained on.

    All multiples of 32 px that fill the area without exceeding it, with sides at most 4 : 1; the
    square comes first.
    """
    cells = (target // LUMINA_STEP) ** 2
    steps = ((w, h) for w in range(cells, 0, -1)
             for h in range(max(cells // (w + 1), 1), cells // w + 1)
             if max(w, h) <= MAX_ASPECT * min(w, h))
    sizes = [(w * LUMINA_STEP, h * LUMINA_STEP) for w, h in steps]
    return ((target, target), *(size for size in sizes if size != (target, target)))


def emu3(area: float = EMU3_AREA) -> tuple[tuple[int, int], ...]:
    """Each aspect ratio with an area of about `area` px, rounded to whole cells."""
    scales = ((w, h, (area / (w * h)) ** 0.5 / EMU3_PATCH) for w, h in EMU3_RATIOS)
    return tuple((round(w * scale) * EMU3_PATCH, round(h * scale) * EMU3_PATCH)
                 for w, h, scale in scales)


LUMINA_2 = (*lumina(768), TWO_PANELS)
