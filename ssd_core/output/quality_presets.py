"""The choices of speed and their names, the same in every host. Knows no host."""

from __future__ import annotations

from dataclasses import dataclass

from ..engine.methods import AR, Exact, Method, Rolling, default_method


@dataclass(frozen=True)
class QualityPreset:
    """A choice of speed: its names in English and Chinese, its method, and what it guarantees."""

    title: str
    chinese: str
    method: Method
    guarantee: str


# From slowest to fastest; none needs draft heads.
SPEEDS = {
    "plain": QualityPreset("Reference", "参考", AR(), "token by token, the slowest"),
    "faithful": QualityPreset("Faithful", "忠实", Exact(),
                      "the picture of normal decoding in fewer forward passes; the report "
                      "says if it is identical"),
    "balanced": QualityPreset("Balanced", "均衡", Rolling(fewer=8.0),
                      "a similar picture in at most an eighth of the passes"),
    "fast": QualityPreset("Fast", "快速", Rolling(fewer=12.0),
                  "at most a twelfth of the passes; details suffer"),
}
DEFAULT = next(name for name, speed in SPEEDS.items() if speed.method == default_method())
