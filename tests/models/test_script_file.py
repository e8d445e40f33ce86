"""TorchScript archives: their tensors are read, and nothing in them is run."""

import os
import pickle
import zipfile

import pytest
import torch
from torch import nn

from ssd_core import SSDError
from ssd_core.backbones.reading.checkpoint import open_checkpoint
from ssd_core.weights.convert import convert


class Net(nn.Module):
    """Several dtypes, a view that is not contiguous, a buffer and attributes of other kinds."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv3d(2, 3, (3, 1, 1)).bfloat16()
        self.layers = nn.Sequential(nn.Linear(4, 3), nn.SiLU(), nn.Linear(3, 4))
        self.layers[0].weight.data = torch.randn(4, 3).t()
        self.register_buffer("count", torch.arange(5))
        self.sizes, self.name, self.share = [1, 2], "net", 0.5

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


def test_every_tensor_is_read_and_converted(tmp_path):
    net = Net().eval()
    torch.jit.save(torch.jit.trace(net, torch.ones(1, 4)), tmp_path / "net.jit")
    checkpoint = open_checkpoint(tmp_path / "net.jit")
    convert(tmp_path, tmp_path / "out")
    converted = open_checkpoint(tmp_path / "out")
    for name, value in net.state_dict().items():
        for read in (checkpoint, converted):
            assert read.tensor(name).equal(value) and read.tensor(name).dtype == value.dtype, name
    assert checkpoint.shapes == {name: tuple(v.shape) for name, v in net.state_dict().items()}


class Attack:
    def __init__(self, path) -> None:
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("wrap", [lambda attack: attack, lambda attack: {"weight": attack}])
def test_a_pickle_that_would_act_is_never_run(tmp_path, wrap):
    with zipfile.ZipFile(tmp_path / "net.jit", "w") as archive:
        archive.writestr("net/data.pkl", pickle.dumps(wrap(Attack(tmp_path / "made")), protocol=2))
    try:
        assert not open_checkpoint(tmp_path / "net.jit").shapes
    except SSDError as refused:
        assert "net.jit" in str(refused) and "\n" not in str(refused)
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("content", [b"", b"PK\3\4", b"no zip"])
def test_what_is_no_archive_is_refused_in_one_line(tmp_path, content):
    (tmp_path / "net.jit").write_bytes(content)
    with pytest.raises(SSDError, match="net.jit: truncated or damaged"):
        open_checkpoint(tmp_path / "net.jit")
