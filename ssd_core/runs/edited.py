"""What an edit by words did to a picture. Knows no host."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from ..engine.edits.maps import grown, shrunk

NOTHING = "the new words mean what the old ones do: nothing was drawn"
NO_CELL = "the new words change nothing here: every cell kept its token"
NO_PLACE = "not held, because the picture shows no clear place for it: {0}"
HELD = "held in place: {0}"
KEPT = "kept {0} % of the picture, and drew {1} of {2} cells anew"


@dataclass(frozen=True)
class Edited:
    """The outcome of an edit.

    redrawn, object_cells: bool [R, C], of a batch [B, R, C]: the cells with another token than
    before, and those of things that the words do not change. kept_share: of all tokens. notes:
    sentences.
    """

    redrawn: torch.Tensor
    object_cells: torch.Tensor
    kept_share: float
    notes: tuple[str, ...]

    @property
    def untouched(self) -> torch.Tensor:
        """The cells, like `redrawn`, that keep their pixels, too: areas of kept cells, no single
        ones, which the codec shows in another light among redrawn cells.
        """
        return grown(shrunk(~self.redrawn)) & ~self.redrawn

    @classmethod
    def of(cls, parent: torch.Tensor, tokens: torch.Tensor, object_cells: torch.Tensor,
           stats: Mapping) -> Edited:
        """parent, tokens [B, R, C]. object_cells [B, R, C] bool. stats: of the finished run."""
        redrawn = tokens.cpu() != parent.cpu()
        share = 1 - redrawn.float().mean().item()
        alone = len(tokens) == 1
        return cls(redrawn[0] if alone else redrawn, object_cells[0].cpu()
                   if alone else object_cells.cpu(), share, tuple(notes_of(redrawn, stats)))


def notes_of(redrawn: torch.Tensor, stats: Mapping) -> list[str]:
    """Sentences about what was kept, held and drawn."""
    if not stats["passes"]:
        return [NOTHING]
    drawn, cells = int(redrawn.sum()), redrawn.numel()
    shares = KEPT.format(f"{100 * (1 - drawn / cells):.0f}", drawn, cells)
    return [shares if drawn else NO_CELL, *about(HELD, stats["edit"]["objects"]),
            *about(NO_PLACE, stats["edit"]["missing"])]


def about(sentence: str, objects: list[list[str]]) -> list[str]:
    """A sentence about the things of all pictures, without repeats; none if there are none."""
    named = list(dict.fromkeys(thing for each in objects for thing in each))
    return [sentence.format(", ".join(named))] if named else []
