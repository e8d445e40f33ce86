"""Trees of candidates, verified in one forward pass.

The nodes of a tree occupy the cache slots from the frontier on. Each node sees the prompt, the
final slots and its ancestors, and has the position of the picture slot that it is a candidate for.
`Fed.settle` moves the chosen path into consecutive slots, as if only these tokens had been fed.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from operator import sub
from typing import NamedTuple

import torch

from ....model.noise import Purpose
from ....model.sampling import sample
from ... import accept
from ...events import Pass
from ...state import DecodeState
from ..window import Window, at_end, sample_first


@dataclass(frozen=True)
class Tree:
    """The shape of a tree: parents[i] < i is the parent of node i, and -1 that of node 0.

    Node 0 is the token at the frontier, which is final but not yet fed. A node of depth d is a
    candidate for the d-th slot after it. All pictures of a batch share the shape.
    """

    parents: tuple[int, ...]

    @classmethod
    def chain(cls, nodes: int) -> Tree:
        """A tree with one candidate per depth."""
        return cls(tuple(range(-1, nodes - 1)))

    @classmethod
    def bushy_chain(cls, nodes: int, width: int, depth: int) -> Tree:
        """A chain of `nodes` whose first `depth` levels branch fully into `width` children."""
        parents, level, chain = [-1], [0], 0
        for deep in range(1, nodes):
            each = width if deep <= depth else 1
            children = range(len(parents), len(parents) + each * (len(level) if each > 1 else 1))
            parents += [parent for parent in (level if each > 1 else [chain]) for _ in range(each)]
            level, chain = list(children), children[0]
        return cls(tuple(parents))

    @classmethod
    def spread(cls, width: int, depth: int, most: int) -> Tree:
        """A tree of `width` children per node down to `depth`, with at most `most` candidates.

        It takes the likeliest candidates: a first child counts half of its parent, each further
        sibling a quarter of the sibling before it.
        """
        parents = [-1]
        waiting = [(1, 1, 0, 0)] if depth else []  # (cost, depth, parent, rank)
        while waiting and len(parents) <= most:
            cost, deep, parent, rank = heapq.heappop(waiting)
            if rank + 1 < width:
                heapq.heappush(waiting, (cost + 2, deep, parent, rank + 1))
            if deep < depth:
                heapq.heappush(waiting, (cost + 1, deep + 1, len(parents), 0))
            parents.append(parent)
        return cls(tuple(parents))

    def __len__(self) -> int:
        return len(self.parents)

    @cached_property
    def depth(self) -> tuple[int, ...]:
        """The number of ancestors of each node."""
        depth: list[int] = []
        for parent in self.parents:
            depth.append(0 if parent < 0 else depth[parent] + 1)
        return tuple(depth)

    @cached_property
    def children(self) -> torch.Tensor:
        """[nodes, most] int64: the children of each node in order, then -1."""
        each: list[list[int]] = [[] for _ in self.parents]
        for node, parent in enumerate(self.parents[1:], start=1):
            each[parent].append(node)
        most = max(map(len, each))
        return torch.tensor([nodes + [-1] * (most - len(nodes)) for nodes in each])

    @cached_property
    def rank(self) -> tuple[int, ...]:
        """The number of siblings before each node."""
        siblings: dict[int, int] = {}
        ranks = []
        for parent in self.parents:
            ranks.append(siblings.setdefault(parent, 0))
            siblings[parent] += 1
        return tuple(ranks)

    @property
    def most_siblings(self) -> int:
        return max(self.rank) + 1

    @cached_property
    def chain_of_firsts(self) -> tuple[int, ...]:
        """Node 0, its first child, the first child of that node, and so on."""
        nodes = [0]
        while nodes[-1] in self.parents:
            nodes.append(self.parents.index(nodes[-1]))
        return tuple(nodes)

    @cached_property
    def lineage(self) -> torch.Tensor:
        """[nodes, nodes] bool: for each node, itself and its ancestors."""
        lineage = torch.eye(len(self), dtype=torch.bool)
        for node, parent in enumerate(self.parents[1:], start=1):
            lineage[node] |= lineage[parent]
        return lineage

    def slots(self, frontier: torch.Tensor) -> torch.Tensor:
        """[B, nodes] int64: the picture slot of each node, from the frontier [B]."""
        return frontier[:, None] + self.on(frontier.device).depth

    def on(self, device: torch.device) -> Shape:
        """The tree's tensors on a device, created once."""
        return shape_on(self, device)


class Shape(NamedTuple):
    """A tree as int64 tensors: depth and rank [nodes], firsts [chain], children and lineage."""

    depth: torch.Tensor
    rank: torch.Tensor
    firsts: torch.Tensor
    children: torch.Tensor
    lineage: torch.Tensor


@lru_cache(maxsize=64)
def shape_on(tree: Tree, device: torch.device) -> Shape:
    tuples = (torch.tensor(each) for each in (tree.depth, tree.rank, tree.chain_of_firsts))
    return Shape(*(tensor.to(device) for tensor in (*tuples, tree.children, tree.lineage)))


@dataclass(frozen=True)
class Fed:
    """A tree after its pass. hidden [N, nodes, d]: the states that predict the nodes' children."""

    state: DecodeState
    tree: Tree
    frontier: torch.Tensor
    hidden: torch.Tensor

    @cached_property
    def target_probs(self) -> torch.Tensor:
        """p [B, nodes, V] of the slot after each node."""
        slots = (self.tree.slots(self.frontier) + 1).clamp(max=self.state.slots)
        return self.state.probs(self.state.backbone.logits(self.hidden), slots)

    def settle(self, path: torch.Tensor) -> None:
        """Commit a path [B, m] from node 0 downwards to the slots from the frontier on.

        Sets keys, values and hidden states, but not tokens. If a picture's path is shorter, its
        last entries may be any nodes, because later passes overwrite these slots.
        """
        state, branches = self.state, self.state.branches
        index = torch.arange(path.shape[1], device=path.device)
        nodes, start = path.repeat(branches, 1), self.frontier.repeat(branches)[:, None]
        begin = state.lengths[:, None] + start
        state.cache.move(begin + nodes, begin + index)
        sequence = torch.arange(len(nodes), device=path.device)[:, None]
        predicted = (start + index + 1).clamp(max=state.slots)
        state.hidden[sequence, predicted] = self.hidden[sequence, nodes]


def feed_tree(state: DecodeState, tree: Tree, tokens: torch.Tensor) -> Fed:
    """Run one forward pass over the candidates `tokens` [B, nodes] from the frontier on.

    Row ends and known cells get their tokens. Nodes beyond the picture have no meaning. The
    method's `scratch` must reserve len(tree) - 1 cache slots.
    """
    frontier = state.frontier.device
    slots = tree.slots(frontier).clamp(max=state.slots - 1)
    starts = (state.lengths + frontier.repeat(state.branches))[:, None]
    depth = (slots - frontier[:, None]).repeat(state.branches, 1)
    keys = state.keys(max(state.frontier.host) + len(tree))
    nodes = starts + torch.arange(len(tree), device=starts.device)
    seen = (torch.arange(keys, device=starts.device) < starts)[:, None].repeat(1, len(tree), 1)
    seen.scatter_(2, nodes[:, None].expand(-1, len(tree), -1),
                  tree.on(starts.device).lineage.expand(len(nodes), -1, -1))
    tokens = state.with_known(tokens, slots)
    return Fed(state, tree, frontier,
               state.run(state.through, tokens, nodes, starts + depth, seen, keys))


class Descent(NamedTuple):
    """path [B, depth + 1] from node 0 on, whose first `accepted` [B] nodes after node 0 are final.

    token [B] is the token of the slot after them: a repair, or a sample if no candidate was left.
    """

    path: torch.Tensor
    accepted: torch.Tensor
    token: torch.Tensor


def descend(fed: Fed, candidates: torch.Tensor, draft_probs: torch.Tensor,
            similar: torch.Tensor | None = None, delta: float = 0.0) -> Descent:
    """Walk down from node 0 while one of a node's children is accepted.

    candidates [B, nodes]: the tokens as codes. draft_probs [B, siblings, depth, V]: the q that the
    children at each depth were sampled from, in order. Lossless if these q do not depend on what is
    accepted above them, unless similar [B, nodes, k] relaxes the rule.
    """
    state, tree, start = fed.state, fed.tree, fed.frontier
    target_probs, children = fed.target_probs, tree.on(start.device).children
    pictures, deepest = torch.arange(len(start), device=start.device), max(tree.depth)
    node, accepted, token = torch.zeros_like(start), torch.zeros_like(start), candidates[:, 0]
    most = children.shape[1]
    path = [node]
    for depth in range(1, deepest + 2):
        reached, slots = accepted == depth - 1, (start + depth)[:, None]
        below = children[node].masked_fill(~reached[:, None], -1)
        uniforms = [state.noise.uniform(Purpose.ACCEPT, r, slots) for r in rounds_of(state, most)]
        index = below.clamp(min=0)
        chosen, rank = accept.siblings(
            candidates.gather(1, index), draft_probs[:, :, min(depth, deepest) - 1],
            target_probs[pictures, node], torch.cat(uniforms, dim=1),
            state.noise.fresh(Purpose.REPAIR, state.passes, slots)[:, 0], below >= 0,
            None if similar is None else similar[pictures[:, None], index], delta)
        token = torch.where(reached, chosen, token)
        is_accepted = rank < most
        node = torch.where(is_accepted, below[pictures, rank.clamp(max=most - 1)], node)
        accepted = accepted + is_accepted
        path.append(node)
    return Descent(torch.stack(path[:-1], dim=1), accepted, token)


def rounds_of(state: DecodeState, count: int) -> range:
    """`count` round numbers of the noise field, reserved for this pass."""
    return range(state.passes * count, (state.passes + 1) * count)


class TreePass:
    """A pass that verifies a tree of candidates after each picture's frontier."""

    def __init__(self, state: DecodeState, tree: Tree) -> None:
        self.state, self.tree, self.deepest = state, tree, max(tree.depth)

    @property
    def frontier(self) -> torch.Tensor:
        """[B] int64: the last final slot, whose token is the tree's root."""
        return self.state.frontier.device

    @property
    def root(self) -> torch.Tensor:
        """[B, 1]: the slot of each root."""
        return self.frontier[:, None]

    @property
    def next_slots(self) -> torch.Tensor:
        """[B, depth]: the slots that the tree drafts, at most one slot past the picture's end."""
        return after(self.frontier, self.deepest).clamp(max=self.state.slots)

    def feed(self, candidates: torch.Tensor) -> Fed:
        """Run one forward pass over candidates [B, nodes]."""
        self.state.clock.lap("draft")
        return feed_tree(self.state, self.tree, candidates)

    @property
    def over_known(self) -> bool:
        """Whether the next masked cell of any picture lies behind all that the tree could draft."""
        state, region = self.state, self.state.region
        return region.scattered and any(region.ahead(i, slot, 1) - slot > self.deepest
                                        for i, slot in enumerate(state.frontier.host))

    def pass_over(self) -> Iterator[Pass]:
        """Feed the known cells after the frontiers in one pass, and sample the masked ones next."""
        state = self.state
        window = Window(state, most=1)
        window.feed()
        reached = state.cells_on(self.frontier, 1)[:, None]
        noise = state.noise.fresh(Purpose.REPAIR, state.passes, reached)
        state.write(reached, sample(state.target_probs(reached), noise))
        unchanged = torch.ones_like(window.drafted, dtype=torch.bool)
        yield from window.advance(reached[:, 0] - 1 - window.start.device, unchanged)
        state.frontier = state.frontier.at_most(state.region.end - 1)

    def advance(self, accepted: torch.Tensor) -> Pass:
        """Move the frontier past the accepted drafts [B] and the token after them."""
        state, start, last = self.state, self.frontier, self.state.region.end - 1
        state.stats.finished_early += start >= last
        reached = start + accepted
        state.reach(at_end(state, (reached + 1).clamp(max=last)))
        state.clock.lap("verify")
        count = min(self.deepest + 1, state.slots)
        shown = start.clamp(max=state.slots - count)[:, None] + state.noise.slots[:count]
        return state.record_pass_at(shown, shown <= reached[:, None], shown <= reached[:, None])


def sliding_trees(state: DecodeState, tree: Tree) -> Iterator[TreePass]:
    """Yield passes until every picture is complete.

    The caller feeds each tree, writes the accepted tokens, and calls `TreePass.advance`; or calls
    `TreePass.pass_over` where `over_known` is true.
    """
    sample_first(state)
    state.final = min(state.frontier.host) + 1
    while state.final < state.region.end:
        yield TreePass(state, tree)


def after(slots: torch.Tensor, count: int) -> torch.Tensor:
    """[B, count]: the next `count` slots after slots [B]."""
    return slots[:, None] + torch.arange(1, count + 1, device=slots.device)


def sampled(state: DecodeState, frontier: torch.Tensor,
            draft_probs: torch.Tensor) -> torch.Tensor:
    """Tokens [B, siblings, n], each sampled from its own q; draft_probs [B, siblings, n, V]."""
    slots = after(frontier, draft_probs.shape[2])
    return torch.stack([
        sample(draft_probs[:, i], state.noise.fresh(Purpose.DRAFT, round_, slots))
        for i, round_ in enumerate(rounds_of(state, draft_probs.shape[1]))], dim=1)


def laid_out(tree: Tree, root: torch.Tensor, drafts: torch.Tensor) -> torch.Tensor:
    """Candidates [B, nodes]: root [B, 1], then each node's token by its rank and depth."""
    shape = tree.on(root.device)
    return torch.cat((root, drafts[:, shape.rank[1:], shape.depth[1:] - 1]), dim=1)


class VerticalDrafts:
    """The vertical heads' estimates from the last `rows` rows, computed once a cell is final."""

    def __init__(self, state: DecodeState, rows: int, first: int) -> None:
        self.state, self.rows, self.span = state, rows, rows * state.grid.width
        shape = (len(state.prompts), rows, self.span, state.backbone.hidden_size)
        self.cached = torch.zeros(shape, dtype=state.hidden.dtype, device=state.hidden.device)
        above = state.noise.slots[max(first - self.span + 1, 0) : first + 1]
        self.note(above.expand(state.pictures, -1))
        self.begun, self.front = False, state.frontier.host

    def follow(self, frontier: torch.Tensor, most: int) -> None:
        """Draft from the slots that became final since the last call.

        most: their number per picture; known cells that were skipped come on top.
        """
        if self.begun and self.rows:
            moved = map(sub, self.state.frontier.host, self.front)
            most = max(most, *moved)
            self.note(after(self.frontier[:, 0], most).clamp(max=frontier[:, None]))
        self.begun, self.front = True, self.state.frontier.host

    def note(self, slots: torch.Tensor) -> None:
        """Draft from slots [B, n] up to the frontier, whose tokens and hidden states are final."""
        self.frontier = slots[:, -1:]
        if not self.rows:
            return
        hidden, embedding = self.state.hidden_at(slots), self.state.embedding_at(slots)
        heads = self.state.draft_heads.vertical[: self.rows]
        estimates = torch.stack([head(hidden, embedding) for head in heads], dim=2)
        index = slots.repeat(self.state.branches, 1) % self.span
        self.cached[self._sequences(index), :, index] = estimates.to(self.cached.dtype)

    def estimates(self, rows: int, slots: torch.Tensor, along: torch.Tensor) -> torch.Tensor:
        """h [N, n, d] of slots [B, n], drafted `rows` rows above; `along` where there is no row."""
        source = slots - rows * self.state.grid.width
        exists = (source >= 0) & (source <= self.frontier)
        index = source.clamp(min=0).repeat(self.state.branches, 1) % self.span
        cached = self.cached[self._sequences(index), rows - 1, index]
        return torch.where(exists.repeat(self.state.branches, 1)[..., None], cached, along)

    def _sequences(self, index: torch.Tensor) -> torch.Tensor:
        return torch.arange(len(index), device=index.device)[:, None]
