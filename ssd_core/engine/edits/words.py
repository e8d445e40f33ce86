"""What an edit by words is told, and the prompts that its passes read."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ...backbones.base import Backbone
from ...errors import SSDError
from ...model.knobs import KnobRecord, knob

_MARKS = r"[\s,.;，。；、]*"
_BEFORE = re.compile(rf"{_MARKS}(\band\b)?\s*$", re.IGNORECASE)
_BEHIND = re.compile(rf"^{_MARKS}(and\b)?{_MARKS}", re.IGNORECASE)


@dataclass(frozen=True)
class Edit(KnobRecord):
    """An edit of a picture: the words it was drawn from, and how it follows the new ones."""

    old_prompt: str = knob("", "The words that the picture was drawn from.")
    reach: float = knob(0.25, "How much of the picture new words may change: 0 nothing, 1 all but "
                              "the objects that hold keeps.", low=0, high=1, step=0.05,
                        visibility="basic")
    hold: bool = knob(True, "Keep objects that both prompts name where they are.",
                      visibility="basic")

    def __post_init__(self) -> None:
        if not self.old_prompt.strip():
            raise SSDError("old_prompt is empty: say what the picture shows before the edit")


def require_editable(backbone: Backbone) -> None:
    """Raise SSDError if the tokens of a picture are not all that its cells were drawn from."""
    if backbone.sketch() is not None or backbone.sources:
        raise SSDError(f"{backbone.name} draws a sketch before each picture, and cannot edit "
                       "pictures by words: keep cells with a mask instead")


def unchanged_objects(backbone: Backbone, old: str, new: str) -> list[str]:
    """The phrases of the old prompt that name an object and that the new prompt has, too."""
    left = Counter(map(plain, backbone.objects(new)))
    unchanged = []
    for phrase in backbone.objects(old):
        if left[plain(phrase)] > 0:
            left[plain(phrase)] -= 1
            unchanged.append(phrase)
    return unchanged


def plain(phrase: str) -> str:
    return " ".join(phrase.casefold().split())


def mention(prompt: str, phrase: str) -> re.Match[str] | None:
    """Where a prompt first has a phrase: "a tree" is not in "a treehouse"."""
    pattern = r"\s+".join(map(re.escape, phrase.split()))
    return re.search(rf"(?<![A-Za-z]){pattern}(?![A-Za-z])", prompt, re.IGNORECASE)


def without(prompt: str, phrase: str) -> str:
    """The prompt without the first mention of a phrase."""
    found = mention(prompt, phrase)
    if found is None:
        raise SSDError(f"phrase {phrase[:40]!r}: the prompt does not contain it")
    before = _BEFORE.sub("", prompt[: found.start()])
    behind = _BEHIND.sub("", prompt[found.end() :])
    return f"{before}, {behind}" if before and behind else before + behind


def ids_without(backbone: Backbone, prompt: str, phrase: str | None) -> list[int]:
    """Prompt ids without a phrase, if any; those of the unconditional branch if no words remain."""
    rest = prompt if phrase is None else without(prompt, phrase)
    if not rest.strip():
        return backbone.unconditional(backbone.tokenize(prompt))
    return backbone.tokenize(rest)


@dataclass(frozen=True)
class Revision:
    """The edit of a batch.

    before: prompt ids of the old words, [cond; uncond] with guidance. objects: the unchanged
    objects of each picture. without: for each object, prompt ids of the old and of the new words
    without it, of each picture; one with fewer objects repeats its own words. same [B]: whether old
    and new words are the same to the backbone. named: a guide says what names an object.
    """

    edit: Edit
    before: list[list[int]]
    objects: list[list[str]]
    without: list[tuple[list[list[int]], list[list[int]]]]
    same: list[bool]
    named: bool

    @classmethod
    def of(cls, backbone: Backbone, edit: Edit, prompts: Sequence[str],
           before: list[list[int]]) -> Revision:
        """before: prompt ids of the old words."""
        old = edit.old_prompt
        objects = [unchanged_objects(backbone, old, new) if edit.hold else [] for new in prompts]
        def branches(texts: Sequence[str], k: int) -> list[list[int]]:
            return [ids_without(backbone, prompt, each[k] if k < len(each) else None)
                    for prompt, each in zip(texts, objects, strict=True)]

        without = [(branches([old] * len(prompts), k), branches(prompts, k))
                   for k in range(max(map(len, objects)))]
        same = [backbone.tokenize(new) == backbone.tokenize(old) for new in prompts]
        return cls(edit, before, objects, without, same, backbone.names_objects)
