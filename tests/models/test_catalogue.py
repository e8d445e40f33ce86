"""The catalogue: rows that agree with themselves and with what is published of the models."""

import re
from pathlib import Path

import pytest

from ssd_core import SSDError, plan
from ssd_core.backbones import emu3, simplear
from ssd_core.backbones.prompts.own_words import OwnWords
from ssd_core.engine.methods import METHODS, SSD
from ssd_core.weights.catalogue import CATALOGUE, known
from ssd_core.weights.hub import fits
from ssd_core.weights.model_size import ModelSize

ROOT = Path(__file__).resolve().parents[2]
ROWS = pytest.mark.parametrize("row", CATALOGUE.values(), ids=CATALOGUE)
# Parameters in billions: of the decoder with its embeddings and head, as published.
PUBLISHED = {"Janus-Pro-1B": 1.65, "Janus-Pro-7B": 6.91, "Anole-7B": 7.01, "Emu3-Gen": 8.49,
             "SimpleAR-0.5B-RL": 0.55, "SimpleAR-1.5B-RL": 1.64,
             "Lumina-mGPT-2.0": 7.88, "Emu3.5-Image": 34.1,
             "LlamaGen-c2i-B-256": 0.11, "LlamaGen-c2i-L-384": 0.34, "LlamaGen-c2i-XL-384": 0.77,
             "LlamaGen-c2i-XXL-384": 1.41, "LlamaGen-c2i-3B-384": 3.09, "Tar-AR-DTok-512": 0.65,
             "GLM-Image": 8.92}
# Keys and values of one slot in one branch, bf16, in KiB.
SLOT = {"Janus-Pro-1B": 192, "Janus-Pro-7B": 480, "Lumina-mGPT-7B-768": 512, "Emu3-Gen": 128,
        "Emu3.5-Image": 256,
        "LlamaGen-t2i-XL-256": 180, "LlamaGen-c2i-3B-384": 300, "Tar-AR-DTok-1024": 150,
        "GLM-Image": 40}


@ROWS
def test_a_row_is_whole(row):
    assert row.sources[0].files and row.licence.restricts and row.licence.link.startswith("https://")
    assert row.shape.heads % row.shape.kv_heads == 0
    across = 8192 if row.family == "Emu3.5" else row.shape.hidden
    assert row.shape.heads * row.shape.head_dim == across
    assert all(str(side) in row.name or "LlamaGen" not in row.family for side in row.size)
    assert all(len(text.splitlines()) <= 1 for text in (row.note, row.title))
    for method in METHODS.values():
        assert method().resolve(row.preset).plan(row.grid).ar_passes == row.grid.cells


@pytest.mark.parametrize("name, billions", PUBLISHED.items(), ids=PUBLISHED)
def test_shapes_have_the_published_parameters(name, billions):
    """Published counts hold the whole text head too, of which only the codes' rows are kept."""
    figures = ModelSize.of(CATALOGUE[name])
    count = (figures.matrices + figures.other_parameters) / 1e9
    assert billions * 0.91 < count < billions * 1.03


@pytest.mark.parametrize("name, kib", SLOT.items(), ids=SLOT)
def test_keys_and_values_of_a_slot_are_as_published(name, kib):
    shape = CATALOGUE[name].shape
    assert 2 * 2 * shape.layers * shape.kv_heads * shape.head_dim == kib * 1024


@pytest.mark.parametrize("name, passes", [("Janus-Pro-7B", 80), ("Lumina-mGPT-7B-768", 304),
                                          ("Emu3-Gen", 661)])
def test_presets_give_the_papers_passes(name, passes):
    row = CATALOGUE[name]
    k_v = 1  # the paper's step counts of its main table
    method = SSD(k_v=k_v, rounds=row.preset.rounds, incremental=row.preset.incremental)
    assert plan(row.grid, method.resolve(row.preset)).paper_passes == passes


AUTHORS = {"Janus-Pro, Janus-1.3B": "Janus-Pro-7B", "Janus-4o": "Janus-4o-7B",
           "Janus-Pro-R1": "Janus-Pro-R1-7B", "SimpleAR": "SimpleAR-0.5B-RL",
           "LlamaGen by class": "LlamaGen-c2i-B-384", "LlamaGen by text": "LlamaGen-t2i-XL-512",
           "Lumina-mGPT": "Lumina-mGPT-7B-768", "Anole": "Anole-7B",
           "Lumina-mGPT 2.0 and Omni": "Lumina-mGPT-2.0", "Tar AR-DTok": "Tar-AR-DTok-1024"}
OWN_WORDS = {"SimpleAR": simplear.OWN_WORDS, "Emu3-Gen": emu3.OWN_WORDS}


def test_presets_and_added_words_are_those_of_the_table_of_the_authors_programs():
    page = (ROOT / "docs" / "backbones.md").read_text("utf-8")
    table = page.partition("## As the authors draw")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in table.split("\n") if line[:2] == "| "][2:]
    for models, theirs, ours, branch, added, size, source, known_by in rows:
        row = CATALOGUE[AUTHORS.get(models, models)]
        own = row.preset
        assert ours == f"{own.cfg:g}; {own.temperature:g}; {own.top_k}; {own.top_p:g}" == theirs
        words = OWN_WORDS.get(models, OwnWords())
        assert branch.endswith(words.negative) and added.endswith(words.added)
        assert bool(words.added) == added.startswith(("before it: ", "after it: "))
        assert f"{row.size[0]}x{row.size[1]}" in size
        assert re.search(r"@[0-9a-f]{7}, \S+\(\d+", source) and known_by.startswith("read")
    named = {AUTHORS.get(row[0], row[0]) for row in rows}
    assert {row.family for row in CATALOGUE.values()} == {CATALOGUE[name].family for name in named}


def test_words_behind_a_bar_take_the_place_of_the_authors():
    last, first = OwnWords(after=" best.", negative="blur"), OwnWords(before="A photograph of ")
    assert [last.written(text) for text in ("a fox", "a fox | in oil", "a fox |")] == [
        "a fox best.", "a fox in oil", "a fox"]
    assert [first.written(text) for text in ("a fox", "An oil of | a fox", "| a fox")] == [
        "A photograph of a fox", "An oil of a fox", "a fox"]
    assert OwnWords().written("a | b") == "a | b"
    assert last.asked("none") == "none" and last.asked("") is None is first.asked(" None")
    assert len(last.notes("a fox", None, True)) == 2 and not last.notes("a fox |", "none", True)


def test_names_are_found_however_they_are_cased():
    assert known("JANUS-pro-7b") is CATALOGUE["Janus-Pro-7B"]
    with pytest.raises(SSDError) as refused:
        known("JANUS-pro")
    assert str(refused.value) == (
        "backbone 'JANUS-pro' is not in the catalogue: choose another, such as Janus-Pro-7B, "
        "Janus-Pro-1B, Janus-Pro-R1-7B; download --list shows all")


@pytest.mark.parametrize("name, pattern, agreed", [
    ("config.json", "*.json", True), ("old/config.json", "*.json", False),
    ("a/../b.json", "*/*/*.json", False), ("model-00001.safetensors", "model*.safetensors", True),
    ("MODEL.safetensors", "model*.safetensors", False)])
def test_patterns_never_cross_a_folder(name, pattern, agreed):
    assert fits(name, pattern) == agreed
