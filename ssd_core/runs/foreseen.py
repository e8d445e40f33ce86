"""What an edit by words will cost, judged by two wide passes before it runs. Knows no host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..engine.choice import seconds

if TYPE_CHECKING:
    pass

WHOLE = 0.5  # share of the first row from which on words change the whole picture
REST = 6  # passes over what stays, and for the maps


@dataclass(frozen=True)
class Foreseen:
    """passes: of the edit, about. whole: the words change the picture from its first row on.
    anew_passes: of the new words without the picture. cost: times what drawing anew takes.
    """

    passes: int
    whole: bool
    anew_passes: int
    cost: float
    anew_seconds: float | None

    @property
    def note(self) -> str | None:
        """A sentence if drawing the new words anew would be quicker."""
        if self.cost <= 1:
            return None
        if self.anew_seconds is None:
            return (f"these words change most of the picture: the edit takes about {self.cost:.1f} "
                    "times as long as drawing it anew")
        return (f"these words change most of the picture: the edit takes about "
                f"{seconds(self.cost * self.anew_seconds)}, drawing it anew "
                f"{seconds(self.anew_seconds)}")
