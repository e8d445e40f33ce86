"""ImageNet classes by number or name: the prompts of class-conditional backbones.

assets/imagenet_classes.txt has one line per class in the order of ImageNet-1k: its WordNet names,
separated by commas.
"""

from __future__ import annotations

from difflib import get_close_matches
from functools import cache

from ...errors import SSDError
from ...files import ASSETS

NAMES = ASSETS / "imagenet_classes.txt"


def class_of(prompt: str, classes: int) -> int:
    """The class of a prompt: a number, a whole line of names, or one name of a line.

    Raises SSDError with near matches for an unknown name, and with the class numbers for a name
    that several classes share.
    """
    wanted = " ".join(prompt.lower().split())
    if wanted.isascii() and wanted.isdecimal():
        if int(wanted) >= classes:
            raise SSDError(f"class {wanted}: give 0 .. {classes - 1}, or the name of a class")
        return int(wanted)
    numbers = [number for number in classes_by_name().get(wanted, ()) if number < classes]
    if not numbers:
        near = get_close_matches(wanted, classes_by_name(), n=4)
        raise SSDError(f"class {prompt.strip()!r} is not one of ImageNet's: give a number or a "
                       f"name, such as {', '.join(near or ('golden retriever', 'balloon'))}")
    if len(numbers) > 1:
        raise SSDError(f"class {prompt.strip()!r} is the name of several classes: give a number, "
                       f"{' or '.join(map(str, numbers))}")
    return numbers[0]


def label_of(number: int) -> str:
    """The names of a class, or its number where another class has the same."""
    line = names()[number]
    return line if classes_by_name()[line.lower()] == (number,) else str(number)


@cache
def names() -> list[str]:
    """One line of names per class, in the order of their numbers."""
    return NAMES.read_text(encoding="utf-8").splitlines()


@cache
def classes_by_name() -> dict[str, tuple[int, ...]]:
    """Class numbers by lower-case name, both whole lines and their parts.

    A line's first name takes precedence over the same word among other lines' further names.
    """
    lines = [line.lower().split(", ") for line in names()]
    first: dict[str, tuple[int, ...]] = {}
    further: dict[str, tuple[int, ...]] = {}
    for number, (name, *others) in enumerate(lines):
        first[name] = (*first.get(name, ()), number)
        for other in others:
            further[other] = (*further.get(other, ()), number)
    whole = {", ".join(names): (number,) for number, names in enumerate(lines) if len(names) > 1}
    return further | first | whole
