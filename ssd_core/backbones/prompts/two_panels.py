"""Prompts for two panels: a picture is drawn below another one, to which it belongs.

The words for maps are those of the authors' code (Lumina-mGPT 2.0, its generate_examples). It has
no words for a subject but those of its own example; these are of the authors' paper (arXiv
2507.17801), as issue 24 of their repository quotes it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ...errors import SSDError
from ..sizes import TWO_PANELS

DUAL_PANEL = "Generate a dual-panel image of "
MAPS = {"depth": "depth map", "canny": "canny edge map"}
SUBJECT = "subject"
CONTROLS = (*MAPS, SUBJECT)  # what the upper panel may show
_SIZE = re.escape(DUAL_PANEL) + r"\d+x\d+ where the <upper half> displays"
_OF_MAP = re.compile(_SIZE + r" a <(?P<map>[^>]*)>, while the <lower half> retains the original "
                     r"image for direct visual comparison:\n(?P<prompt>.*)", re.DOTALL)
_OF_SUBJECT = re.compile(_SIZE + r": (?P<subject>.*?), while the <lower half> shows the image "
                         r"according to the object and following prompt: (?P<prompt>.*)",
                         re.DOTALL)


@dataclass(frozen=True)
class Control:
    """kind: of CONTROLS. prompt: what the lower panel shows. subject: what the upper one shows, in
    words, if it is a subject.
    """

    kind: str
    prompt: str
    subject: str = ""

    def written(self, size: tuple[int, int] = TWO_PANELS) -> str:
        """The prompt for both panels, of `size` (width, height) in px together.

        Keep the upper half of the rows of tokens when drawing. Raises SSDError for an unknown
        kind, and for a subject without words.
        """
        begin = f"{DUAL_PANEL}{size[0]}x{size[1]} where the <upper half> displays"
        if self.kind in MAPS:
            return (f"{begin} a <{MAPS[self.kind]}>, while the <lower half> retains the original "
                    f"image for direct visual comparison:\n{self.prompt}")
        if self.kind != SUBJECT:
            raise SSDError(f"control {self.kind!r}: choose one of {', '.join(CONTROLS)}")
        if not self.subject.strip():
            raise SSDError("subject: empty: say in a few words what the upper picture shows")
        return (f"{begin}: {self.subject.strip()}, while the <lower half> shows the image "
                f"according to the object and following prompt: {self.prompt}")


def control_of(prompt: str) -> Control | None:
    """The control that a prompt for two panels was written from; None for any other prompt."""
    kinds = {phrase: kind for kind, phrase in MAPS.items()}
    if (found := _OF_MAP.fullmatch(prompt)) and found["map"] in kinds:
        return Control(kinds[found["map"]], found["prompt"])
    if found := _OF_SUBJECT.fullmatch(prompt):
        return Control(SUBJECT, found["prompt"], found["subject"])
    return None
