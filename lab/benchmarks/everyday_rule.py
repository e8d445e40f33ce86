"""What an everyday prompt demands of a picture, and whether the picture fulfils it.

Only what a person typed counts. A prompt is read word by word as `postcard` reads it, or by the
third column of everyday.txt where that reading misses what is meant. The rule:

- What is said of the scene must show: every claim that `lab/postcards/claims.py` finds.
- Every thing that is named must show, with its colour and at its place where they are named, and
  nothing else may stand in the picture. A prompt that names no thing demands no number of things.
- A singular is one thing. "two boats" and "3 red houses" are so many in all, single ones or a
  painted group, which has 2 boats, 3 houses or 3 trees. A plural without a number is a group, or
  several single ones. A number without a noun beside it ("two things, ...") counts all things.
- "no", "not" and "without" deny the words up to the next noun, and the noun behind an "or" or a
  bare "and". What is denied must not show; ALSO says what a person would call by the same word.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from pathlib import Path

from ssd_core.backbones.postcard.words.aliases import MARKS, said, without_repeats
from ssd_core.backbones.postcard.words.phrases import meaning
from ssd_lab.postcards import Claim, Reading
from ssd_lab.postcards.claims import COUNTS, claims
from ssd_lab.postcards.reading import which_hold

LIST = Path(__file__).with_name("everyday.txt")
STRANGER = Path(__file__).with_name("stranger.txt")
PART, NONE = "part", "none"  # of stranger.txt: not all of it can be shown, or nothing of it
MEMBERS = {"boats": 2, "houses": 3, "trees": 3}  # of a painted group; anything else is one
DENIALS, JOINTS = ("no", "not", "without"), ("or", "and")
ALSO = {
    **{("kind", name): {("kind", "house"), ("kind", "houses")} for name in ("house", "houses")},
    **{("kind", name): {("kind", "boat"), ("kind", "boats")} for name in ("boat", "boats")},
    **{("kind", name): {("kind", "tree"), ("kind", "trees"), ("kind", "pine"), ("ridge", "forest")}
       for name in ("tree", "trees")},
    ("ridge", "mountains"): {("ridge", "mountains"), ("ridge", "snowy")},
    ("ground", "snow"): {("ground", "snow"), ("ridge", "snowy")}}
SceneObject = tuple[str, str]  # kind and colour


@dataclass(frozen=True)
class Prompt:
    """A line of everyday.txt; `means` is the text that is judged."""

    category: str
    text: str
    means: str


def whole_prompts(prompts: Sequence[Prompt]) -> list[Prompt]:
    """The prompts of which everything can be shown."""
    return [prompt for prompt in prompts if prompt.category not in (PART, NONE)]


def read_prompts(path: Path = LIST) -> list[Prompt]:
    lines = (line.split(" | ") for line in path.read_text(encoding="utf-8").splitlines()
             if line and not line.startswith("#"))
    return [Prompt(category, text, means[0] if means else text)
            for category, text, *means in lines]


@dataclass(frozen=True)
class Mention:
    """A noun of a prompt with its claims; number: as typed, None without one."""

    claims: tuple[Claim, ...]
    number: int | None

    def said(self, attribute: str) -> str | None:
        return next((c.value for c in self.claims if c.attribute == attribute), None)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The single and the grouped kind, if the word may mean both."""
        kind = str(self.said("kind"))
        return (kind, kind[:-1]) if kind in MEMBERS else (kind,)

    def fits(self, place: str, thing: SceneObject) -> bool:
        """Whether a thing at a place may belong to the mention."""
        return (thing[0] in self.kinds and self.said("colour") in (None, thing[1])
                and self.said("place") in (None, place))

    def counts(self, kinds: Sequence[str]) -> bool:
        """Whether the number of these kinds is the mention's."""
        members = sum(MEMBERS.get(kind, 1) for kind in kinds)
        if self.number is None or (self.number == 1 and self.said("kind") in MEMBERS):
            return members >= 2 if self.said("kind") in MEMBERS else members == 1
        return members == self.number

    def which_hold(self, reading: Reading) -> tuple[bool, ...]:
        """Whether each claim is true of the best fitting kind, and the number if there is one."""
        def by(kind: str) -> tuple[bool, ...]:
            return which_hold(reading, [replace(c, value=kind) if c.attribute == "kind" else c
                                        for c in self.claims])

        best = max(map(by, self.kinds), key=sum)
        if self.number is None:
            return best
        own = [thing[0] for place, thing in reading.things.items() if self.fits(place, thing)]
        return (*best, self.counts(own))


@dataclass(frozen=True)
class Demand:
    """Everything that a prompt demands; the pairs in each of `denied` must not show together."""

    scene: tuple[Claim, ...]
    mentions: tuple[Mention, ...]
    denied: tuple[dict[str, str], ...]

    @classmethod
    def of(cls, means: str) -> Demand:
        words, denied = split(without_repeats(words_of(means)))
        words, numbers = numbered(words)
        claimed = claims(" ".join(words))
        own = [tuple(c for c in claimed if c.thing == n) for n in range(len(numbers))]
        return cls(tuple(c for c in claimed if c.thing is None),
                   tuple(map(Mention, own, numbers)), tuple(denied))

    def fulfilled(self, reading: Reading) -> tuple[bool, ...]:
        """Whether each typed demand is fulfilled, in order."""
        return (*which_hold(reading, self.scene),
                *(holds for mention in self.mentions for holds in mention.which_hold(reading)),
                *(not shows(reading, pairs) for pairs in self.denied))

    def obeyed(self, reading: Reading) -> bool:
        """Whether the picture shows everything that was typed and no other thing."""
        return all(self.fulfilled(reading)) and (not self.mentions or self.shared_out(reading))

    def shared_out(self, reading: Reading) -> bool:
        """Whether the things can be divided among the mentions so that each gets its own."""
        things = reading.things.items()
        return any(all(self.whole(n, owners, things) for n in range(len(self.mentions)))
                   for owners in product(range(len(self.mentions)), repeat=len(things)))

    def whole(self, n: int, owners: Sequence[int],
              things: Collection[tuple[str, SceneObject]]) -> bool:
        """Whether mention n owns exactly the things that it names."""
        mention = self.mentions[n]
        own = [item for owner, item in zip(owners, things, strict=True) if owner == n]
        return (all(mention.fits(*item) for item in own)
                and mention.counts([thing[0] for _, thing in own]))


# ---- reading -----------------------------------------------------------------------------------


def words_of(text: str) -> Iterator[str]:
    """The words of a prompt in postcard's vocabulary; unknown ones as they were typed.

    A "pine tree" is one thing.
    """
    words = (word for piece in said(text) for word in (
        (piece.typed.lower(),) if piece.words is None else piece.words))
    for before, word in pairwise(("", *words)):
        if not (word in ("tree", "trees") and meaning("", before) == ("kind", "pine")):
            yield word


def split(words: Sequence[str]) -> tuple[list[str], list[dict[str, str]]]:
    """The affirmed words, and the denied attributes."""
    remaining: list[str] = []
    denied: list[dict[str, str]] = []
    at = 0
    while at < len(words):
        if words[at] in DENIALS:
            at = deny(words, at + 1, denied)
        else:
            remaining.append(words[at])
            at += 1
    return remaining, denied


def deny(words: Sequence[str], at: int, denied: list[dict[str, str]]) -> int:
    """Add what the words from `at` deny; returns the index at which the denial ends."""
    attributes: dict[str, str] = {}
    while at < len(words) and words[at] not in (*MARKS, *DENIALS):
        attribute, value = meaning("", words[at])
        at += 1
        if attribute in ("", "count"):
            continue
        attributes[attribute] = value
        if attribute != "colour":
            denied.append(attributes)
            return deny(words, at + 1, denied) if goes_on(words[at : at + 2]) else at
    denied += [attributes] if attributes else []
    return at


def goes_on(words: Sequence[str]) -> bool:
    """Whether the words after a denied noun, "or clouds" or "and clouds", are denied too."""
    return len(words) == 2 and words[0] in JOINTS and (
        words[0] == "or" or meaning("", words[1])[0] not in ("", "count"))


def numbered(words: Sequence[str]) -> tuple[list[str], list[int | None]]:
    """The words without the numbers before nouns, and a number or None for each noun."""
    remaining: list[str] = []
    numbers: list[int | None] = []
    waiting: list[str] = []  # a number whose noun may still come
    for word in words:
        attribute, _value = meaning("", word)
        if attribute == "count":
            remaining, waiting = [*remaining, *waiting], [word]
            continue
        if attribute == "kind":
            number = meaning("", waiting.pop())[1] if waiting else None
            numbers.append(COUNTS.index(number) + 1 if number else None)
        elif word in (*MARKS, "and"):
            remaining, waiting = [*remaining, *waiting], []
        remaining.append(word)
    return [*remaining, *waiting], numbers


# ---- what shows --------------------------------------------------------------------------------


def shows(reading: Reading, denied: dict[str, str]) -> bool:
    """Whether the picture shows the denied thing, or another one that people call so."""
    *rest, head = denied.items()
    return any(shown(reading, dict([*rest, other])) for other in ALSO.get(head, {head}))


def shown(reading: Reading, pairs: dict[str, str]) -> bool:
    """Whether all pairs are true of the scene or, if they describe a thing, of a single thing."""
    if not {"kind", "colour", "place"} & set(pairs):
        return all(getattr(reading, name) == value for name, value in pairs.items())
    return any(pairs.items() <= {"kind": kind, "colour": colour, "place": place}.items()
               for place, (kind, colour) in reading.things.items())
