"""Pipelines: modules at stages, each on ranks of its own, and batches that pass through them in parts.

Stages are marked on modules, and a training step says in how many microbatches, and in which order, it is computed:

    mesh = mlc.distributed.mesh({"stage": 2, "data": 2})
    for i, block in enumerate(model):
        mlc.distributed.stage(block, i)
    model = mlc.distributed.distribute(model, mesh)

    @mlc.compile
    def step(x, y):
        optimizer.zero_grad()
        loss = mlc.distributed.pipeline(lambda x, y: F.cross_entropy(model(x), y), x, y, microbatches=8)
        optimizer.step()
        return loss

On one device, the same step accumulates the gradients of the microbatches, in their order, and so it does on a mesh
without an axis `stage`, if no module is marked: ranks combine them after the last microbatch. On a mesh with an axis
`stage`, the parameters of a module are on the ranks at the position of its stage, and each of these has a program of
its own (passes/split_stages), whose sums have the same order: without other axes in the mesh, the numbers are those of
one device to the bit, as far as it computes each operation in the same way. A value that goes around a module, such as
a residual, is sent to each stage that uses it; if there are several, its cotangents are added at each of them first.

Example:
    >>> x = mlc.arange(4.0).reshape(4, 1)
    >>> w = mlc.ones(1, requires_grad=True)
    >>> mlc.distributed.pipeline(lambda x: (x * w).mean(), x, microbatches=2)
    tensor(1.5000, dtype=mlc.float32)
    >>> w.grad
    tensor([1.5000], dtype=mlc.float32)
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from mlc.dialects.shard.stages import Microbatch, Stage
from mlc.frontend import tree
from mlc.frontend.location import user_loc
from mlc.frontend.operands import tracer
from mlc.frontend.tensor import Tensor
from mlc.frontend.trace import emit, state
from mlc.ir.diag import UserError, UserTypeError
from mlc.nn.module import Module
from mlc.passes.split_stages.schedules import DEFAULT, SCHEDULES

M = TypeVar("M", bound=Module)
_STAGE = "_pipeline_stage"
"""The attribute of a module that has its stage."""


def stage(module: M, number: int) -> M:
    """Put a module at a stage of the pipeline: what it is called with is sent there, and it computes there.

    What is computed of its results is there too, until a module of a later stage takes it. Call this before
    `distribute`, which puts the module's parameters on the ranks of the stage. On a mesh of n ranks along the axis
    `stage`, rank i has the stages i, i + n, ..., or consecutive ones if `distribute` is told a schedule that has these.
    On a mesh without that axis each rank has all stages, as one device has.

    Args:
        module: The module; its stage may be changed.
        number: Number of the stage, from 0, in the order in which they are computed.

    Returns:
        The module.

    Raises:
        UserError: There is no such stage (MLC0986).

    Example:
        >>> model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
        >>> mlc.distributed.stage(model[2], 1)(mlc.ones(3, 8)).shape
        (3, 2)
    """
    if not isinstance(module, Module):
        raise UserTypeError(f"a {type(module).__name__} is no module", code="MLC0986", loc=user_loc(),
                            hint="a stage is that of a module, such as an nn.Sequential")
    if isinstance(number, bool) or not hasattr(number, "__index__") or number < 0:
        raise UserError(f"there is no stage {number!r}", code="MLC0986", loc=user_loc(),
                        hint="stages are numbered from 0")
    if _STAGE not in vars(module):
        module.register_forward_pre_hook(_enter, prepend=True, with_kwargs=True)
    object.__setattr__(module, _STAGE, int(number))
    return module


def _enter(module: Module, args: Any, keywords: Any) -> tuple[Any, Any]:
    """The arguments of a module, used at its stage."""
    if state.trace is None:
        return args, keywords
    marked: tuple[Any, Any] = tree.map(partial(_mark, Stage, vars(module)[_STAGE]), (args, keywords))
    return marked


def _mark(op: Any, number: Any, x: Any, *more: Any) -> Any:
    return emit(op, tracer(x), number, *more) if isinstance(x, Tensor) else x


def stages_of(module: Module) -> dict[int, int]:
    """The stages of the parameters and buffers of a module, by their identity: that of the innermost module with one.
    """
    out: dict[int, int] = {}
    for _, inner in module.named_modules():                # outer modules come first
        number = vars(inner).get(_STAGE)
        if number is not None:
            out |= {id(x): number for x in (*inner.parameters(), *inner.buffers())}
    return out


def pipeline(loss: Callable[..., Tensor], *batch: Any, microbatches: int, schedule: str = DEFAULT) -> Tensor:
    """Run forward and backward of the parts of a batch, and add up their gradients: a training step without an update.

    Of n rows and m microbatches, microbatch i has the rows i, i + m, ..., so that each is divided among ranks as the
    batch is. Gradients are added to `grad` in the order of microbatches.

    Args:
        loss: Function of a microbatch that gives its loss, a number. It is called once for each.
        batch: Tensors, or tuples, lists and dicts of them, with a row per example, and whatever else the function
            takes, which each call gets.
        microbatches: Number of parts.
        schedule: Order in which ranks work on them: "gpipe" (forward of all, then backward of all), "1f1b" (a backward
            as soon as it can begin, so that fewer activations are kept) or "interleaved" (the same for several stages
            on each rank, which wait less).

    Returns:
        The mean of the losses, without a gradient.

    Raises:
        UserError: There is no such schedule (MLC0983), or the rows are no multiple of `microbatches` (MLC0985).

    Example:
        >>> w = mlc.ones(3, requires_grad=True)
        >>> x = mlc.arange(12.0).reshape(4, 3)
        >>> mlc.distributed.pipeline(lambda x: (x @ w).mean(), x, microbatches=2, schedule="gpipe").item(), w.grad
        (16.5, tensor([4.5000, 5.5000, 6.5000], dtype=mlc.float32))
    """
    check_schedule(schedule)
    if isinstance(microbatches, bool) or not hasattr(microbatches, "__index__") or microbatches < 1:
        raise UserError(f"{microbatches!r} is no number of microbatches", code="MLC0985", loc=user_loc())
    total: Any = None
    for i in range(microbatches):
        part = tree.map(partial(_part, i, microbatches, schedule), batch)
        mean = loss(*part) / microbatches
        if state.trace is not None:
            mean = emit(Microbatch, tracer(mean), i, schedule)
        mean.backward()
        total = mean.detach() if total is None else total + mean.detach()
    return total  # type: ignore[no-any-return]


def check_schedule(schedule: str) -> None:
    """UserError if there is no such schedule."""
    if schedule not in SCHEDULES:
        raise UserError(f"there is no schedule {schedule!r}", code="MLC0983", loc=user_loc(),
                        hint="one of " + ", ".join(SCHEDULES))


def _part(number: int, count: int, schedule: str, x: Any) -> Any:
    """The rows of a microbatch."""
    if not isinstance(x, Tensor) or not x.ndim:
        return x
    rows, *others = x.shape
    if isinstance(rows, int) and rows % count:
        raise UserError(f"{rows} rows are not divided into {count} microbatches", code="MLC0985", loc=user_loc(),
                        hint="let the number of microbatches divide the batch, and what each rank has of it")
    part = x.reshape(rows // count, count, *others)[:, number]
    return part if state.trace is None else emit(Microbatch, tracer(part), number, schedule)
