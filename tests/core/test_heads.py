"""Draft heads: Eq. 2 and 3, and files that are refused by name when they do not fit."""

import json

import pytest
import torch
from support.mock_backbone import MockBackbone, random_heads

from ssd_core import Grid, SSDError, load_heads
from ssd_core.engine.heads import (
    FORMAT,
    DraftHead,
    DraftHeads,
    HeadFeatures,
    read_heads,
    save_heads,
)
from ssd_core.files import read_safetensors, write_safetensors


@pytest.fixture
def backbone() -> MockBackbone:
    return MockBackbone(Grid(3, 4))


@pytest.fixture
def path(tmp_path, backbone):
    """A good file of heads."""
    file = tmp_path / "heads.safetensors"
    save_heads(random_heads(backbone, 3, 2), file, backbone, {"pictures": 12, "loss": "smooth l1"})
    return file


def test_head_is_the_written_formula():
    d = 6
    head = DraftHead(d)
    generator = torch.Generator().manual_seed(0)
    for weight in head.parameters():
        torch.nn.init.normal_(weight, generator=generator)
    h, e = torch.randn(2, 4, d, generator=generator).unbind()
    for row in range(4):
        z = torch.cat((h[row], e[row]))
        first = head.w0 @ z
        n = first / (first.square().mean() + 1e-6).sqrt() * head.norm
        gate = head.w1 @ n
        expected = first + head.w2 @ (gate * torch.sigmoid(gate) * (head.w3 @ n))
        assert torch.allclose(head(h, e)[row], expected, rtol=1e-4, atol=1e-4)
    assert head.w0.shape == (d, 2 * d) and head.w1.shape == head.w3.shape == (2 * d, d)
    assert head.w2.shape == (d, 2 * d)
    assert {name for name, _ in head.named_parameters()} == {"w0", "norm", "w1", "w2", "w3"}


def test_a_fresh_head_is_the_identity_on_h():
    head = DraftHead(8)
    head.initialise(torch.Generator().manual_seed(1))
    h, e = torch.randn(2, 3, 8, generator=torch.Generator().manual_seed(2)).unbind()
    assert torch.allclose(head(h, e), h)


@pytest.mark.parametrize(("source", "target"), [
    ("e", "e"), ("h_pre", "h_pre"), ("h_post", "h_post"), ("h_post+e", "h_post")])
def test_the_predictors_of_table_3_read_and_guess_what_they_say(source, target, backbone):
    space = HeadFeatures(source, target)
    generator = torch.Generator().manual_seed(4)
    h, e = (5 * torch.randn(2, 3, backbone.hidden_size, generator=generator)).unbind()
    post = h / (h.square().mean(-1, keepdim=True) + 1e-6).sqrt()
    told = {"h_pre": h, "h_post": post, "e": e}
    expected = torch.cat([told[name] for name in source.split("+")], dim=-1)
    assert torch.allclose(torch.cat(space.parts(h, e), -1), expected, atol=1e-5)
    assert torch.allclose(space.goal(h, e), told[target], atol=1e-5)
    head = DraftHead(backbone.hidden_size, space)
    head.initialise(generator)
    assert torch.allclose(head(h, e), told[source.split("+")[0]], atol=1e-5)


def test_a_state_before_or_after_the_norm_gives_the_same_draft(backbone):
    h = torch.randn(2, 3, backbone.hidden_size, generator=torch.Generator().manual_seed(5))
    post = HeadFeatures("h_post", "h_post").goal(h, h)
    expected = HeadFeatures().logits(backbone, h)
    assert torch.allclose(HeadFeatures("h_post", "h_post").logits(backbone, post), expected,
                          atol=1e-4)


def test_a_guessed_embedding_drafts_the_nearest_codes(backbone):
    tokens = torch.tensor([[0, 2, 1]])
    guess = backbone.embed(tokens) + 1e-3
    sharp = HeadFeatures("e", "e", variance=1e-4).logits(backbone, guess)
    assert torch.equal(sharp.argmax(-1), tokens)
    wide = HeadFeatures("e", "e", variance=1e4).logits(backbone, guess).softmax(-1)
    assert torch.allclose(wide, torch.full_like(wide, 1 / backbone.codes), atol=1e-2)


def test_another_predictor_survives_the_file_and_a_wrong_one_is_named(tmp_path, backbone):
    heads = DraftHeads(backbone.hidden_size, 2, 1, space=HeadFeatures("e", "e", variance=0.25))
    for weight in heads.parameters():
        torch.nn.init.normal_(weight)
    save_heads(heads, tmp_path / "e.safetensors", backbone, {})
    assert read_heads(tmp_path / "e.safetensors", backbone).space == HeadFeatures("e", "e", 0.25)
    with pytest.raises(SSDError, match="target 'pixels'"):
        HeadFeatures("h_pre", "pixels")


def test_heads_have_the_size_of_the_paper():
    """134M parameters a head at d = 4096: W0 2 d^2, then W1, W2, W3 2 d^2 each, and the norm."""
    assert sum(weight.numel() for weight in DraftHead(64).parameters()) == 8 * 64**2 + 64
    assert round((8 * 4096**2 + 4096) / 1e6) == 134


def test_horizontal_and_vertical_heads_aim_at_their_offsets(backbone):
    """Head d on [h; e] of a cell is what drafts the cell d to the right, or d rows below."""
    from ssd_core.engine.methods.base import horizontal_states, vertical_states
    from ssd_core.engine.state import DecodeState
    from ssd_core.model.sampling import Sampling
    heads = random_heads(backbone)
    state = DecodeState(backbone, [[1, 2]], 1, Sampling(cfg=1.0), heads)
    generator = torch.Generator().manual_seed(3)
    state.hidden.normal_(generator=generator)
    state.tokens.random_(backbone.codes, generator=generator)
    e = backbone.embed(state.tokens)
    right = horizontal_states(state, 1, 4)
    below = vertical_states(state, 4, 2)
    for d in (1, 2):
        assert torch.allclose(right[0, d - 1], heads.horizontal[d - 1](
            state.hidden[0, 1], e[0, 1]), atol=1e-5)
        for x in range(4):
            assert torch.allclose(below[0, 4 * (d - 1) + x], heads.vertical[d - 1](
                state.hidden[0, x], e[0, x]), atol=1e-5)


def test_require():
    heads = DraftHeads(4, 3, 2)
    heads.require(3, 2)
    for asked, named in (((4, 0), "k_h 4"), ((0, 3), "k_v 3")):
        with pytest.raises(SSDError, match=named):
            heads.require(*asked)


def test_file_round_trip(path, backbone):
    before, after = random_heads(backbone, 3, 2), load_heads(path, backbone)
    assert (after.k_h, after.k_v) == (3, 2)
    for name, weight in before.state_dict().items():
        assert after.state_dict()[name].equal(weight.half().float())
    assert not any(weight.requires_grad for weight in after.parameters())
    assert load_heads(path.parent, backbone).k_h == 3  # a folder that holds the file


def test_metadata(path, backbone):
    found = load_heads(path, backbone).metadata
    assert found["format"] == "ssd-heads/1" and found["backbone"] == "mock"
    assert found["backbone_sha256"] == backbone.sha256 and found["hidden_size"] == "16"
    assert json.loads(found["offsets"]) == {"horizontal": [1, 2, 3], "vertical": [1, 2]}
    assert json.loads(found["directions"]) == ["horizontal", "vertical"]
    assert (found["pictures"], found["loss"]) == ("12", "smooth l1")


def refused(path, backbone) -> str:
    with pytest.raises(SSDError) as caught:
        read_heads(path, backbone)
    message = str(caught.value)
    assert path.name in message and "\n" not in message
    return message


@pytest.mark.parametrize("change, named", [
    ({"hidden": 32}, "hidden_size"), ({"codes": 9}, "codes")])
def test_heads_of_another_size_are_refused(path, change, named):
    assert named in refused(path, MockBackbone(Grid(3, 4), **change))


def test_heads_of_another_name_or_other_weights_are_refused(path, backbone):
    backbone.sha256 = "f" * 64
    message = refused(path, backbone)
    assert "backbone_sha256" in message and "ffff" in message and "5eed" in message
    backbone.name = "another"
    message = refused(path, backbone)
    assert "another" in message and "mock" in message


def rewrite(path, **metadata) -> None:
    tensors, known = read_safetensors(path, FORMAT)
    write_safetensors(tensors, path,
                      {k: v for k, v in {**known, **metadata}.items() if v is not None})


@pytest.mark.parametrize("metadata", [
    {"format": "ssd-heads/2"}, {"format": None}, {"offsets": None}, {"offsets": "no json"},
    {"offsets": "7"}, {"offsets": "[]"}, {"offsets": '{"horizontal": [1]}'},
    {"offsets": '{"horizontal": [1, 2, 3, 4], "vertical": [1, 2]}'},
    {"offsets": '{"horizontal": [], "vertical": []}'},
    {"offsets": '{"horizontal": 3, "vertical": 2}'},
    {"hidden_size": None}, {"backbone_sha256": None}, {"source": None}, {"variance": "wide"},
    {"row": None}], ids=str)
def test_hostile_metadata_is_refused(path, backbone, metadata):
    rewrite(path, **metadata)
    refused(path, backbone)


def test_a_newer_version_is_refused_with_what_to_do(path, backbone):
    rewrite(path, format="ssd-heads/2")
    assert refused(path, backbone).endswith("its format is ssd-heads/2, this program reads up to "
                                            "ssd-heads/1: update this program")


@pytest.mark.parametrize("share", [0, 0.01, 0.5, 0.999])
def test_a_truncated_file_is_refused(path, backbone, share):
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * share)])
    refused(path, backbone)


def test_a_missing_file_is_refused(path, backbone):
    path.unlink()
    refused(path, backbone)
    with pytest.raises(SSDError, match="gone"):
        load_heads("gone", backbone)


def test_a_pickle_is_refused_and_never_opened(path, backbone, tmp_path):
    class Hostile:
        def __reduce__(self):
            return (tmp_path.joinpath("owned").touch, ())

    torch.save({"w": Hostile()}, path)
    refused(path, backbone)
    assert not (tmp_path / "owned").exists()
