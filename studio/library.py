"""The backbones on this machine, and the loaded one. Knows nothing of runs or the page."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from ssd_core import SSDError, load_backbone, load_heads
from ssd_core.backbones.base import Backbone
from ssd_core.backbones.estimates import Estimates
from ssd_core.backbones.presets import resolve_sampling
from ssd_core.engine.graphs import graphs_off_reason_of
from ssd_core.engine.heads import DraftHeads
from ssd_core.files import user_path
from ssd_core.output.drawing import Drawing, method_of
from ssd_core.runs import diagnostics as doctor
from ssd_core.runs.request import Request, draws_ars_picture, resolved_method
from ssd_core.weights.catalogue import CATALOGUE, KnownBackbone
from ssd_core.weights.fit import Fit, fit, gib
from ssd_core.weights.load import pick_device
from ssd_core.weights.memory import empty_caches, trim
from ssd_core.weights.model_size import stored_dtype
from ssd_core.weights.registry import AUTO, NONE, LocalModel, ModelRegistry

from .settings import anew, request_of


@dataclass(frozen=True)
class Loaded:
    """A loaded backbone. problem: one line if its draft heads could not be used. heads_file: where
    they are from.
    """

    name: str
    backbone: Backbone
    heads: DraftHeads | None
    problem: str | None = None
    heads_file: Path | None = None

    @property
    def identity(self) -> tuple[str, str, str | None]:
        """Equal identities draw equal pictures."""
        return (self.backbone.sha256, stored_dtype(self.backbone),
                self.heads.sha256 if self.heads else None)


class Library:
    """Backbones by name; one is loaded at a time, the first when it is first needed.

    heads: choice of heads for the first backbone, see `ModelRegistry.heads_for`; None finds
    matching heads. offload, graphs, estimates: see `load_backbone`.
    """

    def __init__(self, models_dir: Path | None = None, backbone: str = "postcard",
                 heads: str | None = None, device: str = AUTO, dtype: str = AUTO,
                 offload: bool = False, graphs: str = AUTO,
                 estimates: Estimates | None = None) -> None:
        self.models_dir = user_path(models_dir or "models")
        self.registry = ModelRegistry.below(self.models_dir)
        self.device = pick_device(device)
        self.before_switch: list[Callable[[], None]] = []  # drop references to it
        self._first, self._heads = str(backbone), heads
        self._offload, self._graphs, self._estimates = offload, graphs, estimates
        self._choice: tuple[str, str, tuple[str, ...]] = (self._first, dtype, ())
        self._loaded: Loaded | None = None
        self._earlier: DraftHeads | None = None  # others than those in use, asked for last
        self._lock = threading.Lock()
        self.registry.named(self._first)

    # The loaded backbone

    @property
    def current(self) -> Loaded:
        """The loaded backbone and its heads; SSDError while another is being loaded."""
        if (loaded := self._loaded) is not None:
            return loaded
        if not self._lock.acquire(blocking=False):
            raise SSDError(f"{self._choice[0]} is being loaded: try again in a moment")
        try:
            self._loaded = self._loaded or self._load(*self._choice)
            return self._loaded
        finally:
            self._lock.release()

    def as_now(self, drafts: str = "") -> Callable[[], Loaded]:
        """A function that returns the backbone loaded now; it keeps no backbone in memory.

        It raises SSDError if another backbone was loaded in between: seed, size and plan were
        chosen for the first one. Drafts may have learned meanwhile. drafts: as of `loaded_with`.
        """
        name, identity = self.current.name, self.current.identity[:2]
        self.loaded_with(drafts)

        def later() -> Loaded:
            now = self.current
            if now.identity[:2] != identity:
                raise SSDError(f"{name} was replaced by {now.name} while this run waited: look at "
                               "the plan and start again")
            return self.loaded_with(drafts)

        return later

    def loaded_with(self, drafts: str = "") -> Loaded:
        """The loaded backbone with the draft heads of this hash; "" for those in use, NONE for
        none. SSDError if they are gone.
        """
        loaded = self.current
        if not drafts or drafts == loaded.identity[2]:
            self._earlier = None
            return loaded
        if drafts == NONE:
            return replace(loaded, heads=None, heads_file=None)
        if (earlier := self._earlier) is None or earlier.sha256 != drafts:
            if (file := self.registry.drafts_by_hash(drafts)) is None:
                raise SSDError(f"the drafts {drafts[:10]}, by which this picture was drawn, are "
                               "gone: change its words or its seed to draw with those in use")
            earlier = self._earlier = load_heads(file, loaded.backbone)
        return replace(loaded, heads=earlier)

    def drafts_of(self, recipe: Mapping) -> str | None:
        """The drafts that draw the picture of a checked recipe again, as of `loaded_with`; "" also
        if any do, or if another backbone drew it. None if they are gone.
        """
        loaded, method, wanted = self.current, method_of(recipe), recipe["heads"]
        own = recipe["backbone"]["sha256"] == loaded.backbone.sha256
        if not own or draws_ars_picture(method) or wanted == loaded.identity[2]:
            return ""
        if wanted is None:
            return NONE if method.uses_heads else ""
        return wanted if self.registry.drafts_by_hash(wanted) else None

    def renew_drafts(self) -> None:
        """Load the draft heads that belong to the loaded backbone by now; the backbone stays."""
        with self._lock:
            if (loaded := self._loaded) is None:
                return
            loaded.backbone.session.release()  # its graphs read the former ones
            self._earlier, self._loaded = None, self._with_drafts(loaded.name, loaded.backbone)
        free_memory()

    @property
    def are_drafts_fixed(self) -> bool:
        """Whether the app was started with certain draft heads, or none, for the loaded backbone.
        """
        return self.current.name == self._first and self._heads not in (None, AUTO)

    def use(self, name: str, dtype: str = AUTO, lora: Sequence[str] = ()) -> None:
        """Replace the loaded backbone with another one; the old one is dropped first.

        lora: adapters to merge, as FILE:STRENGTH, by their names in `ModelRegistry.loras`.

        If that fails, the old one, if any, is loaded again and SSDError is raised. Returns nothing,
        so that no job's result keeps a backbone alive.
        """
        self.registry.named(name)
        with self._lock:
            former, was_loaded = self._choice, self._loaded is not None
            for free in self.before_switch:
                free()
            self._loaded, self._earlier, self._choice = None, None, (name, dtype, tuple(lora))
            free_memory()
            try:
                self._loaded = self._load(*self._choice)
            except BaseException:
                self._choice = former
                if was_loaded:
                    self._loaded = self._load(*former)
                raise

    @contextmanager
    def put_away(self) -> Iterator[None]:
        """Free the loaded backbone for the block; whoever needs it afterwards loads it again."""
        with self._lock:
            for free in self.before_switch:
                free()
            self._loaded, self._earlier = None, None
            free_memory()
            yield

    def _load(self, name: str, dtype: str, lora: Sequence[str]) -> Loaded:
        path = self.registry.backbone_path(name)
        named = [self.registry.lora(each) for each in lora]
        backbone = load_backbone(path, str(self.device), dtype, self._offload, self._graphs,
                                 estimates=self._estimates, lora=named)
        return self._with_drafts(name, backbone)

    def _with_drafts(self, name: str, backbone: Backbone) -> Loaded:
        path = self.registry.backbone_path(name)
        choice = self._heads if name == self._first else None
        heads = self.registry.heads_for(path, choice, backbone.hashes)
        try:
            drafts = load_heads(heads, backbone) if heads else None
        except SSDError as error:
            if choice not in (None, AUTO):  # explicitly chosen heads must not be left out
                raise
            return Loaded(name, backbone, None, str(error))
        problem = None
        if choice in (None, AUTO):
            problem = self.registry.heads_mismatch(path, backbone.hashes)
        return Loaded(name, backbone, drafts, problem, heads)

    # Memory

    def fit(self, name: str, drawing: Drawing, dtype: str = AUTO) -> Fit:
        """The memory that a drawing would need, and whether it would fit.

        name: a backbone on this machine or in the catalogue. Raises SSDError if unknown.
        """
        current = self.current
        target: Backbone | KnownBackbone
        loaded = name == current.name and dtype in (AUTO, self._choice[1],
                                                    stored_dtype(current.backbone))
        if loaded:
            target, heads, has_heads = current.backbone, current.heads, current.heads is not None
            dtype = self._choice[1]
        else:
            target, heads, has_heads = self._shapes(name), None, self._has_heads(name)
        method, _ = resolved_method(drawing.method, target.preset, has_heads)
        guided = resolve_sampling(drawing.sampling, target.preset).cfg != 1
        return fit(target, method, drawing.pictures, dtype, guided,
                   drawing.size if loaded else None, str(self.device), heads,
                   replaced=None if loaded else current.backbone)

    def _shapes(self, name: str) -> Backbone | KnownBackbone:
        """A description of a backbone that is not loaded: its catalogue row, or without values."""
        return CATALOGUE.get(name) or load_backbone(
            self.registry.backbone_path(name), "meta", hashed=False)

    def _has_heads(self, name: str) -> bool:
        return any(model.name == name and model.heads for model in self.models())

    def require_room(self, drawing: Drawing, runs: int = 1, freed: int = 0) -> int:
        """The bytes that one paused run of a drawing holds.

        Raises SSDError unless `runs` of them fit in memory once `freed` bytes are given back.
        """
        loaded = self.current
        request = request_of(anew(drawing), loaded.backbone, loaded.heads).parts()[0]
        estimate = fit(loaded.backbone, request.method, request.pictures, self._choice[1],
                       request.sampling.cfg != 1, request.size, str(self.device), loaded.heads,
                       drawing.keep_rows)
        if estimate.free is None:
            return estimate.cache
        free = estimate.free + freed
        if estimate.needed > free:
            raise SSDError(estimate.advice)
        together = estimate.needed + (runs - 1) * estimate.cache
        if together > free:
            raise SSDError(f"{runs} paused pictures take about {gib(together)}, {gib(free)} "
                           "are free: start fewer seeds")
        return estimate.cache

    def require_room_together(self, requests: Sequence[Request]) -> None:
        """Raise SSDError unless the memory takes all these runs at once."""
        estimates = [fit(request.backbone, request.method, request.pictures, self._choice[1],
                         request.sampling.cfg != 1, request.size, str(self.device), request.heads)
                     for request in requests]
        largest = max(estimates, key=lambda estimate: estimate.needed)
        together = largest.needed + sum(estimate.cache for estimate in estimates) - largest.cache
        if largest.free is not None and together > largest.free:
            raise SSDError(f"{len(estimates)} pictures at once take about {gib(together)}, "
                           f"{gib(largest.free)} are free: race fewer methods")

    # What is on this machine

    def doctor_lines(self) -> list[str]:
        """Lines for Doctor: what was found where, and what is loaded."""
        return [*doctor.registry(self.registry), self._loaded_line()]

    def _loaded_line(self) -> str:
        if (loaded := self._loaded) is None:
            return f"loaded: nothing yet, {self._choice[0]} is next"
        backbone, heads = loaded.backbone, loaded.heads
        drafts = f"heads {heads.sha256[:10]}" if heads else f"no heads ({loaded.problem or 'none'})"
        eager = graphs_off_reason_of(backbone)
        return (f"loaded: {loaded.name} ({backbone.name} {backbone.sha256[:10]}), "
                f"{stored_dtype(backbone)} on {backbone.device}, {drafts}, "
                f"{f'no graphs ({eager})' if eager else 'graphs'}")

    def places(self) -> list[Path]:
        """The folders searched for backbones and heads."""
        return [*self.registry.backbone_folders, *self.registry.heads_folders]

    def models(self) -> list[LocalModel]:
        """Every backbone on this machine, the first one first, and those that cannot be read."""
        models = {model.name: model for model in self.registry.unread()}
        with suppress(SSDError):  # the first backbone may have been deleted
            models = {self._first: self.registry.named(self._first), **models}
        return list({**self.registry.backbones(), **models}.values())


def free_memory() -> None:
    """Free unreferenced memory on all devices and the host."""
    empty_caches()
    trim()
