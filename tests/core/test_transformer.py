"""The decoder against a reference written out number by number, for every switch."""

import math
from copy import deepcopy
from itertools import product

import pytest
import torch
import torch.nn.functional as F
from support.mock_backbone import MockBackbone, randomise
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode

from ssd_core import Grid
from ssd_core.model.transformer import (
    Decoder,
    DecoderShape,
    attention,
    axial_angles,
    causal_products,
    frequencies,
    interleave_rotary,
    rotate_,
    rotated_by_tables,
    rotation_tables,
    sequence_angles,
)

N, D, HEADS, WIDTH = 5, 12, 4, 6


def rms(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return x / (x.square().mean() + 1e-6).sqrt() * weight


def rotated(v: torch.Tensor, turns: torch.Tensor, kind: str) -> torch.Tensor:
    """A head's vector [D] turned pair by pair."""
    out, half = v.clone(), len(v) // 2
    for i, turn in enumerate(turns.tolist()):
        a, b = (2 * i, 2 * i + 1) if kind == "interleaved" else (i, i + half)
        out[a] = v[a] * math.cos(turn) - v[b] * math.sin(turn)
        out[b] = v[a] * math.sin(turn) + v[b] * math.cos(turn)
    return out


def projected(layer, x: torch.Tensor, turns: torch.Tensor):
    """Queries, keys, values as lists over heads of one position's vectors."""
    s = layer.shape
    together = layer.qkv @ x + (layer.qkv_bias if s.qkv_bias else 0)
    vectors = list(together.split(s.head_dim))
    queries, keys = vectors[: s.heads], vectors[s.heads : s.heads + s.kv_heads]
    for first, group in ((0, queries), (s.heads, keys)):
        for head, v in enumerate(group):
            if s.qk_norm:
                weight, bias = (each[first + head] for each in (layer.qk_norm_weight,
                                                                layer.qk_norm_bias))
                v = (v - v.mean()) / (v.var(unbiased=False) + 1e-5).sqrt() * weight + bias
            elif s.qk_rms_norm:
                v = rms(v, layer.qk_norm_weight.view(-1, s.head_dim)[first + head])
            group[head] = v if s.rotary == "none" else rotated(v, turns, s.rotary)
    return queries, keys, vectors[s.heads + s.kv_heads :]


def naive_layer(layer, xs: list[torch.Tensor], turns: torch.Tensor) -> list[torch.Tensor]:
    s = layer.shape
    heads = [projected(layer, rms(x, layer.attention_norm), turns[i]) for i, x in enumerate(xs)]
    out = []
    for i, x in enumerate(xs):
        mixed = []
        for head in range(s.heads):
            shared = head * s.kv_heads // s.heads
            scores = torch.stack([heads[i][0][head] @ heads[j][1][shared]
                                  for j in range(i + 1)]) / s.head_dim**0.5
            weights = scores.exp() / scores.exp().sum()
            mixed.append(sum(weights[j] * heads[j][2][shared] for j in range(i + 1)))
        x = x + layer.out @ torch.cat(mixed)
        gate, up = (layer.gate_up @ rms(x, layer.ffn_norm)).chunk(2)
        out.append(x + layer.down @ (gate * torch.sigmoid(gate) * up))
    return out


def random_decoder(**switches) -> Decoder:
    decoder = Decoder(DecoderShape(2, D, HEADS, switches.pop("kv_heads"), WIDTH, 20, **switches))
    randomise(decoder, 3, 0.3)
    generator = torch.Generator().manual_seed(4)
    for weight in decoder.parameters():
        if weight.dim() == 1:
            torch.nn.init.normal_(weight, 1.0, 0.2, generator=generator)
    return decoder.requires_grad_(False)


def as_loaded(decoder: Decoder) -> Decoder:
    """The decoder that a file with these parameters gives."""
    made = deepcopy(decoder)
    for layer in made.layers:
        for name, value in layer.named_parameters():
            value.data = layer.to_runtime_layout(name, value.data)
    return made


@pytest.mark.parametrize("rotary, norm, kv_heads", list(product(
    ("interleaved", "split", "none"), ("no norm", "qk_norm", "qk_rms_norm"), (1, 2, 4))))
def test_decoder_equals_the_written_out_reference(rotary, norm, kv_heads):
    decoder = random_decoder(rotary=rotary, kv_heads=kv_heads, qkv_bias=kv_heads == 2,
                             qk_norm=norm == "qk_norm", qk_rms_norm=norm == "qk_rms_norm")
    x = torch.randn(2, N, D, generator=torch.Generator().manual_seed(5))
    turns = torch.outer(torch.arange(N), 10_000.0 ** -(torch.arange(WIDTH // 2) / (WIDTH // 2)))
    angles = None if rotary == "none" else sequence_angles(N, WIDTH)
    out = as_loaded(decoder)(x, angles)
    for row in range(2):
        expected = list(x[row])
        for layer in decoder.layers:
            expected = naive_layer(layer, expected, turns)
        assert torch.allclose(out[row], torch.stack(expected), rtol=1e-4, atol=1e-4)


SLOTS, HEAD_DIM = 70, 16
BLOCK = 32  # queries that a CPU's kernel takes at once, of few: folded or not, the same products


def in_attention(n: int, heads: int, kv_heads: int):
    """Queries, keys, values and mask of a pass over the last n of SLOTS slots, two rows."""
    generator = torch.Generator().manual_seed(9)
    q, k, v = (torch.randn(2, sharing, size, HEAD_DIM, generator=generator)
               for sharing, size in ((heads, n), (kv_heads, SLOTS), (kv_heads, SLOTS)))
    late = torch.arange(SLOTS) > torch.arange(SLOTS - n, SLOTS)[:, None]
    return q, k, v, torch.zeros(1, 1, n, SLOTS).masked_fill_(late, float("-inf"))


@pytest.mark.parametrize("n, heads, kv_heads", [
    (BLOCK, 4, 4), (7, 4, 4), (BLOCK, 4, 2), (BLOCK, 4, 1), (1, 4, 1), (7, 4, 2), (24, 8, 2)])
def test_folded_heads_attend_as_heads_that_share_keys(n, heads, kv_heads):
    q, k, v, mask = in_attention(n, heads, kv_heads)
    expected = F.scaled_dot_product_attention(q, k, v, mask, enable_gqa=heads != kv_heads)
    found = attention(q, k, v, mask.repeat(1, 1, heads // kv_heads, 1), False)
    assert torch.allclose(found, expected, atol=1e-5)
    assert found.equal(expected) or (n != BLOCK and heads != kv_heads)


class Results(TorchDispatchMode):
    """The shapes of all that is computed, views left out."""

    def __init__(self) -> None:
        super().__init__()
        self.shapes = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor) and not func.is_view:
            self.shapes.append(tuple(result.shape))
        return result


@pytest.mark.parametrize("masked", [True, False])
def test_no_kernel_copies_shared_keys_to_every_head(masked):
    """Even the one that any device has, on which SDPA falls back."""
    q, k, v, mask = in_attention(2, 8, 2)
    mask = mask.repeat(1, 1, 4, 1) if masked else None
    with sdpa_kernel(SDPBackend.MATH), Results() as computed:
        attention(q, k, v, mask, False)
    widest = max(map(math.prod, computed.shapes))
    assert 0 < widest <= k.numel()


def test_pairs_of_split_files_become_neighbours():
    x = torch.randn(1, 2, N, WIDTH, generator=torch.Generator().manual_seed(6))
    turns = torch.outer(torch.arange(N), frequencies(WIDTH // 2))
    expected = torch.stack([torch.stack([rotated(x[0, head, i], turns[i], "split")
                                         for i in range(N)]) for head in range(2)])
    found = rotate_(interleave_rotary(x, 3), sequence_angles(N, WIDTH))
    assert torch.allclose(found[0], interleave_rotary(expected, 2), atol=1e-6)
    assert interleave_rotary(torch.arange(6), 0).tolist() == [0, 3, 1, 4, 2, 5]


def test_rotary_scores_depend_on_distance_alone():
    generator = torch.Generator().manual_seed(7)
    q, k = torch.randn(2, 1, 1, 1, 8, generator=generator).unbind()
    angles = sequence_angles(40, 8)
    scores = [(rotate_(q.clone(), angles[i]) * rotate_(k.clone(), angles[i - 3])).sum()
              for i in (3, 10, 39)]
    assert torch.allclose(torch.stack(scores), scores[0].expand(3), atol=1e-4)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("kv_heads, rows", [(4, 1), (2, 2), (1, 2)])
def test_tables_turn_queries_and_keys_up_to_the_last_bit_and_leave_values(kv_heads, rows, dtype):
    """rows: of angles, one for all sequences or one for each."""
    generator = torch.Generator().manual_seed(10)
    qkv = torch.randn(2, N, HEADS + 2 * kv_heads, 64, generator=generator).to(dtype)
    angles = torch.stack([sequence_angles(N + 9 * i, 64)[-N:] for i in range(rows)])
    expected, rotated = qkv.clone(), HEADS + kv_heads
    expected[:, :, :rotated] = rotate_(qkv[:, :, :rotated], angles[..., None, :])
    tables = rotation_tables(angles if rows > 1 else angles[0], HEADS // kv_heads + 2)
    found = rotated_by_tables(qkv, *tables)
    assert found[:, :, rotated:].equal(qkv[:, :, rotated:])
    assert torch.allclose(found, expected, rtol=torch.finfo(dtype).eps, atol=1e-6)
    assert (found == expected).float().mean() > 0.99


def test_axial_angles_turn_with_row_and_column():
    rows, columns = Grid(3, 4).coordinates.T
    angles = axial_angles(rows, columns, 8)
    assert angles.shape == (12, 4) and torch.allclose(angles.abs(), torch.ones(12, 4))
    turn = torch.cat((torch.outer(rows, frequencies(2)), torch.outer(columns, frequencies(2))), 1)
    assert torch.allclose(torch.view_as_real(angles),
                          torch.stack((turn.cos(), turn.sin()), -1).float(), atol=1e-6)


def test_angles_of_each_row_equal_common_angles():
    decoder = random_decoder(rotary="split", qk_norm=False, kv_heads=2)
    x = torch.randn(2, N, D, generator=torch.Generator().manual_seed(8))
    angles = sequence_angles(N, WIDTH)
    assert torch.allclose(decoder(x, angles), decoder(x, angles.expand(2, -1, -1)), atol=1e-6)


def test_hidden_states_are_those_before_the_final_norm():
    backbone = MockBackbone()
    hidden = backbone(backbone.embed(torch.tensor([[1, 2, 3]])))
    scale = hidden.square().mean(-1, keepdim=True).add(1e-6).rsqrt()
    assert (scale - 1).abs().max() > 0.1
    expected = F.linear(hidden * scale * backbone.norm, backbone.head)
    assert torch.allclose(backbone.logits(hidden), expected, atol=1e-5)
    assert backbone.logits(hidden).dtype == torch.float32


@pytest.mark.parametrize("n", [1, 3, 37])
def test_training_attends_causally_with_the_gradients_of_sdpa(n):
    generator = torch.Generator().manual_seed(n)
    qkv = torch.randn(3, 2, 3, n, 16, generator=generator, requires_grad=True)
    outer = torch.randn(2, 3, n, 16, generator=generator)
    ours = causal_products(*qkv)
    theirs = F.scaled_dot_product_attention(*qkv, is_causal=True)
    assert torch.allclose(ours, theirs, atol=1e-5)
    gradients = [torch.autograd.grad((y * outer).sum(), qkv)[0] for y in (ours, theirs)]
    assert torch.allclose(*gradients, atol=1e-5)
