"""A drawing with the alternatives of its prompt."""

from __future__ import annotations

from dataclasses import replace

from ssd_core import SSDError
from ssd_core.backbones.prompts.alternatives import MOST_ALTERNATIVES, every_prompt, resolved
from ssd_core.model.knobs import derived
from ssd_core.output.drawing import Drawing


def with_alternative(drawing: Drawing) -> Drawing:
    """The drawing with the prompt that its seed draws."""
    return derived(drawing, prompt=resolved(drawing.prompt, drawing.sampling.seed).text)


def with_each_alternative(drawing: Drawing) -> list[Drawing]:
    """The drawing once for each alternative; SSDError if there are too many."""
    prompts = every_prompt(drawing.prompt)
    if len(prompts) > MOST_ALTERNATIVES:
        raise SSDError(f"prompt: more than {MOST_ALTERNATIVES} pictures would be drawn: take some "
                       "alternatives out of its braces")
    return [replace(drawing, prompt=prompt, open=(), fixed=()) for prompt in prompts]
