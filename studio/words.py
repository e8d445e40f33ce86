"""The app's texts in English and Chinese: one table, texts.json, by section and key.

`{name}` marks a value to fill in. The section `server` has the texts that are filled in here, all
others are the page's. The texts of knobs are in ssd_core/output/knob_words.py; error lines come
from the engine and are English.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from ssd_core.backbones.base import Preset
from ssd_core.engine.methods import METHODS, Exact, Rolling
from ssd_core.engine.own_runs import name_of
from ssd_core.output.choices import SPEEDS, QualityPreset
from ssd_core.output.knob_words import KNOB_WORDS
from ssd_core.output.labels import label, speed_of

ENGLISH, CHINESE, AUTO = "en", "zh", "auto"
CHOSEN = re.compile(r"(?:^|;\s*)ssd-language=(en|zh)(?:;|$)")  # in a cookie
TEXTS = json.loads(Path(__file__).with_name("texts.json").read_text(encoding="utf-8"))
SERVER = TEXTS.pop("server")


class Asked(Protocol):
    """A request of whatever kind."""

    @property
    def headers(self) -> Mapping[str, str]: ...


def page_texts(language: str) -> dict[str, dict[str, str]]:
    """The texts of the page by section, in one language."""
    return {section: {key: pair[language == CHINESE] for key, pair in pairs.items()}
            for section, pairs in TEXTS.items()}


def knob_label(name: str, help_: str, language: str) -> str:
    """The label of a knob; one without words is labelled with its name and help."""
    words = KNOB_WORDS.get(name)
    if words is None:
        return f"{name}: {help_}"
    return words.chinese if language == CHINESE else words.label


def method_label(name: str, language: str) -> str:
    """A method with its guarantee: "exact: the same picture"."""
    return say(language, "method_label", name=name,
               guarantee=say(language, f"guarantee_{METHODS[name].guarantee}"))


def language_of(request: Asked, forced: str = AUTO) -> str:
    """The language in which to answer a request: the visitor's own choice counts most."""
    if chosen := CHOSEN.search(request.headers.get("cookie", "")):
        return chosen[1]
    if forced != AUTO:
        return forced
    accepted = request.headers.get("accept-language", "")
    return CHINESE if accepted.lower().startswith("zh") else ENGLISH


def run_names(language: str) -> dict[str, str]:
    """How the page calls the runs of these labels: by the name of their speed."""
    return {label(speed.method.resolve(Preset())): title(speed, language)
            for speed in SPEEDS.values()}


def run_title(name: str, language: str) -> str:
    """The name of the speed that a run of this label had; the label itself if it was none."""
    speed = speed_of(name)
    return name if speed is None else title(speed, language)


def method_title(name: str, language: str) -> str:
    """The name of the speed that draws, or edits, by a method, as KnownMethod has it; else the
    method's, with its knobs.
    """
    for speed in SPEEDS.values():
        if name_of(speed.method) == name:
            return title(speed, language)
        if isinstance(speed.method, (Exact, Rolling)) and name == name_of(
                replace(speed.method, guess="parent")):
            return say(language, "known_edits", title=title(speed, language))
    method, *knobs = name.split(" ")
    return f"{method} ({', '.join(knobs)})" if knobs else method


def title(speed: QualityPreset, language: str) -> str:
    return speed.chinese if language == CHINESE else speed.title


def say(language: str, key: str, **values: object) -> str:
    """A server text with its values filled in."""
    return SERVER[key][language == CHINESE].format(**values)
