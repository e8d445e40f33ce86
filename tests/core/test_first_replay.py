"""The check of a first replay passes correct rounding and finds wrong replays.

Head widths are those of the families; of their heads there are two, of their layers twelve.
Rounding is that of correct bf16 passes whose sums have another order, as on a card.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
import torch
import torch.nn.functional as F
from support.rehearsal import Rehearsal

from ssd_core.backbones.base import Backbone
from ssd_core.engine.first_replay import TOLERANCE, WrittenBuffers, checked, difference
from ssd_core.engine.graphs import GraphRunner, WrongReplay
from ssd_core.model import transformer
from ssd_core.model.kv_cache import KVCache
from ssd_core.weights.catalogue import known

CPU, PREFIX, SLOTS, HEADS, LAYERS = torch.device("cpu"), 100, 768, 2, 12
ROUNDING, WRONG = 0.04, 0.15  # what the tolerance stands between


def in_two_parts(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None
                 ) -> torch.Tensor:
    """x @ weight.T + bias with its sums in another order, each part rounded to bf16."""
    half = x.shape[-1] // 2
    sums = F.linear(x[..., :half], weight[:, :half]) + F.linear(x[..., half:], weight[:, half:])
    return sums if bias is None else sums + bias


@dataclass(frozen=True)
class PassOf:
    """A pass over `cells` slots in the middle of a picture, with guidance."""

    backbone: Backbone
    cache: KVCache
    x: torch.Tensor  # [2, PREFIX + cells + 1, hidden]

    def __call__(self, shift: int = 0, ahead: int = 0) -> torch.Tensor:
        """The hidden states. shift: of the positions. ahead: which later token it is fed with."""
        cells = self.x.shape[1] - PREFIX - 1
        slots = torch.arange(PREFIX, PREFIX + cells).expand(2, -1)
        self.cache.seek_each(slots, PREFIX + cells, None, slots - shift)
        return self.backbone(self.x[:, PREFIX + ahead : PREFIX + ahead + cells], self.cache)


@pytest.fixture(scope="module", params=(
    "Janus-Pro-7B", pytest.param("Lumina-mGPT-7B-768", marks=pytest.mark.nightly), "Emu3-Gen"))
def backbone(request, root):
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(root / "lab" / "benchmarks")
        from random_backbones import narrowed, random_backbone, scaled
    row = known(request.param)
    shape = narrowed(row.shape, LAYERS, HEADS, row.shape.head_dim)
    return random_backbone(replace(scaled(row), shape=shape), CPU, torch.bfloat16)


@pytest.fixture(params=(1, pytest.param(49, marks=pytest.mark.nightly)))
def a_pass(request, backbone):
    cells, cache = request.param, backbone.new_cache(2, SLOTS)
    codes = torch.randint(backbone.codes, (2, PREFIX + cells + 1),
                          generator=torch.Generator().manual_seed(2))
    with torch.inference_mode():
        found = PassOf(backbone, cache, backbone.embed(codes))
        cache.seek(0, PREFIX)
        backbone(found.x[:, :PREFIX], cache)
        yield found


def apart(a_pass: PassOf, replay: Callable[[], torch.Tensor]) -> float:
    with WrittenBuffers() as written:
        a_pass()
    for buffer in (*a_pass.cache.keys, *a_pass.cache.values):  # as at another cell before
        buffer[:, :, PREFIX:] = 0.1
    result, found = checked(replay, a_pass, written.tensors)
    assert torch.equal(result, a_pass())
    return found


def test_rounding_passes_and_wrong_replays_do_not(a_pass, monkeypatch):
    values = a_pass.cache.values

    def rounds_differently():
        with monkeypatch.context() as patch:
            patch.setattr(transformer, "product", in_two_parts)
            patch.setattr(transformer, "added", lambda x, y, weight: x + in_two_parts(y, weight))
            return a_pass()

    def leaves_out_a_write():
        held = values[3].clone()
        result = a_pass()
        values[3].copy_(held)
        return result

    assert apart(a_pass, a_pass) == 0
    assert 0 < apart(a_pass, rounds_differently) <= ROUNDING
    assert apart(a_pass, lambda: a_pass(shift=1)) >= WRONG
    assert apart(a_pass, lambda: a_pass(ahead=1)) >= WRONG
    assert apart(a_pass, leaves_out_a_write) >= WRONG
    assert ROUNDING < TOLERANCE < WRONG


def test_a_left_out_write_is_found_though_the_old_numbers_were_nearly_right():
    held = torch.ones(1, 2, 3, 4)

    def work():
        held[:, :, 1] = 1.01
        return torch.ones(1)

    with WrittenBuffers() as written:
        work()
    held.fill_(1.0)
    assert checked(lambda: torch.ones(1), work, written.tensors)[1] >= WRONG
    assert held[0, 0, :, 0].tolist() == pytest.approx([1.0, 1.01, 1.0])


class Wrong(Rehearsal):
    """Replays with another number added, so many times."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.times = times

    def record(self, work):
        def replay():
            self.times -= 1
            return work() + (self.times >= 0)

        return replay


def test_a_check_that_fails_is_repeated_and_a_second_failure_ends_the_graphs():
    def work(x):
        return x * 2

    run, inputs = GraphRunner(Wrong(times=1)), torch.arange(1.0, 7.0)
    assert [run(work, x[None]).item() for x in inputs] == [2, 4, 6, 8, 10, 12] and not run.failure
    run = GraphRunner(Wrong(times=2))
    assert [run(work, x[None]).item() for x in inputs[:2]] == [2, 4]
    with pytest.raises(WrongReplay, match="the first replay of a graph differs by 0.17"):
        run(work, inputs[2:3])
    assert run.failure


def test_a_few_other_tokens_are_rounding_and_many_are_not():
    tokens = torch.arange(98)
    few, many = tokens.clone(), tokens.clone()
    few[:5] += 1
    many[:20] += 1
    assert difference(few, tokens) < TOLERANCE < difference(many, tokens)


def test_the_check_takes_a_few_operations_for_each_shape_of_buffer():
    from ssd_core.measure.launches import Launches
    layers = [torch.zeros(2, 4, 8, 16) for _ in range(60)]

    def work():
        for buffer in layers:
            buffer[:, :, 1] = 1.0
        return torch.ones(1)

    with Launches() as own:
        work()
        work()
    with Launches() as whole:
        checked(work, work, layers)
    assert whole.count - own.count <= 40
