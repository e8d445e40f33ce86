"""Names of tensors without what training programs put into them.

Wrappers of torch (DDP, FSDP, torch.compile) put a word of their own anywhere into a name; others
put a prefix before all names. `model.` is not dropped here: it is also a part of published names,
so a family looks for both (`Checkpoint.views`).
"""

from __future__ import annotations

from collections.abc import Iterable

WRAPPERS = {"module", "_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module"}
PREFIXES = ("base_model.model.", "ema.", "ema_model.", "model_ema.", "shadow.")
AMBIGUOUS = "model."


def plain_names(names: Iterable[str]) -> dict[str, str]:
    """{name in the file: name without wrappers and prefixes}."""
    plain = {name: ".".join(part for part in name.split(".") if part not in WRAPPERS)
             for name in names}
    while prefix := next((each for each in PREFIXES if all_begin_with(plain.values(), each)), None):
        plain = {name: own.removeprefix(prefix) for name, own in plain.items()}
    return plain


def all_begin_with(names: Iterable[str], prefix: str) -> bool:
    """Whether there are names, and all begin with a prefix."""
    found = [name.startswith(prefix) for name in names]
    return bool(found) and all(found)
