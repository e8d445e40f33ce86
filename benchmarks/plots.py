"""Plots of quality against cost; the only place that needs matplotlib (the extra `plots`)."""

from __future__ import annotations

from pathlib import Path

from ssd_core.front.sheet import CHIPS, OTHER_CHIP

MARKERS = "os^Dv"  # by temperature, the lowest first
MISSING = ("plots need matplotlib: run pip install matplotlib, or leave them out with --no-plots")
# Places of a label around its point, in points: the first that covers nothing is taken.
PLACES = [(8, 8, "left"), (8, -8, "left"), (-8, 8, "right"), (-8, -8, "right"),
          (9, 0, "left"), (-9, 0, "right"), (8, 18, "left"), (-8, 18, "right"),
          (8, -18, "left"), (-8, -18, "right"), (8, 28, "left"), (8, -28, "left"),
          (0, 22, "center"), (0, -22, "center"), (0, 33, "center"), (0, -33, "center")]


def require_matplotlib() -> None:
    """End the program with one line if matplotlib is missing."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise SystemExit(MISSING) from None


def plot(rows: list[dict], key: str, unit: str, path: Path) -> None:
    """Share of claims obeyed against rows[...][key], both with errors; a PNG."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 6.4), dpi=144, layout="constrained")
    axes = figure.subplots()
    temperatures = sorted({row["temperature"] for row in rows})
    for row in rows:
        point, _, bars = axes.errorbar(
            row[key], row["caption_accuracy"], row["caption_accuracy_se"], row[f"{key}_se"],
            color=ink(row["verdict"]), markersize=8, elinewidth=1,
            fmt=MARKERS[temperatures.index(row["temperature"]) % len(MARKERS)])
        for bar in bars:
            bar.set_alpha(0.35)
    plain_log(axes)
    axes.set_xlabel(f"{unit} (logarithmic)")
    axes.set_ylabel("share of a caption's claims obeyed")
    axes.grid(alpha=0.2)
    axes.margins(0.12)
    axes.spines[["top", "right"]].set_visible(False)
    legend(axes, rows, temperatures)
    name_points(figure, axes, rows, key)
    figure.savefig(path)


def plain_log(axes) -> None:
    """A logarithmic axis with plain numbers at 1, 2 and 5."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())


def ink(verdict: str) -> str:
    return CHIPS.get(verdict, OTHER_CHIP)[1]


def legend(axes, rows: list[dict], temperatures: list[float]) -> None:
    """Colours are verdicts, markers are temperatures."""
    from matplotlib.lines import Line2D

    def mark(label: str, colour: str, marker: str) -> Line2D:
        return Line2D([], [], linestyle="", color=colour, marker=marker, label=label)

    verdicts = [verdict for verdict in CHIPS if any(row["verdict"] == verdict for row in rows)]
    colours = [mark(verdict, ink(verdict), MARKERS[0]) for verdict in verdicts]
    shapes = [mark(f"temperature {one:g}", "#555", MARKERS[n % len(MARKERS)])
              for n, one in enumerate(temperatures)]
    axes.legend(handles=[*colours, *(shapes if len(shapes) > 1 else [])], frameon=False,
                loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=4)


def name_points(figure, axes, rows: list[dict], key: str) -> None:
    """A label beside every point, where it covers no other one, if there is such a place."""
    figure.draw_without_rendering()
    taken = [box for row in rows for box in boxes_around(axes, row, key)]
    for row in rows:
        at = row[key], row["caption_accuracy"]
        for x, y, side in PLACES:
            text = axes.annotate(row["method"], at, (x, y), textcoords="offset points", ha=side,
                                 va="center", fontsize=8, color=ink(row["verdict"]))
            box = text.get_window_extent()
            if not any(box.overlaps(other) for other in taken):
                break
            if (x, y, side) != PLACES[-1]:
                text.remove()
        taken.append(box)


def boxes_around(axes, row: dict, key: str, reach: float = 6.0) -> list:
    """The pixels of a point and of its error along x."""
    from matplotlib.transforms import Bbox

    at, error, claims = row[key], row[f"{key}_se"], row["caption_accuracy"]
    x, y = axes.transData.transform((at, claims))
    ends = [axes.transData.transform((max(at + sign * error, at / 10), claims))[0]
            for sign in (-1, 1)]
    return [Bbox.from_extents(x - reach, y - reach, x + reach, y + reach),
            Bbox.from_extents(ends[0], y - 1, ends[1], y + 1)]
