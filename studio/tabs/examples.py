"""Prompts to begin with, in the languages of the page, each with a thumbnail of what it draws."""

from __future__ import annotations

from pathlib import Path

from ..words import CHINESE

EXAMPLES = [
    "a red house on the left, a yellow boat on the right, on a lake, at sunset",
    "a white lighthouse in the middle, on the sea, at night, under a starry sky",
    "a blue windmill on the left, in a wheat field, under soft clouds, at noon",
    "a purple castle in the middle, in the snow, before snowy peaks, at dawn",
    "an orange balloon on the right, on a meadow, at noon",
    "a pink church in the middle, before the woods, in thick fog",
    "a yellow tent on the right, in the desert, at dusk",
    "some white boats on the left, on a calm lake, in the rain",
]
CHINESE_EXAMPLES = [
    "红色的房子在左边，黄色的小船在右边，湖上，日落",
    "白色的灯塔在中间，海上，夜晚，星空",
    "蓝色的风车在左边，麦田，白云，中午",
    "紫色的城堡在中间，雪地，雪山，黎明",
    "橙色的热气球在右边，草地，中午",
    "粉色的教堂在中间，森林，大雾",
    "黄色的帐篷在右边，沙漠，黄昏",
    "白色的船队在左边，湖面，雨中",
]
THUMBNAILS = Path(__file__).parents[1] / "examples"  # 0.jpg of the first example, and so on


def example_prompts(language: str) -> list[str]:
    return CHINESE_EXAMPLES if language == CHINESE else EXAMPLES


def examples(language: str) -> list[list[str]]:
    """A thumbnail and its prompt for each example."""
    return [[str(THUMBNAILS / f"{n}.jpg"), prompt]
            for n, prompt in enumerate(example_prompts(language))]
