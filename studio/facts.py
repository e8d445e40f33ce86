"""What is known about a saved picture, in the visitor's language."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ssd_core import SSDError
from ssd_core.backbones.base import int8_kernel_of
from ssd_core.output.picture_files import opened
from ssd_core.output.recipe import drawn_by
from ssd_core.output.words import drawn_words
from ssd_core.weights.model_size import stored_dtype
from ssd_core.weights.registry import NONE

from .entries import own_name, saved_at
from .errors import in_language
from .history import Entry
from .services import Services
from .words import run_title, say


def caption(entry: Entry, language: str) -> str:
    """The prompt and the method of a picture; its name if it has no recipe."""
    if entry.prompt is None or entry.label is None:
        return own_name(entry.path.stem)
    return f"{entry.prompt} · {run_title(entry.label, language)}"


def facts(entry: Entry, recipe: Mapping | None, language: str) -> Sequence[tuple[str, str]]:
    """(name, value) of what is known about a picture, the most telling first."""
    size = [(say(language, "size"), f"{entry.width} x {entry.height}"),
            (say(language, "saved"), saved_at(entry.path).replace("T", " "))]
    if recipe is None:
        return [*size, (say(language, "recipe"), say(language, "no_recipe"))]
    seconds = recipe["seconds"].get("total")
    drawn = drawn_words(recipe)
    pairs = [(say(language, "prompt"), recipe["prompt"]),
             (say(language, "drawn_from"),
              drawn.prompt if drawn.prompt != recipe["prompt"] else ""),
             (say(language, "negative"), drawn.negative or ""),
             (say(language, "method"), run_title(entry.label or "", language)),
             (say(language, "seed"), str(recipe["seed"])), *size,
             (say(language, "backbone"), recipe["backbone"]["name"][:60]),
             (say(language, "passes"), str(recipe["passes"])),
             (say(language, "seconds"), f"{seconds:.2f}" if isinstance(seconds, float) else "")]
    return [(name, value) for name, value in pairs if value]


def copied(entry: Entry, recipe: Mapping) -> dict[str, str]:
    """What can be copied of a picture with a recipe, by the key of its button's text."""
    with opened(entry.path) as image:
        settings = image.info.get("parameters")
    return {"copy_prompt": recipe["prompt"], **({"copy_settings": settings} if settings else {})}


def wanted(services: Services, search: str, only: bool, language: str) -> Callable[[Entry], bool]:
    """Whether an entry has all words of a search, and is a favourite if `only` these count."""
    words = search.casefold().split()
    marked = services.history.favourites.ids if only else None

    def matches(entry: Entry) -> bool:
        text = f"{caption(entry, language)} {entry.method}".casefold()
        has_words = all(word == str(entry.seed) if word.isdigit() else word in text
                        for word in words)
        return has_words and (marked is None or entry.id in marked)

    return matches


def hint_text(services: Services, nothing: str, language: str) -> str:
    """Where pictures are saved, and how many files there cannot be listed.

    nothing: the key of a text that says why the list is empty; empty if it is not.
    """
    history = services.history
    words = say(language, nothing or ("history_hint" if services.local else "history_hint_shared"),
                where=history.folder)
    problems = [problem for id_, problem in list(history.problems.items())
                if (history.folder / id_).exists()]
    if problems:
        words += say(language, "not_listed", count=len(problems),
                     problem=services.for_visitors(in_language(language, problems[0])))
    return words


def why_empty(entries: Sequence[Entry], search: str, only: bool) -> str:
    """The key of the text that says why no picture is listed; empty if there are some."""
    return "" if entries else "no_match" if search.strip() or only else "nothing_yet"


def lora_text(services: Services, recipe: Mapping, language: str) -> str:
    """With which LoRA a picture was drawn, or which of these is missing; empty without one."""
    if not recipe.get("lora"):
        return ""
    try:
        services.library.registry.loras_of(recipe)
    except SSDError as error:
        return f" {in_language(language, str(error))}"
    named = ", ".join(f"{lora['name'][:60]} {lora['strength']:g}" for lora in recipe["lora"])
    return say(language, "with_lora", named=named)


def restored_text(services: Services, name: str, recipe: Mapping, language: str) -> str:
    """That settings were restored, and what they alone do not bring back."""
    text = say(language, "restored", name=name)
    if recipe["keep_rows"]:
        text += say(language, "redone_below", rows=recipe["keep_rows"])
    now = services.library.current.backbone
    if recipe["backbone"]["sha256"] != now.sha256:
        name = recipe["backbone"]["name"][:60]
        text += say(language, "other_weights" if name == now.name else "other_backbone", name=name,
                    now=now.name)
        text += lora_text(services, recipe, language)
    elif recipe["dtype"] != (dtype := stored_dtype(now)):
        text += say(language, "other_dtype", dtype=recipe["dtype"], now=dtype)
    elif drawn_by(recipe) != int8_kernel_of(now):
        text += say(language, "other_kernel")
    elif (drafts := services.library.drafts_of(recipe)) != "":
        key = "drafts_gone" if drafts is None else f"drafts_{'none' if drafts == NONE else 'kept'}"
        text += say(language, key, drafts=str(recipe["heads"])[:10])
    return text
