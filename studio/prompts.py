"""Prompts to begin with, in the languages of the page, each with a thumbnail of what it draws."""

from __future__ import annotations

import json
from pathlib import Path

from .words import CHINESE

# Short, as people type them: what they leave open is filled in.
EXAMPLES = [
    "a red house",
    "lighthouse at night",
    "a windmill in a wheat field",
    "castle in the mountains",
    "yellow tent under the stars",
    "a red house and a blue boat",
    "a house by the sea",
    "pink balloon over the mountains",
]
CHINESE_EXAMPLES = [
    "一座红色的房子",
    "灯塔，夜晚",
    "麦田里的风车",
    "城堡，群山",
    "星空下的黄色帐篷",
    "红色的房子和蓝色的小船",
    "海边的房子",
    "粉色的热气球，群山",
]
THUMBNAILS = Path(__file__).parent / "examples"  # 0.jpg of the first example, and so on
# The seed that drew each thumbnail
SEEDS = json.loads((THUMBNAILS / "seeds.json").read_text(encoding="utf-8"))


def example_prompts(language: str) -> list[str]:
    return CHINESE_EXAMPLES if language == CHINESE else EXAMPLES
