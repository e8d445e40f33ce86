"""Muon in fp32 takes the steps of PyTorch's, and its checkpoints are the same."""

import pytest
import torch

from ssd_lab.train.muon import Float32Muon, orthogonalised

SETTINGS = {"lr": 0.02, "weight_decay": 0.05, "adjust_lr_fn": "match_rms_adamw"}


@pytest.mark.parametrize("shape", [(24, 64), (64, 24), (16, 16)])
def test_singular_values_come_near_one(shape):
    matrix = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    values = torch.linalg.svdvals(orthogonalised(matrix))
    assert values.min() > 0.6 and values.max() < 1.3
    assert torch.linalg.svdvals(matrix).max() > 4


def steps(optimizer_class, weight, gradients, state=None):
    optimizer = optimizer_class([weight], **SETTINGS)
    if state is not None:
        optimizer.load_state_dict(state)
    for gradient in gradients:
        weight.grad = gradient.clone()
        optimizer.step()
    return optimizer.state_dict()


@pytest.mark.parametrize("shape", [(24, 64), (64, 24)])
def test_steps_are_those_of_torch_up_to_bf16(shape):
    generator = torch.Generator().manual_seed(1)
    start = torch.randn(shape, generator=generator)
    gradients = [torch.randn(shape, generator=generator) for _ in range(4)]
    ours, theirs = (torch.nn.Parameter(start.clone()) for _ in range(2))
    state = steps(torch.optim.Muon, theirs, gradients[:2])
    steps(torch.optim.Muon, theirs, gradients[2:], state)
    steps(Float32Muon, ours, gradients[:2])
    ours.data.copy_(start)
    steps(Float32Muon, ours, gradients[2:], steps(Float32Muon, ours, gradients[:2]))
    moved = (theirs - start).norm()
    assert (ours - theirs).norm() < 0.02 * moved
    resumed = torch.nn.Parameter(start.clone())
    steps(Float32Muon, resumed, gradients[2:], steps(torch.optim.Muon, resumed, gradients[:2]))
    assert (resumed - theirs).norm() < 0.02 * moved
