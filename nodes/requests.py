"""Turn a sampling node's widgets and links into a Request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import comfy.model_management as mm

from ..ssd_core.engine.methods import Method
from ..ssd_core.errors import SSDError
from ..ssd_core.model.grid import size_of
from ..ssd_core.model.sampling import Sampling
from ..ssd_core.output.knobs import sampling_knobs
from ..ssd_core.output.words import Words
from ..ssd_core.runs.request import Request
from .inputs import AUTO_SIZE
from .schedules import CUSTOM, idle_knobs, method_of, touched
from .weights import LoadedBackbone, LoadedHeads
from .widgets import values_of


def request_of(model: LoadedBackbone, heads: LoadedHeads | None, method: Method,
               sampling: Sampling, prompt: str, negative: str, size: str,
               **options: Any) -> Request:
    """The request for a node's inputs; options: further fields of Request."""
    check_pairing(model, heads)
    typed = typed_words(prompt, negative)
    return Request(model.module, heads.module if heads else None, method, sampling, typed.prompt,
                   typed.negative, asked_size(size), device=mm.get_torch_device(), **options)


def typed_words(prompt: str, negative: str) -> Words:
    return Words(prompt, negative.strip() or None)


def check_pairing(model: LoadedBackbone, heads: LoadedHeads | None) -> None:
    """Raise SSDError naming both backbones if the heads were made for another one."""
    if heads is None:
        return
    made_for = heads.module.metadata.get("backbone_sha256", "")
    if made_for != model.module.sha256:
        raise SSDError(f"the heads {heads.path.parent.name}/{heads.path.name} were made for "
                       f"{heads.module.metadata.get('backbone')} ({made_for[:10]}), the connected "
                       f"backbone is {model.module.name} ({model.module.sha256[:10]}): connect "
                       "the backbone that Load Draft Heads has")


def sampling_of(widgets: Mapping[str, Any]) -> Sampling:
    """Sampling from the widgets; a cfg between 0 and 1 means no guidance."""
    knobs = values_of(sampling_knobs(), widgets)
    if knobs["cfg"] is not None:
        knobs["cfg"] = max(knobs["cfg"], 1.0)
    return Sampling(**knobs)


def asked_size(text: str) -> tuple[int, int] | None:
    """(width, height) of the widget's "384x384"; None for auto."""
    return None if text == AUTO_SIZE else size_of(text)


def chosen_method(method: Method | None, quality: str,
                  widgets: Mapping[str, Any]) -> tuple[Method, list[str]]:
    """The sampler's method, and notes about widgets that have no effect.

    A connected method overrides all of the sampler's own method widgets.
    """
    if method is not None:
        idle = touched(quality, widgets)
        return method, [f"the connected method draws: {', '.join(idle)} of this node "
                        f"{'is' if len(idle) == 1 else 'are'} not used"] if idle else []
    note = idle_knobs(quality, widgets, "quality", CUSTOM)
    return method_of(quality, widgets), [note] if note else []
