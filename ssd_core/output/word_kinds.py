"""A backbone's words by kind, in the form that web/preview/prompting.js reads."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..backbones.prompt_guide import Chip, Kind


def offered(kinds: Iterable[Kind], chinese: bool = False) -> list[dict[str, Any]]:
    """Each kind with its role and chips; a chip's first phrase is the one to insert."""
    return [{"name": kind.chinese if chinese else kind.name, "role": kind.role,
             "chips": [{"phrases": written(chip, chinese), "attribute": chip.attribute,
                        "plural": chip.plural, "colour": chip.english[0]} for chip in kind.chips]}
            for kind in kinds]


def written(chip: Chip, chinese: bool) -> list[str]:
    """The chip's phrases, those of the requested language first."""
    own, other = (chip.chinese, chip.english)[:: 1 if chinese else -1]
    return [*own, *other]
