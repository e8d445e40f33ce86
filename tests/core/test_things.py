"""Things of a picture: divergences, copies, outlines and what a click hits."""

from functools import cache

import pytest
import torch
from support.mock_backbone import MockBackbone

from ssd_core import Grid, SSDError, thing_at, things_of
from ssd_core.backbones.base import Preset
from ssd_core.engine.decode import prompt_branches
from ssd_core.engine.edits import things
from ssd_core.engine.edits.things import (
    BLOCKS,
    Outline,
    Reader,
    WordMap,
    alike,
    apart,
    cut,
    filled,
    groups_of,
    in_places,
    middle,
    outlined,
    shares_of,
    sharpened,
    swapped,
)
from ssd_core.engine.edits.words import without

GRID = Grid(6, 7)
PROMPT = "a sun,a hut,x"


def reader_of(model: MockBackbone) -> Reader:
    words = prompt_branches(model, [PROMPT], None, 2.0)
    return Reader(model, picture()[None], PROMPT, words, 2.0)


@cache
def backbone(row_end: bool = False) -> MockBackbone:
    return MockBackbone(Grid(6, 7, row_end), codes=12, preset=Preset(k_h=3, cfg=2.0))


def picture() -> torch.Tensor:
    return torch.randint(12, (6, 7), generator=torch.Generator().manual_seed(3))


def table(*rows: str) -> torch.Tensor:
    """A map: each digit a cell's divergence, a dot for 0."""
    return torch.tensor([[0.0 if cell == "." else float(cell) for cell in row] for row in rows])


def mask(*rows: str) -> torch.Tensor:
    return torch.tensor([[cell == "#" for cell in row] for row in rows])


class Maps(Reader):
    """Maps by the phrases that are left out or replaced, instead of a model's."""

    def __init__(self, left_out: dict, replaced: dict | None = None) -> None:
        self.left_out, self.replaced = left_out, replaced or {}

    def without(self, groups):
        return [shown_by(self.left_out.get(tuple(group), NOTHING)) for group in groups]

    def instead(self, groups):
        return [shown_by(self.replaced.get(tuple(group), NOTHING)) for group in groups]


def shown_by(divergence: torch.Tensor) -> WordMap:
    """What is there is what the words ask for."""
    return WordMap(divergence, divergence / 2)


NOTHING = torch.zeros(12, 24)
PLAIN = torch.zeros(12, 24, BLOCKS**2, dtype=torch.long)  # of one colour


def field(*boxes: tuple[int, int, int, int], value: float = 50.0) -> torch.Tensor:
    """A map [12, 24] with the value in boxes: first row, first column, rows, columns."""
    shown = torch.zeros(12, 24)
    for top, left, rows, columns in boxes:
        shown[top : top + rows, left : left + columns] = value
    return shown


def colours_of(*boxes: tuple[int, int, int, int]) -> torch.Tensor:
    """Colour 300 in boxes, 0 elsewhere."""
    return (field(*boxes, value=300.0)[..., None].expand(-1, -1, BLOCKS**2)).long()


def found(phrases, reader, colours=PLAIN) -> dict:
    shown = apart(outlined(phrases, colours, reader))
    return {(thing.phrase, thing.place): thing for thing in shown}


# Divergences


@pytest.mark.parametrize("row_end", [False, True])
def test_the_divergence_is_kl_both_ways_under_guidance(row_end):
    model, tokens = backbone(row_end), picture()[None]
    [found] = reader_of(model).without([["a hut"]])
    codes = torch.cat((tokens, torch.full((1, 6, int(row_end)), model.codes)), 2).flatten(1)

    def logs(prompt: str | None) -> torch.Tensor:
        ids = model.tokenize(PROMPT)[:1] if prompt is None else model.tokenize(prompt)
        x = torch.cat((model.embed_prompt(torch.tensor([ids])), model.embed(codes[:, :-1])), 1)
        return model.logits(model(x)[0, len(ids) - 1 :])

    none = logs(None)
    w, x = (torch.lerp(none, logs(words), 2.0).log_softmax(-1) for words in (PROMPT, "a sun, x"))
    kl = (w.exp() * (w - x)).sum(-1) + (x.exp() * (x - w)).sum(-1)
    gain = (w - x).gather(-1, codes.clamp(max=model.codes - 1)[0, :, None])[:, 0]
    for table, expected in ((found.divergence, kl), (found.gain, gain)):
        expected = things.smoothed(expected.view(1, 6, -1)[..., :7])[0]
        assert torch.allclose(table, expected, atol=1e-4) and table.abs().max() > 0.1


def test_many_phrases_take_passes_of_a_few(monkeypatch):
    groups = [["a sun"], ["a hut"], ["x"]]
    reader = reader_of(backbone())
    at_once = reader.without(groups)
    monkeypatch.setattr(things, "AT_ONCE", 2)
    in_two = reader.without(groups)
    assert len(in_two) == 3
    for one, two in zip(at_once, in_two, strict=True):
        assert torch.allclose(one.divergence, two.divergence, atol=1e-4)


def test_the_strength_is_the_mean_of_the_largest_cells():
    shown = torch.zeros(24, 24)
    shown.view(-1)[:12] = torch.arange(12.0)
    assert shown_by(shown).strength == pytest.approx(5.5)


# Words


@pytest.mark.parametrize("one, two, same", [
    ("a tower in the middle", "a red tower", True), ("a red tower", "a red tower", True),
    ("a red tower", "a blue tower", False), ("a red house", "a red tower", False),
    ("左边的红房子", "右边的红房子", True), ("on the left", "on the left", False)])
def test_alike_things_have_compatible_words(one, two, same):
    assert alike(one, two) == same == alike(two, one)


def test_groups_join_what_a_third_phrase_links():
    phrases = ["a red tower", "a boat", "a blue tower", "a tower"]
    assert groups_of(phrases) == [[1], [0, 2, 3]]


def test_every_copy_is_replaced_and_trees_by_something_else():
    assert swapped("two things, a castle, a castle", ["a castle", "a castle"]) == (
        "two things, a green tree, a green tree")
    assert swapped("a tree, a house", ["a tree"]) == "a red boat, a house"


def test_a_word_is_not_found_inside_another():
    assert without("green trees and green tree", "green tree") == "green trees"


# Masks


def test_holes_are_filled_and_bays_are_not():
    assert filled(mask("####.", "#..#.", "####.", "#.#..")).equal(
        mask("####.", "####.", "####.", "#.#.."))


def test_a_piece_is_cut_at_its_weakest_column():
    relative = table("9991999", "9992999")
    left, right = cut(relative > 0, relative)
    assert left.any(0).tolist() == [True] * 3 + [False] * 4 and (left | right).all()


def test_two_alike_things_are_two_pieces_or_one_cut_in_two():
    far, near = field((4, 2, 4, 4), (4, 15, 4, 4)) > 0, field((4, 2, 4, 9)) > 0
    for region in (far, near):
        left, right = shares_of(region, region.float(), 2)
        assert middle(left) < middle(right) and (left | right).equal(region)


@pytest.mark.parametrize("neck", [(7, 6, 1, 9), (0, 0, 0, 0)], ids=["joined", "apart"])
def test_one_phrase_may_have_two_similar_pieces(neck):
    houses = [field((4, 2, 4, 4)), field((4, 15, 4, 4))]
    left, right = shares_of(sum(houses) + field(neck) > 0, sum(houses), 1)
    assert left[houses[0] > 0].all() and right[houses[1] > 0].all() and not (left & right).any()


def test_a_small_second_piece_is_left_out():
    thing, speck = field((4, 2, 4, 4)), field((0, 20, 1, 2))
    [piece] = shares_of(thing + speck > 0, thing + speck, 1)
    assert piece.equal(thing > 0)


def test_pieces_go_where_the_words_say_else_from_left_to_right():
    left, right = (field((4, column, 4, 4)) > 0 for column in (0, 18))
    assert in_places(["b on the right", "b"], [left, right]) == [1, 0]
    assert in_places(["b", "b"], [left, right]) == [0, 1]
    assert in_places(["b", "b on the right"], [right]) == [1]
    assert in_places(["b"], [left, right]) == [0, 0]


def test_colours_sharpen_a_region_by_a_cell():
    relative = field((4, 4, 4, 4), value=0.8)
    wider = sharpened(relative > 0, relative, colours_of((3, 4, 5, 5)))
    assert wider.equal(field((3, 4, 5, 5)) > 0)
    narrower = sharpened(relative > 0, relative, colours_of((4, 4, 4, 3)))
    assert narrower.equal(field((4, 4, 4, 3)) > 0)


def test_thin_parts_are_added_by_colours_that_are_rare_beside_them():
    """As a tree's trunk: its colour is none of the crown's."""
    relative = field((4, 4, 4, 4), value=0.8)
    colours = colours_of((4, 4, 4, 4))
    colours[8, 5] = 77
    found = sharpened(relative > 0, relative, colours)
    assert found[8, 5] and found.sum() == 17
    colours[8] = 77
    assert sharpened(relative > 0, relative, colours).sum() == 16, "as all the ground"


# Things


def test_one_phrase_one_thing():
    [thing] = found(["a hut"], Maps({("a hut",): field((4, 2, 4, 4))})).values()
    assert thing.mask.equal(field((4, 2, 4, 4)) > 0) and thing.sure and thing.place == "left"
    assert thing.box == (4, 2, 4, 4) and thing.strength == pytest.approx(50)


def test_copies_of_a_phrase_are_left_out_together():
    both = field((4, 2, 4, 4), (4, 16, 4, 4))
    weak = field((4, 2, 4, 4), value=5.0)
    reader = Maps({("a hut",): weak, ("a hut", "a hut"): both})
    assert set(found(["a hut", "a hut"], reader)) == {("a hut", "left"), ("a hut", "right")}


def test_copies_are_replaced_where_leaving_them_out_moves_little():
    """As in "two things, a hut, a hut": the number alone promises two things."""
    weak = field((0, 0, 3, 5), value=5.0)
    reader = Maps({("a hut",): weak, ("a hut", "a hut"): weak},
                  {("a hut", "a hut"): field((4, 2, 4, 4), (4, 16, 4, 4))})
    shown = found(["a hut", "a hut"], reader)
    assert set(shown) == {("a hut", "left"), ("a hut", "right")}
    assert shown["a hut", "left"].box == (4, 2, 4, 4)


def test_a_twin_without_a_colour_is_a_copy():
    phrases = ["a tower in the middle", "a red tower"]
    weak = field((4, 2, 4, 4), value=5.0)
    reader = Maps({(phrases[0],): weak, (phrases[1],): weak,
                   tuple(phrases): field((4, 10, 4, 4), (4, 18, 4, 4))})
    assert set(found(phrases, reader)) == {(phrases[0], "middle"), (phrases[1], "right")}


def test_other_words_for_the_same_things_are_left_out_together():
    """As "houses" and "cottages": each alone is weak, as the other stands in for it."""
    phrases = ["pink houses", "pink cottages"]
    weak = field((4, 2, 4, 4), value=5.0)
    reader = Maps({(phrases[0],): weak, (phrases[1],): weak,
                   tuple(phrases): field((4, 2, 4, 4), (4, 16, 4, 4))})
    assert set(found(phrases, reader)) == {(phrases[0], "left"), (phrases[1], "right")}


def test_words_that_ask_for_something_else_show_nothing(monkeypatch):
    """The phrase moves the cells, but away from the tokens that are there."""
    monkeypatch.setitem(globals(), "shown_by", lambda table: WordMap(table, -table))
    assert found(["a hut"], Maps({("a hut",): field((4, 2, 4, 4))})) == {}


def test_what_was_not_drawn_is_not_shown():
    castle = field((4, 10, 6, 6))
    inside = field((5, 11, 3, 3), value=30.0)
    reader = Maps({("a castle",): castle, ("a tower",): inside, ("a dog",): NOTHING})
    assert [thing.phrase for thing in found(["a castle", "a tower", "a dog"], reader).values()] == [
        "a castle"]


def test_no_two_things_share_a_cell():
    outlines = [Outline("a", field((4, 2, 4, 6)) > 0, field((4, 2, 4, 6), value=1.0), 50.0,
                        True),
                Outline("b", field((4, 7, 4, 6)) > 0, field((4, 7, 4, 6), value=2.0), 40.0,
                        True)]
    a, b = apart(outlines)
    assert not (a.mask & b.mask).any() and b.mask.sum() == 24 and a.mask.sum() == 20


def test_a_click_hits_a_thing_or_one_beside_the_cell():
    shown = list(found(["a hut", "a boat"], Maps({
        ("a hut",): field((4, 2, 4, 4)), ("a boat",): field((4, 8, 4, 4))})).values())
    for column, phrase in ((3, "a hut"), (6, "a hut"), (7, "a boat"), (13, None), (12, "a boat")):
        hit = thing_at(shown, 5, column)
        assert (hit and hit.phrase) == phrase


# Backbones


def test_any_backbone_that_reads_a_picture_has_things():
    pixels = torch.rand(24, 28, 3, generator=torch.Generator().manual_seed(0))
    for model in (backbone(), backbone(True)):
        for guidance in (None, 1.0):
            shown = things_of(model, picture(), PROMPT, guidance, pixels)
            assert all(thing.mask.shape == (6, 7) and thing.mask.any() for thing in shown)
    assert things_of(backbone(), picture(), ",", pixels=pixels) == []


def test_wrong_pictures_and_sketching_models_get_one_line():
    for tokens, prompt, said in ((picture()[:3], PROMPT, "tokens"), (picture(), 3, "prompt"),
                                 (picture(), " ", "the prompt is empty")):
        with pytest.raises(SSDError, match=said):
            things_of(backbone(), tokens, prompt)
    model = MockBackbone(GRID, codes=12)
    model.sketch = lambda: model
    with pytest.raises(SSDError, match="cannot edit pictures by words"):
        things_of(model, picture(), PROMPT)
