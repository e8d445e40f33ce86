"""A visitor's settings with the alternatives of their prompt."""

from __future__ import annotations

from ssd_core import SSDError
from ssd_core.backbones.prompts.alternatives import MOST_ALTERNATIVES, every_prompt, resolved
from ssd_core.model.knobs import derived

from .settings import Settings


def with_alternative(settings: Settings) -> Settings:
    """The settings with the prompt that their seed draws."""
    return derived(settings, prompt=resolved(settings.prompt, settings.knobs["seed"]).text)


def with_each_alternative(settings: Settings) -> list[Settings]:
    """The settings once for each alternative; SSDError if there are too many."""
    prompts = every_prompt(settings.prompt)
    if len(prompts) > MOST_ALTERNATIVES:
        raise SSDError(f"prompt: more than {MOST_ALTERNATIVES} pictures would be drawn: take some "
                       "alternatives out of its braces")
    return [settings.changed(prompt=prompt) for prompt in prompts]
