"""Emu3-Gen from tiny checkpoints of all its layouts: against transformers' Emu3, and by hand."""

from __future__ import annotations

import base64
import json
import re
import unicodedata
from copy import copy
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from support.oracles import emu3_oracle
from support.refusals import refused_in_one_line
from support.tiny_checkpoints import (
    EMU3_CODES,
    EMU3_RANKS,
    EMU3_VISION,
    emu3,
    emu3_first_port,
    emu3_later_port,
)

from ssd_core import Sampling, SSDError, generate, load_backbone, methods, plan
from ssd_core.backbones import emu3 as family
from ssd_core.backbones.base import Backbone
from ssd_core.backbones.emu3 import WORDS
from ssd_core.backbones.prompts.text import read_tiktoken
from ssd_core.backbones.reading.checkpoint import open_checkpoint
from ssd_core.engine.decode import prompt_branches
from ssd_core.engine.state import DecodeState
from ssd_core.model.grid import Grid
from ssd_core.output.drawing import Drawing
from ssd_core.runs.request import Request

CPU = torch.device("cpu")
LAYOUTS = {"original": emu3, "first port": emu3_first_port, "later port": emu3_later_port}
FIRST_CODE, ROW_END = 470, 462


def load(path: Path, dtype: torch.dtype = torch.float32) -> Backbone:
    return family.load(open_checkpoint(path), CPU, dtype)


def drawing(backbone: Backbone, width: int, height: int) -> Backbone:
    """The backbone on a grid smaller than any it was trained on."""
    view = copy(backbone)
    view.sizes = ((width, height),)
    view.apply_size()
    return view


def tokens(backbone: Backbone, method, prompts=("red",), **options) -> torch.Tensor:
    return list(generate(backbone, prompts, method, **options))[-1].tokens


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("models")
    return {name: write(root / name) for name, write in LAYOUTS.items()}


@pytest.fixture(scope="module", params=LAYOUTS)
def backbone(request, folders) -> Backbone:
    return load(folders[request.param])


# Against transformers


@pytest.fixture(scope="module")
def oracle(folders):
    return emu3_oracle(folders["later port"])


def as_ids(picture: torch.Tensor) -> torch.Tensor:
    """Slot tokens as ids of the vocabulary."""
    return torch.where(picture == EMU3_CODES, ROW_END, picture + FIRST_CODE)


@torch.no_grad()
def assert_states(state: DecodeState, oracle, stop: int) -> None:
    for row, prompt in enumerate(state.prompts):
        picture = state.tokens[row % state.pictures, :stop]
        ids = torch.cat((torch.tensor(prompt), as_ids(picture)))
        expected = oracle.model(ids[None]).last_hidden_state[0, len(prompt) - 1:]
        hidden = state.hidden[row, : stop + 1]
        normed = F.rms_norm(hidden, hidden.shape[-1:], state.backbone.norm, 1e-5)
        assert torch.allclose(normed, expected, atol=1e-5)
        logits = oracle.lm_head(expected)[:, FIRST_CODE : FIRST_CODE + EMU3_CODES]
        assert torch.allclose(state.backbone.logits(hidden), logits, atol=1e-5)


@torch.inference_mode()
@pytest.mark.by_day(2)
def test_blocks_rollback_and_branches_equal_transformers(backbone, oracle):
    """Four rows, prompts of three lengths: blocks of cells, some fed again with other tokens."""
    view = drawing(backbone, 48, 32)
    prompts = [view.tokenize(text) for text in ("red", "a blue boat")]
    prompts += [view.unconditional(ids) for ids in prompts]
    assert len({len(ids) for ids in prompts}) == 3
    state = DecodeState(view, prompts, 2, Sampling(cfg=3.0), None)
    state.prefill()
    assert_states(state, oracle, 0)
    draw = torch.Generator().manual_seed(1)
    for start, stop in ((0, 5), (5, 9), (3, 11), (11, 12), (0, view.grid.slots)):
        codes = torch.randint(view.codes, (2, stop - start), generator=draw)
        state.write(slice(start, stop), codes)
        state.stale = start
        state.feed(stop)
        assert_states(state, oracle, stop)


@pytest.mark.parametrize("negative", [None, "dark red"])
def test_greedy_picture_equals_transformers_generate(backbone, oracle, negative):
    """Its own generate, with its guidance over a negative prompt of another length."""
    view = drawing(backbone, 40, 32)
    prompt = view.tokenize("a red boat")
    other = view.unconditional(prompt) if negative is None else view.tokenize_negative(negative)
    width = view.grid.width
    visual = [*range(FIRST_CODE, FIRST_CODE + EMU3_CODES)]

    def allowed(_, ids):
        return [ROW_END] if (len(ids) - len(prompt)) % width == width - 1 else visual

    out = oracle.generate(
        torch.tensor([prompt]), attention_mask=torch.ones(1, len(prompt), dtype=torch.long),
        negative_prompt_ids=torch.tensor([other]), guidance_scale=3.0, do_sample=False,
        negative_prompt_attention_mask=torch.ones(1, len(other), dtype=torch.long),
        prefix_allowed_tokens_fn=allowed, max_new_tokens=view.grid.slots)
    expected = out[0, len(prompt):].view(view.grid.rows, width)[:, :-1] - FIRST_CODE
    sampling = Sampling(temperature=0.0, cfg=3.0)
    found = tokens(view, methods.AR(), ["a red boat"], sampling=sampling, negative=negative)
    assert found[0].equal(expected) and len(expected.unique()) > 2


def test_pixels_and_tokens_equal_transformers(backbone, oracle):
    view = drawing(backbone, 64, 48)
    pictures = torch.rand(2, 48, 64, 3, generator=torch.Generator().manual_seed(2))
    found = view.encode(pictures)
    expected = oracle.model.get_image_tokens(pictures.permute(0, 3, 1, 2) * 2 - 1,
                                             torch.tensor([[48, 64]] * 2))
    assert found.shape == (2, 6, 8) and len(found.unique()) > 2
    assert F.pad(found, (0, 1), value=EMU3_CODES).flatten().equal(
        torch.where(expected == ROW_END, EMU3_CODES, expected - FIRST_CODE))
    closed = F.pad(F.pad(found + FIRST_CODE, (0, 1), value=ROW_END).flatten(1), (0, 3))
    pixels = oracle.decode_image_tokens(image_tokens=closed, height=6, width=8)
    shown = view.decode(found)
    assert shown.shape == (2, 48, 64, 3) and shown.std() > 0.01
    assert torch.allclose(shown, (pixels.permute(0, 2, 3, 1) / 2 + 0.5).clamp(0, 1), atol=1e-5)


# Our own loop


def test_all_layouts_are_one_model(folders):
    backbones = [load(path) for path in folders.values()]
    views = [drawing(backbone, 48, 48) for backbone in backbones]
    first, *others = (tokens(view, methods.Rows(), ["red", "a boat"]) for view in views)
    assert all(first.equal(other) for other in others)
    assert len({backbone.sha256 for backbone in backbones}) == 1


def test_exact_equals_ar(backbone):
    view, options = drawing(backbone, 48, 48), {"sampling": Sampling(seed=5)}
    for prompts in (["red boat", "sun"], ["a"]):
        assert tokens(view, methods.Exact(), prompts, **options).equal(
            tokens(view, methods.AR(), prompts, **options))


def test_files_of_fp32_are_cast_and_the_codec_is_not(folders):
    half = load(folders["original"], torch.bfloat16)
    assert {weight.dtype for weight in half.decoder.parameters()} == {torch.bfloat16}
    assert {weight.dtype for weight in half.picture_codec.parameters()} == {torch.float32}


@pytest.mark.parametrize("rotary, theta", [
    ({"rope_theta": 1e4}, 1e4), ({"rope_theta": None}, 1e6),
    ({"rope_theta": None, "rope_scaling": {"rope_type": "default"}}, 1e6),
    ({"rope_theta": 1e6, "rope_parameters": {"rope_type": "default", "rope_theta": 1e2}}, 1e2)])
def test_angles_turn_as_slowly_as_theta_says(tmp_path, rotary, theta):
    path = emu3(tmp_path / "emu3")
    edit(path, **rotary)
    turn = load(path).angles[1].angle()
    assert torch.allclose(turn, theta ** -torch.tensor([0.0, 0.5]))


# Prompts


def spelled(text: str) -> list[int]:
    """The tiny tokenizer: letters as bytes, but for "re" 256, "red" 257, " a" 258."""
    merged = {"re": 256, "red": 257, " a": 258}
    return [merged.get(part) or ord(part) for part in re.findall("red|re| a|.", text)]


def test_prompts_are_the_official_template(folders):
    """Begin 465, words, begin-of-image 468, rows * columns in digits, then 467."""
    for path in folders.values():
        view = load(path)
        words = spelled("red a cat masterpiece, film grained, best quality.")
        assert words[:4] == [257, 258, 32, 99]
        assert view.tokenize("red a cat") == [465, *words, 468, *b"90*90", 467]
        wide = view.resized((960, 544))
        assert wide.tokenize_negative("red") == [465, 257, 468, *b"68*120", 467]
        assert wide.unconditional([]) == [465, *spelled(
            "lowres, bad anatomy, bad hands, text, error, missing fingers, extra digit, fewer "
            "digits, cropped, worst quality, low quality, normal quality, jpeg artifacts, "
            "signature, watermark, username, blurry."), 468, *b"68*120", 467]


def test_none_as_negative_prompt_leaves_out_the_authors_words(backbone):
    branches = [prompt_branches(backbone, ["red"], negative, cfg=3.0)[1]
                for negative in (None, "blue", "none")]
    assert branches == [backbone.unconditional([]), backbone.tokenize_negative("blue"),
                        backbone.in_template("")]
    assert backbone.tokenize("red |") == backbone.in_template("red")
    request = Request(backbone, None, Drawing("red", "none"))
    assert request.drawing.to_json()["negative"] == "none"
    assert [note[:21] for note in request.notes] == ["the model's own words"]


@pytest.mark.parametrize("prompt, named", [
    ("red <|image start|> boat", "<|image start|>"), ("x" * 1100, "takes at most 1023")])
def test_bad_prompts_are_refused(backbone, prompt, named):
    with pytest.raises(SSDError) as refused:
        backbone.tokenize(prompt)
    assert named in str(refused.value) and "\n" not in str(refused.value)


def test_the_originals_tokenizer_is_read_before_the_ports(folders, tmp_path):
    """The port splits a text by another pattern; where both are there, the original's counts."""
    path = emu3(tmp_path / "both")
    (path / "tokenizer.json").write_text("{}")
    assert load(path).tokenize("red") == load(folders["original"]).tokenize("red")
    (path / "emu3.tiktoken").unlink()
    with pytest.raises(SSDError, match=r"tokenizer\.json"):
        load(path)


TEXTS = ("red area", "(red) a, reared", "don't DON'T \n\n  a 1234", "une forêt à l'aube 森 🌲",
         "e\u0301te", "  ", "a\r\nred  a ")


@pytest.mark.parametrize("text", TEXTS)
def test_ids_equal_those_of_the_tiktoken_library(folders, text):
    tiktoken = pytest.importorskip("tiktoken", reason="the oracle needs tiktoken")
    ranks = {**EMU3_RANKS, b"ar": 259, b"are": 260, b"area": 261, b" are": 262, b"aa": 263}
    path = folders["original"].parent / "more.tiktoken"
    path.write_bytes(b"\n".join(base64.b64encode(token) + b" %d" % rank
                                for token, rank in ranks.items()))
    found = read_tiktoken(path, WORDS, ["<|end|>"])
    expected = tiktoken.Encoding("tiny", pat_str=WORDS, mergeable_ranks=ranks, special_tokens={})
    assert found.encode(text) == expected.encode(unicodedata.normalize("NFC", text))
    assert found.id("<|end|>") == len(ranks)


# Geometry


def test_sizes_follow_the_official_rule(folders):
    """The side of each ratio at the area of 720 x 720, rounded to cells of 8 px."""
    backbone = load(folders["original"])
    assert (backbone.size, backbone.grid) == ((720, 720), Grid(90, 90, True))
    assert {(960, 544), (544, 960), (832, 624), (880, 584), (1016, 512)} <= {*backbone.sizes}
    for width, height in backbone.sizes:
        assert width % 8 == height % 8 == 0 and abs(width * height / 720**2 - 1) < 0.02
    assert backbone.resized((1016, 512)).grid == Grid(64, 127, True)
    with pytest.raises(SSDError, match="size 512x512: .* the nearest are 720x720, "):
        backbone.resized((512, 512))


def test_the_config_tells_the_area(folders, tmp_path):
    path = emu3(tmp_path / "stage1")
    edit(path, image_area=512 * 512)
    assert load(path).size == (512, 512)


def test_the_preset_gives_the_papers_count(folders):
    counts = plan(load(folders["original"]), methods.SSD())
    assert (counts.paper_passes, counts.ar_passes, counts.paper_ar_passes) == (661, 8100, 8190)


# What the files may hold


def edit(path: Path, **changes: object) -> None:
    config = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps({**config, **changes}))


def cut(name: str, keep: int):
    def change(path: Path) -> None:
        (path / name).write_bytes((path / name).read_bytes()[:keep])
    return change


def without_codes(path: Path) -> None:
    (path / "emu3_vision_tokens.txt").write_text("<|image token|>\n<|image start|>\n")


SPOILED = {
    "no tokenizer": (lambda path: (path / "emu3.tiktoken").unlink(), "Emu3-community/Emu3-Gen-hf"),
    "half a tokenizer": (cut("emu3.tiktoken", 200), "emu3.tiktoken"),
    "a cut line": (cut("emu3.tiktoken", 2001), "emu3.tiktoken"),
    "no codes": (without_codes, "visual token 000000"),
    "no codec": (lambda path: (path / "vq" / "model.safetensors").unlink(),
                 "BAAI/Emu3-VisionTokenizer"),
    "a smaller vocabulary": (lambda path: (path / "emu3_vision_tokens.txt").write_text(
        "\n".join([*EMU3_VISION, "<|one more|>"])), "ids reach 494"),
    "heads": (lambda path: edit(path, num_attention_heads="many"), "num_attention_heads"),
    "theta": (lambda path: edit(path, rope_theta=-1), "rope_theta"),
    "a theta beyond floats": (lambda path: edit(path, rope_theta=10**400), "rope_theta is 10000"),
    "another rotation": (lambda path: edit(path, rope_scaling={"type": "dynamic", "factor": 2.0}),
                         "rope_scaling"),
    "another activation": (lambda path: edit(path, hidden_act="relu"), "hidden_act is 'relu'"),
    "layers": (lambda path: edit(path, num_hidden_layers=3), "num_hidden_layers"),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.by_day(1)
def test_tied_embeddings_are_the_head(tmp_path, layout):
    """Where config.json says so; else a file without a head is no Emu3's."""
    path = LAYOUTS[layout](tmp_path / "emu3")
    weights = {name: value for file in path.glob("*.safetensors")
               for name, value in load_file(file).items() if not name.endswith("lm_head.weight")}
    for file in [*path.glob("*.safetensors"), *path.glob("*.index.json")]:
        file.unlink()
    save_file(weights, path / "model.safetensors")
    assert not family.matches(open_checkpoint(path))
    edit(path, tie_word_embeddings=True)
    assert family.matches(open_checkpoint(path))
    backbone = load(path)
    assert backbone.head.equal(backbone.code_embedding[:-1])  # which has a row end as well


@pytest.mark.parametrize("case", SPOILED)
def test_what_cannot_draw_is_refused_in_one_line(tmp_path, case):
    spoil, named = SPOILED[case]
    path = emu3(tmp_path / "emu3")
    spoil(path)
    with refused_in_one_line(named, path):
        load(path)


@pytest.mark.parametrize("device", [pytest.param("cpu", marks=pytest.mark.nightly), "meta"])
def test_load_backbone_finds_the_family(folders, device):
    for path in folders.values():
        backbone = load_backbone(path, device, "fp32")
        assert isinstance(backbone, family.Emu3) and backbone.device.type == device


def test_only_emu3_files_are_claimed(folders):
    for path in folders.values():
        checkpoint = open_checkpoint(path)
        assert family.matches(checkpoint)
        other = copy(checkpoint)
        other.shapes = {name: shape for name, shape in checkpoint.shapes.items()
                        if "lm_head" not in name}
        assert not family.matches(other)
    edit(folders["original"], model_type="llama")
    assert not family.matches(open_checkpoint(folders["original"]))
    edit(folders["original"], model_type="Emu3")
