"""What hosts offer on a picture: short names, and the order in which a key walks through things."""

import pytest
import torch

from ssd_core.engine.edits.things import Thing
from ssd_core.output.touchable import names_of, order


def thing(phrase, row, column):
    mask = torch.zeros(9, 9, dtype=torch.bool)
    mask[row : row + 2, column : column + 2] = True
    return Thing(phrase, mask, 20.0, True)


@pytest.mark.parametrize(("phrases", "names"), [
    (["a lone red house on the left"], ["red house, left"]),
    (["an old oak"], ["old oak"]),
    (["on the right stands a tower"], ["tower, left"]),  # where it is, not where it should be
    (["a boat sails to the left", "some boats"], ["boat, left", "boats"]),
    (["a house", "the house"], ["house, left", "house, right"]),
    (["at night"], ["at night"]),
    (["孤独的粉色的教堂在左边"], ["左边的粉色的教堂"]),
    (["左边有一座红房子", "一棵树"], ["左边的红房子", "树"]),
])
def test_names_are_short_and_tell_things_apart(phrases, names):
    assert names_of([thing(phrase, 4, 6 * n) for n, phrase in enumerate(phrases)]) == names


def test_things_are_in_reading_order():
    places = [(7, 5), (0, 6), (4, 7), (3, 1), (6, 0)]
    walked = sorted((thing("a tree", *place) for place in places), key=order)
    assert [each.box[:2] for each in walked] == [(0, 6), (3, 1), (4, 7), (6, 0), (7, 5)]
