"""Loading by name, file or folder; devices and types; and one line for whatever cannot work."""

import inspect
import json

import pytest
import torch
from support.mock_backbone import random_heads, tiny_postcard, tokens

from ssd_core import SSDError, load_backbone, load_heads, methods
from ssd_core.backbones import postcard
from ssd_core.backbones.postcard import FORMAT
from ssd_core.engine.heads import save_heads
from ssd_core.errors import shortened
from ssd_core.files import ASSETS, read_safetensors, sha256_of, write_safetensors
from ssd_core.weights.find import HEADS_FILE, bundled, find_path, is_bundled, portable
from ssd_core.weights.load import DTYPES, LoadOptions, pick_device, pick_dtype


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A small backbone file, loaded once from its folder."""
    path = tmp_path_factory.mktemp("bundle") / "backbone.safetensors"
    postcard.save(tiny_postcard(), path, {"note": "test"})
    return path


@pytest.fixture
def copy(saved, tmp_path):
    path = tmp_path / "backbone.safetensors"
    path.write_bytes(saved.read_bytes())
    return path


def refused(path, *options) -> str:
    with pytest.raises(SSDError) as caught:
        load_backbone(path, *options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_file_folder_and_text_mean_the_same(saved):
    one, two, three = (load_backbone(p) for p in (saved, saved.parent, str(saved)))
    assert one.sha256 == two.sha256 == three.sha256 == sha256_of(read_safetensors(saved, FORMAT)[0])
    assert one.words == ("a", "red", "house", "sun") and one.codes == 32
    assert one.grid.cells == 576 and one.sizes == ((384, 384),)


@pytest.mark.parametrize(("name", "dtype"), [
    ("float16", torch.float16), ("half", torch.float16), ("FP16", torch.float16),
    ("torch.bfloat16", torch.bfloat16), ("bfloat16", torch.bfloat16), ("float32", torch.float32)])
def test_a_dtype_and_a_device_have_their_usual_names_too(name, dtype):
    assert pick_dtype(name, torch.device("cpu"), True) == dtype
    options = LoadOptions(device="CPU", dtype=name).options
    assert options["device"] == "cpu" and options["dtype"] in DTYPES
    assert pick_device("CPU") == torch.device("cpu")


def test_what_torch_says_of_a_device_is_not_cut_in_a_sentence():
    for name, said in (("gpu", "device type at start of device string: gpu)"),
                       ("mps", "from the 'MPS' backend)")):
        if name == "mps" and torch.backends.mps.is_available():
            continue
        with pytest.raises(SSDError) as caught:
            pick_device(name)
        assert said in shortened(f"error: {caught.value}")


def test_a_name_is_a_path_and_a_bundled_path_is_a_name(saved):
    folder = ASSETS / "postcard"
    assert find_path("postcard") == bundled("postcard") == folder and is_bundled(folder)
    assert find_path("postcard", HEADS_FILE) == find_path(folder, HEADS_FILE) == folder / HEADS_FILE
    assert find_path(str(saved)) == saved and bundled(str(saved)) is None and not is_bundled(saved)
    for path in ("postcard", folder, folder / HEADS_FILE, folder / "backbone.safetensors"):
        assert portable(path) == "postcard"
    assert portable(saved) == str(saved)


@pytest.mark.parametrize("name, file, words", [
    ("nothing", "", "backbone 'nothing': neither a bundled name (postcard) nor a file or folder"),
    ("", "", "backbone ''"),
    ("nothing", HEADS_FILE, "draft heads 'nothing': neither a bundled name (postcard) nor a file "
                            f"or folder with {HEADS_FILE}")])
def test_a_name_that_leads_nowhere_is_one_line(name, file, words):
    with pytest.raises(SSDError) as told:
        find_path(name, file)
    assert str(told.value).startswith(words) and "\n" not in str(told.value)


def test_the_options_of_loading_are_the_loaders_own():
    """But for what hosts hand in, and `files` of loaded models."""
    of_hosts = {"name_or_path", "estimates", "files", "draws_on", "hashed"}
    assert LoadOptions().options == {
        option.name: option.default
        for option in inspect.signature(load_backbone).parameters.values()
        if option.name not in of_hosts}


def test_a_loaded_backbone_computes_what_the_saved_one_did(saved):
    """But for the rounding of the file to fp16."""
    before, after = tiny_postcard(), load_backbone(saved)
    ids = torch.tensor([before.tokenize("a red house")])
    hidden = [model(model.embed_prompt(ids)) for model in (before, after)]
    assert torch.allclose(*hidden, rtol=0.02, atol=0.02)
    assert not any(weight.requires_grad for weight in after.parameters())


def test_pixels_of_a_loaded_backbone(saved):
    backbone = load_backbone(saved)
    with torch.inference_mode():
        pictures = backbone.decode(torch.arange(576).view(1, 24, 24) % 32)
        assert pictures.shape == (1, 384, 384, 3) and pictures.dtype == torch.float32
        assert pictures.min() >= 0 and pictures.max() <= 1
        codes = backbone.encode(pictures)
    assert codes.shape == (1, 24, 24) and codes.min() >= 0 and codes.max() < 32
    with pytest.raises(SSDError, match="resize"):
        backbone.encode(pictures[:, :100])


@pytest.mark.parametrize("name, dtype", [("fp32", torch.float32), ("bf16", torch.bfloat16),
                                         ("auto", torch.float32)])
def test_types(saved, name, dtype):
    backbone = load_backbone(saved, "cpu", name)
    assert backbone.dtype == dtype and backbone.device.type == "cpu"
    kept = torch.zeros(1, 24, 24, dtype=torch.long)
    picture = tokens(backbone, methods.Exact(), ["a sun"], keep=kept, keep_rows=22)
    assert picture.shape == (1, 24, 24)


def test_heads_follow_their_backbone(saved, tmp_path):
    backbone = load_backbone(saved, dtype="bf16")
    save_heads(random_heads(backbone, 2, 1), tmp_path / "heads.safetensors", backbone, {})
    heads = load_heads(tmp_path, backbone)
    assert {weight.dtype for weight in heads.parameters()} == {torch.bfloat16}


def test_unknown_names_list_the_known_ones(tmp_path):
    for name in ("no-such-backbone", tmp_path / "gone.safetensors", ""):
        message = refused(name)
        assert "postcard" in message and str(name) in message


def test_an_empty_folder_is_told_what_it_lacks(tmp_path):
    assert f"{tmp_path}: no weights" in refused(tmp_path)


@pytest.mark.parametrize("share", [0, 0.001, 0.5, 0.999])
def test_a_truncated_backbone_is_refused(copy, share):
    whole = copy.read_bytes()
    copy.write_bytes(whole[: int(len(whole) * share)])
    assert copy.name in refused(copy)


def test_a_pickle_is_refused(copy):
    torch.save({"head": torch.zeros(3)}, copy)
    assert copy.name in refused(copy)


def rewrite(path, drop: str = "", **metadata) -> None:
    tensors, known = read_safetensors(path, FORMAT)
    tensors = {name: tensor for name, tensor in tensors.items() if name != drop}
    write_safetensors(tensors, path, {**known, **metadata})


WIDE = json.dumps({"layers": 1, "hidden": 999, "heads": 2, "kv_heads": 2, "head_dim": 8, "ffn": 32})


@pytest.mark.parametrize("change", [
    {"format": "ssd-postcard/9"}, {"shape": "no json"}, {"shape": "[]"}, {"shape": "{}"},
    {"shape": '{"layers": 1, "colour": 2}'}, {"shape": WIDE}, {"words": "no json"}, {"words": "7"},
    {"words": '["a"]'}, {"drop": "head"}, {"drop": "norm"}], ids=str)
def test_damaged_metadata_or_tensors_are_refused(copy, change):
    rewrite(copy, **change)
    assert copy.name in refused(copy)


def test_flipped_bytes_are_named_as_damage(copy):
    content = bytearray(copy.read_bytes())
    content[-50:-40] = bytes(byte ^ 0x40 for byte in content[-50:-40])
    copy.write_bytes(content)
    assert f"{copy}: damaged, it does not have the checksum" in refused(copy)


def test_heads_are_no_backbone(copy, saved):
    backbone = load_backbone(saved)
    save_heads(random_heads(backbone, 1, 1), copy, backbone, {})
    assert "ssd-heads/1" in refused(copy)
    with pytest.raises(SSDError, match="ssd-postcard/1"):
        load_heads(saved, backbone)


@pytest.mark.parametrize("device", ["nonsense", "cpu:x", "cuda:99", ""])
def test_devices_that_are_not_there_are_refused(saved, device):
    assert "device" in refused(saved, device)


@pytest.mark.parametrize("dtype", ["int2", "float8", ""])
def test_types_that_are_not_known_are_refused(saved, dtype):
    assert "dtype" in refused(saved, "cpu", dtype)


def test_prompts_of_the_bundled_kind():
    backbone = tiny_postcard()
    ids = backbone.tokenize("A RED house")
    assert len(ids) == 40 and len(backbone.unconditional(ids)) == 40
    assert ids == backbone.tokenize("a red house") != backbone.tokenize("a house")
    assert backbone.unknown_words("a blue house, blue sea") == ["blue", ",", "sea"]
    with pytest.raises(SSDError, match="shorten"):
        backbone.tokenize("sun red " * 20)
