"""What a host asks of any backbone about prompts: its words, a fresh prompt, what to fill in."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .prompts.choices import Choices, scene_choices, thing_choices

if TYPE_CHECKING:
    from .prompts.expanded import Expanded
    from .prompts.text import Text

_MARKS = re.compile(r"[,.;，。；、\n]")


@dataclass(frozen=True)
class Chip:
    """english, chinese: the phrase to insert, then synonyms.

    attribute: as in claims; a scene has one value of it. plural: a group of things, without "a".
    """

    attribute: str
    english: tuple[str, ...]
    chinese: tuple[str, ...]
    plural: bool = False


@dataclass(frozen=True)
class Kind:
    """Chips that are offered together. role: how they are inserted into a prompt."""

    name: str
    chinese: str
    role: str
    chips: tuple[Chip, ...]


@dataclass(frozen=True)
class UnknownObject:
    """typed: its phrase, such as "a dog"; start, end: its place in the prompt.

    cut: [start, end) of what goes with it when it is left out: "with a dog", "a dog and".
    """

    typed: str
    start: int
    end: int
    cut: tuple[int, int]


class PromptGuide:
    """The answers of a backbone that takes free text; others override what they know better.

    The engine asks for things alone. A backbone is its own guide.
    """

    @property
    def word_reader(self) -> Text | None:
        """The tokenizer of prompts in words; None if there is none."""
        return None

    def unknown_words(self, prompt: str) -> list[str]:
        """Return the words of a prompt that this backbone does not know and ignores."""
        return list(dict.fromkeys(prompt[slice(*span)] for span in self.unknown_spans(prompt)))

    def unknown_spans(self, prompt: str) -> list[tuple[int, int]]:
        """Return [start, end) of every place where one of `unknown_words` stands in a prompt."""
        return [] if self.word_reader is None else self.word_reader.unknown_spans(prompt)

    def nearest_word(self, word: str) -> str | None:
        """Return a known word that resembles an unknown one; None if there is none."""
        return None

    def unknown_objects(self, prompt: str) -> list[UnknownObject]:
        """Return the things of a prompt that this backbone cannot draw, such as "a dog"."""
        return []

    def without_unknown_objects(self, prompt: str) -> str:
        """Return a prompt without what `unknown_objects` found in it."""
        return prompt

    def limits(self, prompt: str) -> list[str]:
        """Return phrases for what a prompt asks for and this backbone never draws, such as "more
        than three things"; they follow "never draws".
        """
        return []

    def names_nothing_known(self, prompt: str) -> bool:
        """Whether a prompt consists of unknown words, so that no picture could follow it."""
        return False

    def misplaced_words(self, prompt: str) -> list[str]:
        """Return words that training showed in certain phrases only, with those phrases.

        Elsewhere they may change another part of the picture: "a purple chair" may turn a castle
        purple.
        """
        return []

    @property
    def takes_any_words(self) -> bool:
        """Whether prompts are free text, for example with words for a style."""
        return not self.word_kinds

    @property
    def word_kinds(self) -> tuple[Kind, ...]:
        """All words that the backbone knows, by kind; () if prompts are free text."""
        return ()

    def fresh_prompt(self, seed: int, chinese: bool = False) -> str:
        """Return a random prompt, for the dice beside a prompt box; "" if there are none."""
        return ""

    @property
    def names_objects(self) -> bool:
        """Whether `objects` gives things alone, and not any part of a prompt."""
        return False

    def objects(self, prompt: str) -> list[str]:
        """Return the phrases that name a thing, as typed; here all parts between marks."""
        return [part.strip() for part in _MARKS.split(prompt) if part.strip()]

    def choices(self, prompt: str, phrase: str | None = None) -> list[Choices]:
        """Return the prompts that change one thing of a picture, or with None its scene.

        phrase: one of `objects`. Here nothing is known but words that most models know.
        """
        if not self.takes_any_words:
            return []
        return scene_choices(prompt) if phrase is None else thing_choices(prompt, phrase)

    @property
    def reads_pictures(self) -> bool:
        """Whether `seen` can say anything."""
        return False

    def seen(self, picture: np.ndarray, prompts: Sequence[str]) -> list[str]:
        """Return phrases for what a picture, uint8 [H, W, 3], shows and no prompt mentions."""
        return []

    def without_contradictions(self, prompt: str, typed: str) -> str:
        """Return a completed prompt without those parts that contradict the typed words."""
        return prompt

    def expand(self, prompt: str, negative: str | None, seed: int,
               leave_open: tuple[str, ...] = (), fill: bool = True) -> Expanded | None:
        """Return the prompt with words added for what it leaves open; None if nothing can be added.

        Its negations move to the negative prompt. seed: selects the words. leave_open: names of
        additions (`Added.name`) to omit. fill: False moves the negations and adds nothing.
        """
        return None


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
