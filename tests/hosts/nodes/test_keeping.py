"""A part of a picture is redrawn: masks of any kind, pictures of ours and photographs."""

import numpy as np
import pytest
import torch
from PIL import Image
from support.comfyui_stub import ExecutionBlocker
from support.small_bundle import PIXELS, SIDE

pytestmark = pytest.mark.usefixtures("small_bundle")
CELL = 16  # px


def sample(pack, model, **values):
    return pack.run("SSD_Sampler", model=model, cfg=1.0, complete_prompt=False, **values)


def redraw(pack, model, **values):
    """A sample by another seed, hot enough not to fall on the same tokens."""
    return sample(pack, model, seed=99, temperature=2.0, min_p=0.0, **values)


def encode(pack, model, image, mask=None, **use):
    """(run, mask, rows)"""
    return pack.run("SSD_Encode", model=model, image=image, mask=mask,
                    use={"use": "a picture", **use})


@pytest.fixture
def drawn(pack, model):
    """(images, run)"""
    return sample(pack, model)


def painted(side: int = PIXELS) -> torch.Tensor:
    """A mask [1, H, W] whose middle, half as wide and high, is white."""
    mask = torch.zeros(1, side, side)
    mask[:, side // 4 : 3 * side // 4, side // 4 : 3 * side // 4] = 1
    return mask


FREE = painted(SIDE)[0].bool()


def away(pictures: torch.Tensor) -> torch.Tensor:
    """The pixels that are more than a cell from what was redrawn."""
    far = torch.ones(pictures.shape[1:3], dtype=torch.bool)
    far[CELL:-CELL, CELL:-CELL] = False
    return far


@pytest.mark.parametrize("side", [PIXELS, 64, 12, 4, 500])
def test_white_is_redrawn_and_the_rest_stays_to_the_pixel(pack, model, drawn, side):
    images, run = redraw(pack, model, picture=drawn[1], mask=painted(side))
    tokens, parent = run.tokens.tokens[0], drawn[1].tokens.tokens[0]
    assert tokens[~FREE].equal(parent[~FREE]) and not tokens[FREE].equal(parent[FREE])
    assert images[:, away(images)].equal(drawn[0][:, away(images)])
    assert f"redrawn: {SIDE**2 // 4} of {SIDE**2} cells; all else is kept, token for" in run.report


def test_soft_masks_count_from_half_and_cells_from_a_quarter(pack):
    cells = pack.module("ssd_core.output.picture_files").redrawn_cells
    grid = pack.module("ssd_core.model.grid").Grid(2, 2)
    soft = torch.tensor([[0.49, 0.49, 0, 0.5], [0.49, 0.49, 0, 0], [0, 0, 1, 1], [0, 0, 1, 0]])
    assert cells(soft, grid).tolist() == [[[False, True], [False, True]]]


@pytest.mark.parametrize(("mask", "said"), [
    (torch.zeros(1, 64, 64), "nothing in it is white"),
    (torch.eye(64)[None] * (torch.arange(64) < 2), "paint a larger area")])
def test_masks_that_redraw_nothing_are_refused(pack, model, drawn, mask, said):
    with pytest.raises(pack.error, match=said):
        sample(pack, model, picture=drawn[1], mask=mask)


@pytest.mark.parametrize(("values", "what"), [
    ({"mask": painted()}, "mask"), ({"keep_rows": 3}, "keep_rows 3"),
    ({"mask": painted(), "keep_rows": 3}, "keep_rows 3")])
def test_a_part_of_no_picture_cannot_be_kept(pack, model, values, what):
    with pytest.raises(pack.error, match=f"^{what}: there is no picture to keep a part of"):
        sample(pack, model, **values)


def test_masks_of_every_shape_that_core_nodes_take_are_the_same_mask(pack, model, drawn):
    mask = painted()
    shapes = [mask[0], mask, mask[:, None]]
    tokens = [redraw(pack, model, picture=drawn[1], mask=one)[1].tokens.tokens for one in shapes]
    assert tokens[0].equal(tokens[1]) and tokens[1].equal(tokens[2])
    photo = torch.rand(1, 30, 60, 3)
    fitted = [encode(pack, model, photo, mask=one)[1] for one in shapes]
    assert fitted[0].equal(fitted[1]) and fitted[1].equal(fitted[2])
    for node, values in (("SSD_Sampler", {"picture": drawn[1]}), ("SSD_Encode", {"image": photo})):
        with pytest.raises(pack.error, match="^mask: "):
            pack.run(node, model=model, mask=mask[:0], **values)


def test_a_mask_that_is_all_white_is_told(pack, model, drawn):
    images, run = sample(pack, model, picture=drawn[1], mask=torch.ones(1, 8, 8))
    assert images.equal(drawn[0]) and "note: picture is not used: the mask is white" in run.report


def test_rows_beside_a_mask_stay_too(pack, model, drawn):
    tokens = redraw(pack, model, picture=drawn[1], mask=painted(), keep_rows=4)[1].tokens.tokens
    assert tokens[0][:4].equal(drawn[1].tokens.tokens[0][:4])
    assert not tokens[0][FREE].equal(drawn[1].tokens.tokens[0][FREE])


def test_a_batch_takes_a_mask_for_all_or_one_each(pack, model, drawn):
    two = torch.cat((painted(), painted().roll(2 * CELL, 1)))
    tokens = redraw(pack, model, picture=drawn[1], mask=two, batch_size=2)[1].tokens.tokens
    parent = drawn[1].tokens.tokens[0]
    for picture, free in zip(tokens, (FREE, FREE.roll(2, 0)), strict=True):
        assert picture[~free].equal(parent[~free]) and not picture[free].equal(parent[free])
    _, run = redraw(pack, model, picture=drawn[1], mask=painted(), batch_size=2)
    again = run.tokens.tokens
    assert "fit what follows the region: " in run.report
    assert again[:, ~FREE].equal(parent[~FREE].expand(2, -1))


def test_a_photograph_stays_the_photograph(pack, model):
    photo = torch.rand(1, PIXELS, PIXELS, 3)
    run = encode(pack, model, photo)[0]
    images = sample(pack, model, picture=run, mask=painted())[0]
    assert images[:, away(images)].equal(photo[:, away(images)])
    below = sample(pack, model, picture=run, keep_rows=4)[0]
    assert below[:, : 3 * CELL].equal(photo[:, : 3 * CELL])
    assert not below[:, 4 * CELL :].equal(photo[:, 4 * CELL :])


def test_a_mask_is_fitted_as_its_picture(pack, model):
    """The picture is twice as wide: its middle is cut out, and rows below it are to be drawn."""
    side = PIXELS
    photo, mask = torch.rand(1, side, 2 * side, 3), torch.zeros(1, 10, 20)
    mask[:, :, 5:10] = 1  # the left half of the middle
    fitted = encode(pack, model, photo, mask=mask, fit="crop")[1]
    assert fitted.shape == (1, side, side)
    assert (fitted[:, :, : side // 2] == 1).all() and not fitted[:, :, side // 2 :].any()
    lower = encode(pack, model, photo[:, : side // 2, :side], mask=mask[:, :, :5],
                   fit="extend below")[1]
    assert not lower[:, : side // 2].any() and (lower[:, side // 2 :] == 1).all()


# Load Picture


def load_picture(pack, image="", text=""):
    return pack.run("SSD_LoadPicture", image=image, text=text)


@pytest.fixture
def saved(pack, drawn):
    """The drawn picture in ComfyUI's input folder, as Save Image wrote it."""
    pack.run("SSD_SaveImage", images=drawn[0], run=drawn[1], filename_prefix="keeping")
    (file,) = pack.stubs.folders.output.rglob("keeping*.png")
    target = file.rename(pack.stubs.folders.input / "saved.png")
    yield target
    target.unlink()


def test_a_saved_picture_comes_back_whole(pack, model, drawn, saved):
    image, run, mask = load_picture(pack, image="saved.png")
    assert run.tokens.tokens.equal(drawn[1].tokens.tokens)
    assert np.array_equal((image * 255).round(), (drawn[0] * 255).round())
    told = pack.run("SSD_RunInfo", run=run)[1:]
    assert told == ("a red house by a river", "", 7, PIXELS, PIXELS, 0)
    assert not mask.any()
    redone = redraw(pack, model, picture=run, mask=painted())[0]
    assert redone[:, away(redone)].equal(image[:, away(redone)])


def test_the_known_part_of_a_picture_comes_as_text(pack, model, drawn):
    """As comfyui_workflow.py writes it into a picture that was drawn outside ComfyUI."""
    child = redraw(pack, model, picture=drawn[1], keep_rows=4)[1]
    text = pack.module("ssd_core.output.kept_rows").written(child.recipe())
    image, run, mask = load_picture(pack, text=text)
    assert run.tokens.tokens[:, :4].equal(drawn[1].tokens.tokens[:, :4])
    assert isinstance(image, ExecutionBlocker) and "not the picture itself" in image.message
    with pytest.raises(pack.error, match="these pictures have no recipe"):
        pack.run("SSD_RunInfo", run=run)
    assert not mask.any()
    again = redraw(pack, model, picture=run, keep_rows=4)[1]
    assert again.tokens.tokens.equal(child.tokens.tokens)
    masked = redraw(pack, model, picture=drawn[1], mask=painted())[1]
    text = pack.module("ssd_core.output.kept_rows").written(masked.recipe())
    _, run, mask = load_picture(pack, text=text)
    assert mask[0].bool().equal(FREE)
    again = redraw(pack, model, picture=run, mask=mask)[1]
    assert again.tokens.tokens.equal(masked.tokens.tokens)
    with pytest.raises(pack.error, match="^text: this is not the text of tokens"):
        load_picture(pack, text="a red house")


def test_a_mask_of_the_mask_editor_leaves_the_picture_its_tokens(pack, drawn, saved):
    """The editor saves pixels and mask, without the recipe."""
    with Image.open(saved) as image:
        painted_on = image.convert("RGBA")
    painted_on.putalpha(Image.fromarray((255 - painted()[0].numpy() * 255).astype(np.uint8)))
    file = saved.with_name("clipspace.png")
    painted_on.save(file)
    assert pack.nodes["SSD_LoadPicture"].validate_inputs(image="clipspace.png [input]") is True
    _, run, mask = load_picture(pack, image="clipspace.png [input]")
    file.unlink()
    assert run.tokens.tokens.equal(drawn[1].tokens.tokens) and mask.equal(painted())


def test_pictures_without_or_with_other_pixels_are_sent_to_encode(pack, saved):
    plain = saved.with_name("plain.png")
    Image.new("RGB", (PIXELS, PIXELS)).save(plain)
    with pytest.raises(pack.error, match="neither has a picture with its pixels"):
        load_picture(pack, image="plain.png")
    plain.unlink()
    with Image.open(saved) as image:
        texts, changed = image.text, image.convert("RGB").transpose(Image.FLIP_LEFT_RIGHT)
    from PIL.PngImagePlugin import PngInfo

    info = PngInfo()
    info.add_text("ssd_recipe", texts["ssd_recipe"])
    changed.save(saved, pnginfo=info)
    with pytest.raises(pack.error, match="changed since .* Load Image and Encode"):
        load_picture(pack, image="saved.png")
    assert "upload" in pack.nodes["SSD_LoadPicture"].validate_inputs(image="gone.png")
