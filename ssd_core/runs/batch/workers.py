"""Tasks and the workers that do them: this process, or processes of their own by Ray.

A task is a batch of work. It is small, because it is sent to the worker. The worker returns the
bytes of its files, and the process that handed out the task writes them. A machine that draws
therefore needs the weights, but no access to the folder of the results. By Ray
(https://docs.ray.io) each worker is a process with the models loaded. If a worker is lost (killed,
out of memory, its machine gone), another is started, and the first idle worker does its task again.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ...backbones.base import Backbone
from ...engine.heads import DraftHeads
from ...errors import SSDError
from ...model.knobs import flag
from ...weights.load import LoadOptions, load_backbone, load_heads
from ...weights.memory import free_bytes
from ...weights.model_size import stored_dtype

if TYPE_CHECKING:
    from typing_extensions import Self

Exists = Callable[[str], bool]  # whether a file of this name is in the folder
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class LoadedModels:
    """The models of a worker, for all its tasks."""

    backbone: Backbone
    heads: DraftHeads | None = None


class Task(Protocol):
    """A batch of work; a frozen dataclass of plain values."""

    @property
    def name(self) -> str:
        """A name that the same work has in every process; valid as a file name."""

    @property
    def count(self) -> int:
        """Number of pictures."""

    def left(self, exists: Exists) -> Task | None:
        """The part whose files do not exist yet; None if all do."""

    def run(self, loaded: LoadedModels) -> dict[str, bytes]:
        """Bytes by file name, relative to the folder; the same from every worker."""


@dataclass(frozen=True)
class PicturesTask:
    """Base of tasks that write a file for each picture.

    `name` is the same when some of the files exist already.
    """

    name: str
    pictures: tuple[Any, ...]  # each with the attribute `file`

    @property
    def count(self) -> int:
        return len(self.pictures)

    def left(self, exists: Exists) -> Self | None:
        pictures = tuple(picture for picture in self.pictures if not exists(picture.file))
        return replace(self, pictures=pictures) if pictures else None


def in_groups(items: Iterable[T], follows: Callable[[T, T], bool]) -> list[list[T]]:
    """The items in groups; one begins wherever `follows(item, next item)` is false."""
    groups: list[list[T]] = []
    for item in items:
        if groups and follows(groups[-1][-1], item):
            groups[-1].append(item)
        else:
            groups.append([item])
    return groups


def fitting_batch(most: int, free: float, needed: Callable[[int], float]) -> int:
    """The largest of most, most / 2, ... 1 for which needed(pictures) is at most `free`; else 1."""
    pictures = most
    while pictures > 1 and needed(pictures) > free:
        pictures //= 2
    return pictures


def batches(count: int, most: int) -> list[range]:
    """0 .. count-1 in ranges of at most `most`."""
    return [range(a, min(a + most, count)) for a in range(0, count, most)]


@dataclass(frozen=True)
class Place:
    """Where tasks are computed.

    device: its type. dtype: of the weights. free: bytes after loading; None: unknown.
    """

    device: str
    dtype: str
    free: int | None

    @classmethod
    def of(cls, loaded: LoadedModels) -> Place:
        backbone = loaded.backbone
        return cls(backbone.device.type, stored_dtype(backbone), free_bytes(backbone.device))


class WorkerPool(Protocol):
    """Takes tasks and returns their files, in any order."""

    @property
    def place(self) -> Place:
        """The same for all workers, except the free memory, which is the first worker's."""

    @property
    def has_room(self) -> bool:
        """Whether a worker is free for another task."""

    @property
    def busy(self) -> bool:
        """Whether a task is running."""

    def take(self, task: Task) -> None:
        """Start a task."""

    def next_done(self) -> tuple[Task, dict[str, bytes]]:
        """Wait for a task; return it with the bytes of its files by name. Raises SSDError."""


class LocalWorker:
    """This process as the only worker. A task runs in `next_done`."""

    def __init__(self, loaded: LoadedModels) -> None:
        self.loaded = loaded
        self.task: Task | None = None

    @property
    def place(self) -> Place:
        return Place.of(self.loaded)

    @property
    def has_room(self) -> bool:
        return self.task is None

    @property
    def busy(self) -> bool:
        return self.task is not None

    def take(self, task: Task) -> None:
        self.task = task

    def next_done(self) -> tuple[Task, dict[str, bytes]]:
        task, self.task = self.task, None
        assert task is not None
        return task, task.run(self.loaded)


@dataclass(frozen=True)
class ModelSpec(LoadOptions):
    """A backbone and its heads, as `load_backbone` and `load_heads` take them.

    size: (width, height) in px; None: the backbone's own. prompts: folder on each machine for the
    features that a text model computes of prompts. Paths of models must lead to the same files on
    every machine; a worker with other files is refused (`RayWorkers`).
    """

    backbone: str
    heads: str | None = None
    size: tuple[int, int] | None = None
    prompts: str | None = None

    def load(self) -> LoadedModels:
        backbone = load_backbone(self.backbone, **self.options).resized(self.size)
        if self.prompts:
            backbone.cache_prompts(Path(self.prompts))
        return LoadedModels(backbone, load_heads(self.heads, backbone) if self.heads else None)


HEARD = ("auto", "cuda")  # devices where Ray may hand out the cards
OBJECTS = 256 << 20  # bytes of outcomes that this process has not written yet
LOOK = 10.0  # seconds without an outcome after which this process checks whether Ray is alive
LIMIT = 20.0  # seconds in which Ray must answer
GONE = ("Ray has ended or does not answer: what is done is in the folder, so run the same command "
        "again, with fewer --workers if memory is short, or without --workers and --address")
LOSSES = 3  # per worker: consecutive losses before the run is given up
# For a local Ray: nothing listens on the network, and nothing is reported.
ALONE = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_AUTH_MODE": "token",
         "RAY_USAGE_STATS_ENABLED": "0"}


@dataclass(frozen=True)
class WorkerFacts:
    """What a worker reports after loading; `models` are hashes of backbone and heads."""

    host: str
    process: int
    version: str
    models: tuple[str | None, str | None]
    place: Place


def models_of(loaded: LoadedModels) -> tuple[str | None, str | None]:
    return loaded.backbone.sha256, loaded.heads.sha256 if loaded.heads else None


class WorkerProcess:
    """The process of a worker, which loads once and then runs tasks."""

    def load(self, models: ModelSpec) -> WorkerFacts:
        from ... import __version__

        self.loaded = models.load()
        return WorkerFacts(socket.gethostname(), os.getpid(), __version__, models_of(self.loaded),
                     Place.of(self.loaded))

    def run(self, task: Task) -> dict[str, bytes]:
        return task.run(self.loaded)


class RayWorkers:
    """`count` workers with `models` loaded; close it after use.

    expected: hashes of the models in this process. address: of a running Ray cluster, as ray.init
    takes it; empty: this machine. say: called with a line when a worker is lost.
    """

    def __init__(self, models: ModelSpec, expected: tuple[str | None, str | None], count: int,
                 address: str = "", say: Callable[[str], None] = lambda line: None) -> None:
        self.models, self.expected, self.count, self.say = models, expected, count, say
        self.ray = ray_of(address)
        self.own = not self.ray.is_initialized()
        if self.own:
            connect(self.ray, address)
        self.facts: dict[Any, WorkerFacts] = {}  # by worker
        self.loading: dict[Any, Any] = {}  # future -> worker
        self.running: dict[Any, tuple[Any, Task]] = {}  # future -> worker and its task
        self.idle: list[Any] = []
        self.waiting: deque[Task] = deque()
        self.lost = 0  # since the last finished task
        try:
            self.share = share(nodes_of(self.ray), count, models.device)
            for _ in range(count):
                self.start()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End all workers, and Ray if it was started here; waits at most LIMIT seconds."""
        within(LIMIT, self.end)

    def end(self) -> None:
        for worker in {*self.loading.values(), *self.facts}:
            self.ray.kill(worker)
        if self.own:
            self.ray.shutdown()

    def start(self) -> None:
        worker = self.ray.remote(**self.share)(WorkerProcess).remote()
        self.loading[worker.load.remote(self.models)] = worker

    # As Crew

    @property
    def place(self) -> Place:
        """That of the first worker that has loaded; waits for it."""
        while not self.facts:
            self.settle()
        return next(iter(self.facts.values())).place

    @property
    def has_room(self) -> bool:
        return len(self.waiting) + len(self.running) < self.count

    @property
    def busy(self) -> bool:
        return bool(self.waiting or self.running)

    def take(self, task: Task) -> None:
        self.waiting.append(task)

    def next_done(self) -> tuple[Task, dict[str, bytes]]:
        while True:
            while self.idle and self.waiting:
                worker, task = self.idle.pop(), self.waiting.popleft()
                self.running[worker.run.remote(task)] = worker, task
            if (done := self.settle()) is not None:
                return done

    def settle(self) -> tuple[Task, dict[str, bytes]] | None:
        """Wait for the next outcome; return a finished task with its files, or None."""
        future = self.first_done()
        loaded = future in self.loading
        worker, task = (self.loading.pop(future), None) if loaded else self.running.pop(future)
        try:
            outcome = self.ray.get(future, timeout=LIMIT)
        except self.ray.exceptions.RayTaskError as error:  # the task itself failed
            raise (error.cause if isinstance(error.cause, SSDError) else error) from None
        except self.ray.exceptions.RayError as error:
            if getattr(error, "actor_init_failed", False):
                raise SSDError("a worker could not start: install ssd-decoding with its extras "
                               "app and scale on every machine") from error
            self.replace(worker, task)
            return None
        self.idle.append(worker)
        if task is None:
            self.facts[worker] = self.checked(outcome)
            return None
        self.lost = 0
        return task, outcome

    def first_done(self) -> Any:
        """Wait for the first outcome. Raises SSDError if Ray itself is gone."""
        while True:
            done, _ = self.ray.wait([*self.loading, *self.running], num_returns=1, timeout=LOOK)
            if done:
                return done[0]
            if not within(LIMIT, lambda: nodes_of(self.ray)):
                raise SSDError(GONE)

    def replace(self, worker: Any, task: Task | None) -> None:
        """Start a worker in place of a lost one, and queue its task first."""
        facts = self.facts.pop(worker, None)
        self.lost += 1
        if self.lost > LOSSES * self.count:
            raise SSDError(f"{self.lost} workers were lost one after the other: give --batch 1 or "
                           "fewer --workers if memory is short, and look at the machines' logs")
        where = f" on {facts.host} (process {facts.process})" if facts else " while it loaded"
        self.say(f"a worker was lost{where}: another takes its place")
        if task is not None:
            self.waiting.appendleft(task)
        self.start()

    def checked(self, facts: WorkerFacts) -> WorkerFacts:
        """The facts. Raises SSDError if the worker would not draw what this process would."""
        from ... import __version__

        if facts.version != __version__:
            raise SSDError(f"worker on {facts.host}: its version is {facts.version}, here is "
                           f"{__version__}: install the same one on all machines")
        if facts.models != self.expected:
            raise SSDError(f"worker on {facts.host}: {self.models.backbone} or its draft heads are "
                           "others than here: copy the same files to all machines")
        first = next(iter(self.facts.values()), facts)
        if (facts.place.device, facts.place.dtype) != (first.place.device, first.place.dtype):
            raise SSDError(f"worker on {facts.host}: computes on {facts.place.device} in "
                           f"{facts.place.dtype}, others on {first.place.device} in "
                           f"{first.place.dtype}: give --device and --dtype")
        return facts


def ray_of(address: str) -> Any:
    """The package ray; the environment for a local Ray is set before the import."""
    if not address:
        for name, value in ALONE.items():
            os.environ.setdefault(name, value)
    try:
        import ray
    except ImportError as error:
        raise SSDError("several workers need the package ray: pip install ray, or leave out "
                       "--workers and --address") from error
    return ray


def connect(ray: Any, address: str) -> None:
    quiet = {"log_to_driver": False, "logging_level": "error"}
    if not address:
        ray.init(address="local", include_dashboard=False, object_store_memory=OBJECTS, **quiet)
        return
    try:
        ray.init(address=address, **quiet)
    except (OSError, ValueError, RuntimeError) as error:
        reason = " ".join(str(error).split())[:120]
        raise SSDError(f"address {address}: no Ray cluster answers there ({reason}): start one "
                       "with 'ray start --head' and give its address") from error


def within(seconds: float, call: Callable[[], T]) -> T | None:
    """The result of a call of Ray; None if it fails or takes longer."""
    result: list[T] = []

    def answer() -> None:
        with suppress(Exception):  # after any error Ray is unusable
            result.append(call())

    thread = threading.Thread(target=answer, daemon=True)
    thread.start()
    thread.join(seconds)
    return result[0] if result else None


def nodes_of(ray: Any) -> list[Mapping[str, float]]:
    """The resources of every running machine."""
    return [node["Resources"] for node in ray.nodes() if node["Alive"]]


def share(nodes: Iterable[Mapping[str, float]], count: int, device: str) -> dict[str, int]:
    """The options of Ray for each of `count` workers: a card, else an equal share of the cores.

    Raises SSDError if the machines have too few cards or cores.
    """
    nodes = list(nodes)
    cards = sum(int(node.get("GPU", 0)) for node in nodes)
    if device.startswith("cuda:"):
        raise SSDError(f"device {device}: every worker is given a card of its own; choose cuda")
    if device in HEARD and cards:
        if count > cards:
            raise SSDError(f"workers {count}: there are {cards} cards; give at most that many, or "
                           "--device cpu")
        return {"num_gpus": 1, "num_cpus": 1}
    cores = [int(node.get("CPU", 0)) for node in nodes]
    if count > sum(cores):
        raise SSDError(f"workers {count}: there are {sum(cores)} cores; give at most that many")
    most = max(cores)
    return {"num_cpus": max(per_worker for per_worker in range(1, most + 1)
                            if sum(machine // per_worker for machine in cores) >= count)}


@dataclass(frozen=True, kw_only=True)
class WorkerOptions:
    """Workers."""

    workers: int = flag(1, "Processes that draw, each with the models loaded. More than one needs "
                           "the package ray.")
    address: str = flag("", "Address of a Ray cluster, for example 10.0.0.5:6379. Default: this "
                            "machine.")

    def __post_init__(self) -> None:
        if self.workers < 1:
            raise SSDError(f"workers {self.workers}: must be at least 1")

    @property
    def apart(self) -> bool:
        """Whether other processes draw.

        This process then loads the models without their weights (device meta).
        """
        return self.workers > 1 or bool(self.address)


@contextmanager
def crew_of(options: WorkerOptions, loaded: LoadedModels, models: ModelSpec | None = None,
            say: Callable[[str], None] = lambda line: None) -> Iterator[WorkerPool]:
    """The crew for a `with` block. models: what workers in other processes load."""
    if not options.apart:
        yield LocalWorker(loaded)
        return
    assert models is not None
    with redirect_stdout(sys.stderr):  # Ray reports lost processes on stdout, which is for results
        crew = RayWorkers(models, models_of(loaded), options.workers, options.address,
                          say)
        try:
            yield crew
        finally:
            crew.close()
