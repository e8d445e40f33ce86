"""A tree of candidates in one pass answers as feeding each of its paths alone would."""

from functools import cache

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support.mock_backbone import MockBackbone, tiny_postcard
from support.tiny_checkpoints import emu3, lumina
from support.tiny_image_models import janus_port, llamagen_c2i, llamagen_t2i, tar

from ssd_core import Grid, Sampling
from ssd_core.backbones.base import Backbone
from ssd_core.engine.decode import prompt_branches
from ssd_core.engine.methods.baselines.tree import Fed, Tree, feed_tree
from ssd_core.engine.state import DecodeState, PictureSlots
from ssd_core.weights.load import load_backbone

CLOSE = {"rtol": 1e-4, "atol": 1e-5}  # fp32
GRID, SCRATCH = Grid(4, 5), 11
FAMILIES = {"emu3": (emu3, "Emu3-Gen"), "lumina": (lumina, "Lumina-mGPT-7B-768"),
            "janus": (janus_port, "Janus-Pro-1B"), "llamagen-c2i": (llamagen_c2i, "c2i"),
            "llamagen-t2i": (llamagen_t2i, "t2i-256"), "tar": (tar, "256")}


@cache
def mock(row_end: bool) -> Backbone:
    return MockBackbone(Grid(GRID.rows, GRID.columns, row_end), codes=9)


@cache
def postcard() -> Backbone:
    return tiny_postcard()


def state_of(backbone: Backbone, tokens: torch.Tensor, fed: int, cfg: float = 1.0,
             prompts: tuple[str, ...] = ("sun", "a red house")) -> DecodeState:
    """A state that holds tokens [B, n] and has fed the slots before `fed`."""
    branches = prompt_branches(backbone, list(prompts), None, cfg)
    state = DecodeState(backbone, branches, len(prompts), Sampling(cfg=cfg), None, SCRATCH)
    state.prefill()
    state.write(slice(0, tokens.shape[1]), tokens)
    if fed:
        state.feed(fed)
    return state


def random_tokens(backbone: Backbone, seed: int, *shape: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(backbone.codes, shape, generator=generator)


def paths_of(tree: Tree) -> list[list[int]]:
    """Every node's path from node 0."""
    paths: list[list[int]] = []
    for node, parent in enumerate(tree.parents):
        paths.append([node] if parent < 0 else [*paths[parent], node])
    return paths


def grown(data: st.DataObject, nodes: int) -> Tree:
    parents = [data.draw(st.integers(0, node - 1)) for node in range(1, nodes)]
    return Tree((-1, *parents))


def assert_as_alone(backbone: Backbone, tree: Tree, frontier: list[int], seed: int = 0,
                    **options) -> None:
    """Compare every node of a tree, and then a settled path, with feeding the path plainly."""
    starts, most = torch.tensor(frontier), max(frontier)
    held = random_tokens(backbone, seed, len(frontier), most + SCRATCH + 2)
    held = held[:, : backbone.grid.slots]
    state = state_of(backbone, held, most, **options)
    candidates = random_tokens(backbone, seed + 1, len(frontier), len(tree))
    candidates[:, 0] = state.codes(starts[:, None])[:, 0]
    state.frontier = PictureSlots.read(starts)
    fed = feed_tree(state, tree, candidates)
    hidden, probs = fed.hidden.clone(), fed.target_probs
    for node, path in enumerate(paths_of(tree)):
        if most + len(path) <= backbone.grid.slots:
            assert_path(state_of(backbone, held, most, **options), starts, candidates, path,
                        hidden[:, node], probs[:, node])
    assert_settled(fed, held, candidates, most, options)


def fed_plainly(state: DecodeState, starts: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    slots = starts[:, None] + torch.arange(tokens.shape[1])
    state.write(slots, tokens)
    state.feed_at(slots)
    return slots


def assert_path(plain: DecodeState, starts: torch.Tensor, candidates: torch.Tensor,
                path: list[int], hidden: torch.Tensor, probs: torch.Tensor) -> None:
    last = fed_plainly(plain, starts, candidates[:, path])[:, -1:] + 1
    assert torch.allclose(plain.hidden_at(last)[:, 0], hidden, **CLOSE)
    assert torch.allclose(plain.target_probs(last)[:, 0], probs, **CLOSE)


def assert_settled(fed: Fed, held: torch.Tensor, candidates: torch.Tensor, most: int,
                   options: dict) -> None:
    """Each picture settles on another path; what is fed next answers as after plain feeding."""
    state, slots = fed.state, fed.state.slots
    fits = [path for path in paths_of(fed.tree) if most + len(path) < slots]
    length = max(map(len, fits))
    deepest = [path for path in fits if len(path) == length]
    path = torch.tensor([deepest[i % len(deepest)] for i in range(len(held))])
    fed.settle(path)
    plain = state_of(state.backbone, held, most, **options)
    chosen = candidates.gather(1, path)
    at = fed_plainly(plain, fed.frontier, chosen)
    state.write(at, chosen)
    assert torch.allclose(state.hidden_at(at + 1), plain.hidden_at(at + 1), **CLOSE)
    following = at[:, -1:] + 1
    for one in (state, plain):
        one.feed_at(following)
    assert torch.allclose(state.hidden_at(following + 1), plain.hidden_at(following + 1), **CLOSE)


@given(st.data(), st.booleans(), st.sampled_from([1.0, 2.5]), st.integers(1, SCRATCH + 1),
       st.integers(0, 99))
def test_every_path_of_any_tree_is_as_if_fed_alone(data, row_end, cfg, nodes, seed):
    """Prompts of unequal length, a frontier of its own per picture, up to the picture's end."""
    backbone = mock(row_end)
    frontier = data.draw(st.lists(st.integers(0, backbone.grid.slots - 2), min_size=2, max_size=2))
    assert_as_alone(backbone, grown(data, nodes), frontier, seed, cfg=cfg)


BRANCHES = Tree((-1, 0, 0, 0, 1, 1, 2, 4))


@pytest.mark.parametrize("cfg", [1.0, 2.0])
def test_a_tree_on_postcard(cfg):
    assert_as_alone(postcard(), BRANCHES, [3, 30], cfg=cfg, prompts=("a red house", "a sun"))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.by_day(2)
def test_a_tree_on_every_family(family, tmp_path):
    if family == "llamagen-t2i":
        pytest.importorskip("transformers", reason="flan-T5 is read with transformers")
    write, name = FAMILIES[family]
    backbone = load_backbone(write(tmp_path / name), "cpu", "fp32")
    prompts = {"tar": ("codes:0 1 2", "codes:3"), "llamagen-c2i": ("7", "8")}
    prompts = prompts.get(family, ("red", "red house"))
    if family == "tar":
        (tmp_path / "codes.json").write_text(str(list(range(8)) * 10 + [0]))
        prompts = (f"codes:{tmp_path / 'codes.json'}",) * 2
    assert_as_alone(backbone, BRANCHES, [46, 2], cfg=2.0, prompts=prompts)


@pytest.mark.parametrize("row_end", [False, True])
def test_a_chain_is_feeding(row_end):
    """Its hidden states, keys and values, without moving anything."""
    backbone = mock(row_end)
    held = random_tokens(backbone, 3, 2, 14)
    tree, plain = (state_of(backbone, held, 4) for _ in range(2))
    tree.frontier = PictureSlots.read(torch.tensor([4, 4]))
    fed = feed_tree(tree, Tree.chain(6), held[:, 4:10])
    plain.feed(10)
    assert torch.allclose(fed.hidden, plain.hidden[:, 5:11], **CLOSE)
    fed.settle(torch.arange(6).expand(2, -1))
    assert torch.allclose(tree.hidden[:, :11], plain.hidden[:, :11], **CLOSE)
    longest = max(map(len, tree.prompts))
    assert torch.allclose(tree.cache.keys[:, :, :, :longest], plain.cache.keys[:, :, :, :longest])


def test_row_ends_stand_in_a_tree():
    """Whatever is written there, the row's last node is the forced token, and surely so."""
    backbone = mock(True)
    held = random_tokens(backbone, 3, 2, 5)
    state = state_of(backbone, held, 4)
    candidates = torch.tensor([[0, 3, 5, 1]] * 2)
    state.frontier = PictureSlots.read(torch.tensor([4, 4]))
    fed = feed_tree(state, Tree((-1, 0, 0, 1)), candidates)
    certain = fed.target_probs[:, 0]  # slot 5 closes row 0
    assert certain[:, 0].eq(1).all() and certain[:, 1:].eq(0).all()
    assert torch.allclose(fed.hidden[:, 1], fed.hidden[:, 2], atol=1e-5)


def test_a_tree_knows_its_shape():
    tree = Tree((-1, 0, 0, 1, 1, 2))
    assert tree.depth == (0, 1, 1, 2, 2, 2)
    assert tree.children.tolist() == [[1, 2], [3, 4], [5, -1], [-1, -1], [-1, -1], [-1, -1]]
    assert [row.nonzero()[:, 0].tolist() for row in tree.lineage] == [
        [0], [0, 1], [0, 2], [0, 1, 3], [0, 1, 4], [0, 2, 5]]
    assert Tree.chain(3).parents == (-1, 0, 1)
    assert tree.slots(torch.tensor([3, 0])).tolist() == [[3, 4, 4, 5, 5, 5], [0, 1, 1, 2, 2, 2]]


def test_a_bushy_chain_branches_at_its_top_alone():
    tree = Tree.bushy_chain(5, 3, 2)
    assert [tree.depth.count(d) for d in range(5)] == [1, 3, 9, 1, 1]
    assert tree.chain_of_firsts == (0, 1, 4, 13, 14)
    assert Tree.bushy_chain(4, 1, 3) == Tree.chain(4)
    assert Tree.bushy_chain(1, 3, 2) == Tree.chain(1)
