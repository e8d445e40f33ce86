"""The postcard's picture codec: codes to patches and back."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from ssd_core import load_backbone
from ssd_core.backbones import postcard
from ssd_core.backbones.codecs.vq import PATCH, ByteTable, VQTokenizer
from ssd_core.backbones.postcard.words.captions import WORDS
from ssd_core.model.grid import Grid

CODES = 8


def codec(residual: bool) -> VQTokenizer:
    torch.manual_seed(0)
    return VQTokenizer(CODES, 4, 8, 1, residual=residual).requires_grad_(False)


@given(st.integers(0, 10**6), st.floats(0.01, 4))
def test_a_table_in_bytes_is_off_by_at_most_half_a_step(seed, size):
    rows = size * torch.randn(5, 30, generator=torch.Generator().manual_seed(seed))
    rows[2] = 0
    table = ByteTable.of(rows)
    step = rows.abs().amax(1, keepdim=True) / 127
    assert ((table(torch.arange(5)) - rows).abs() <= 0.51 * step + 2**-14).all()
    assert not table(torch.tensor([2])).any()


def test_each_cell_gets_the_residual_of_its_code():
    tokens = torch.tensor([[[0, 3], [7, 3]]])
    plain, own = codec(False), codec(True)
    rows = torch.randn(CODES, 3 * PATCH**2)
    own.residual = ByteTable.of(rows)
    off = own.decode(tokens) - plain.decode(tokens)
    cells = torch.nn.functional.pixel_unshuffle(off, PATCH)[0].flatten(1).T
    assert torch.allclose(cells, rows[tokens.flatten()], atol=0.02)
    assert torch.equal(own.pixels(own.quantised(tokens)), own.decode(tokens))


def test_a_file_keeps_the_table_in_bytes(tmp_path):
    for residual in (False, True):
        saved = postcard.Postcard(WORDS, CODES, grid=Grid(2, 2), codec=codec(residual))
        saved.initialise(torch.Generator().manual_seed(0))
        if residual:
            saved.picture_codec.residual = ByteTable.of(torch.randn(CODES, 3 * PATCH**2))
        path = tmp_path / str(residual) / "backbone.safetensors"
        postcard.save(saved, path)
        read = load_backbone(path, "cpu", "fp32").picture_codec
        assert (read.residual is not None) == residual
        if residual:
            assert torch.equal(read.residual.values, saved.picture_codec.residual.values)
            assert torch.equal(read.residual.scale, saved.picture_codec.residual.scale)
            assert read.residual.values.dtype == torch.int8
