"""Janus-Pro from tiny checkpoints of both layouts, against the classes of transformers (5.23)."""

import shutil

import pytest
import torch
import torch.nn.functional as F
from block_passes import hidden_by_blocks, random_tokens
from mock_backbone import tokens
from tiny_image_models import (
    CODES,
    JANUS_CONTROL,
    JANUS_TEXT,
    byte_tokenizer,
    janus_original,
    janus_port,
    janus_port_tensors,
)

from ssd_core import Sampling, SSDError, methods
from ssd_core.backbones import janus
from ssd_core.backbones.checkpoint import open_checkpoint

LAYOUTS = {"original": janus_original, "port": janus_port}
PROMPTS = ["a red house", "trees"]


def load(folder) -> janus.Janus:
    return janus.load(open_checkpoint(folder), torch.device("cpu"), torch.float32)


@pytest.fixture(scope="module", params=LAYOUTS)
def backbone(request, tmp_path_factory) -> janus.Janus:
    return load(LAYOUTS[request.param](tmp_path_factory.mktemp("janus") / request.param))


@pytest.fixture(scope="module")
def port(tmp_path_factory) -> janus.Janus:
    return load(janus_port(tmp_path_factory.mktemp("janus")))


@pytest.fixture(scope="module")
def oracle():
    transformers = pytest.importorskip("transformers", reason="transformers is the oracle")
    config = transformers.JanusConfig(
        text_config=JANUS_TEXT, tie_word_embeddings=False,
        vision_config={"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
                       "image_size": 48, "patch_size": 2, "projection_dim": 32, "mlp_ratio": 1.0},
        vq_config={"embed_dim": 8, "num_embeddings": CODES, "latent_channels": 8,
                   "base_channels": 32, "channel_multiplier": [1, 1], "num_res_blocks": 1,
                   "projection_dim": 32, "image_token_embed_dim": 32})
    model = transformers.JanusForConditionalGeneration(config)
    missing, unexpected = model.load_state_dict(janus_port_tensors(), strict=False)
    assert not unexpected
    assert all(key.startswith(("model.vision_model.", "model.aligner.")) for key in missing)
    tokenizer = byte_tokenizer(JANUS_CONTROL)
    begin, end, pad, image = map(tokenizer.token_to_id, JANUS_CONTROL[:4])
    model.generation_config = transformers.GenerationConfig(
        bos_token_id=begin, eos_token_id=end, pad_token_id=pad, do_sample=False,
        guidance_scale=5.0, generation_kwargs={"boi_token_id": image})
    return model.eval()


def test_both_layouts_are_one_model(tmp_path):
    first, second = (load(write(tmp_path / name)) for name, write in LAYOUTS.items())
    assert first.sha256 == second.sha256
    states = first.state_dict(), second.state_dict()
    assert states[0].keys() == states[1].keys()
    assert all(states[0][key].equal(states[1][key]) for key in states[0])
    assert load(janus_port(tmp_path / "other", seed=1)).sha256 != first.sha256


def test_prompt_ids_are_those_of_the_official_template(backbone):
    expected = [*"<| U s e r | > : Ġa Ġ red Ċ Ċ <| A s s i s t a n t | > :".split()]
    ids = backbone.tokenize("  a red ")
    assert [backbone.text.tokenizer.id_to_token(i) for i in ids] == [
        "<｜begin▁of▁sentence｜>", *expected, "<begin_of_image>"]
    assert ids[:4] == [260, 259, 52, 82] and ids[-1] == 263
    assert backbone.unconditional(ids) == [260, *[262] * (len(ids) - 2), 263]


def test_hidden_states_and_logits_equal_the_oracle(backbone, oracle):
    """Rows of different length together here, each by itself and in one pass there."""
    prompts = [backbone.tokenize(prompt) for prompt in PROMPTS]
    prompts += [backbone.unconditional(ids) for ids in prompts]
    codes = random_tokens(backbone, len(prompts), count=60)
    for ids, row, ours in zip(prompts, codes, hidden_by_blocks(backbone, prompts, codes),
                              strict=True):
        with torch.no_grad():
            x = torch.cat((oracle.get_input_embeddings()(torch.tensor([ids])),
                           oracle.prepare_embeddings_for_image_generation(row[None])), dim=1)
            theirs = oracle.model.language_model(inputs_embeds=x).last_hidden_state[0]
            logits = oracle.model.generation_head(theirs)
        normed = F.rms_norm(ours, ours.shape[-1:], backbone.norm, 1e-6)
        assert torch.allclose(normed, theirs, atol=1e-5, rtol=1e-5)
        assert torch.allclose(backbone.logits(ours), logits, atol=1e-5, rtol=1e-5)


def test_a_whole_picture_at_temperature_0_equals_the_oracles_own_generate(backbone, oracle):
    ids = torch.tensor([backbone.tokenize("a red house")])
    theirs = oracle.generate(ids, attention_mask=torch.ones_like(ids), generation_mode="image",
                             guidance_scale=5.0, do_sample=False)
    ours = tokens(backbone, methods.AR(), ["a red house"], sampling=Sampling(temperature=0.0))
    assert ours.flatten(1).equal(theirs)


def test_pixels_and_tokens_equal_the_oracle(backbone, oracle):
    """The port forgets that the original compares directions; so only its latents are taken."""
    codes = random_tokens(backbone, 2)
    with torch.no_grad():
        pixels = oracle.decode_image_tokens(codes)
        ours = backbone.decode(codes.view(2, 24, 24))
        assert torch.allclose(ours, ((pixels + 1) / 2).clamp(0, 1), atol=1e-5)
        codec = oracle.model.vqmodel
        latents = codec.quant_conv(codec.encoder(ours.permute(0, 3, 1, 2) * 2 - 1))
        vectors = F.normalize(codec.quantize.embedding.weight, dim=-1)
        nearest = torch.einsum("bdyx,kd->byxk", F.normalize(latents, dim=1), vectors).argmax(-1)
        assert backbone.encode(ours).equal(nearest)


def test_exact_equals_ar_for_prompts_of_different_length(port):
    sampling = Sampling(seed=5)
    assert tokens(port, methods.Exact(), PROMPTS, sampling=sampling).equal(
        tokens(port, methods.AR(), PROMPTS, sampling=sampling))


def test_a_batch_equals_solo_runs_and_the_negative_prompt_counts(port):
    sampling = Sampling(seed=5)
    both = tokens(port, methods.AR(), PROMPTS, sampling=sampling)
    assert both[1:].equal(tokens(port, methods.AR(), PROMPTS[1:], sampling=Sampling(seed=6)))
    assert not both[:1].equal(tokens(port, methods.AR(), PROMPTS[:1], negative="a red red house",
                                     sampling=sampling))


def test_the_papers_schedule(port):
    from ssd_core import plan

    assert port.preset.cfg == 5.0
    assert [plan(port, methods.SSD(rounds=r)).paper_passes for r in (0, 1, 2)] == [34, 57, 80]
    assert plan(port, methods.SSD()).paper_passes == 80


def test_only_the_trained_size_is_drawn(port):
    with pytest.raises(SSDError, match="size 96x96: janus-pro draws 48x48"):
        tokens(port, methods.AR(), size=(96, 96))


@pytest.mark.parametrize("prompt, named", [("a <begin_of_image> b", "<begin_of_image>"),
                                           ("x" * 1100, "at most 1024")])
def test_prompts_that_break_the_template_are_refused(port, prompt, named):
    with pytest.raises(SSDError, match=named):
        port.tokenize(prompt)


@pytest.mark.parametrize("spoil, named", [
    (lambda folder: (folder / "tokenizer.json").unlink(), "tokenizer.json"),
    (lambda folder: (folder / "tokenizer.json").write_text("{}"), "not a tokenizer.json"),
    (lambda folder: byte_tokenizer(JANUS_CONTROL[:3]).save(str(folder / "tokenizer.json")),
     "<begin_of_image>"),
    (lambda folder: byte_tokenizer((*JANUS_CONTROL, *map(str, range(20)))).save(
        str(folder / "tokenizer.json")), "vocabulary has 272")])
def test_a_tokenizer_of_another_model_is_refused_by_name(tmp_path, spoil, named):
    folder = janus_port(tmp_path / "janus")
    spoil(folder)
    with pytest.raises(SSDError, match=named) as refused:
        load(folder)
    assert "\n" not in str(refused.value) and "tokenizer.json" in str(refused.value)


def test_the_model_may_move_between_folders(tmp_path):
    folder = janus_port(tmp_path / "janus")
    first = load(folder)
    shutil.move(folder, tmp_path / "moved")
    assert load(tmp_path / "moved").sha256 == first.sha256
