"""The catalogue: rows that agree with themselves and with what is published of the models."""

import pytest

from ssd_core import SSDError, plan
from ssd_core.engine.methods import METHODS, SSD
from ssd_core.weights.catalogue import CATALOGUE, known
from ssd_core.weights.hub import fits
from ssd_core.weights.model_size import ModelSize

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
