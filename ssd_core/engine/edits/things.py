"""The things of a picture: which cells show what a phrase of its prompt names.

A phrase's cells are those whose distribution changes most if the phrase is left out. The
divergence is compared with its own strongest cells, and colours then sharpen the outline.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, permutations

import torch
import torch.nn.functional as F

from ...backbones.base import Backbone
from ...errors import SSDError
from ...model.grid import Grid
from ...model.sampling import Sampling
from ..decode import alone, prompt_branches
from ..state import DecodeState
from .look import one_picture, sampling_of
from .maps import cells_of, compact, grown, largest_piece, parts, read, shrunk
from .words import ids_without, mention, without

AT_ONCE = 8  # phrases that a pass reads
STRONGEST = 48  # one cell in so many is among the strongest: 12 of 24 x 24
LEAST = 0.55  # of the strength, in a cell of the region
STRONG = 15.0  # nats: what is weaker is read again, with what may stand in for it
DRAWN, SURELY = 3.5, 10.0  # nats: least mean gain where a thing was drawn, surely drawn
FAINT = 2.0  # nats: below this strength a phrase moves nothing in the picture
BLOCKS, BINS = 4, 8  # blocks of pixels and bins of a colour, a side
CLIP, WEIGHT, SPAN = 2.0, 0.3, 0.3  # of a block's log odds; of a cell's own divergence
NEAR = 3  # cells around a region whose colours are compared with it
RARE, MOST = 0.006, 6  # share of a colour around a region, and how many blocks of a cell have such
OVERLAPPING = 0.5  # share of a region in a stronger one: its thing was not drawn
TINY = 1e-3  # a share of colours that counts as none
PIECE, TWIN = 0.25, 0.5  # least size of a second piece, against the largest; of one by itself
FEW = 5  # alike things that are matched to places in every order
OTHERS = ("a green tree", "a red boat")  # what a phrase is replaced by; the second for trees
FILLERS = frozenset("a an the some few one single lone and on in at to of with stand stands float "
                    "floats sail sails side far 的 边 间 有 在 一 个 座 棵 只".split())
PLACES = {"left": 0.0, "middle": 0.5, "center": 0.5, "centre": 0.5, "right": 1.0,
          "左": 0.0, "中": 0.5, "右": 1.0}
_WORDS = re.compile(r"[a-z]+|[^\W\d_a-z]")


@dataclass(frozen=True, eq=False)
class Thing:
    """What a phrase of the prompt names in a picture.

    phrase: as typed. mask: its cells, bool [R, C]; no two things share a cell. strength: how much
    the phrase moves its strongest cells, in nats. sure: the phrase makes what is there so much
    likelier that the mask can be trusted.
    """

    phrase: str
    mask: torch.Tensor
    strength: float
    sure: bool

    @property
    def box(self) -> tuple[int, int, int, int]:
        """The cells around it: first row, first column, rows, columns."""
        rows, columns = self.mask.any(1).nonzero(), self.mask.any(0).nonzero()
        top, left = int(rows[0]), int(columns[0])
        return top, left, int(rows[-1]) - top + 1, int(columns[-1]) - left + 1

    @property
    def place(self) -> str:
        """"left", "middle" or "right": the third of the picture in which its middle lies."""
        return ("left", "middle", "right")[min(int(3 * middle(self.mask)), 2)]


def things_of(backbone: Backbone, tokens: torch.Tensor, prompt: str,
              guidance: float | None = None, pixels: torch.Tensor | None = None,
              before_pass: Callable[[], None] = lambda: None) -> list[Thing]:
    """The things of a picture that its prompt names and that were drawn, in the prompt's order.

    tokens: [R, C] or [1, R, C]. guidance: by default the backbone's own. pixels: the picture
    [H, W, 3] or [1, H, W, 3], float in 0..1; decoded if None. Wide passes read the picture with the
    words and without words, then without each phrase (`AT_ONCE` of them); weak ones take another.
    before_pass: called before each of them; it may raise an exception to stop.
    """
    picture, cfg = one_picture(backbone, tokens), sampling_of(backbone, cfg=guidance).cfg
    words = prompt_branches(backbone, [prompt], None, cfg)
    phrases = [phrase for phrase in backbone.objects(prompt) if mention(prompt, phrase)]
    if not phrases:
        return []
    if pixels is None:
        with alone(backbone.device):
            pixels = backbone.smallest.decode(picture)
    colours = bins_of(pixels.reshape(pixels.shape[-3:]).cpu(), backbone.grid)
    reader = Reader(backbone, picture, prompt, words, cfg, before_pass)
    found = apart(outlined(phrases, colours, reader))
    return [thing for thing in found if backbone.names_objects or bool(compact(thing.mask))]


def thing_at(things: Sequence[Thing], row: int, column: int) -> Thing | None:
    """What a click on a cell hits: its thing, or the strongest of those beside it."""
    inside = [thing for thing in things if thing.mask[row, column]]
    near = [thing for thing in things if grown(thing.mask)[row, column]]
    return max(inside or near, key=lambda thing: thing.strength, default=None)


# Divergences


@dataclass(frozen=True, eq=False)
class WordMap:
    """What some words do to each cell of a picture, in nats, both float32 [R, C].

    divergence: between the distributions with and without them. gain: how much likelier they make
    the token that is there, smoothed alike; negative where the words ask for something else.
    """

    divergence: torch.Tensor
    gain: torch.Tensor

    @property
    def strength(self) -> float:
        """The mean of the largest cells."""
        count = max(self.divergence.numel() // STRONGEST, 1)
        return float(self.divergence.flatten().topk(count)[0].mean())


class Reader:
    """Measures how much each cell of a picture depends on words of its prompt."""

    def __init__(self, backbone: Backbone, picture: torch.Tensor, prompt: str,
                 words: list[list[int]], cfg: float,
                 before_pass: Callable[[], None] = lambda: None) -> None:
        """words: prompt ids of the prompt and, with guidance, of no words; they are read once."""
        self.before_pass = before_pass
        self.backbone, self.picture, self.prompt, self.cfg = backbone, picture, prompt, cfg
        self.hidden = self.read(words).hidden

    def without(self, groups: Sequence[Sequence[str]]) -> list[WordMap]:
        """The maps of groups of phrases that are left out together."""
        return self.against([ids_without_all(self.backbone, self.prompt, group)
                             for group in groups])

    def instead(self, groups: Sequence[Sequence[str]]) -> list[WordMap]:
        """The maps of groups of phrases, each of which is replaced by another thing."""
        return self.against([self.ids_instead(group) for group in groups])

    def ids_instead(self, group: Sequence[str]) -> list[int]:
        """Prompt ids with other things; without the phrases where that would be too long."""
        try:
            return self.backbone.tokenize(swapped(self.prompt, group))
        except SSDError:
            return ids_without_all(self.backbone, self.prompt, group)

    def read(self, branches: list[list[int]]) -> DecodeState:
        """The picture under each of these prompts."""
        self.before_pass()
        with alone(self.backbone.device):
            return read(self.backbone, branches, Sampling(cfg=1), self.picture)

    def against(self, branches: list[list[int]]) -> list[WordMap]:
        maps: list[WordMap] = []
        for first in range(0, len(branches), AT_ONCE):
            state = self.read(branches[first : first + AT_ONCE])
            with alone(self.backbone.device):
                tables = cells_of(self.backbone.grid, self.compared(state)).cpu()
            maps += [WordMap(*both) for both in zip(*map(smoothed, tables), strict=True)]
        return maps

    def compared(self, state: DecodeState) -> torch.Tensor:
        """Each slot's guided distributions under the words (w, as logarithms) and under others (x),
        [2, others, slots]: their KL both ways, D = sum_v (e^w - e^x) (w - x), and w - x of the
        slot's token.
        """
        each = []
        for slots in parts(state):
            logs = self.guided(state, slots).log_softmax(-1)
            w, x = logs[:1], logs[1:]
            change = (w - x).nan_to_num_(0)  # -inf on both sides
            codes = state.codes(slots).expand(len(x), -1)[..., None]
            each.append(torch.stack((((w.exp() - x.exp()) * change).sum(-1),
                                     change.gather(-1, codes)[..., 0])))
        return torch.cat(each, -1)

    def guided(self, state: DecodeState, slots: slice) -> torch.Tensor:
        """Guided logits [1 + others, n, V]: under the words, and under others."""
        hidden = torch.cat((self.hidden[:, slots], state.hidden[:, slots]))
        words, *none, others = self.backbone.logits(hidden).split(
            [*[1] * len(self.hidden), len(state.hidden)])
        logits = torch.cat((words, others))
        return torch.lerp(none[0], logits, self.cfg) if none else logits


def smoothed(maps: torch.Tensor) -> torch.Tensor:
    """Maps [K, R, C] blurred by [1 2 1] x [1 2 1] / 16."""
    row = torch.tensor([1.0, 2.0, 1.0]) / 4
    wide = F.pad(maps[:, None], (1, 1, 1, 1), mode="replicate")
    return F.conv2d(wide, (row[:, None] * row)[None, None])[:, 0]


# Words


def ids_without_all(backbone: Backbone, prompt: str, phrases: Sequence[str]) -> list[int]:
    """Prompt ids without some phrases; the longest goes first, as it may contain another."""
    first, *rest = sorted(phrases, key=len)
    for phrase in reversed(rest):
        prompt = without(prompt, phrase)
    return ids_without(backbone, prompt, first)


def swapped(prompt: str, phrases: Sequence[str]) -> str:
    """The prompt with another thing in the place of each of these phrases."""
    for phrase in sorted(phrases, key=len, reverse=True):
        found = mention(prompt, phrase)
        assert found is not None
        prompt = prompt[: found.start()] + other_than(phrase) + prompt[found.end() :]
    return prompt


def other_than(phrase: str) -> str:
    return OTHERS["tree" in phrase.casefold()]


def content(phrase: str) -> frozenset[str]:
    """The words of a phrase but articles, places and the like; each letter of Chinese is one."""
    return frozenset(_WORDS.findall(phrase.casefold())) - FILLERS - PLACES.keys()


def alike(phrase: str, other: str) -> bool:
    """Whether two phrases may name things that look the same: "a tower", "a red tower"."""
    own, others = content(phrase), content(other)
    return bool(own and others) and (own <= others or others <= own)


def place_of(phrase: str) -> float | None:
    """Where a phrase places its thing, 0 (left) to 1 (right); None if it does not say."""
    return next((PLACES[word] for word in _WORDS.findall(phrase.casefold()) if word in PLACES),
                None)


# Outlines


def bins_of(pixels: torch.Tensor, grid: Grid) -> torch.Tensor:
    """The bin of the mean colour of each block of a picture [H, W, 3], int64 [R, C, blocks]."""
    size = (grid.rows * BLOCKS, grid.columns * BLOCKS)
    blocks = F.adaptive_avg_pool2d(pixels.float().permute(2, 0, 1), size)
    red, green, blue = (blocks * BINS).long().clamp(0, BINS - 1)
    numbers = (red * BINS + green) * BINS + blue
    return numbers.unfold(0, BLOCKS, BLOCKS).unfold(1, BLOCKS, BLOCKS).flatten(2)


def histogram(colours: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """The colours of the cells of a mask: shares of the bins, blurred by [1 2 1] / 4 a channel."""
    counts = torch.bincount(colours[mask].flatten(), minlength=BINS**3).float()
    table = counts.view(1, 1, BINS, BINS, BINS)
    row = torch.tensor([1.0, 2.0, 1.0]) / 4
    kernel = row[:, None, None] * row[:, None] * row
    blurred = F.conv3d(F.pad(table, (1,) * 6, mode="replicate"), kernel[None, None]).flatten()
    return blurred / blurred.sum().clamp(min=1)


def closed(mask: torch.Tensor) -> torch.Tensor:
    return shrunk(grown(mask))


def filled(mask: torch.Tensor) -> torch.Tensor:
    """The mask with the holes that no side of the picture reaches."""
    free = F.pad(~mask, (1, 1, 1, 1), value=True)
    outside = torch.zeros_like(free)
    outside[0] = True
    while not outside.equal(more := beside(outside) & free):
        outside = more
    return ~outside[1:-1, 1:-1]


def beside(mask: torch.Tensor) -> torch.Tensor:
    """The mask with the four neighbours of each of its cells."""
    wide = F.pad(mask, (1, 1, 1, 1))
    return (mask | wide[2:, 1:-1] | wide[:-2, 1:-1] | wide[1:-1, 2:] | wide[1:-1, :-2])


def pieces_of(mask: torch.Tensor, most: int, least: float = PIECE) -> list[torch.Tensor]:
    """The largest connected pieces of a mask, at most so many.

    least: the least size of the others, against the largest.
    """
    pieces: list[torch.Tensor] = []
    while len(pieces) < most and mask.any():
        piece = largest_piece(mask)
        if pieces and piece.sum() < least * pieces[0].sum():
            break
        pieces.append(piece)
        mask = mask & ~piece
    return pieces


def twins_of(region: torch.Tensor) -> list[torch.Tensor]:
    """The piece of a phrase, or two of similar size, as it may have drawn two things. Where a neck
    joins them, each cell goes to the nearer one.
    """
    pieces = pieces_of(region, 2, TWIN)
    cores = pieces_of(shrunk(pieces[0]), 2, TWIN) if len(pieces) == 1 else []
    if len(cores) < 2:
        return pieces
    first, second = cores
    while not (first | second).equal(pieces[0]):
        first = first | (grown(first) & pieces[0] & ~second)
        second = second | (grown(second) & pieces[0] & ~first)
    return [first, second]


def cut(piece: torch.Tensor, relative: torch.Tensor) -> list[torch.Tensor]:
    """A piece in two, at the weakest column of its middle half."""
    columns = piece.any(0).nonzero().flatten()
    first, wide = int(columns[0]), len(columns)
    inner = range(first + max(wide // 4, 1), first + max(wide - wide // 4, 2))
    at = min(inner, key=lambda x: float((relative * piece)[:, x].sum()))
    left = torch.arange(piece.shape[1]) < at
    return [half for half in (piece & left, piece & ~left) if half.any()]


def shares_of(region: torch.Tensor, relative: torch.Tensor, count: int) -> list[torch.Tensor]:
    """A region of several alike things as so many masks, from left to right; see `twins_of`."""
    pieces = pieces_of(region, count) if count > 1 else twins_of(region)
    while 0 < len(pieces) < count:
        widest = max(pieces, key=lambda piece: int(piece.any(0).sum()))
        if len(halves := cut(widest, relative)) == 1:
            break
        pieces = [*(piece for piece in pieces if piece is not widest), *halves]
    return sorted(map(filled, pieces), key=middle)


def middle(mask: torch.Tensor) -> float:
    """The column of a mask's middle, 0 (left) to 1 (right)."""
    return float(mask.nonzero()[:, 1].float().mean() + 0.5) / mask.shape[1]


def in_places(phrases: Sequence[str], pieces: Sequence[torch.Tensor]) -> list[int]:
    """The number of each piece's phrase, by its place words; otherwise from left to right."""
    if not len(pieces) <= len(phrases) <= FEW:
        return [min(n, len(phrases) - 1) for n in range(len(pieces))]
    places = [place_of(phrase) for phrase in phrases]

    def away(order: Sequence[int]) -> float:
        """How far pieces are from their phrases' places; a phrase without its piece counts 1."""
        placed = [(places[n], piece) for n, piece in zip(order, pieces, strict=True)]
        lost = sum(place is not None for n, place in enumerate(places) if n not in order)
        return lost + sum(abs(middle(piece) - place) for place, piece in placed
                          if place is not None)

    return min(map(list, permutations(range(len(phrases)), len(pieces))), key=away)


def odds(colours: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """The mean log odds of each cell's colours: in a region against beside it, [R, C]."""
    outside = surroundings(mask)
    inner, outer = histogram(colours, mask), histogram(colours, outside)
    table = ((inner + TINY) / (outer + TINY)).log().clamp(-CLIP, CLIP)
    return table[colours].mean(-1)


def surroundings(mask: torch.Tensor) -> torch.Tensor:
    """The cells around a region, and those of its rows."""
    near = mask
    for _ in range(NEAR + 1):
        near = grown(near)
    rows = grown(mask.any(1, keepdim=True).expand_as(mask))
    return (near | rows) & ~grown(mask)


def sharpened(mask: torch.Tensor, relative: torch.Tensor, colours: torch.Tensor) -> torch.Tensor:
    """A region by its colours: at most a cell is added on every side, then its thin parts."""
    own = ((relative - LEAST) / SPAN).clamp(-1, 1)
    fits = odds(colours, mask) + WEIGHT * own > 0
    if (fits & mask).any():
        mask = filled(largest_piece(fits & grown(mask)))
    return filled(mask | thin_parts(mask, colours))


def thin_parts(mask: torch.Tensor, colours: torch.Tensor) -> torch.Tensor:
    """The cells above and below a region whose colours are rare around it: trunks, turrets. Their
    colours may be none of the region's own.
    """
    rare = histogram(colours, surroundings(mask))[colours] < RARE
    return F.max_pool2d(mask[None].float(), (3, 1), 1, (1, 0))[0].bool() & (rare.sum(-1) >= MOST)


# From maps to things


@dataclass(frozen=True, eq=False)
class Outline:
    """A phrase's region, bool [R, C]; its map divided by its strength, float32 [R, C]."""

    phrase: str
    mask: torch.Tensor
    relative: torch.Tensor
    strength: float
    sure: bool


def outlined(phrases: Sequence[str], colours: torch.Tensor, reader: Reader) -> list[Outline]:
    """The outlines of all phrases that have one, in their order."""
    found = [(group[n], own) for group, shown in grouped(phrases, reader)
             for n, own in outlines_by(shown, [phrases[k] for k in group], colours)]
    return [own for _, own in sorted(found, key=lambda pair: pair[0])]


def grouped(phrases: Sequence[str], reader: Reader) -> list[tuple[list[int], WordMap]]:
    """The numbers of phrases that name alike things, each group with its map.

    A group is left out as a whole. Weak groups may stand in for each other, as "cottages" do for
    "houses": these are one group if that makes it strong. Other things replace what is weak
    nevertheless, as in "two things, a castle, a castle", where the number alone moves little.
    """
    def said(groups: Sequence[Sequence[int]]) -> list[list[str]]:
        return [[phrases[k] for k in group] for group in groups]

    groups = groups_of(phrases)
    maps = reader.without(said(groups))
    weak = [n for n, shown in enumerate(maps) if shown.strength < STRONG]
    if len(weak) > 1:
        together = sorted(k for n in weak for k in groups[n])
        shown = strongest(reader.without(said([together])) + reader.instead(said([together])))
        if shown.strength >= STRONG:
            rest = zip(groups, maps, strict=True)
            return [*(pair for n, pair in enumerate(rest) if n not in weak), (together, shown)]
    for n, other in zip(weak, reader.instead(said([groups[n] for n in weak])), strict=True):
        maps[n] = strongest([maps[n], other])
    return list(zip(groups, maps, strict=True))


def strongest(maps: Sequence[WordMap]) -> WordMap:
    return max(maps, key=lambda shown: shown.strength)


def groups_of(phrases: Sequence[str]) -> list[list[int]]:
    """The numbers of phrases in groups of alike ones."""
    groups: list[list[int]] = []
    for k, phrase in enumerate(phrases):
        same = [group for group in groups if any(alike(phrase, phrases[n]) for n in group)]
        groups = [*(group for group in groups if group not in same),
                  sorted([*chain(*same), k])]
    return groups


def outlines_by(shown: WordMap, phrases: Sequence[str],
                colours: torch.Tensor) -> Iterator[tuple[int, Outline]]:
    """The outlines of phrases that name alike things, by the map of all of them, each with the
    number of its phrase.
    """
    relative = shown.divergence / max(shown.strength, FAINT)
    pieces = shares_of(closed(relative > LEAST), relative, len(phrases))
    for n, piece in zip(in_places(phrases, pieces), pieces, strict=True):
        mask = sharpened(piece, relative, colours)
        gain = float(shown.gain[mask].mean())
        if gain >= DRAWN:
            yield n, Outline(phrases[n], mask, relative, shown.strength, gain >= SURELY)


def apart(outlines: Sequence[Outline]) -> list[Thing]:
    """Things without shared cells: each goes to the phrase that moves it most, against its
    strength. What lies mostly in a stronger one's region was not drawn.
    """
    drawn = [own for own in outlines if not any(
        (own.mask & other.mask).sum() > OVERLAPPING * own.mask.sum()
        for other in outlines if other.strength > own.strength)]
    if not drawn:
        return []
    owner = torch.stack([own.relative * own.mask for own in drawn]).argmax(0)
    things = [Thing(own.phrase, own.mask & (owner == n), own.strength, own.sure)
              for n, own in enumerate(drawn)]
    return [thing for thing in things if thing.mask.any()]
