"""What a page needs to build its forms: knobs, methods, speeds, texts and words to click."""

from __future__ import annotations

import random
from typing import Any

from ssd_core import __version__
from ssd_core.backbones.base import Backbone, Preset
from ssd_core.engine.methods import AR, METHODS
from ssd_core.model.knobs import KnobSpec
from ssd_core.model.noise import STRENGTHS
from ssd_core.output.choices import SPEEDS
from ssd_core.output.knob_words import KNOB_WORDS
from ssd_core.output.knobs import MOST_PICTURES, all_knobs, sampling_knobs
from ssd_core.output.replay import can_write_mp4
from ssd_core.weights.memory import WEIGHT_BYTES

from .additions import expands
from .orders import PARTS
from .plans import about_quality
from .prompts import SEEDS, example_prompts
from .races import MOST_PICTURES as MOST_RACED
from .races import MOST_RACERS, SETTINGS
from .seeds import MOST_SEEDS
from .services import Services
from .settings import AS_CHOSEN, KNOBS, LONGEST_TEXT, STOPS, first_value, first_values
from .settings import SEEDS as SEED_KNOBS
from .vocabulary import draws, word_kinds
from .words import CHINESE, knob_label, method_label, page_texts, run_names, say, title

LARGEST_UPLOAD = 40 << 20  # bytes
KINDS = {int: "int", float: "float", bool: "bool", str: "text"}


def schema_view(services: Services, language: str) -> dict:
    """All of it, in one language, for the loaded model."""
    loaded = services.library.current
    backbone = loaded.backbone
    return {"version": __version__, "language": language, "local": services.local,
            "settings": {**first_values(backbone.preset), "seed": str(random.getrandbits(32))},
            "knobs": [knob_view(knob, language) for knob in ordered_knobs()],
            "methods": [method_view(name, language) for name in METHODS],
            "qualities": qualities(backbone, language), "as_chosen": AS_CHOSEN,
            "parts": list(PARTS), "rows": list(SETTINGS), "strengths": STRENGTHS,
            "limits": limits(), "dtypes": ["auto", *WEIGHT_BYTES],
            "model": {"name": services.for_visitors(loaded.name), "heads": loaded.heads is not None,
                      "sizes": [f"{width}x{height}" for width, height in backbone.sizes],
                      "controls": controls(backbone, language),
                      "negative": backbone.own_words.negative,
                      "expands": expands(backbone), "words": word_kinds(backbone, language),
                      "draws": draws(loaded.name, backbone, language)},
            "examples": [{"prompt": prompt, "picture": f"studio/examples/{n}.jpg",
                          "seed": str(SEEDS[n])}
                         for n, prompt in enumerate(example_prompts(language))],
            "names": run_names(language), "mp4": can_write_mp4(),
            "page": page_texts(language)}


def controls(backbone: Backbone, language: str) -> list[dict[str, str]]:
    """What a picture may be below which this backbone draws another one; [] if it draws none."""
    return [{"name": name, "label": say(language, f"control_{name}"),
             "about": say(language, f"control_{name}_about")} for name in backbone.controls]


def ordered_knobs() -> tuple[KnobSpec, ...]:
    """The knobs of methods, then those of sampling."""
    return (*all_knobs().values(), *sampling_knobs())


def knob_view(knob: KnobSpec, language: str) -> dict[str, Any]:
    """A knob for a form. methods: those that have it; empty if it matters with each.

    optional: whether null leaves the choice to the method or the model.
    """
    first = first_value(knob, Preset())
    words = KNOB_WORDS.get(knob.name)
    return {"name": knob.name, "kind": "choice" if knob.choices else KINDS[knob.kind],
            "label": knob_label(knob.name, knob.help, language),
            "help": words.help if words and language == CHINESE else knob.help,
            "default": str(first) if knob.name in SEED_KNOBS else first,
            "optional": knob.optional, "low": knob.least,
            "high": None if knob.name in SEED_KNOBS else knob.most, "step": knob.step,
            "choices": list(knob.choices), "basic": knob.visibility == "basic",
            "range": knob.range_text if has_range(knob) else "", "methods": list(knob.methods)}


def has_range(knob: KnobSpec) -> bool:
    return knob.kind is bool or bool(knob.choices) or knob.low is not None or knob.above is not None


def method_view(name: str, language: str) -> dict:
    return {"name": name, "label": method_label(name, language),
            "guarantee": METHODS[name].guarantee,
            "knobs": [knob.name for knob in KNOBS.values() if name in knob.methods]}


def qualities(backbone: Backbone, language: str) -> list[dict]:
    """The choices of speed from slowest to fastest, and the settings that each makes.

    compares: whether it is there for comparison only.
    """
    return [{"name": stop.name, "label": title(SPEEDS[stop.name], language),
             "about": about_quality(stop.name, backbone, language), "settings": dict(stop.knobs),
             "compares": SPEEDS[stop.name].method == AR()}
            for stop in STOPS]


def limits() -> dict[str, int]:
    return {"pictures": MOST_PICTURES, "seeds": MOST_SEEDS, "racers": MOST_RACERS,
            "raced": MOST_RACED, "text": LONGEST_TEXT, "upload": LARGEST_UPLOAD}
