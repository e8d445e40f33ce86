"""What methods promise of their pictures, as every host says it beside their names.

The list of methods is METHODS. Knows no host.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..backbones.base import Preset
from ..engine.methods import METHODS
from ..model.grid import Grid

# Every verdict, the strongest first, and what it means.
PROMISES = {
    "identical": "AR's own picture for that seed",
    "same distribution": "another picture, drawn from AR's distribution",
    "approximate": "close to AR's distribution",
    "relaxed": "accepts tokens that look alike instead of AR's own"}
CHINESE = {
    "identical": "完全相同", "same distribution": "同分布", "approximate": "近似",
    "relaxed": "放宽"}
NEEDED, HELPFUL, UNUSED = "needed", "helpful", "not used"


def promise(name: str) -> str:
    """The verdict that a method promises with its own settings."""
    return METHODS[name]().verdict


def named(name: str) -> str:
    """For lists: "exact (identical)"."""
    return f"{name} ({promise(name)})"


def listed(names: Iterable[str] = METHODS) -> str:
    """For help texts: "identical: ar, exact; same distribution: strict"."""
    return "; ".join(f"{verdict}: {', '.join(own)}" for verdict, own in by_promise(names).items())


def heads_use(name: str) -> str:
    """Whether a method needs draft heads, only gains by them, or never looks at them."""
    method = METHODS[name]().resolve(Preset())
    if method.heads_needed(Grid(24, 24)) is not None:
        return NEEDED
    return HELPFUL if method.uses_heads else UNUSED


def by_promise(names: Iterable[str] = METHODS,
               words: Mapping[str, str] | None = None) -> dict[str, list[str]]:
    """The methods that promise each verdict; words: the verdicts in another language."""
    told = {verdict: [name for name in names if promise(name) == verdict] for verdict in PROMISES}
    return {words[verdict] if words else verdict: own for verdict, own in told.items() if own}


def method_help(names: Iterable[str] = METHODS) -> tuple[str, str]:
    """What the methods of a list promise and which need draft heads, in English and Chinese."""
    names = list(names)
    needing = [name for name in names if heads_use(name) == NEEDED]
    english = ", ".join(f"{verdict} ({', '.join(own)})"
                        for verdict, own in by_promise(names).items())
    chinese = "，".join(f"{verdict}（{'、'.join(own)}）"
                       for verdict, own in by_promise(names, CHINESE).items())
    return (f"Compared with AR's picture: {english}. Draft heads are needed by "
            f"{', '.join(needing) or 'none'}.",
            f"与 AR 的图像相比：{chinese}。需要草稿头：{'、'.join(needing) or '无'}。")
