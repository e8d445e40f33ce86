"""Files as people have them: read as the model they are, or refused by what they are."""

import json
import re
import shutil
import time

import pytest
import torch
from safetensors.torch import load_file, save_file
from support.tiny_checkpoints import anole, emu3, emu3_5, lumina, lumina2, write_folder
from support.tiny_glm_image import glm_image
from support.tiny_image_models import (
    flan_t5,
    janus_original,
    janus_port,
    llamagen_c2i,
    llamagen_t2i,
    tar,
    tar_language,
)
from support.tiny_simplear import simplear

from ssd_core import SSDError, load_backbone
from ssd_core.backbones.janus import TURNS
from ssd_core.backbones.prompts.tar_language import TarLanguage
from ssd_core.backbones.prompts.text_model import FlanT5
from ssd_core.backbones.reading.checkpoint import (
    Checkpoint,
    models_in,
    open_checkpoint,
    read_json,
)
from ssd_core.backbones.reading.weights import LoadedModel
from ssd_core.files import read_safetensors, without_extras
from ssd_core.output.chinese import catalogue
from ssd_core.output.unknown import word_notes
from ssd_core.weights.find import find_backbone
from ssd_core.weights.registry import ModelRegistry

TENSORS = {"a": torch.arange(6.0).view(2, 3), "b": torch.ones(4), "c": torch.zeros(1, 2)}
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 3\n"
LUMINA = "Lumina-mGPT-7B-512"
FAMILIES = {"janus-original": janus_original, "janus-port": janus_port, "lumina": lumina,
            "anole": anole, "lumina2": lumina2, "emu3": emu3, "emu3_5": emu3_5,
            "llamagen-c2i": llamagen_c2i, "llamagen-t2i": llamagen_t2i, "tar": tar,
            "simplear": simplear, "glm": glm_image}


def refused(call, *arguments, **more) -> str:
    with pytest.raises(SSDError) as caught:
        call(*arguments, **more)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.fixture(scope="module")
def families(tmp_path_factory):
    """A folder of every family, which tests copy before they change it."""
    made = {}

    def folder_of(name):
        if name not in made:
            made[name] = tmp_path_factory.mktemp(name) / LUMINA
            FAMILIES[name](made[name])
        return made[name]
    return folder_of


@pytest.fixture
def copied(families, tmp_path):
    return lambda name: shutil.copytree(families(name), tmp_path / LUMINA)


def weights_of(folder):
    """The file of the model's own tensors, for those in one file or the first of several."""
    return find_backbone(folder)[0].files[0]


def changed(path, change):
    """Save a file's tensors again, as a function of them returns them."""
    if path.suffix == ".safetensors":
        save_file(change(load_file(path)), path, {"format": "pt"})
        return
    loaded = torch.load(path, weights_only=True)
    inner = loaded
    while isinstance(inner.get("model", inner.get("sd")), dict):
        inner = inner.get("model", inner.get("sd"))
    new = change(dict(inner))
    inner.clear()
    inner.update(new)
    torch.save(loaded, path)


# Which file is the model


def single(folder, value=5.0):
    save_file({name: tensor + value for name, tensor in TENSORS.items()},
              folder / "model.safetensors")


def test_a_single_file_wins_over_shards_without_an_index(tmp_path):
    write_folder(tmp_path, TENSORS, shards=2)
    single(tmp_path)
    (tmp_path / "model.safetensors.index.json").unlink()
    assert open_checkpoint(tmp_path).tensor("b").unique().tolist() == [6.0]


def test_an_index_names_its_shards_and_two_whole_models_are_both_named(tmp_path):
    write_folder(tmp_path, TENSORS, shards=3)
    for old in ("model-00001-of-00002", "model-00002-of-00002"):
        save_file({old: torch.ones(1)}, tmp_path / f"{old}.safetensors")
    assert set(open_checkpoint(tmp_path).shapes) == set(TENSORS)
    assert set(open_checkpoint(tmp_path / "model-00001-of-00002.safetensors").shapes) == {
        "model-00001-of-00002", "model-00002-of-00002"}
    single(tmp_path)
    line = refused(open_checkpoint, tmp_path)
    assert "model.safetensors, model.safetensors.index.json" in line and "several models" in line
    assert open_checkpoint(tmp_path / "model.safetensors").tensor("b").tolist() == [6.0] * 4
    for shard in ("model-00002-of-00003.safetensors", "model.safetensors.index.json"):
        assert open_checkpoint(tmp_path / shard).tensor("b").tolist() == [1.0] * 4


def test_two_sets_of_shards_without_an_index_are_both_named(tmp_path):
    for shards in (2, 3):
        write_folder(tmp_path, TENSORS, shards=shards)
    (tmp_path / "model.safetensors.index.json").unlink()
    line = refused(open_checkpoint, tmp_path)
    assert "model-00001-of-00002.safetensors, model-00001-of-00003.safetensors" in line
    (tmp_path / "model-00002-of-00002.safetensors").unlink()
    assert len(open_checkpoint(tmp_path).files) == 3  # the other set is not whole


def test_two_pickles_of_one_name_are_both_named_and_safetensors_stand_for_both(tmp_path):
    for name in ("model.pt", "pytorch_model.bin"):
        torch.save(TENSORS, tmp_path / name)
    assert "(model.pt, pytorch_model.bin)" in refused(open_checkpoint, tmp_path)
    single(tmp_path)
    assert open_checkpoint(tmp_path).files[0].name == "model.safetensors"


def test_shards_that_are_gone_leave_the_single_file(tmp_path):
    write_folder(tmp_path, TENSORS, shards=2)
    single(tmp_path)
    (tmp_path / "model-00002-of-00002.safetensors").unlink()
    assert open_checkpoint(tmp_path).tensor("b").tolist() == [6.0] * 4


def test_the_finetune_that_was_saved_over_shards_is_not_the_base(tmp_path):
    base = load_backbone(janus_port(tmp_path, seed=0, shards=2), "meta").sha256
    janus_port(tmp_path, seed=5, shards=1)
    line = refused(load_backbone, tmp_path, "meta")
    assert "several backbones" in line and "model.safetensors" in line
    assert load_backbone(tmp_path / "model.safetensors", "meta").sha256 != base
    assert load_backbone(tmp_path / "model-00001-of-00002.safetensors", "meta").sha256 == base


def test_loose_files_are_models_of_their_own(tmp_path):
    """Also shards, a pickle of the same name, and what is not read."""
    root = tmp_path / "ssd_backbones"
    janus_port(root, shards=2)
    tensors = {name: value for file in root.glob("*.safetensors")
               for name, value in load_file(file).items()}
    save_file(tensors, root / "mine.safetensors")
    torch.save(tensors, root / "mine.pt")
    save_file({"x": torch.ones(1)}, root / "other.safetensors")
    (root / "whole.gguf").write_bytes(b"GGUF")
    registry = ModelRegistry.below(tmp_path)
    assert set(registry.backbones()) == {"postcard", "mine.safetensors", "mine.pt",
                                         "model-00001-of-00002.safetensors"}
    assert {model.name: model.why_not.partition(": ")[2][:20] for model in registry.unread()} == {
        "other.safetensors": "no backbone known he", "whole.gguf": "a GGUF file, quantis"}
    assert len(models_in(root, loose=True)) == 4


def test_shards_of_any_name_are_what_their_index_lists(tmp_path):
    folder = janus_port(tmp_path / "ssd_backbones" / "Janus-Pro-1B")
    index = folder / "model.safetensors.index.json"
    text = index.read_text()
    for number in (1, 2):
        old = f"model-0000{number}-of-00002.safetensors"
        (folder / old).rename(folder / f"part.{number}.safetensors")
        text = text.replace(old, f"part.{number}.safetensors")
    index.write_text(text)
    registry = ModelRegistry.below(tmp_path)
    assert set(registry.backbones()) == {"postcard", "Janus-Pro-1B"} and registry.unread() == []
    hashes = {load_backbone(path, "meta").sha256
              for path in (folder, index, folder / "part.1.safetensors")}
    assert hashes == {load_backbone(janus_port(tmp_path / "usual"), "meta").sha256}
    (folder / "part.2.safetensors").unlink()
    assert "part.2.safetensors: missing, one of 2 files" in refused(load_backbone, folder, "meta")


def test_a_model_without_its_head_is_told_what_is_missing(tmp_path):
    folder = simplear(tmp_path / "simplear", tie_word_embeddings=False)
    line = refused(load_backbone, folder, "meta")
    assert "lm_head.weight is missing, and config.json does not tie it" in line


def test_endings_in_capitals_are_endings(tmp_path):
    (tmp_path / "A.GGUF").write_bytes(b"GGUF")
    assert "a GGUF file" in refused(open_checkpoint, tmp_path)
    save_file(TENSORS, tmp_path / "MODEL.SAFETENSORS")
    assert set(open_checkpoint(tmp_path).shapes) == set(TENSORS)


# The layout of the Hub's cache


def in_cache(cache, write, repository="deepseek-community/Janus-Pro-1B", commit="0" * 40):
    """A folder as the Hub's client keeps it: links into blobs."""
    home = cache / f"models--{repository.replace('/', '--')}"
    snapshot = home / "snapshots" / commit
    write(snapshot)
    (home / "blobs").mkdir(exist_ok=True)
    for number, path in enumerate(sorted(p for p in snapshot.rglob("*") if p.is_file())):
        blob = home / "blobs" / f"{number}{commit}"
        path.rename(blob)
        path.symlink_to(blob)
    (home / "refs").mkdir(exist_ok=True)
    (home / "refs" / "main").write_text(commit)
    return home


def test_a_repository_in_the_hubs_cache_is_found_by_its_folder_and_its_name(
        tmp_path, monkeypatch):
    home = in_cache(tmp_path / "hub", janus_port)
    in_cache(tmp_path / "hub", lambda folder: janus_port(folder, seed=3), commit="1" * 40)
    new = load_backbone(home / "snapshots" / ("1" * 40), "meta")
    assert new.sha256 != load_backbone(home / "snapshots" / ("0" * 40), "meta").sha256
    assert load_backbone(home, "meta").sha256 == new.sha256 and new.doubts == ()
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    name = "deepseek-community/Janus-Pro-1B"
    assert load_backbone(name, "meta").sha256 == new.sha256
    registry = ModelRegistry.below(tmp_path / "models")
    assert registry.named(name).family == "Janus-Pro"
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "none"))
    assert "neither a bundled name" in refused(load_backbone, name, "meta")
    monkeypatch.delenv("HF_HUB_CACHE")
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    assert load_backbone(name, "meta").sha256 == new.sha256
    (home / "refs" / "main").unlink()
    assert "refs/main names none" in refused(load_backbone, home, "meta")


def test_a_repository_in_a_models_folder_is_listed_once(tmp_path):
    root = tmp_path / "ssd_backbones"
    home = in_cache(root, janus_port)
    in_cache(root, janus_port, commit="1" * 40)
    shards = (home / "snapshots" / ("1" * 40)).glob("*.safetensors")
    registry = ModelRegistry.below(tmp_path)
    assert set(registry.backbones()) == {"postcard", home.name} and registry.unread() == []
    assert registry.backbones()[home.name].bytes == sum(path.stat().st_size for path in shards)
    assert load_backbone(registry.backbone_path(home.name), "meta").name == "janus-pro"


def test_a_download_into_the_hubs_cache_that_was_cut_off_is_told(tmp_path):
    home = in_cache(tmp_path, lambda folder: write_folder(folder, TENSORS))
    (home / "blobs" / "aa.incomplete").touch()
    (home / "snapshots" / ("0" * 40) / "model.safetensors").unlink()
    assert "aa.incomplete" in refused(load_backbone, home)


@pytest.mark.parametrize("place", ["Janus-1___3B", "Janus-1_3B", "janus1.3b",
                                   "deepseek-ai--Janus-1.3B/snapshots/master"])
def test_names_of_modelscopes_client_and_by_hand_tell_the_model(tmp_path, place):
    folder = janus_port(tmp_path / "ssd_backbones" / place)
    top = folder if "/" not in place else folder.parents[1]
    backbone = load_backbone(top, "meta")
    assert backbone.template == TURNS["janus-1.3b"] and backbone.doubts == ()
    registry = ModelRegistry.below(tmp_path)
    assert set(registry.backbones()) == {"postcard", top.name} and registry.unread() == []
    assert registry.named(top.name).family == "Janus-Pro"


def test_a_link_to_a_repository_in_the_cache_is_that_model(tmp_path):
    home = in_cache(tmp_path / "hub", janus_port, "deepseek-ai/Janus-1.3B")
    link = tmp_path / "ssd_backbones" / "mine"
    link.parent.mkdir()
    link.symlink_to(home)
    registry = ModelRegistry.below(tmp_path)
    assert set(registry.backbones()) == {"postcard", "mine"} and registry.unread() == []
    backbone = load_backbone(registry.backbone_path("mine"), "meta")
    assert backbone.template == TURNS["janus-1.3b"]


# Parts of files


@pytest.mark.parametrize(("name", "file"), [
    ("janus-port", "config.json"), ("janus-port", "tokenizer.json"),
    ("simplear", "added_tokens.json"),
    ("simplear", "merges.txt"), ("simplear", "vocab.json"), ("emu3", "emu3.tiktoken"),
    ("emu3", "emu3_vision_tokens.txt"), ("emu3_5", "emu3.tiktoken"), ("lumina", "tokenizer.json"),
    ("lumina2", "tokenizer_config.json"), ("glm", "processor/tokenizer.json")])
@pytest.mark.by_day(6)
def test_pointers_and_beginnings_of_any_file_are_told(copied, name, file):
    folder = copied(name)
    whole = (folder / file).read_bytes()
    (folder / file).write_text(POINTER)
    assert f"{file}: only git-lfs's pointer" in refused(load_backbone, folder, "meta")
    (folder / file).unlink()
    (folder / f"{file}.incomplete").write_bytes(whole[:3])
    assert f"{file}: its download was cut off" in refused(load_backbone, folder, "meta")


@pytest.mark.parametrize("file", ["config.json", "tokenizer.json"])
def test_pointers_of_text_encoders_are_told(tmp_path, file):
    folder = flan_t5(tmp_path / "flan-t5-xl")
    (folder / file).write_text(POINTER)
    assert "only git-lfs's pointer" in refused(FlanT5(tmp_path, 24).tokenize, "a", "x")
    folder = tar_language(tmp_path / "Tar-1.5B")
    (folder / file).write_text(POINTER)
    shutil.rmtree(tmp_path / "flan-t5-xl")
    assert "only git-lfs's pointer" in refused(
        lambda: TarLanguage(tmp_path, 50).tokenize("a"))


JSON = {"mark": "\ufeff%s", "comments": '// made by hand\n%s /* "end" */', "comma": "%s,}",
        "unknown": '%s, "_comment": {"x": ["// no comment, ", 1]}}'}


@pytest.mark.parametrize("kind", JSON)
def test_marks_comments_and_unknown_fields_do_no_harm(tmp_path, kind):
    text = json.dumps({"a": "http://x//y", "b": [1, 2], "c": "/* no */,}"})
    path = tmp_path / "config.json"
    path.write_text(JSON[kind] % (text if JSON[kind].endswith(("%s", "*/")) else text[:-1]),
                    encoding="utf-8")
    assert {name: value for name, value in read_json(path).items() if len(name) == 1} == {
        "a": "http://x//y", "b": [1, 2], "c": "/* no */,}"}
    path.write_text(text, encoding="utf-16")
    assert read_json(path)["b"] == [1, 2]


def test_marks_in_all_files_of_a_model_do_no_harm(copied):
    folder = copied("janus-port")
    before = load_backbone(folder, "meta")
    for path in folder.glob("*.json"):
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    after = load_backbone(folder, "meta")
    assert after.sha256 == before.sha256 and after.tokenize("a red") == before.tokenize("a red")


# What is not a whole model


def lora(folder, name="adapter_model.safetensors"):
    save_file({"base_model.model.gen_head.vision_head.lora_A.weight": torch.ones(2, 3)},
              folder / name)


ADAPTERS = {
    "config beside": lambda folder: (folder / "adapter_config.json").write_text("{}"),
    "weights beside": lora,
    "pickle beside": lambda folder: torch.save(TENSORS, folder / "adapter_model.bin"),
    "any name": lambda folder: lora(folder, "style.safetensors"),
    "below": lambda folder: lora((folder / "style").mkdir() or folder / "style"),
}


@pytest.mark.parametrize("case", ADAPTERS)
@pytest.mark.by_day(3)
def test_an_adapter_beside_a_model_is_refused_and_not_left_out(copied, case):
    folder = copied("janus-port")
    ADAPTERS[case](folder)
    assert "adapter (LoRA)" in (line := refused(load_backbone, folder, "meta"))
    assert "LoRA (--lora)" in line
    registry = ModelRegistry([folder.parent], [], str)
    assert set(registry.backbones()) == {"postcard"}
    assert [model.why_not for model in registry.unread()] == [line]


def test_adapters_that_nothing_reads_are_named_in_one_line(copied):
    """LyCORIS' whole differences, GLoRA, learned words, and what lies in a folder for adapters."""
    folder = copied("janus-port")
    plain = load_backbone(folder, family="Janus-Pro-1B")
    assert plain.doubts == ()
    for name, key in (("lycoris", "lycoris_layers_0_self_attn_q_proj.diff"),
                      ("glora", "layers.0.q_proj.a1.weight"), ("learned_embeds", "<cat>"),
                      ("loras/style", "q_proj.lora_A.weight")):
        (folder / name).parent.mkdir(exist_ok=True)
        save_file({key: torch.ones(2, 2)}, folder / f"{name}.safetensors")
    backbone = load_backbone(folder, family="Janus-Pro-1B")
    line, = backbone.doubts
    assert backbone.sha256 == plain.sha256 and "\n" not in line
    assert line.endswith("and 1 more beside the model: not read, the pictures are those of the "
                         "model alone") and "glora.safetensors, learned_embeds" in line


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("key", ["vision_tower.lora_A.weight", "x.base_layer.weight",
                                 "q_proj_lora.down.weight", "style.weight"])
@pytest.mark.by_day(6)
def test_a_tensor_that_has_no_place_is_refused_by_name(copied, name, key):
    folder = copied(name)
    changed(weights_of(folder), lambda tensors: {**tensors, key: torch.ones(2, 2)})
    (folder / "model.safetensors.index.json").unlink(missing_ok=True)
    line = refused(load_backbone, folder, "meta")
    assert f"tensor {key}" in line
    assert ("(--lora)" in line) == ("style" not in key)


@pytest.mark.parametrize(("name", "part"), [
    ("lumina", "vqvae/model.safetensors"), ("emu3", "vq/model.safetensors"),
    ("emu3_5", "vq/model.ckpt"), ("lumina2", "vq/movqgan_270M.ckpt"),
    ("llamagen-c2i", "vq_ds16_c2i.pt"), ("tar", "ta_tok.pth")])
@pytest.mark.parametrize("key", ["decoder.conv_in.lora_A.weight", "style.weight"])
@pytest.mark.by_day(4)
def test_so_are_those_of_codecs(copied, name, part, key):
    folder = copied(name)
    file = folder / part
    if name == "emu3_5":
        saved = torch.load(file, weights_only=True)
        torch.save({"state_dict": {**saved["state_dict"], key: torch.ones(2)}}, file)
    else:
        changed(file, lambda tensors: {**tensors, key: torch.ones(2)})
    assert f"tensor {key}" in refused(load_backbone, folder, "meta")


@pytest.mark.parametrize("write", [flan_t5, tar_language])
def test_text_models_are_read_whole_or_refused(tmp_path, write):
    pytest.importorskip("transformers")
    folder = write(tmp_path / write.__name__)

    def read():
        if write is flan_t5:
            return FlanT5(tmp_path, 24).encoder(torch.float32)
        return TarLanguage(tmp_path, 50).model(torch.float32)

    read()
    file = folder / "model.safetensors"
    whole = load_file(file)
    key = next(name for name in whole if ".1." in name)
    for tensors, words in (
            ({name: value for name, value in whole.items() if name != key},
             f"tensor {key} of .* is missing"),
            ({**whole, "style.weight": torch.ones(2)}, "tensor style.weight has no place"),
            ({**whole, f"{key}_scale": torch.ones(1)}, "in 8 bits with scales"),
            ({**whole, "x.lora_A.weight": torch.ones(2)}, r"\(--lora\)")):
        save_file(tensors, file, {"format": "pt"})
        with pytest.raises(SSDError, match=words):
            read()


KEYS = {".SCB": "bitsandbytes", ".weight.absmax": "bitsandbytes",
        ".weight.quant_state.bitsandbytes__nf4": "bitsandbytes", ".qweight": "GPTQ or AWQ",
        ".g_idx": "GPTQ", ".weight_packed": "compressed-tensors", ".weight_scale_inv": "blocks of"}


@pytest.mark.parametrize("end", KEYS)
def test_files_of_other_quantisers_are_told_by_their_keys(tmp_path, end):
    save_file({"gen_head.vision_head.weight": torch.ones(2, 2),
               f"gen_head.vision_head{end}": torch.ones(2)}, tmp_path / "model.safetensors")
    line = refused(load_backbone, tmp_path, "meta")
    assert f"quantised by {KEYS[end]}" in line and "load the original" in line


@pytest.mark.parametrize("within", [False, True])
@pytest.mark.parametrize(("settings", "shown"), [
    ({"quant_method": "gptq"}, "GPTQ"), ({"quant_method": "awq"}, "AWQ"),
    ({"load_in_4bit": True}, "bitsandbytes"), ({"quant_method": "torchao"}, "torchao")])
@pytest.mark.by_day(4)
def test_and_by_their_config(copied, settings, shown, within):
    folder = copied("janus-port")
    config = json.loads((folder / "config.json").read_text())
    (config["text_config"] if within else config)["quantization_config"] = settings
    (folder / "config.json").write_text(json.dumps(config))
    assert f"quantised by {shown}, which is not read" in refused(load_backbone, folder, "meta")


def test_a_gguf_is_told(tmp_path):
    (tmp_path / "janus-q4.gguf").write_bytes(b"GGUF")
    for path in (tmp_path, tmp_path / "janus-q4.gguf"):
        assert "janus-q4.gguf: a GGUF file" in refused(load_backbone, path)


# Scales


SCALES = {"ComfyUI": "X.scale_weight", "compressed-tensors": "X.weight_scale",
          "by rows": "X.weight_scale"}


@pytest.mark.parametrize("form", SCALES)
@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.int8])
@pytest.mark.by_day(2)
def test_scales_of_heads_embeddings_and_codecs_are_applied(copied, form, dtype):
    folder = copied("janus-port")
    (folder / "model.safetensors.index.json").unlink()
    names = ("model.generation_head.vision_head.weight", "model.generation_embeddings.weight",
             "model.generation_aligner.fc1.weight", "model.language_model.embed_tokens.weight",
             "model.vqmodel.quantize.embedding.weight")
    exact = load_backbone(folder, "cpu", "fp32")

    def in_eight_bits(tensors):
        for name in set(names) & set(tensors):
            weight = tensors[name]
            scale = (weight.abs().amax(1, keepdim=True) if form == "by rows"
                     else weight.abs().max()) / 127
            tensors[name] = (weight / scale).round().to(dtype)
            tensors[SCALES[form].replace("X", name.removesuffix(".weight"))] = scale
        return {**tensors, "scaled_fp8": torch.zeros(0)} if form == "ComfyUI" else tensors

    for number, file in enumerate(sorted(folder.glob("*.safetensors"))):
        changed(file, lambda tensors, number=number: {
            name: value for name, value in in_eight_bits(tensors).items()
            if name != "scaled_fp8" or number == 0})
    backbone = load_backbone(folder, "cpu", "fp32")
    for one, other in ((backbone.head, exact.head), (backbone.word_embedding,
                                                     exact.word_embedding),
                       (backbone.code_embedding, exact.code_embedding),
                       (backbone.picture_codec.codebook, exact.picture_codec.codebook)):
        assert not torch.equal(one, other)
        assert (one - other).abs().max() < 0.1 * other.abs().max()


@pytest.mark.parametrize("shape", [(2, 2), (1, 4), (3,)])
def test_scales_of_blocks_are_refused(tmp_path, shape):
    save_file({"a.weight": torch.ones(4, 4).to(torch.float8_e4m3fn),
               "a.weight_scale": torch.ones(shape)}, tmp_path / "model.safetensors")
    checkpoint = Checkpoint((tmp_path / "model.safetensors",))
    assert "a.weight has" in refused(checkpoint.floating, "a.weight")


# Names of training programs


PREFIXES = ("module.", "model.", "base_model.model.", "_orig_mod.", "ema.", "module._orig_mod.",
            "model.module.")


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.by_day(4)
def test_prefixes_of_training_programs_are_dropped_for_every_family(copied, name, prefix):
    folder = copied(name)
    before = load_backbone(folder, "meta").sha256
    for file in find_backbone(folder)[0].files:
        changed(file, lambda tensors: {prefix + key: value for key, value in tensors.items()})
    for index in folder.rglob("*.index.json"):
        index.unlink()
    assert load_backbone(folder, "meta").sha256 == before


def test_words_of_torchs_wrappers_are_dropped_within_names(tmp_path):
    save_file({"a._orig_mod.b": torch.ones(1), "a._fsdp_wrapped_module.c.module.d": torch.ones(2)},
              tmp_path / "model.safetensors")
    checkpoint = open_checkpoint(tmp_path)
    assert set(checkpoint.shapes) == {"a.b", "a.c.d"} and checkpoint.tensor("a.c.d").numel() == 2
    save_file({"a._orig_mod.b": torch.ones(1), "a.b": torch.ones(1)},
              tmp_path / "model.safetensors")
    assert "with and without a prefix" in refused(open_checkpoint, tmp_path)


def test_an_average_is_read_where_it_is_alone(tmp_path):
    torch.save({"ema": TENSORS, "step": 3}, tmp_path / "m.pt")
    assert set(open_checkpoint(tmp_path).shapes) == set(TENSORS)
    save_file({**{f"module.{name}": value for name, value in TENSORS.items()},
               "n_averaged": torch.tensor(7)}, tmp_path / "m.safetensors")
    assert set(open_checkpoint(tmp_path / "m.safetensors").shapes) == set(TENSORS)


def test_an_adapter_beside_the_tensors_of_a_pickle_is_refused(tmp_path):
    torch.save({"model": TENSORS, "lora": {"x": torch.ones(1)}}, tmp_path / "m.pt")
    assert "tensor lora belongs to an adapter" in refused(open_checkpoint, tmp_path)


# Which chat turn


PRO, PLAIN = "<|User|>: {prompt}\n\n<|Assistant|>:", "User: {prompt}\n\nAssistant:"


@pytest.mark.parametrize(("place", "config", "family", "name", "turn"), [
    ("T2I-R1/ckpt/Janus-Pro-1B", "", "auto", "janus-pro", PRO),
    ("Janus-Pro-1B", "CaraJ/T2I-R1", "auto", "janus-pro", PRO),
    ("T2I-R1", "deepseek-ai/Janus-Pro-7B", "auto", "t2i-r1", PLAIN),
    ("Janus-1.3B", "", "auto", "janus-1.3b", PLAIN),
    ("Janus_1.3B", "", "auto", "janus-1.3b", PLAIN),
    ("mine", "/home/x/T2I-R1", "auto", "t2i-r1", PLAIN),
    ("mine", "/T2I-R1/ckpt", "auto", "janus-pro", None),
    ("mine", "deepseek-ai/Janus-Pro-7B", "auto", "janus-pro", None),
    ("T2I-R1/mine", "", "auto", "janus-pro", None),
    ("mine", "", "Janus-1.3B", "janus-1.3b", PLAIN), ("mine", "", "janus-pro-7b", "janus-pro", PRO),
    ("Janus-Pro-1B", "", "T2I-R1", "t2i-r1", PLAIN)])
@pytest.mark.by_day(6)
def test_the_turn_follows_the_models_own_name_or_the_users(families, tmp_path, place, config,
                                                           family, name, turn):
    folder = shutil.copytree(families("janus-port"), tmp_path / place)
    saved = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**saved, "_name_or_path": config}))
    backbone = load_backbone(folder, "meta", family=family)
    assert backbone.name == name and backbone.template == (turn or PRO)
    assert bool(backbone.notes(None)) == (turn is None)


@pytest.mark.parametrize(("file", "text", "turn"), [
    ("tokenizer_config.json", {"chat_template": "{{ 'User: ' + x }}"}, PLAIN),
    ("chat_template.json", {"chat_template": "{{ '<|User|>: ' + x }}"}, PRO),
    ("tokenizer_config.json", {"additional_special_tokens": ["<|User|>"]}, None)])
def test_a_chat_template_tells_the_turn(families, tmp_path, file, text, turn):
    folder = shutil.copytree(families("janus-port"), tmp_path / "mine")
    (folder / file).write_text(json.dumps(text))
    backbone = load_backbone(folder, "meta")
    assert backbone.template == (turn or PRO) and bool(backbone.doubts) == (turn is None)


def test_a_family_that_is_not_theirs_is_refused(families):
    folder = families("janus-port")
    assert "these are Janus-Pro's tensors, not those of Emu3-Gen" in refused(
        load_backbone, folder, "meta", family="Emu3-Gen")
    assert "choose auto, or one of" in refused(load_backbone, folder, "meta", family="Janus-9B")


def test_the_size_of_a_lumina_follows_its_own_folder_or_the_user(families, tmp_path):
    folder = shutil.copytree(families("lumina"), tmp_path / "Lumina-mGPT-7B-1024" / "weights")
    assert "give --family" in refused(load_backbone, folder, "meta")
    assert load_backbone(folder, "meta", family="Lumina-mGPT-7B-768").size == (768, 768)


# Scripts that a tokenizer does not know


def test_letters_that_a_text_encoder_does_not_know_are_told(families):
    backbone = load_backbone(families("llamagen-t2i") / "t2i_XL_stage1_256.pt", "meta")
    assert backbone.unknown_words("a red house, 红色的房子!") == ["红色的房子"]
    assert backbone.unknown_spans("红 on 蓝") == [(0, 1), (5, 6)]
    assert backbone.unknown_words('a <red> house, "quoted"...') == []
    janus = load_backbone(families("janus-port"), "meta")
    assert janus.unknown_words("红色的房子 🏠") == []  # spelled in bytes


def test_notes_about_a_run_tell_them(families):
    backbone = load_backbone(families("llamagen-t2i") / "t2i_XL_stage1_256.pt", "meta")
    notes = word_notes(backbone, ["红色的房子"], ["红色的房子"])
    assert f"{backbone.name} does not know, and leaves out: 红色的房子" in notes


def test_the_table_of_layouts_quotes_what_is_said(root):
    """Each line behind "refused:" is a part of an error line, some of whose values it fills in."""
    text = (root / "docs" / "backbones.md").read_text(encoding="utf-8")
    quoted = re.findall(r"refused: `(.+?)`(?= |$)", text, re.MULTILINE)
    lines = {re.sub(r"\{\d+\}", "*", line) for line in catalogue()["lines"]}
    said = [quote for quote in quoted
            if any(part in line for line in lines
                   for part in (quote, quote.replace("X", "*"), quote.replace("GPTQ", "*")))]
    assert quoted == said and len(quoted) == 8


def test_pointers_of_heads_are_told(tmp_path):
    path = tmp_path / "heads.safetensors"
    path.write_text(POINTER)
    assert "only git-lfs's pointer" in refused(read_safetensors, path, "ssd-heads/1")


def test_an_adapter_in_memory_is_refused(tmp_path):
    model = torch.nn.ModuleDict({"a": torch.nn.ModuleDict({"lora_A": torch.nn.Linear(2, 2)})})
    assert "tensor a.lora_A.weight belongs to an adapter" in refused(LoadedModel, model, tmp_path)


@pytest.mark.parametrize("part", ["/*", '"\\', ",\n", "//", '\\"', ", /**/"])
def test_no_text_of_comments_takes_long(part):
    """200,000 parts: a pattern that looks back over them would take hours."""
    start = time.process_time()
    without_extras('{"a": ' + part * 200_000)
    assert time.process_time() - start < 5
