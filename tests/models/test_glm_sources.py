"""GLM-Image's source pictures, against the class of transformers and its image processor."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from PIL import Image
from support.mock_backbone import MockBackbone, tokens
from support.tiny_glm_image import CODES, SOURCES, glm_image, oracle, tokenizer

from ssd_core import Sampling, SSDError, generate, load_backbone, methods, plan
from ssd_core.backbones.codecs.colours import ColourFit, read_table, write_table
from ssd_core.backbones.codecs.glm_encoder import halved, source_grid
from ssd_core.cli import main
from ssd_core.engine.edits.words import Edit
from ssd_core.output.drawing import Drawing
from ssd_core.output.packed import unpack
from ssd_core.output.picture_files import pixels_of
from ssd_core.output.recipe import read_recipe
from ssd_core.runs.request import Request

GREEDY = Sampling(temperature=0.0)
SIZES = [(128, 128), (160, 96), (70, 130), (300, 260), (40, 60)]  # of sources, in px


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return glm_image(tmp_path_factory.mktemp("glm") / "GLM-Image")


@pytest.fixture(scope="module")
def backbone(folder):
    return load_backbone(folder, device="cpu", dtype="fp32")


@pytest.fixture(scope="module")
def theirs():
    pytest.importorskip("transformers", reason="transformers is the oracle")
    return oracle()


def picture(width: int, height: int, seed: int = 0) -> torch.Tensor:
    """Coloured patches [H, W, 3] in bytes of 0..1."""
    generator = torch.Generator().manual_seed(seed)
    small = torch.rand(1, 3, 5, 7, generator=generator)
    large = torch.nn.functional.interpolate(small, (height, width), mode="nearest")
    return (large[0].permute(1, 2, 0) * 255).round() / 255


def processed(*pictures: torch.Tensor):
    """pixel_values and grids [n, 3] by the processor of transformers."""
    from transformers.models.glm_image.image_processing_pil_glm_image import (
        GlmImageImageProcessorPil,
    )

    processor = GlmImageImageProcessorPil(patch_size=16, merge_size=1, temporal_patch_size=1,
                                          **SOURCES)
    images = [Image.fromarray((each * 255).byte().numpy()) for each in pictures]
    made = processor(images=images, return_tensors="pt")
    return made["pixel_values"], made["image_grid_thw"]


@pytest.mark.parametrize("width, height", SIZES)
def test_sources_are_scaled_as_by_the_processor(theirs, width, height):
    pixels, grids = processed(picture(width, height))
    grid = source_grid(height, width, 96, 256)
    assert [1, *grid] == grids[0].tolist()
    own = halved(picture(width, height).permute(2, 0, 1), grid)
    own = own.unfold(1, 16, 16).unfold(2, 16, 16).permute(1, 2, 0, 3, 4).reshape(pixels.shape)
    assert (own - pixels).abs().max() < 1.6 / 255 / 0.26  # bytes are rounded twice there


def test_codes_of_pictures_are_the_oracles(backbone, theirs):
    pictures = [picture(128, 128), picture(160, 96, seed=1)]
    pixels, grids = processed(*pictures)
    vectors = theirs.model.get_image_features(pixels, grids).pooler_output
    expected = theirs.model.get_image_tokens(vectors)
    own = backbone.read_sources(pictures)
    assert [each.shape for each in own] == [(4, 4), (3, 5)]
    assert torch.cat([each.flatten() for each in own]).equal(expected)
    assert len(expected.unique()) > 3
    view = backbone.resized((320, 256))
    same = view.encode(picture(320, 256)[None])  # a picture to keep cells of is read the same way
    assert same.shape == (1, 8, 10)


def expected_codes(model, backbone, prompt, sources, size) -> torch.Tensor:
    """The oracle's own greedy tokens of a picture drawn from sources."""
    pixels, grids = processed(*sources)
    width, height = size
    rows, columns = height // 32, width // 32
    image, ids = tokenizer().token_to_id("<|image|>"), []
    for grid in grids:
        ids += [CODES, *[image] * int(grid.prod()), CODES + 1]
    ids += backbone.text.encode(f"{prompt}<sop>{rows} {columns}<eop><|dit_token_{CODES}|>")
    out = model.generate(
        input_ids=torch.tensor([ids]), attention_mask=torch.ones(1, len(ids), dtype=torch.long),
        pixel_values=pixels, do_sample=False,
        image_grid_thw=torch.cat((grids, torch.tensor([[1, rows, columns]]))),
        images_per_sample=torch.tensor([len(sources) + 1]), max_new_tokens=rows * columns,
        suppress_tokens=list(range(CODES, CODES + 8)))
    return out[0, len(ids) :].view(rows, columns)


@pytest.mark.parametrize("sources, size", [
    ([(128, 128)], (256, 256)), ([(160, 96)], (320, 256)), ([(96, 128), (160, 96)], (256, 288))],
    ids=["square", "wide", "two"])
def test_pictures_from_sources_are_the_oracles(backbone, theirs, sources, size):
    pictures = [picture(*each, seed=number) for number, each in enumerate(sources)]
    view = backbone.resized(size).drawn_from(backbone.read_sources(pictures))
    codes = expected_codes(theirs, backbone, "a red house", pictures, size)
    for method in (methods.AR(), methods.Exact(window=20)):
        assert tokens(view, method, ["a red house"], sampling=GREEDY)[0].equal(codes)
    assert len(codes.unique()) > 3


def test_sources_need_no_sketch_and_change_the_picture(backbone):
    view = backbone.drawn_from(backbone.read_sources([picture(128, 128)]))
    small = view.resized((256, 256))
    assert small.sketch() is None and small.grid.rows == 8
    assert plan(small, methods.AR()).passes == 64
    *_, last = generate(small, ["a", "red tree"], methods.Exact(), sampling=GREEDY)
    assert last.sketch is None and last.tokens.shape == (2, 8, 8)
    other = backbone.drawn_from(backbone.read_sources([picture(128, 128, seed=3)]))
    *_, changed = generate(other, ["a", "red tree"], methods.Exact(), sampling=GREEDY,
                           size=(256, 256))
    assert not last.tokens.equal(changed.tokens)
    assert backbone.sources == () and backbone.drawn_from([]) is backbone


def test_what_cannot_be_a_source_is_one_line(backbone, tmp_path):
    with pytest.raises(SSDError, match="mock takes no source picture: leave it out"):
        MockBackbone().read_sources([picture(128, 128)])
    with pytest.raises(SSDError, match="mock takes no source picture: leave it out"):
        MockBackbone().drawn_from([torch.zeros(2, 2).long()])
    with pytest.raises(SSDError, match="source picture of 500x100 px: .* crop it"):
        backbone.read_sources([picture(500, 100)])
    with pytest.raises(SSDError, match="codes beyond those of glm-image"):
        backbone.drawn_from([torch.full((2, 2), CODES)])
    with pytest.raises(SSDError, match="cannot edit pictures by words"):
        view = backbone.resized((256, 256)).drawn_from([torch.zeros(2, 2).long()])
        list(generate(view, ["a"], methods.Exact(), keep=torch.zeros(1, 8, 8).long(),
                      edit=Edit("b")))


@pytest.fixture(scope="module")
def drawn(folder, tmp_path_factory) -> tuple[Path, dict]:
    """A picture that the command line drew from a JPEG, and its recipe."""
    place = tmp_path_factory.mktemp("drawn")
    Image.fromarray((picture(128, 128) * 255).byte().numpy()).save(place / "cat.jpg")
    ssd("generate", "a red cat", "--backbone", folder, "--dtype", "fp32", "--source",
        place / "cat.jpg", "--size", "256x256", "--seed", "7", "--out", place / "first.png")
    return place / "first.png", read_recipe(place / "first.png")


def ssd(*words: object) -> None:
    assert main([str(word) for word in words]) == 0


def test_a_recipe_has_the_codes_of_sources_and_draws_again(backbone, drawn, tmp_path):
    path, recipe = drawn
    codes, = Drawing.from_json(recipe).sources
    assert codes.equal(backbone.read_sources([pixels_of(path.with_name("cat.jpg"))])[0])
    again = Request.of_recipe(recipe, backbone, None)
    assert again.run().tokens[0].equal(unpack(recipe["tokens"]))
    plain = replace(again, drawing=replace(again.drawing, sources=()))
    assert plain != again and again == Request.of_recipe(recipe, backbone, None)
    assert not plain.run().tokens[0].equal(unpack(recipe["tokens"]))
    ssd("generate", "--like", path, "--backbone", folder_of(backbone), "--out",
        tmp_path / "again.png")
    assert read_recipe(tmp_path / "again.png")["tokens"] == recipe["tokens"]


def folder_of(backbone) -> Path:
    return backbone.files[0].parents[1]


def test_fitted_colours_are_those_of_the_pictures(tmp_path, capsys):
    folder = glm_image(tmp_path / "GLM-Image")
    plain = load_backbone(folder, device="cpu", dtype="fp32")
    assert "false colour" in plain.notes(Sampling())[0]
    pictures = [picture(320, 256, seed) for seed in range(12)]
    for number, each in enumerate(pictures):
        Image.fromarray((each * 255).byte().numpy()).save(tmp_path / f"{number}.png")
    (tmp_path / "broken.png").write_bytes(b"no picture")
    ssd("colours", tmp_path, "--backbone", folder, "--dtype", "fp32", "--json")
    said = capsys.readouterr()
    assert json.loads(said.out.splitlines()[-1])["pictures"] == 12 and "left out" in said.err
    model = load_backbone(folder, device="cpu", dtype="fp32").resized((320, 256))
    assert "one colour for each code" in model.notes(Sampling())[0]
    codes = torch.stack([model.encode(each[None])[0] for each in pictures])
    errors = [(view.resized((320, 256)).decode(codes) - torch.stack(pictures)).square().mean()
              for view in (model, plain)]
    flat = torch.stack(pictures) - torch.stack(pictures).mean((0, 1, 2))
    assert errors[0] < 0.95 * flat.square().mean() < errors[1]
    (folder / "vision_language_encoder" / "colours.json").write_text(
        json.dumps({"sha256": model.sha256, "format": "ssd-colours/1", "colours": "AAAA"}))
    with pytest.raises(SSDError, match="colours.json: no table of colours .* fit it again"):
        load_backbone(folder, device="cpu", dtype="fp32")


def test_codes_that_no_picture_has_get_the_colour_of_similar_ones():
    generator = torch.Generator().manual_seed(0)
    vectors = torch.randn(60, 4, generator=generator)
    true = (0.5 + 0.1 * vectors @ torch.randn(4, 3, generator=generator)).clamp(0, 1)
    fit = ColourFit(vectors)
    for codes in torch.arange(40).view(4, 2, 5).repeat(5, 1, 1):
        fit.add(codes, true[codes].repeat_interleave(8, 0).repeat_interleave(8, 1))
    assert fit.seen == 40
    assert (fit.table() - true).abs()[:40].max() < 0.06
    assert (fit.table() - true).abs()[40:].mean() < 0.5 * (true.mean(0) - true).abs()[40:].mean()
    with pytest.raises(SSDError, match="no picture to fit"):
        ColourFit(vectors).table()


def test_a_table_goes_to_the_cache_where_the_model_cannot_be_written(tmp_path, monkeypatch):
    monkeypatch.setenv("SSD_CACHE", str(tmp_path / "cache"))
    (tmp_path / "file").write_text("")
    path = write_table(torch.rand(6, 3), tmp_path / "file", "ab" * 32, 1)
    assert path.parent == tmp_path / "cache"
    assert read_table(tmp_path / "file", "ab" * 32, 6).shape == (6, 3)
    assert read_table(tmp_path / "file", "cd" * 32, 6) is None


def test_other_backbones_and_files_are_refused_in_one_line(drawn, tmp_path, capsys):
    path, recipe = drawn
    (tmp_path / "broken.jpg").write_bytes(b"no picture")
    for source, named in ((path, "postcard takes no source picture: leave it out"),
                          (tmp_path / "broken.jpg", "not a whole picture"),
                          (tmp_path / "none.png", "no such file")):
        out = tmp_path / "out.png"
        assert main(["generate", "a house", "--source", str(source), "--out", str(out)]) == 2
        assert named in capsys.readouterr().err and not out.exists()
    assert main(["colours", str(path)]) == 2
    assert "postcard decodes its own pixels" in capsys.readouterr().err
    for sources in (3, [{"shape": [2, 2], "data": "AAAA"}]):
        with pytest.raises(SSDError, match="sources"):
            Drawing.from_json({**recipe, "sources": sources})
