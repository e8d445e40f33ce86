"""Show rows in the terminal while a picture is drawn: two rows of cells per line, as half blocks.

A terminal with too few colours or without the character shows only the progress bar.
"""

from __future__ import annotations

import sys

import numpy as np
from rich.console import Console
from rich.text import Text
from tqdm import tqdm

from ..engine.events import Event, FinalRows, Finished
from ..output.palette import palette
from ..runs.request import Request

HALF = "▀"  # its upper half has the text's colour, its lower half the background's
COLOURS = ("256", "truecolor")


def shows_colours(console: Console) -> bool:
    """Whether the console is a terminal that shows half blocks in colours."""
    try:
        HALF.encode(console.encoding)
    except (UnicodeError, LookupError):
        return False
    return console.is_terminal and not console.no_color and console.color_system in COLOURS


class RowsInTerminal:
    """Call it with every event of a run. Pictures of a batch are side by side."""

    def __init__(self, request: Request, console: Console | None = None) -> None:
        self.request = request
        self.console = console or Console(file=sys.stderr)
        self.shown = shows_colours(self.console)
        self.upper: np.ndarray | None = None  # a row that waits for the one below it
        width = request.pictures * (request.grid.columns + 1) - 1
        self.step = -(-width // self.console.width)  # shows every step-th cell, so that a row fits

    def __call__(self, event: Event) -> None:
        if self.shown and isinstance(event, FinalRows):
            cells = palette(self.request.sized).colours[event.tokens.cpu().numpy()]
            for number in range(event.first, event.last):
                if number % self.step == 0:
                    self.take(side_by_side(cells[:, number - event.first])[:: self.step])
        elif self.shown and isinstance(event, Finished):
            self.end()

    def take(self, row: np.ndarray) -> None:
        """Print a row [C, 3] uint8 together with the next one."""
        if self.upper is None:
            self.upper = row
        else:
            self.print(self.upper, row)
            self.upper = None

    def end(self) -> None:
        """Print a last row without another one below it."""
        if self.upper is not None:
            self.print(self.upper, None)
            self.upper = None

    def print(self, upper: np.ndarray, lower: np.ndarray | None) -> None:
        with tqdm.external_write_mode(file=self.console.file):
            self.console.print(line(upper, lower), no_wrap=True, crop=True)


def side_by_side(rows: np.ndarray) -> np.ndarray:
    """[B, C, 3] -> [B * (C + 1) - 1, 3], with a black cell between two pictures."""
    gap = np.zeros_like(rows[:, :1])
    return np.concatenate((rows, gap), 1).reshape(-1, 3)[:-1]


def line(upper: np.ndarray, lower: np.ndarray | None) -> Text:
    text = Text()
    for cell, colour in enumerate(upper.tolist()):
        below = f" on {rgb(lower[cell].tolist())}" if lower is not None else ""
        text.append(HALF, f"{rgb(colour)}{below}")
    return text


def rgb(colour: list[int]) -> str:
    red, green, blue = colour
    return f"rgb({red},{green},{blue})"
