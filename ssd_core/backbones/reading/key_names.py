"""Names of tensors without what training programs put into them.

Wrappers of torch (DDP, FSDP, torch.compile) put a word of their own anywhere into a name. Others
put a prefix before all names, such as `base_model.model.` or `ema.`. Published names have a first
part in common, too (`model.`), so a family looks at the names with and without it.
"""

from __future__ import annotations

from collections.abc import Iterable

WRAPPERS = {"module", "_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module"}
COUNTERS = {"n_averaged", "num_updates", "decay", "initted", "step"}


def plain_names(names: Iterable[str]) -> dict[str, str]:
    """{name in the file: name without wrappers}."""
    return {name: ".".join(part for part in name.split(".") if part not in WRAPPERS)
            for name in names}


def common_prefix(names: Iterable[str]) -> str:
    """The first part of all names, with its dot; empty if they differ or are that part alone."""
    first = {name.partition(".")[::2] for name in names}
    starts = {start for start, _ in first}
    return f"{starts.pop()}." if len(starts) == 1 and all(rest for _, rest in first) else ""


def is_counter(name: str, shape: tuple[int, ...]) -> bool:
    """Whether a tensor only counts steps of training, as beside an average of weights."""
    return name.rpartition(".")[2] in COUNTERS and shape in ((), (1,))
