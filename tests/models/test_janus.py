"""Janus-Pro from tiny checkpoints of both layouts, against the classes of transformers (5.23)."""

import shutil

import pytest
import torch
import torch.nn.functional as F
from support.block_passes import hidden_by_blocks, random_tokens
from support.mock_backbone import tokens
from support.oracles import janus_oracle
from support.tiny_checkpoints import write_folder
from support.tiny_image_models import (
    JANUS_CONTROL,
    JANUS_TEXT,
    byte_tokenizer,
    janus_original,
    janus_port,
    janus_tensors,
)

from ssd_core import Sampling, SSDError, load_backbone, methods
from ssd_core.backbones import janus
from ssd_core.backbones.reading.checkpoint import open_checkpoint

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
    return janus_oracle()


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
    assert_equal(backbone, oracle)


ROPE = {"rope_type": "default", "rope_theta": 5e5}


@pytest.mark.parametrize("write, told", [
    (janus_original, {"rope_theta": 5e5}), (janus_original, {"rms_norm_eps": 0.01}),
    (janus_port, {"rope_parameters": None, "rope_scaling": None, "rope_theta": 5e5}),
    (janus_port, {"rope_parameters": ROPE}), (janus_port, {"rms_norm_eps": 0.01})])
@pytest.mark.by_day(2)
def test_a_finetunes_theta_and_eps_are_those_of_its_config(tmp_path, write, told):
    """As transformers 4 and 5 write them, and as the original would."""
    expected = {"rope_parameters": ROPE} if "rms_norm_eps" not in told else told
    assert_equal(load(write(tmp_path / "janus", **told)), janus_oracle(**expected))


def test_what_a_config_does_not_tell_is_the_published_models(tmp_path):
    """Without a word on rotation, norm or heads: the angles of theta 10,000."""
    silent = load(janus_port(tmp_path / "janus", rope_parameters=None, rms_norm_eps=None))
    assert silent.decoder.shape.eps == 1e-6
    turn = silent.angles[1].angle()
    assert torch.allclose(turn, 1e4 ** -(torch.arange(8) / 8))


@pytest.mark.parametrize("told, named", [
    ({"rope_parameters": {"rope_type": "llama3", "factor": 8.0}}, "rope_parameters is .*llama3"),
    ({"rope_scaling": {"type": "linear", "factor": 2.0}}, "rope_scaling is .*linear"),
    ({"rope_scaling": {"factor": 2.0}}, "rope_scaling"), ({"rope_scaling": 2.0}, "rope_scaling"),
    ({"partial_rotary_factor": 0.5}, "partial_rotary_factor"),
    ({"rope_parameters": {**ROPE, "partial_rotary_factor": 0.5}}, "rope_parameters"),
    ({"rope_parameters": {**ROPE, "rope_theta": "large"}}, "rope_theta is 'large'"),
    ({"rms_norm_eps": 0}, "rms_norm_eps is 0"), ({"rms_norm_eps": True}, "rms_norm_eps is True"),
    ({"hidden_act": "gelu"}, "hidden_act is 'gelu': only silu"),
    ({"num_attention_heads": "many"}, "num_attention_heads is 'many'")])
@pytest.mark.by_day(4)
def test_a_config_of_another_decoder_is_refused_by_name(tmp_path, told, named):
    for name, write in LAYOUTS.items():
        folder = write(tmp_path / name, **told)
        with pytest.raises(SSDError, match=f"config.json: {named}") as refused:
            load(folder)
        assert "\n" not in str(refused.value) and str(folder) in str(refused.value)


def assert_equal(backbone, oracle) -> None:
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
        normed = F.rms_norm(ours, ours.shape[-1:], backbone.norm, backbone.decoder.shape.eps)
        assert torch.allclose(normed, theirs, atol=1e-5, rtol=1e-5)
        assert torch.allclose(backbone.logits(ours), logits, atol=1e-5, rtol=1e-5)


@pytest.mark.by_day(1)
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
    assert lowest_rows(port, methods.Exact(), PROMPTS).equal(
        lowest_rows(port, methods.AR(), PROMPTS))


def test_a_batch_equals_solo_runs_and_the_negative_prompt_counts(port):
    both = lowest_rows(port, methods.AR(), PROMPTS)
    assert both[1:].equal(lowest_rows(port, methods.AR(), PROMPTS[1:], seed=6))
    assert not both[:1].equal(lowest_rows(port, methods.AR(), PROMPTS[:1],
                                          negative="a red red house"))


def lowest_rows(backbone, method, prompts, seed=5, **more) -> torch.Tensor:
    """Four rows, below random ones: a sixth of a picture's passes."""
    kept = random_tokens(backbone, 1).view(1, 24, 24)
    return tokens(backbone, method, prompts, keep=kept, keep_rows=20,
                  sampling=Sampling(seed=seed), **more)[:, 20:]


def test_the_papers_schedule(port):
    from ssd_core import plan

    assert port.preset.cfg == 5.0
    assert [plan(port, methods.SSD(rounds=r)).paper_passes for r in (0, 1, 2)] == [34, 57, 80]
    assert plan(port, methods.SSD()).paper_passes == 80


def test_only_the_trained_size_is_drawn(port):
    with pytest.raises(SSDError, match="janus-pro does not draw it; the nearest are 48x48"):
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


def finetune(folder, prefix=""):
    """DeepSeek's names as safetensors, perhaps behind a training program's prefix."""
    tensors = {prefix + name: value for name, value in janus_tensors().items()}
    return write_folder(folder, tensors, {"model_type": "multi_modality",
                                          "language_config": JANUS_TEXT},
                        byte_tokenizer(JANUS_CONTROL), shards=2)


@pytest.mark.parametrize("name, prefix, turn", [
    ("Janus-4o-7B", "", "<| U s e r | > : Ġa Ċ Ċ <| A s s i s t a n t | > :"),
    ("T2I-R1", "module.", "U s e r : Ġa Ċ Ċ A s s i s t a n t :"),
    ("Janus-Pro-R1-7B", "vl_gpt.", "<| U s e r | > : Ġa Ċ Ċ <| A s s i s t a n t | > :")])
def test_finetunes_have_their_own_names_prefixes_and_turns(port, tmp_path, name, prefix, turn):
    loaded = load_backbone(finetune(tmp_path / name, prefix), "cpu", "fp32")
    ids = loaded.tokenize("a")
    assert [loaded.text.tokenizer.id_to_token(i) for i in ids[1:-1]] == turn.split()
    assert loaded.sha256 == port.sha256 and loaded.name in name.lower()
