"""Muon with its iteration in fp32, for processors that only emulate bf16.

`torch.optim.Muon` always orthogonalises in bf16. A processor without units for bf16 takes a hundred
times as long for these products as in fp32, and then most of a training step.
"""

from __future__ import annotations

from typing import Any

import torch

QUINTIC = (3.4445, -4.7750, 2.0315)  # coefficients of the iteration (Jordan et al. 2024, "Muon")
STEPS = 5


class Float32Muon(torch.optim.Muon):
    """`torch.optim.Muon` with adjust_lr_fn "match_rms_adamw"; checkpoints of both are the same."""

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """Take one step along the gradients. A closure is not supported."""
        for group in self.param_groups:
            for weight in (each for each in group["params"] if each.grad is not None):
                self._step_of(weight, group)

    def _step_of(self, weight: torch.Tensor, group: dict[str, Any]) -> None:
        state, gradient = self.state[weight], weight.grad
        assert gradient is not None
        momentum = state.setdefault("momentum_buffer", torch.zeros_like(gradient))
        momentum.lerp_(gradient, 1 - group["momentum"])
        update = gradient.lerp(momentum, group["momentum"]) if group["nesterov"] else momentum
        weight.mul_(1 - group["lr"] * group["weight_decay"])
        rate = group["lr"] * 0.2 * max(weight.shape) ** 0.5
        weight.add_(orthogonalised(update), alpha=-rate)


def orthogonalised(matrix: torch.Tensor) -> torch.Tensor:
    """About the nearest semi-orthogonal matrix: Newton-Schulz steps bring singular values near 1.
    """
    if matrix.shape[0] > matrix.shape[1]:
        return orthogonalised(matrix.T).T
    a, b, c = QUINTIC
    x = matrix / matrix.norm().clamp(min=1e-7)
    for _ in range(STEPS):
        gram = x @ x.T
        x = torch.addmm(x, torch.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x
