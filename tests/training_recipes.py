"""Small models, and the recipes of parallel training that they are trained under on several ranks."""

from __future__ import annotations

import copy
import dataclasses
import fnmatch
import functools
import importlib.util
import sys
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from unittest import mock

import numpy as np

import mlc
import mlc.distributed as dist
from mlc import nn
from mlc.backends.executable import Entry
from mlc.backends.mesh import carry_out, program
from mlc.backends.transport import collectives, threads, transport
from tests import expert_model
from tests.arrays import Array


def _example(name: str) -> Any:
    """A program of examples/ as a module."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).parent.parent / "examples" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


digits, gpt, resnet18 = map(_example, ("digits", "gpt", "resnet18"))
F = nn.functional
R = TypeVar("R")
Batch = tuple[Array, Array]
NEAR = 0.05
"""Largest relative difference of the memory that a rank takes from what is told."""
SMALL = 0.02
"""The part that a step may send besides what a recipe has to, as for the loss, and tensors that are not divided."""
MICROBATCHES = 4
Specs = Mapping[str, tuple[dist.device_mesh.Spec, ...]]


@dataclass(frozen=True, eq=False)
class Task:
    """A model, its data, and how it is divided along an axis `model`.

    tensor      specifications of tensor parallelism: the first of two products by its rows, the second by its columns
    combined    for these, the elements of what is combined along `model` in a step, forward and backward
    statistics  the elements that the norms combine along the axis of the batch
    gathered    the elements of keys and values, by which sequences are divided; 0 if they are not
    experts     specifications of expert parallelism
    parts       the names of the modules of four stages of a pipeline; () if there are none
    between     the elements that go from each of these to the next
    sent        for these, the elements of what experts get and give in a step, forward and backward
    vocabulary  specifications of a table of words and of the scores of all words, by words
    words       for these, the elements of what is combined along `model` in a step, forward and backward
    """

    name: str
    make: Callable[[], nn.Module]
    batches: Callable[[int, int], Iterator[Batch]]
    batch: int
    tensor: Specs
    loss: Callable[[Any, Any, Any], Any]
    combined: int = 0
    statistics: int = 0
    gathered: int = 0
    experts: Specs = field(default_factory=dict)
    sent: int = 0
    parts: tuple[tuple[str, ...], ...] = ()
    between: tuple[int, ...] = ()
    vocabulary: Specs = field(default_factory=dict)
    words: int = 0
    lr: float = 0.05
    dtype: type[np.floating[Any]] = np.float32

    @property
    def bytes(self) -> int:
        """The bytes of an element."""
        return np.dtype(self.dtype).itemsize


@dataclass(frozen=True)
class Recipe:
    """How a model is trained on n ranks.

    axes       the mesh for n ranks; None if the recipe has none for so many
    plan       how the tensors of a task's model lie
    optimizer  the axis of the mesh that divides the state of the optimiser
    batch      the axes of the mesh that divide the dimensions of the batch
    suits      whether it is one for a task
    schedule   that of a pipeline, or of the parts of a batch on all ranks; "" if the batch is one
    stages     the number of its stages on each rank
    """

    name: str
    axes: Callable[[int], dict[str, int] | None]
    plan: Callable[[Task], dist.plans.Plan] = lambda task: dist.replicated
    optimizer: str | None = None
    batch: tuple[str, ...] = ("data",)
    suits: Callable[[Task], bool] = lambda task: True
    schedule: str = ""
    stages: int = 1

    @property
    def microbatches(self) -> int:
        """The number of parts of the batch, such as pass through a pipeline."""
        return MICROBATCHES if self.schedule else 1

    def is_for(self, task: Task, ranks: int) -> bool:
        """Whether it is one for a task on this many ranks."""
        axes = self.axes(ranks)
        if axes is None or not self.suits(task):
            return False
        rows = task.batch // self.microbatches
        return (rows % axes["data"] == 0 if "data" in axes and self.schedule else True) and (
            "stage" not in axes or len(task.parts) % (axes["stage"] * self.stages) == 0)

    def mark(self, task: Task, model: nn.Module, axes: Mapping[str, int]) -> None:
        """Mark the stages of a model, if there are any."""
        if "stage" not in axes:
            return
        count = axes["stage"] * self.stages
        for i, names in enumerate(task.parts):
            for name in names:
                dist.stage(model.get_submodule(name), i * count // len(task.parts))


def _stages(n: int, most: int = 4) -> dict[str, int] | None:
    return {"stage": n} if 1 < n <= most else None


def _pipeline(name: str, schedule: str, axes: Callable[[int], dict[str, int] | None], stages: int = 1,
              plan: Callable[[Task], dist.plans.Plan] = lambda task: dist.replicated,
              optimizer: str | None = None) -> Recipe:
    batch = ("data",) if "data" in (axes(4) or ()) else ()
    return Recipe(name, axes, plan, optimizer, batch, lambda task: bool(task.parts), schedule, stages)


def _data(n: int) -> dict[str, int]:
    return {"data": n}


def _two(n: int, name: str) -> dict[str, int] | None:
    return {"data": n // 2, name: 2} if n > 2 else None


RECIPES = (
    Recipe("data parallel", _data),
    Recipe("ZeRO 1 and 2", _data, optimizer="data"),
    Recipe("ZeRO 3", _data, lambda task: dist.FullySharded("data", least=64), "data"),
    Recipe("sharded weights", _data, lambda task: dist.FullySharded("data", least=64), "data", ()),
    # without the ResNet, whose norms combine in each microbatch what no formula here says
    Recipe("accumulation", _data, suits=lambda task: not task.statistics, schedule="1f1b"),
    Recipe("tensor parallel", lambda n: {"model": n}, lambda task: dist.ByName(task.tensor), None, (),
           lambda task: bool(task.tensor)),
    Recipe("vocabulary parallel", lambda n: {"model": n},
           lambda task: dist.ByName({**task.tensor, **task.vocabulary}), None, (), lambda task: bool(task.vocabulary)),
    Recipe("data and tensor", lambda n: _two(n, "model"), lambda task: dist.ByName(task.tensor),
           suits=lambda task: bool(task.tensor)),
    Recipe("ZeRO 3 and tensor", lambda n: _two(n, "model"),
           lambda task: dist.ByName(task.tensor, dist.FullySharded("data", least=64)), "data",
           suits=lambda task: bool(task.tensor)),
    Recipe("sequence parallel", lambda n: {"data": 1, "sequence": n}, batch=("data", "sequence"),
           suits=lambda task: task.gathered > 0),
    Recipe("data and sequence", lambda n: _two(n, "sequence"), batch=("data", "sequence"),
           suits=lambda task: task.gathered > 0),
    Recipe("expert parallel", _data, lambda task: dist.ByName(task.experts), suits=lambda task: bool(task.experts)),
    _pipeline("pipeline, GPipe", "gpipe", _stages),
    _pipeline("pipeline, 1F1B", "1f1b", _stages),
    _pipeline("pipeline, interleaved", "interleaved", lambda n: _stages(n, 2), stages=2),
    _pipeline("pipeline and data", "1f1b", lambda n: _two(n, "stage")),
    _pipeline("pipeline and ZeRO", "1f1b", lambda n: _two(n, "stage"), 1,
              lambda task: dist.FullySharded("data", least=64), "data"),
)


def recipes(task: Task, ranks: int) -> list[Recipe]:
    """The recipes of a task on this many ranks."""
    return [recipe for recipe in RECIPES if recipe.is_for(task, ranks)]


def _digits(size: int, steps: int) -> Iterator[Batch]:
    images, labels, _, _ = digits.load()
    rng = np.random.default_rng(0)
    for _ in range(steps):
        at = rng.permutation(len(images))[:size]
        yield images[at], labels[at]


def _placed(axes: tuple[str, ...], mesh: dist.DeviceMesh, x: Array) -> Any:
    return dist.shard(x, *axes[:x.ndim], mesh=mesh)


def _text(size: int, steps: int) -> Iterator[Batch]:
    text, rng = gpt.load(), np.random.default_rng(0)
    for _ in range(steps):
        yield gpt.batch(rng, text.training, size, GPT.context)


def _images(size: int, steps: int) -> Iterator[Batch]:
    """Images of a pattern per class, and noise."""
    rng = np.random.default_rng(0)
    patterns = rng.standard_normal((8, 3, 32, 32))
    for _ in range(steps):
        labels = rng.integers(0, 8, size)
        yield patterns[labels] + rng.standard_normal((size, 3, 32, 32)), labels


def _gpt() -> nn.Module:
    words = -(-len(gpt.load().alphabet) // 8) * 8          # a multiple of the ranks, as is usual
    model: nn.Module = gpt.GPT(dataclasses.replace(GPT, vocabulary=words))
    return model


def _gpt_loss(model: Any, x: Any, y: Any) -> Any:
    return F.cross_entropy(model(x).transpose(1, 2), y)    # flattened, the sequences could not be divided


_CHANNELS = 2 * (8 * 8**2 + 16 * 4**2 + 16 * 2**2 + 32)
"""The elements of an image that the second convolutions of all blocks of the ResNet give."""
_CHANNELS_BACK = 2 * 8 * 8**2 + (8 * 8**2 + 16 * 4**2) + (16 * 4**2 + 16 * 2**2) + (16 * 2**2 + 32)
"""Those that the first ones take."""
_NORMS = 8 + 4 * 8 + 5 * 16 + 5 * 16 + 5 * 32
"""The channels of its norms, each of which has two means, forward and backward."""
GPT = gpt.Sizes(0, context=32, layers=2, heads=8, width=64)
TASKS = (
    Task("digits", digits.Classifier, _digits, 64, {"hidden.*": ("model",), "narrow.weight": (None, "model")},
         digits.loss, combined=64 * 64, parts=(("hidden",), ("narrow", "scores")), between=(64 * 128,)),
    Task("gpt", _gpt, _text, 16, {"*mlp.c_fc.*": ("model",), "*mlp.c_proj.weight": (None, "model")}, _gpt_loss,
         combined=2 * 2 * 16 * 32 * 64, gathered=2 * 2 * 16 * 32 * 64,
         parts=(("wte", "wpe"), ("h.0",), ("h.1",), ("ln_f", "lm_head")), between=(16 * 32 * 64,) * 3,
         # of each word its features, the greatest score, the sum and the score of the next one; and back the features
         vocabulary={"wte.weight": ("model",), "lm_head.weight": ("model",)}, words=16 * 32 * (2 * 64 + 3)),
    # 16 values in the last norms of a microbatch: with 4, rounding decides; f64: in f32 it does about a relu
    Task("resnet18", lambda: resnet18.ResNet18(8, (8, 16, 16, 32)).double(), _images, 64,
         {"layer*.conv1.weight": ("model",), "layer*.bn1.[!n]*": ("model",), "layer*.conv2.weight": (None, "model")},
         resnet18.loss, combined=64 * (_CHANNELS_BACK + _CHANNELS), statistics=4 * _NORMS, lr=0.005,
         parts=(("conv1", "bn1", "layer1"), ("layer2",), ("layer3",), ("layer4", "fc")),
         between=(64 * 8 * 8**2, 64 * 16 * 4**2, 64 * 16 * 2**2), dtype=np.float64),
    Task("experts", expert_model.Classifier, _digits, 64, {}, expert_model.loss,
         experts={"moe.up": ("data",), "moe.down": ("data",)}, sent=4 * 8 * 8 * 8 * 32),
)


@dataclass(frozen=True)
class Memory:
    """The bytes of the arrays of a rank, a process, in a step: taken at most, and told by the report.

    Objects of Python's, of calls and requests, are in neither.
    """

    taken: int
    told: int

    @property
    def difference(self) -> float:
        """How much more is taken than told, in proportion."""
        return self.taken / self.told - 1

    @property
    def near(self) -> bool:
        """Whether as much is taken as told."""
        return abs(self.difference) <= NEAR


def _most_arrays(step: Callable[[], Any]) -> int:
    """The most bytes of arrays that a step makes and has at once.

    They are counted where there are most: when a segment has given its results and still has its arguments, and when a
    collective has received. tracemalloc's own peak is elsewhere: where arrays and Python's objects together are most.
    """
    most = 0

    def counting(f: Callable[..., R]) -> Callable[..., R]:
        def counted(*args: Any) -> R:
            nonlocal most
            result = f(*args)
            arrays = tracemalloc.DomainFilter(True, np.lib.tracemalloc_domain)
            most = max(most, sum(t.size for t in tracemalloc.take_snapshot().filter_traces([arrays]).traces))
            return result
        return counted

    with mock.patch.object(Entry, "call", counting(Entry.call)), \
            mock.patch.object(carry_out, "receive", counting(carry_out.receive)), \
            mock.patch.object(collectives, "wait_all", counting(transport.wait_all)):
        tracemalloc.start()
        step()
        tracemalloc.stop()
    return most


@functools.cache
def initial(task: Task) -> nn.Module:
    """A task's model before training; to be called before ranks that are threads, which share the generator."""
    mlc.manual_seed(0)
    return task.make()


@dataclass
class Training:
    """A model in training, on a mesh or on one device."""

    task: Task
    model: Any
    optimizer: mlc.optim.Optimizer
    step: Callable[..., Any]
    place: Callable[[Array], Any]
    mesh: dist.DeviceMesh | None = None

    @staticmethod
    def of(task: Task, recipe: Recipe | None = None, ranks: int = 1, abstract: bool = False,
           microbatches: int = 1, device_type: str = "cpu") -> Training:
        """The beginning of training: on one device, in so many parts of a batch, or under a recipe on this many ranks.
        """
        model, mesh, place = copy.deepcopy(initial(task)), None, lambda x: mlc.tensor(x)
        if recipe is not None:
            axes = recipe.axes(ranks)
            assert axes is not None, f"{recipe.name} is none for {ranks} ranks"
            mesh = dist.mesh(axes, abstract, device_type=device_type)
            if recipe.schedule:
                recipe.mark(task, model, axes)
            dist.distribute(model, mesh, recipe.plan(task))
            place = functools.partial(_placed, recipe.batch, mesh)
        optimizer = mlc.optim.SGD(model.parameters(), lr=task.lr, momentum=0.9)
        if mesh is not None and recipe is not None and recipe.optimizer is not None:
            dist.shard_optimizer(optimizer, mesh, recipe.optimizer)

        schedule = "" if recipe is None else recipe.schedule

        @mlc.compile
        def step(x: Any, y: Any) -> Any:
            optimizer.zero_grad()
            if schedule or microbatches > 1:
                loss = dist.pipeline(functools.partial(task.loss, model), x, y, schedule=schedule or "1f1b",
                                     microbatches=MICROBATCHES if schedule else microbatches)
            else:
                loss = task.loss(model, x, y)
                loss.backward()
            optimizer.step()
            return loss

        return Training(task, model, optimizer, step, place, mesh)

    def run(self, steps: int) -> list[float]:
        """The losses of some steps."""
        return [float(self.step(self.place(x), self.place(y)).item())
                for x, y in self.task.batches(self.task.batch, steps)]

    def memory(self) -> Memory:
        """The bytes that this rank, a process, takes at most in a step, and those that the report says."""
        self.run(2)                                        # after which the state of the optimiser is there
        x, y = map(self.place, next(self.task.batches(self.task.batch, 1)))
        report = dist.report(self.step, x, y)
        self.step(x, y)
        made = _most_arrays(lambda: self.step(x, y))
        scratch = max((a.memory.nbytes for a in program._scratch if a.memory is not None), default=0)
        held = [*self.model.parameters(), *self.model.buffers(), x, y,
                *(s for state in self.optimizer.state.values() for s in state.values())]
        backing: list[Any] = [t.backing_array for t in held if isinstance(t, mlc.Tensor)]
        arrays = {id(array): array.nbytes for array in backing}
        if report.positions and self.mesh is not None:
            report = report.positions[self.mesh._ranks.topology.position(self.mesh._ranks.rank, ("stage",))]
        return Memory(sum(arrays.values()) + scratch + made, report.held)

    def sent(self) -> float:
        """The bytes that this rank has sent so far in collectives of programs."""
        assert self.mesh is not None
        traffic = self.mesh._ranks.transport.traffic
        return traffic.total - traffic.sent["agreement"]


@dataclass(frozen=True)
class Outcome:
    """The losses and the bytes of a task under a recipe.

    losses   those of one device, and those on the mesh
    drift    the largest relative difference of losses on one device where weights differ by half a unit in the last
             place
    sent     bytes that the last rank has sent in a step
    told     what `report` says of that
    theory   what the recipe has to send, from the sizes of tensors; None if no formula is known
    """

    task: Task
    recipe: Recipe
    ranks: int
    losses: tuple[Array, Array]
    drift: float
    sent: float
    told: int
    theory: int | None

    @property
    def difference(self) -> float:
        """The largest relative difference of losses."""
        alone, found = self.losses
        return float(np.max(np.abs(found - alone) / np.abs(alone)))

    @property
    def equal(self) -> int:
        """The number of steps whose loss has the same bits."""
        return int((self.losses[0] == self.losses[1]).sum())

    def faults(self) -> list[str]:
        """A sentence for each figure that is not as it has to be."""
        out = []
        least = 8 * float(np.finfo(self.task.dtype).eps)
        if not self.difference <= 16 * self.drift + least:
            out.append(f"losses differ by {self.difference:.1e}, where rounding makes {self.drift:.1e}")
        if self.drift > 1000 * least:
            out.append(f"rounding alone changes losses by {self.drift:.1e}: they show nothing")
        if self.sent != self.told:
            out.append(f"{self.sent} bytes are sent, and the report says {self.told}")
        if self.theory is not None and self.sent > self.theory * (1 + SMALL):
            out.append(f"{self.sent:.0f} bytes are sent, and {self.theory} suffice")
        return out


def examine(task: Task, recipe: Recipe, ranks: int, steps: int) -> Outcome:
    """Train a task on one device and on ranks that are threads."""
    alone, drift = on_one_device(task, steps, recipe.microbatches)

    def rank(number: int) -> Any:
        training = Training.of(task, recipe, ranks)
        x, y = map(training.place, next(task.batches(task.batch, 1)))
        told = dist.report(training.step, x, y)
        before = training.sent()
        losses = np.array(training.run(steps))
        return losses, (training.sent() - before) / steps, (told.positions or (told,))[-1].sent

    found = threads.run(ranks, rank)
    losses, sent, told = found[-1]
    assert all(np.array_equal(losses, other) for other, _, _ in found), "ranks have different losses"
    return Outcome(task, recipe, ranks, (alone, losses), drift, sent, told, theory(task, recipe, ranks))


@functools.cache
def on_one_device(task: Task, steps: int, microbatches: int = 1) -> tuple[Array, float]:
    """The losses of one device, and their drift where weights differ by half a unit in the last place."""
    alone = np.array(Training.of(task, microbatches=microbatches).run(steps))
    other = Training.of(task, microbatches=microbatches)
    with mlc.no_grad():
        for p in other.model.parameters():
            x = p.numpy()
            p.copy_(mlc.tensor(np.where(np.arange(x.size).reshape(x.shape) % 2, x, np.nextafter(x, x + 1))))
    return alone, float(np.max(np.abs(np.array(other.run(steps)) - alone) / np.abs(alone)))


def theory(task: Task, recipe: Recipe, ranks: int) -> int | None:
    """The bytes that a rank has to send in a step; None if no formula is known.

    Gradients are combined among ranks with other parts of the batch, and so is each value that a divided product gives;
    keys and values are gathered, and their gradients scattered; what experts get and give is exchanged.
    """
    axes = recipe.axes(ranks)
    if axes is not None and "stage" in axes:
        return _pipeline_theory(task, recipe, axes)
    if axes is None or (not recipe.batch and "model" not in axes):
        return None
    model, sequence = axes.get("model", 1), axes.get("sequence", 1)
    batch, experts = axes.get("data", 1) * sequence, recipe.name == "expert parallel"
    # the gradient of positions is put among zeros after it is combined, so for each microbatch
    apart = (recipe.microbatches - 1) * sum(p.nbytes for name, p in initial(task).named_parameters()
                                            if name == "wpe.weight")
    weights: int = apart + sum(p.nbytes // (model if model > 1 and _fits(name, task.tensor) else 1)
                       for name, p in initial(task).named_parameters() if not (experts and _fits(name, task.experts)))
    out = 2 * (batch - 1) * (weights + task.bytes * task.statistics * recipe.microbatches) // batch
    combined = task.combined + (task.words if recipe.name == "vocabulary parallel" else 0)
    out += 2 * (model - 1) * task.bytes * combined // model // axes.get("data", 1) if model > 1 else 0
    out += 2 * (sequence - 1) * task.bytes * task.gathered // sequence // axes.get("data", 1)
    return out + (task.bytes * task.sent * (batch - 1) // batch // batch if experts else 0)


def _pipeline_theory(task: Task, recipe: Recipe, axes: Mapping[str, int]) -> int | None:
    """The bytes of the last rank of a pipeline: activations that go on from its stages, and their cotangents back."""
    count = axes["stage"] * recipe.stages
    if "data" in axes:
        return None
    cuts = task.between[len(task.parts) // count - 1::len(task.parts) // count]
    own = range(axes["stage"] - 1, count, axes["stage"])
    elements = sum(cuts[stage] for stage in own if stage < count - 1) + sum(cuts[stage - 1] for stage in own)
    return task.bytes * (elements + axes["stage"] - 1)     # and the loss for the others


def _fits(name: str, specs: Specs) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in specs)
