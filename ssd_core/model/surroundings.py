"""Settings of torch that other programs in this process leave behind, and that would change bits.

In ComfyUI all node packs share one torch. Some replace its attention by one that ignores masks or
rounds, some leave a default device or dtype, some switch autocast on around whatever runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

import torch

# torch's own, whatever the name in torch.nn.functional stands for by now
scaled_dot_product_attention = torch._C._nn.scaled_dot_product_attention
AUTOCAST = ("cpu", "cuda", "mps", "xpu")
DTYPE, PRECISION = torch.float32, "highest"  # torch's defaults
CPU = torch.device("cpu")


@contextmanager
def undisturbed() -> Iterator[None]:
    """Inside the block, or a function that it decorates, torch has its own defaults."""
    with ExitStack() as stack:
        for kind in AUTOCAST:
            if torch.is_autocast_enabled(kind):
                stack.enter_context(torch.autocast(kind, enabled=False))
        if torch.get_default_device() != CPU:
            stack.enter_context(CPU)
        if (dtype := torch.get_default_dtype()) != DTYPE:
            stack.callback(torch.set_default_dtype, dtype)
            torch.set_default_dtype(DTYPE)
        with suppress(RuntimeError):  # where another program has used torch's newer names for it
            if (precision := torch.get_float32_matmul_precision()) != PRECISION:
                stack.callback(torch.set_float32_matmul_precision, precision)
                torch.set_float32_matmul_precision(PRECISION)
        yield
