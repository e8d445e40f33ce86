"""What is guaranteed of a method's pictures, compared with AR's: as a word, a sentence and lists.

The words, the strongest first, are those of GUARANTEES. Knows no host.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import torch

from ..backbones.base import Backbone, Preset
from ..engine.methods import AR, METHODS, Method
from ..engine.repeat_near_ties import repeats
from ..machine_faults import fault_of
from ..model.grid import Grid
from ..weights.model_size import stored_dtype
from .labels import percent

GUARANTEES = {
    "identical": "AR's own picture for that seed",
    "same distribution": "another picture, drawn from AR's distribution",
    "approximate": "close to AR's distribution",
    "relaxed": "accepts tokens that look alike instead of AR's own"}
CHINESE = {
    "identical": "完全相同", "same distribution": "同分布", "approximate": "近似",
    "relaxed": "放宽"}
NEEDED, HELPFUL, UNUSED = "needed", "helpful", "not used"


# Of a picture


def identical_share(tokens: torch.Tensor, others: torch.Tensor) -> float:
    """Share of cells with equal tokens; both [..., R, C]."""
    return (tokens == others).float().mean().item()


def guarantee_holds(backbone: Backbone) -> bool:
    """Whether methods that guarantee AR's picture yield it on this backbone, as loaded.

    They do where a pass gives the same bits at any width; in fp32 AR's own passes decide near ties.
    They do not where rounding was not measured, or where the self-test found another picture.
    """
    measured = backbone.rounding is not None
    if not backbone.batch_invariant and not (measured and repeats(backbone)):
        return False
    return not fault_of(exact_path(stored_dtype(backbone)), backbone.device)


def exact_path(dtype: str) -> str:
    """The name of this guarantee among the paths that the self-test can switch off."""
    return f"AR's picture in {dtype}"


def guarantee(method: Method, backbone: Backbone, share: float | None = None) -> str:
    """The guarantee of a picture, as one word for previews, sheets and reports.

    "identical" if all tokens were compared with AR's, or if the guarantee of AR's picture holds.
    Otherwise rounding can decide between two nearly even tokens; AR could have chosen either.
    backbone: at the picture's size. share: measured share of tokens equal to AR's, None if AR did
    not run.
    """
    if share == 1 or isinstance(method, AR):
        return "identical"
    word = method.guarantee_on(backbone.grid)
    if word != "identical":
        return word
    return "identical" if guarantee_holds(backbone) and share is None else "same distribution"


def guarantee_text(method: Method, backbone: Backbone, share: float | None = None) -> str:
    """The same as a sentence, which names the dtype if that matters."""
    if isinstance(method, AR):
        return "AR itself"
    word, dtype = guarantee(method, backbone, share), stored_dtype(backbone)
    if share is not None:
        return f"{word}, {percent(share)} of tokens are AR's (measured, {dtype})"
    if word == "identical":
        return "identical: this is AR's own picture for this seed"
    if method.guarantee_on(backbone.grid) == "identical":
        return (f"{word} as AR: rounding in {dtype} on this device may make it differ from AR's "
                "own picture for this seed (Compare measures it)")
    return word


# Of methods at their own settings


def by_guarantee(names: Iterable[str] = METHODS,
                 words: Mapping[str, str] | None = None) -> dict[str, list[str]]:
    """The names of methods by their guarantee. words: the guarantees in another language."""
    groups = {word: [name for name in names if METHODS[name].guarantee == word]
              for word in GUARANTEES}
    return {words[word] if words else word: group for word, group in groups.items() if group}


def guarantee_list() -> str:
    """For help texts: "identical: ar, exact; same distribution: strict"."""
    return "; ".join(f"{word}: {', '.join(group)}" for word, group in by_guarantee().items())


def heads_use(name: str) -> str:
    """Whether a method needs draft heads, gains by them, or does not use them."""
    method = METHODS[name]().resolve(Preset())
    if method.heads_needed(Grid(24, 24)) is not None:
        return NEEDED
    return HELPFUL if method.uses_heads else UNUSED


def method_help(names: Iterable[str] = METHODS) -> tuple[str, str]:
    """The guarantees of methods and which of them need draft heads, in English and Chinese."""
    names = list(names)
    needing = [name for name in names if heads_use(name) == NEEDED]
    english = ", ".join(f"{word} ({', '.join(group)})"
                        for word, group in by_guarantee(names).items())
    chinese = "，".join(f"{word}（{'、'.join(group)}）"
                       for word, group in by_guarantee(names, CHINESE).items())
    return (f"Compared with AR's picture: {english}. Draft heads are needed by "
            f"{', '.join(needing) or 'none'}.",
            f"与 AR 的图像相比：{chinese}。需要草稿头：{'、'.join(needing) or '无'}。")
