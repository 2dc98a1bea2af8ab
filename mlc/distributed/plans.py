"""Plans of how the tensors of a module, and of its optimiser, are divided: the recipes of parallel training.

    data parallel        distribute(model, mesh), and batches that are divided
    ZeRO 1 and 2         the same, and shard_optimizer(optimizer, mesh, "data")
    ZeRO 3, FSDP         distribute(model, mesh, FullySharded("data"))
    tensor parallel      distribute(model, mesh, ByName({"*.c_fc.weight": ("model",), ...}))
    sequence parallel    distribute(model, mesh), and batches that are divided along the dimension of the sequence
    expert parallel      distribute(model, mesh, ByName({"*.experts.*": ("data",)})), of weights with a row per expert,
                         and batches that are divided along the same axis
    pipeline             stage(block, i) for the blocks of the model before distribute(model, mesh), on a mesh with an
                         axis `stage`, and pipeline(loss, x, y, microbatches=8) in the training step (pipelines.py)

A plan only says where tensors lie. Which collectives follow, the passes decide: `report` shows them. Keys and values of
divided sequences are gathered; where attention is to be divided by heads instead, `shard(q, None, "sequence")` in the
function exchanges the blocks. A loss of divided sequences is not flattened, `cross_entropy(scores.transpose(1, 2), y)`:
the blocks of a sequence are no block of all tokens.

Example:
    >>> mesh = mlc.distributed.mesh({"data": 2}, abstract=True)
    >>> model = mlc.distributed.distribute(nn.Linear(4, 8), mesh, mlc.distributed.FullySharded("data", least=1))
    >>> mlc.distributed.placement(model.weight), mlc.distributed.local(model.weight).shape
    (('data', None), (4, 4))
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TypeVar

from mlc.backends.mesh.array import MeshArray
from mlc.dialects.shard.mesh import STAGE
from mlc.distributed.device_mesh import DeviceMesh, Spec, placement, shard
from mlc.distributed.pipelines import check_schedule, stages_of
from mlc.frontend.autograd.grad_mode import no_grad
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Tensor
from mlc.ir.diag import UserError, UserTypeError
from mlc.nn.module import Module
from mlc.optim import Optimizer
from mlc.passes.split_stages.schedules import position

M = TypeVar("M", bound=Module)
Plan = Callable[[str, Tensor, DeviceMesh], tuple[Spec, ...]]
"""How a tensor of a module is divided: from its name, itself and the mesh to a specification, as of `shard`. A method
`used` of the same arguments may say how it is divided where it is used."""


def replicated(name: str, x: Tensor, mesh: DeviceMesh) -> tuple[Spec, ...]:
    """The plan by which every rank has all of each tensor: data parallelism.

    Args:
        name: Name of the tensor.
        x: The tensor.
        mesh: The mesh.

    Returns:
        An empty specification.

    Example:
        >>> mesh = mlc.distributed.mesh({"data": 2}, abstract=True)
        >>> mlc.distributed.replicated("weight", mlc.ones(2), mesh)
        ()
    """
    return ()


class FullySharded:
    """The plan by which tensors are divided along one dimension: ZeRO 3, FSDP.

    They are gathered where they are used, and their gradients are scattered.

    Args:
        axis: Axis of the mesh.
        least: Fewest elements of a tensor that is divided; smaller ones are on every rank.

    Example:
        >>> mesh = mlc.distributed.mesh({"data": 4}, abstract=True)
        >>> plan = mlc.distributed.FullySharded("data", least=8)
        >>> plan("weight", mlc.ones(3, 8), mesh), plan("bias", mlc.ones(4), mesh)
        ((None, 'data'), ())
    """

    def __init__(self, axis: str, least: int = 1024) -> None:
        self.axis, self.least = axis, least

    def __call__(self, name: str, x: Tensor, mesh: DeviceMesh) -> tuple[Spec, ...]:
        """The first dimension that is a multiple of the number of ranks is divided."""
        return _divided(tuple(x.shape), (None,) * x.ndim, self.axis, mesh) if x.numel() >= self.least else ()

    def used(self, name: str, x: Tensor, mesh: DeviceMesh) -> tuple[Spec, ...] | None:
        """Where it is used, a tensor is whole."""
        return ()


class ByName:
    """The plan that says for each name how a tensor is divided: tensor parallelism.

    Args:
        specs: Patterns of names, with `*` and `?`, and their specifications, as of `shard`; the first that fits counts.
        otherwise: Plan of the tensors that no pattern fits.

    Raises:
        UserError: A pattern fits no tensor of the module (MLC0962); `distribute` finds out.

    Example:
        >>> mesh = mlc.distributed.mesh({"model": 2}, abstract=True)
        >>> plan = mlc.distributed.ByName({"*.weight": (None, "model")})
        >>> plan("0.weight", mlc.ones(4, 2), mesh), plan("0.bias", mlc.ones(4), mesh)
        ((None, 'model'), ())
    """

    def __init__(self, specs: Mapping[str, tuple[Spec, ...]], otherwise: Plan = replicated) -> None:
        self.specs, self.otherwise = dict(specs), otherwise

    def __call__(self, name: str, x: Tensor, mesh: DeviceMesh) -> tuple[Spec, ...]:
        """The specification of the first pattern that fits the name."""
        for pattern, spec in self.specs.items():
            if fnmatchcase(name, pattern):
                return spec
        return self.otherwise(name, x, mesh)

    def unused(self, names: Sequence[str]) -> list[str]:
        """The patterns that none of some names fits."""
        return [pattern for pattern in self.specs if not any(fnmatchcase(name, pattern) for name in names)]

    def used(self, name: str, x: Tensor, mesh: DeviceMesh) -> tuple[Spec, ...] | None:
        """As it lies, if a pattern fits the name."""
        if any(fnmatchcase(name, pattern) for pattern in self.specs):
            return None
        used = getattr(self.otherwise, "used", None)
        return None if used is None else used(name, x, mesh)


def distribute(module: M, mesh: DeviceMesh, plan: Plan = replicated, schedule: str = "interleaved") -> M:
    """Divide the parameters and buffers of a module among the ranks, in place.

    Every rank has the same module before, as after the same seed or `load_state_dict`.

    Args:
        module: The module.
        mesh: The mesh.
        plan: How each tensor is divided.
        schedule: That of the pipeline. It says where stages lie if they are more than the ranks along the axis
            `stage`: with "gpipe" and "1f1b", each rank has consecutive ones, with "interleaved" they lie in turns.

    Returns:
        The module.

    Raises:
        UserError: A tensor cannot be divided so, a pattern of the plan fits none, or it divides no tensor (MLC0962), or
            there is no such schedule (MLC0983).

    Example:
        >>> mesh = mlc.distributed.mesh({"data": 1})
        >>> model = mlc.distributed.distribute(nn.Linear(2, 3), mesh)
        >>> model(mlc.distributed.shard(mlc.ones(4, 2), "data", mesh=mesh)).shape
        (4, 3)
    """
    if not callable(plan):
        raise UserTypeError(f"{plan!r} is no plan", code="MLC0962", loc=user_loc(),
                            hint='for instance mlc.distributed.FullySharded("data")')
    tensors = [*module.named_parameters(), *module.named_buffers()]
    check_schedule(schedule)
    stages, positions = stages_of(module), mesh.shape.get(STAGE, 1)
    count = max(stages.values(), default=0) + 1
    specs = [plan(name, x, mesh) for name, x in tensors]
    _check_used(plan, [name for name, _ in tensors], specs)
    where_used = getattr(plan, "used", None)
    with no_grad():
        for (name, x), spec in zip(tensors, specs):
            used = where_used(name, x, mesh) if where_used is not None and any(spec) else None
            at = position(schedule if count > positions else "interleaved", stages[id(x)], positions, count) \
                if positions > 1 and id(x) in stages else None
            x.data = shard(x.data, *spec, mesh=mesh, used=used, stage=at)
            if x.grad is not None:
                x.grad = shard(x.grad, *placement(x), mesh=mesh, stage=at)
    return module


def _check_used(plan: Plan, names: Sequence[str], specs: Sequence[tuple[Spec, ...]]) -> None:
    """UserError (MLC0962) if nothing of a module, or of a plan, is what the other is about."""
    hint = "names are those of named_parameters() and named_buffers()"
    if isinstance(plan, ByName):
        if unused := plan.unused(names):
            raise UserError(f"no tensor of the module is named {unused[0]}", code="MLC0962", loc=user_loc(), hint=hint)
    elif plan is not replicated and names and not any(any(spec) for spec in specs):
        raise UserError(f"the plan divides none of the {len(names)} tensors of the module", code="MLC0962",
                        loc=user_loc(), hint="each is too small, or has no dimension that is a multiple of the number "
                                             "of ranks; mlc.distributed.replicated is the plan that divides none")


def shard_optimizer(optimizer: Optimizer, mesh: DeviceMesh, axis: str) -> Optimizer:
    """Divide the state of an optimiser among the ranks, whatever its parameters are: ZeRO 1, and in compiled steps 2.

    Each rank updates its part of a parameter, of a gradient that is scattered; the parameter is gathered.

    Args:
        optimizer: Optimiser of parameters on the mesh. State that it has already is kept.
        mesh: The mesh.
        axis: Axis of the mesh.

    Returns:
        The optimiser.

    Raises:
        UserError: There is no such axis (MLC0961).

    Example:
        >>> mesh = mlc.distributed.mesh({"data": 2}, abstract=True)
        >>> model = mlc.distributed.distribute(nn.Linear(4, 8), mesh)
        >>> adam = mlc.distributed.shard_optimizer(mlc.optim.Adam(model.parameters()), mesh, "data")
        >>> mlc.distributed.placement(adam.state[model.weight]["exp_avg"])
        ('data', None)
    """
    _check_axis(mesh, axis)
    if not isinstance(optimizer, Optimizer):
        raise UserTypeError(f"a {type(optimizer).__name__} is no optimiser", code="MLC0962", loc=user_loc(),
                            hint="for instance mlc.optim.Adam(model.parameters())")
    for group in optimizer.param_groups:
        rule = optimizer._with(group)
        for p in group["params"]:
            wanted = rule.slots_of(p)
            held = optimizer.state.setdefault(p, {"step": 0})
            for slot, x in zip(rule.slots, rule.fresh(p)):
                if slot in wanted:
                    x, shape = x if held.get(slot) is None else held[slot], tuple(x.shape)
                    own = placement(p) if shape == tuple(p.shape) else (None,) * x.ndim
                    at = p.backing_array.sharding.stage if isinstance(p.backing_array, MeshArray) else -1
                    held[slot] = shard(x, *_divided(shape, own, axis, mesh), mesh=mesh, stage=at if at >= 0 else None)
    return optimizer


def _divided(shape: tuple[int, ...], spec: tuple[Spec, ...], axis: str, mesh: DeviceMesh) -> tuple[Spec, ...]:
    """A specification that divides one more dimension, the first that can be; the same if there is none."""
    _check_axis(mesh, axis)
    ranks = mesh.shape
    if axis in [name for s in spec for name in ((s,) if isinstance(s, str) else s or ())]:
        return spec
    at = next((d for d, (n, s) in enumerate(zip(shape, spec)) if s is None and n and n % ranks[axis] == 0), None)
    return spec if at is None else (*spec[:at], axis, *spec[at + 1:])


def _check_axis(mesh: DeviceMesh, axis: str) -> None:
    try:
        mesh._ranks.topology.index(axis)
    except UserError as error:
        error.loc = user_loc()
        raise
