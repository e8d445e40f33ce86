"""Words to click under the prompt, as an element of the page."""

from __future__ import annotations

import json
from html import escape

from ssd_core.backbones.base import Backbone

from ..vocabulary import word_kinds


def chips_html(backbone: Backbone, language: str) -> str:
    """The element of web/words.js for this backbone."""
    kinds = json.dumps(word_kinds(backbone, language))
    return f'<ssd-words kinds="{escape(kinds)}" target="#prompt"></ssd-words>'
