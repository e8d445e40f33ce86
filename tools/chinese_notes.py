"""The Chinese notes of `workflows/`, which follow the English ones.

chinese_notes.json has their paragraphs by workflow.
"""

from __future__ import annotations

import json
from pathlib import Path

FILE = Path(__file__).with_suffix(".json")


def bilingual(name: str, text: str) -> str:
    """The note of a workflow, followed by its Chinese translation."""
    chinese = json.loads(FILE.read_text(encoding="utf-8")).get(name)
    return "\n\n".join([text, "---", *chinese]) if chinese else text
