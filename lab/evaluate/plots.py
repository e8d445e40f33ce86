"""Plots of quality against cost; the only place that needs matplotlib (the extra `plots`)."""

from __future__ import annotations

from collections.abc import Collection
from io import BytesIO
from pathlib import Path

from PIL import Image

from ssd_core.errors import SSDError
from ssd_core.output.sheet import CHIPS, OTHER_CHIP

COLOURS = 64  # of a saved plot, which then has a third of the bytes
MARKERS = "os^Dv"  # by temperature, the lowest first
MISSING = "plots need matplotlib: run pip install matplotlib, or leave them out with --no-plots"
# Positions of a label around its point, in points; the first without overlap is used.
PLACES = [(8, 8, "left"), (8, -8, "left"), (-8, 8, "right"), (-8, -8, "right"),
          (9, 0, "left"), (-9, 0, "right"), (8, 18, "left"), (-8, 18, "right"),
          (8, -18, "left"), (-8, -18, "right"), (8, 28, "left"), (8, -28, "left"),
          (0, 22, "center"), (0, -22, "center"), (0, 33, "center"), (0, -33, "center")]


def require_matplotlib() -> None:
    """Raise SSDError if matplotlib is missing."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise SSDError(MISSING) from None


CLAIMS = ("caption_accuracy", "share of a caption's claims obeyed")


def plot(rows: list[dict], key: str, unit: str, path: Path, quality: tuple[str, str] = CLAIMS,
         named: Collection[str] | None = None, ringed: Collection[str] = ()) -> None:
    """Plot a quality (its key and axis label) against rows[...][key], with errors, as PNG.

    named: methods whose points get a label; None: all. ringed: methods whose points get a ring.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 6.4), dpi=144, layout="constrained")
    axes = figure.subplots()
    temperatures = sorted({row["temperature"] for row in rows})
    for row in rows:
        _point, _, bars = axes.errorbar(
            row[key], row[quality[0]], row[f"{quality[0]}_se"], row[f"{key}_se"],
            color=ink(row["guarantee"]), markersize=8, elinewidth=1,
            fmt=MARKERS[temperatures.index(row["temperature"]) % len(MARKERS)])
        for bar in bars:
            bar.set_alpha(0.35)
        if row["method"] in ringed:
            axes.plot(row[key], row[quality[0]], "o", markersize=15, fillstyle="none", color="#333")
    plain_log(axes)
    axes.set_xlabel(f"{unit} (logarithmic)")
    axes.set_ylabel(quality[1])
    axes.grid(alpha=0.2)
    axes.margins(x=0.25, y=0.12)  # room for labels beside the points
    axes.spines[["top", "right"]].set_visible(False)
    legend(axes, rows, temperatures)
    name_points(figure, axes, rows, key, quality[0], named)
    drawn = BytesIO()
    figure.savefig(drawn, format="png")
    with Image.open(drawn) as picture:
        picture.convert("RGB").quantize(COLOURS).save(path, format="PNG", optimize=True)


def plain_log(axes) -> None:
    """A logarithmic axis with plain numbers at 1, 2 and 5."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())


def ink(guarantee: str) -> str:
    return CHIPS.get(guarantee, OTHER_CHIP)[1]


def legend(axes, rows: list[dict], temperatures: list[float]) -> None:
    """Colours are guarantees, markers are temperatures."""
    from matplotlib.lines import Line2D

    def mark(label: str, colour: str, marker: str) -> Line2D:
        return Line2D([], [], linestyle="", color=colour, marker=marker, label=label)

    present = {row["guarantee"] for row in rows}
    guarantees = [guarantee for guarantee in CHIPS if guarantee in present]
    colours = [mark(guarantee, ink(guarantee), MARKERS[0]) for guarantee in guarantees]
    shapes = [mark(f"temperature {temperature:g}", "#555", MARKERS[n % len(MARKERS)])
              for n, temperature in enumerate(temperatures)]
    axes.legend(handles=[*colours, *(shapes if len(shapes) > 1 else [])], frameon=False,
                loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=4)


def name_points(figure, axes, rows: list[dict], key: str, quality: str = CLAIMS[0],
                named: Collection[str] | None = None) -> None:
    """Put a label with a line beside every named point, unless it would overlap."""
    from matplotlib.text import Text

    figure.draw_without_rendering()
    taken = [box for row in rows for box in boxes_around(axes, row, key, quality)]
    for row in (row for row in rows if named is None or row["method"] in named):
        at = row[key], row[quality]
        for x, y, side in PLACES:
            text = axes.annotate(row["method"], at, (x, y), textcoords="offset points", ha=side,
                                 va="center", fontsize=8, color=ink(row["guarantee"]),
                                 arrowprops={"arrowstyle": "-", "lw": 0.6, "alpha": 0.5,
                                             "color": ink(row["guarantee"])})
            text.get_window_extent()  # places it
            box = Text.get_window_extent(text)  # without the line
            inside = axes.bbox.x0 < box.x0 and box.x1 < figure.bbox.x1
            if inside and not any(box.overlaps(other) for other in taken):
                taken.append(box)
                break
            text.remove()


def boxes_around(axes, row: dict, key: str, quality: str, reach: float = 6.0) -> list:
    """Return the bounding boxes of a point and of its error bar along x, in pixels."""
    from matplotlib.transforms import Bbox

    at, error, height = row[key], row[f"{key}_se"], row[quality]
    x, y = axes.transData.transform((at, height))
    ends = [axes.transData.transform((max(at + sign * error, at / 10), height))[0]
            for sign in (-1, 1)]
    return [Bbox.from_extents(x - reach, y - reach, x + reach, y + reach),
            Bbox.from_extents(ends[0], y - 1, ends[1], y + 1)]
