"""LlamaGen from tiny checkpoints of its layouts, against its equations written out plainly."""

import json
import math
import sys

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from support.block_passes import hidden_by_blocks, random_tokens
from support.mock_backbone import tokens
from support.tiny_image_models import (
    CODES,
    llamagen_c2i,
    llamagen_c2i_tensors,
    llamagen_t2i,
    llamagen_t2i_hf,
    llamagen_t2i_tensors,
)

from ssd_core import Sampling, SSDError, load_backbone, methods
from ssd_core.backbones import llamagen
from ssd_core.backbones.llamagen import class_of, label_of
from ssd_core.backbones.prompts.text_model import clean
from ssd_core.backbones.reading.checkpoint import open_checkpoint

PROMPTS = ["a red house", "trees"]


def load(path) -> llamagen.LlamaGen:
    return load_backbone(path, "cpu", "fp32")


@pytest.fixture(scope="module")
def classes(tmp_path_factory) -> llamagen.ClassLlamaGen:
    return load(llamagen_c2i(tmp_path_factory.mktemp("c2i") / "b"))


@pytest.fixture(scope="module", params=["original", "Hugging Face's names"])
def texts(request, tmp_path_factory) -> llamagen.TextLlamaGen:
    pytest.importorskip("transformers", reason="flan-T5 is read with transformers")
    folder = tmp_path_factory.mktemp("t2i") / "t2i-256"
    return load(llamagen_t2i(folder) if request.param == "original" else llamagen_t2i_hf(folder))


# The model, slot by slot, without a cache


def rotated(x: torch.Tensor, cell: tuple[int, int] | None) -> torch.Tensor:
    """One head's vector [D] of a slot: neighbours turn by row, then by column; conditions go."""
    if cell is None:
        return torch.zeros_like(x)
    pairs, out = len(x) // 2, x.clone()
    for j in range(pairs):
        along, k = (cell[0], j) if j < pairs // 2 else (cell[1], j - pairs // 2)
        angle = along / 10000 ** (k / (pairs // 2))
        a, b = x[2 * j], x[2 * j + 1]
        out[2 * j] = a * math.cos(angle) - b * math.sin(angle)
        out[2 * j + 1] = b * math.cos(angle) + a * math.sin(angle)
    return out


def normed(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return x / (x.square().mean(-1, keepdim=True) + 1e-5).sqrt() * weight


def plain_logits(tensors: dict, x: torch.Tensor, cells: list, hidden: int, heads: int = 2):
    """Logits [n, codes] of input embeddings [n, d]; nobody sees the first `hidden` slots."""
    n, width = len(x), x.shape[1] // heads
    for i in range(2):
        layer = {name.removeprefix(f"layers.{i}."): value for name, value in tensors.items()}
        y = normed(x, layer["attention_norm.weight"]) @ layer["attention.wqkv.weight"].T
        q, k, v = (part.view(n, heads, width) for part in y.chunk(3, dim=-1))
        mixed = torch.zeros(n, heads, width)
        for head in range(heads):
            turned_q, turned_k = (torch.stack([rotated(part[s, head], cells[s])
                                               for s in range(n)]) for part in (q, k))
            scores = turned_q @ turned_k.T / math.sqrt(width)
            for s in range(n):
                seen = [t for t in range(s + 1) if t >= hidden or t == s]
                mixed[s, head] = scores[s, seen].softmax(-1) @ v[seen, head]
        x = x + mixed.flatten(1) @ layer["attention.wo.weight"].T
        y = normed(x, layer["ffn_norm.weight"])
        gate = F.silu(y @ layer["feed_forward.w1.weight"].T)
        x = x + (gate * (y @ layer["feed_forward.w3.weight"].T)) @ layer[
            "feed_forward.w2.weight"].T
    return normed(x, tensors["norm.weight"]) @ tensors["output.weight"].T


def picture_cells(side: int, count: int) -> list:
    return [divmod(i, side) for i in range(count)]


def test_classes_equal_the_plain_model(classes):
    """Block passes with a wrong first try, two rows at once; then one row without a class."""
    tensors, codes = llamagen_c2i_tensors(), random_tokens(classes, 2, count=20)
    prompts = [classes.tokenize("golden retriever"), classes.unconditional([207])]
    assert prompts == [[207], [1000]]
    states = hidden_by_blocks(classes, prompts, codes)
    for (number,), row, ours in zip(prompts, codes, states, strict=True):
        x = torch.cat((tensors["cls_embedding.embedding_table.weight"][[number]],
                       tensors["tok_embeddings.weight"][row]))
        theirs = plain_logits(tensors, x, [None, *picture_cells(16, 20)], hidden=0)
        assert torch.allclose(classes.logits(ours), theirs, atol=1e-5, rtol=1e-5)


def test_texts_equal_the_plain_model(texts):
    """Two texts of different length and their branches without text, all with their own masks."""
    from transformers import T5EncoderModel

    tensors = llamagen_t2i_tensors()
    t5 = T5EncoderModel.from_pretrained(texts.reader.folder)
    prompts = [texts.tokenize(prompt) for prompt in PROMPTS]
    codes = random_tokens(texts, 4, count=5)
    states = hidden_by_blocks(texts, [*prompts, *map(texts.unconditional, prompts)], codes, 3)
    for row, ours in enumerate(states):
        ids = [i for i in prompts[row % 2] if i >= 0]
        features = torch.zeros(120, 24)
        with torch.no_grad():  # right-padded and masked as the original does, then rolled
            padded = torch.tensor([ids + [0] * (120 - len(ids))])
            mask = (torch.arange(120) < len(ids)).long()[None]
            features[120 - len(ids):] = t5(padded, mask).last_hidden_state[0, : len(ids)]
        if row >= 2:
            features = tensors["cls_embedding.uncond_embedding"]
        caption = F.gelu(features @ tensors["cls_embedding.cap_proj.fc1.weight"].T,
                         approximate="tanh") @ tensors["cls_embedding.cap_proj.fc2.weight"].T
        x = torch.cat((caption, tensors["tok_embeddings.weight"][codes[row]]))
        cells = [*[None] * 120, *picture_cells(16, 5)]
        theirs = plain_logits(tensors, x, cells, hidden=120 - len(ids))
        # hidden slots are nobody's business; from the last condition on, every state counts
        assert torch.allclose(texts.logits(ours)[119:], theirs[119:], atol=1e-5, rtol=1e-5)


def test_exact_equals_ar(classes, texts):
    for backbone, prompts in ((classes, ["207", "otter"]), (texts, PROMPTS)):
        options = {"keep": torch.zeros(1, 16, 16, dtype=torch.long), "keep_rows": 11,
                   "sampling": Sampling(seed=5)}
        assert tokens(backbone, methods.Exact(), prompts, **options).equal(
            tokens(backbone, methods.AR(), prompts, **options))


def test_both_layouts_of_texts_draw_the_same(tmp_path):
    pytest.importorskip("transformers", reason="flan-T5 is read with transformers")
    first, second = (tokens(load(write(tmp_path / write.__name__)), methods.Rows(), ["a sun"],
                            size=(32, 32)) for write in (llamagen_t2i, llamagen_t2i_hf))
    assert first.equal(second)


# Prompts


def test_prompt_ids_of_texts(texts):
    """Letters stand for themselves in the tiny T5: its vocabulary is pad, end, unknown, ! to ~."""
    ids = texts.tokenize("  A Red\u2014HOUSE ")
    expected = [3 + ord(letter) - 33 for letter in "ared-house"] + [1]
    assert ids == [-1] * (120 - len(expected)) + expected
    assert texts.masked_prompt_slots(ids) == 120 - len(expected)
    assert texts.unconditional(ids) == [-1] * (120 - len(expected)) + [-2] * len(expected)


@pytest.mark.parametrize("prompt, expected", [
    ("A blue Porsche 356 parked in front of a yellow brick wall.",
     "a blue porsche 356 parked in front of a yellow brick wall."),
    ("\u201cCurly\u201d quotes \u2014 and \u2018single\u2019", "curly\" quotes - and 'single"),
    ("a <b>bold</b> cat &amp; dog", "a bold cat dog"),
    ("state-of-the-art hyper-realistic ultra-high-res 8k",
     "state of the art hyper realistic ultra high res 8k"),
    ("cat/dog, bird (left) {x}", "cat dog, bird left x"),
    ("1920x1080 wallpaper, page 12 of jc6640", "wallpaper, of"),
    ("a cat ,a dog", "a cat , a dog"), ("see https://example.com/a.png now", "see now"),
    ("100000 people, 99999 cats", "people, 99999 cats"), ("'quoted'", "quoted")])
def test_texts_are_cleaned_as_captions_were(prompt, expected):
    """Expected strings are what the original's cleaning gave with ftfy 6.3 and bs4 4.15."""
    assert clean(prompt) == expected


def test_every_class_has_a_label_that_names_it():
    assert [class_of(label_of(number), 1000) for number in range(1000)] == list(range(1000))


@pytest.mark.parametrize("prompt, number", [
    ("207", 207), (" Golden  Retriever ", 207), ("tench, Tinca tinca", 0), ("vale", 979),
    ("missile", 657), ("maillot, tank suit", 639), ("0", 0), ("999", 999)])
def test_a_class_is_a_number_or_a_name(prompt, number):
    assert class_of(prompt, 1000) == number


@pytest.mark.parametrize("prompt, named", [
    ("golden retreiver", "golden retriever"), ("crane", "134 or 517"), ("1000", "0 .. 999"),
    ("-1", "not one of ImageNet's"), ("a dog on a hill", "give a number or a name")])
def test_what_is_no_class_is_refused_with_near_ones(prompt, named):
    with pytest.raises(SSDError, match=named) as refused:
        class_of(prompt, 1000)
    assert "\n" not in str(refused.value)


def test_classes_take_no_negative_prompt_and_texts_do(classes, texts):
    with pytest.raises(SSDError, match="llamagen-c2i takes no negative prompt"):
        tokens(classes, methods.AR(), ["207"], negative="otter")
    plain, other = (tokens(texts, methods.Rows(), PROMPTS[:1], negative=negative)
                    for negative in (None, "dull colours"))
    assert not plain.equal(other)


def test_a_text_that_is_too_long_is_refused(texts):
    with pytest.raises(SSDError, match="takes 121 tokens, llamagen-t2i takes at most 120"):
        texts.tokenize("x" * 120)


# Sizes


@pytest.mark.parametrize("folder, file, sides", [
    ("any", "c2i_B_256.pt", [16]), ("any", "c2i_XL_384.pt", [24]), ("any", "weights.pt", [24, 16]),
    ("LlamaGen-c2i-L-384", "weights.pt", [24]), ("any-256", "c2i_L_384.pt", [24])])
@pytest.mark.by_day(3)
def test_the_name_of_the_file_tells_what_it_was_trained_for(tmp_path, folder, file, sides):
    backbone = load(llamagen_c2i(tmp_path / folder, file))
    assert backbone.sizes == tuple((2 * side, 2 * side) for side in sides)
    assert (backbone.grid.rows, backbone.grid.columns) == (sides[0], sides[0])


def test_a_table_of_positions_in_the_file_tells_before_its_name(tmp_path):
    path = llamagen_c2i(tmp_path / "any", "c2i_L_256.pt")
    torch.save({"model": {**llamagen_c2i_tensors(), "freqs_cis": torch.zeros(577, 32, 2)}}, path)
    assert load(path).sizes == ((48, 48),)


def test_another_legal_size_turns_its_own_angles(tmp_path):
    backbone = load(llamagen_c2i(tmp_path / "any", "weights.pt"))
    assert tokens(backbone, methods.Rows(), ["207"], size=(32, 32)).shape == (1, 16, 16)
    assert backbone.resized((32, 32)).angles.shape == (1 + 256, 32)
    with pytest.raises(SSDError, match="nearest are 48x48, 32x32"):
        tokens(backbone, methods.AR(), ["207"], size=(64, 64))


@pytest.mark.parametrize("hidden, layers, heads, width", [
    (768, 1, 12, 64), (1280, 1, 20, 64), (3200, 1, 32, 100)])
@pytest.mark.by_day(2)
def test_heads_follow_from_the_hidden_size(tmp_path, hidden, layers, heads, width):
    wrapper = None if hidden == 3200 else "module"  # bare as 3B's, wrapped as others' are
    path = llamagen_c2i(tmp_path / "any", wrapper=wrapper, hidden=hidden, layers=layers)
    shape = load(path).decoder.shape
    assert (shape.heads, shape.head_dim, shape.rotary) == (heads, width, "interleaved")
    assert shape.eps == 1e-5


# What is missing


def test_tied_embeddings_are_the_head_and_another_activation_is_refused(tmp_path):
    folder = llamagen_t2i_hf(tmp_path / "t2i_256")
    tensors, config = load_file(folder / "model.safetensors"), folder / "config.json"
    del tensors["lm_head.weight"]
    save_file(tensors, folder / "model.safetensors")
    told = json.loads(config.read_text())
    assert llamagen.layout_of(open_checkpoint(folder / "model.safetensors")) is None
    config.write_text(json.dumps({**told, "tie_word_embeddings": True}))
    backbone = load(folder)
    assert backbone.head.equal(backbone.code_embedding)
    config.write_text(json.dumps({**told, "tie_word_embeddings": True, "hidden_act": "gelu"}))
    with pytest.raises(SSDError, match="config.json: hidden_act is 'gelu'"):
        load(folder)


def test_a_missing_codec_is_told_with_its_name(tmp_path):
    path = llamagen_c2i(tmp_path / "any")
    (path.parent / "vq_ds16_c2i.pt").rename(path.parent / "vq_ds16_t2i.pt")
    with pytest.raises(SSDError, match="vq_ds16_c2i.pt") as refused:
        load(path)
    assert "\n" not in str(refused.value)


def test_a_missing_flan_t5_is_told_with_its_folder(tmp_path):
    folder = llamagen_t2i(tmp_path / "t2i").parent
    for file in (folder / "flan-t5-xl").iterdir():
        file.unlink()
    backbone = load(folder / "t2i_XL_stage1_256.pt")
    with pytest.raises(SSDError, match="put google/flan-t5-xl .*into .*t2i/flan-t5-xl"):
        tokens(backbone, methods.AR())


def test_missing_transformers_are_told_with_the_command(tmp_path, monkeypatch):
    backbone = load(llamagen_t2i(tmp_path / "t2i"))
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(SSDError, match="pip install transformers"):
        tokens(backbone, methods.AR())


def test_pixels_come_and_go(classes):
    codes = random_tokens(classes, 1).view(1, 16, 16)
    pictures = classes.decode(codes)
    assert pictures.shape == (1, 32, 32, 3) and classes.encode(pictures).shape == codes.shape
    assert classes.codes == CODES
