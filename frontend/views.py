"""Views: operations whose results share the memory of their operand.

Such an operation is recorded like any other. Where its recording consists of tensor operations that only change how
elements are addressed, an eager call applies their definition to the operand's array, which numpy answers with a view:
nothing is compiled, and no element moves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter, methodcaller
from typing import Any

import numpy as np

from mlc.dialects import tensor as T
from mlc.frontend import tree
from mlc.frontend.autograd.grad_mode import mode
from mlc.frontend.autograd.operation_node import derivative_of, name_of_node, record_as, run_call
from mlc.frontend.autograd.tangents import DualLevel, NoTangents, duals, put_tangent, tangent_of
from mlc.frontend.autograd.view_node import NOT_DIFFERENTIATED, ArrayView, Step, View, ViewNode
from mlc.frontend.eager import MAX_SHAPES, Call, with_operands
from mlc.frontend.location import user_loc
from mlc.frontend.operation_errors import as_user_error
from mlc.frontend.recorded_operation import Operation
from mlc.frontend.storage import overlaps, storage_of
from mlc.frontend.tensor import Tensor, wrap
from mlc.frontend.trace import Trace, state
from mlc.frontend.tracer import Tracer
from mlc.ir.core import Op, located
from mlc.ir.diag import Error, UserError
from mlc.ir.types import TensorType, from_numpy

Array = np.ndarray[Any, Any]
ADDRESSING = (T.Reshape, T.Transpose, T.BroadcastTo, T.Slice, T.StopGradient, T.ViewAsReal, T.ViewAsComplex)
"""Operations whose reference gives a view of the operand's array."""


class ViewKernel:
    """How the results of a view operation lie in the array of its operand.

    chains     per result the operations that lead to it
    made       the same as functions of arrays
    back       the functions that lead back; None for one that leaves out elements
    repeats    whether elements are in the result several times
    structure  how the results are returned
    """

    __slots__ = ("back", "chains", "made", "repeats", "structure")

    def __init__(self, chains: Sequence[Sequence[Op]], structure: tree.TreeDef) -> None:
        self.chains, self.structure = chains, structure
        self.made = [_of_arrays(chain) for chain in chains]
        self.back = [_back(chain) for chain in chains]
        self.repeats = [any(isinstance(op, T.BroadcastTo) for op in chain) for chain in chains]

    def arrays(self, array: Array) -> list[Array]:
        """The arrays of the results; where a reshape has no view, one of its own."""
        return [made(array) for made in self.made]

    def step(self, op: Operation, rest: tuple[Any, ...], keywords: dict[str, Any], number: int) -> Step:
        """Result `number` as a function of the operand; known for arrays if each element is in it once."""
        step = _step(op, rest, keywords, number)
        known = op.view is True and not self.repeats[number]
        return KnownView(step, self.made[number], self.back[number]) if known else step


def _of_arrays(chain: Sequence[Op]) -> Callable[[Array], Array]:
    """A chain of operations as a function of arrays."""
    return _applied([_of_array(op) for op in chain if not isinstance(op, T.StopGradient)])


def _back(chain: Sequence[Op]) -> Callable[[Array], Array] | None:
    """The function of arrays that undoes a chain of operations; None if they leave out elements."""
    steps = [_undone(op) for op in reversed(chain) if not isinstance(op, T.StopGradient)]
    found = [step for step in steps if step is not None]
    return _applied(found) if len(found) == len(steps) else None


def _undone(op: Op) -> Callable[[Array], Array] | None:
    if isinstance(op, T.Reshape):
        return methodcaller("reshape", op.x.type.shape)
    if isinstance(op, T.Transpose):
        return methodcaller("transpose", tuple(op.perm.index(d) for d in range(len(op.perm))))
    return None


def _applied(steps: Sequence[Callable[[Array], Array]]) -> Callable[[Array], Array]:
    """The function that applies others one after another."""
    if len(steps) == 1:
        return steps[0]

    def applied(array: Array) -> Array:
        for step in steps:
            array = step(array)
        return array

    return applied


def _of_array(op: Op) -> Callable[[Array], Array]:
    """An operation on an array of known shape as the call of numpy's that gives its view."""
    if isinstance(op, T.Reshape):
        return methodcaller("reshape", op.result.type.shape)
    if isinstance(op, T.Transpose):
        return methodcaller("transpose", op.perm)
    return itemgetter(op.subscript(int)) if isinstance(op, T.Slice) else op.ref


_kernels: dict[Any, ViewKernel | None] = {}
"""By the key of a call; None where the recording computes more than addresses."""


class KnownView(ArrayView):
    """A view of which it is known how it lies in its operand's array.

    step   the view as a function of tensors
    made   the same of arrays
    whole  the function of arrays that leads back; None if the view leaves out elements
    """

    __slots__ = ("made", "step", "whole")

    def __init__(self, step: Step, made: Callable[[Array], Array], whole: Callable[[Array], Array] | None) -> None:
        self.step, self.made, self.whole = step, made, whole

    def __call__(self, x: Tensor) -> Tensor:
        return self.step(x)

    def make(self, array: Array) -> Array:
        return self.made(array)

    def back(self, array: Array) -> Array | None:
        return None if self.whole is None else self.whole(array)


class KnownCall:
    """A view operation with its arguments, for operands of one type.

    views       its results, each as a function of tensors and of arrays
    structure   how they are returned
    name        name of the node
    contiguous  whether it is known only for arrays whose elements lie in memory in order
    copies      whether its result is no view, but a copy in another order
    repeats     whether elements are in the results several times; the gradient is that of the operation then
    """

    __slots__ = ("contiguous", "copies", "first", "name", "repeats", "structure", "views")

    def __init__(self, views: Sequence[tuple[Step, Callable[[Array], Array]]], structure: tree.TreeDef, name: str, *,
                 contiguous: bool = False, copies: bool = False, repeats: bool = False) -> None:
        self.views, self.structure, self.name = views, structure, name
        self.contiguous, self.copies, self.repeats = contiguous, copies, repeats
        self.first = views[0] if len(structure) == 1 else None

    def holds_for(self, x: Tensor) -> bool:
        """Whether a tensor of the type has no history that has to be recorded otherwise."""
        if self.copies:
            return duals.level is None
        return not self.repeats or not (mode.enabled and x.requires_grad)

    def of(self, x: Tensor) -> Any:
        if self.copies:
            step, made = self.views[0]
            out = wrap(made(x._array))
            if mode.enabled and x.requires_grad:
                ViewNode(x, out, (step,), self.name)
            return out
        if x._storage is None:
            storage_of(x)
        if self.first is not None:
            step, made = self.first
            return alias(x, made(x._array), step, self.name)
        return self.structure.unflatten([alias(x, made(x._array), step, self.name) for step, made in self.views])


def dispatching(op: Operation, general: Callable[..., Any]) -> Callable[..., Any]:
    """The function that runs a view operation: as it is known to, or by the general path."""
    known = op.known_views

    def detach(*args: Any, **keywords: Any) -> Any:
        if len(args) == 1 and not keywords and state.trace is None:
            x = args[0]
            if type(x) is Tensor and type(x._array) is np.ndarray:
                return detached(x)
        return general(*args, **keywords)

    def run(*args: Any, **keywords: Any) -> Any:
        if args and not keywords and state.trace is None:
            x = args[0]
            if type(x) is Tensor and type(array := x._array) is np.ndarray:
                rest = args[1:]
                try:
                    found = known.get((array.shape, array.dtype, rest))
                    if found is None or (found.contiguous and not array.flags.c_contiguous):
                        found = known.get((array.shape, array.dtype, rest, array.strides))
                except TypeError:                          # a list of sizes, for example
                    found = None
                if found is not None and (not rest or _plain(args)) and found.holds_for(x):
                    return found.of(x)
        return general(*args, **keywords)

    return detach if op.name == "detach" else run


def _plain(args: tuple[Any, ...]) -> bool:
    """Whether all arguments but the first are None, integers and tuples of integers: True is equal to 1."""
    for x in args[1:]:
        if x is not None and type(x) is not int and (type(x) is not tuple or not _INT.issuperset(map(type, x))):
            return False
    return True


_INT = frozenset({int})


def _learn(call: Call, kernel: ViewKernel, array: Array, found: Sequence[Array]) -> None:
    """Let calls like this one, which found these arrays in one, be known: for all arrays of its type if a view is
    possible whatever their strides are, or of those that are contiguous, and for arrays of these strides."""
    op = call.op
    if (op.view is not True or op.name == "detach" or not kernel.chains or call.keywords or not _plain(call.args)
            or len(op.known_views) >= MAX_SHAPES):
        return
    name, rest = name_of_node(op.name), call.args[1:]
    key: tuple[Any, ...] = array.shape, array.dtype, rest
    repeats = any(kernel.repeats)
    views = [(kernel.step(op, rest, {}, i), made) for i, made in enumerate(kernel.made)]
    reshapes = [[isinstance(x, T.Reshape) for x in chain if not isinstance(x, T.StopGradient)]
                for chain in kernel.chains]
    contiguous = any(map(any, reshapes))
    if not any(any(more[1:]) for more in reshapes):
        op.known_views[key] = KnownCall(views, kernel.structure, name, contiguous=contiguous, repeats=repeats)
        if not contiguous or array.flags.c_contiguous:
            return
    if array.size and all(np.may_share_memory(made, array) for made in found):
        op.known_views[*key, array.strides] = KnownCall(views, kernel.structure, name, repeats=repeats)
    elif array.size and len(kernel.structure) == 1 and op.name != "view":
        op.known_views[*key, array.strides] = KnownCall(views, kernel.structure, name, copies=True)


def run_view(op: Operation, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """Run an operation eagerly whose results are views of its first operand."""
    if args or op.positional[0] in keywords:
        args, keywords = op.operand_first(args, keywords)
    call = Call(op, args, keywords)
    x = args[0] if args else None
    if type(x) is not Tensor or len(call.given) != 1:
        return run_call(call)
    try:
        kernel = _kernels[call.key]
    except KeyError:
        if len(_kernels) >= MAX_SHAPES:
            _kernels.clear()
        kernel = _kernels[call.key] = _recorded(call)
    except TypeError:
        return run_call(call)                              # which says what is not hashable
    if kernel is None:
        return run_call(call)
    if not isinstance(x._array, np.ndarray):
        return _copies(x, run_call(call))
    storage_of(x)
    array: Array = x._array
    found = [op.view(array, *args[1:], **keywords)] if callable(op.view) else kernel.arrays(array)
    _learn(call, kernel, array, found)
    return kernel.structure.unflatten([_result(call, kernel, x, made, i) for i, made in enumerate(found)])


def _result(call: Call, kernel: ViewKernel, x: Tensor, made: Array, number: int) -> Tensor:
    """Result `number` of a view operation, which has this array."""
    op = call.op
    if op.name in NOT_DIFFERENTIATED:
        return _sharing(x, made)
    step = kernel.step(op, call.args[1:], call.keywords, number)
    if made.size and not np.may_share_memory(made, x._array):
        if op.name == "view":
            raise UserError(f"the elements of a tensor of shape {list(x.shape)} do not lie in memory in such an order "
                            f"that {list(made.shape)} could be a view of them", code="MLC0751", loc=user_loc(),
                            hint="x.reshape(...) copies them where it has to")
        out = wrap(made)
        if mode.enabled and x.requires_grad:
            ViewNode(x, out, (step,), name_of_node(op.name))
        if (tangent := tangent_of(x)) is not None:
            with NoTangents():
                put_tangent(out, step(tangent).clone())    # whose elements may lie in another order
        return out
    if mode.enabled and x.requires_grad and overlaps(made):
        out = alias(x, made, step, None)
        record_as(derivative_of(call, (number,)), call, [out])
        return out
    return alias(x, made, step, name_of_node(op.name))


def _step(op: Operation, rest: tuple[Any, ...], keywords: dict[str, Any], number: int) -> Step:
    """Result `number` of a view operation, as a function of its operand."""
    def step(y: Tensor) -> Tensor:
        out = op.call(y, *rest, **keywords)
        return out if type(out) is Tensor else tree.leaves(out)[number]

    return step


def alias(x: Tensor, array: Array, step: Step, name: str | None) -> Tensor:
    """The view of a tensor that `step` is, whose elements are `array`, which shares the memory of the tensor's array;
    recorded under a name."""
    out = _sharing(x, array)
    before = x._view
    if before is None:
        out._view = View(x, (step,), mode.enabled)
    else:
        out._view = View(before.base, (*before.steps, step), before.recorded and mode.enabled)
    if x._autograd is not None and name is not None and mode.enabled and x.requires_grad:
        ViewNode(x, out, (step,), name)
    if duals.level is not None:
        _move(duals.level, x, out, step)
    return out


def _move(level: DualLevel, x: Tensor, out: Tensor, step: Step) -> None:
    """Give the view of a dual tensor the same view of its tangent."""
    tangent = tangent_of(x)
    if tangent is None:
        if not mode.forward:
            level.put(out, None)                           # although the base may be dual
        elif level.knows(x):
            level.follow(out, x, step)
        return
    with NoTangents():
        moved = step(tangent)
    if moved._array.size and not np.may_share_memory(moved._array, tangent._array):
        raise UserError("the elements of a tangent do not lie in memory in such an order that it has the view of its "
                        "primal", code="MLC0838", loc=user_loc(), hint="make the dual tensor of x.clone()")
    level.put(out, moved)


def _sharing(x: Tensor, array: Array) -> Tensor:
    """A tensor of an array that lies in the memory of another tensor."""
    storage = x._storage or storage_of(x)
    memory = storage.memory
    if memory is not None and array.base is not memory and (memory.base is None or array.base is not memory.base) and (
            memory.flags.c_contiguous and _owner(array) is not _owner(memory)):
        array = storage.within(array, memory)              # numpy forbids to write to what as_strided has made
    out = object.__new__(Tensor)
    out._array, out._autograd, out._view = array, None, None
    storage.add(out)
    return out


def detached(x: Tensor) -> Tensor:
    """A tensor that shares the memory of another, and not its history."""
    storage_of(x)
    return _sharing(x, x._array)


def _owner(array: Array) -> Array:
    """The array whose memory an array is a view of."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _copies(x: Tensor, results: Any) -> Any:
    """The results of a view operation on a device, which are copies: a write to either is refused."""
    for out in tree.leaves(results):
        if type(out) is Tensor and out is not x:
            storage_of(x).add(out)
    return results


def _recorded(call: Call) -> ViewKernel | None:
    """The kernel of a view operation for arrays of one shape."""
    op, loc = call.op, user_loc()
    trace = Trace("main")
    array, = call.arrays
    given = trace.arg(TensorType(tuple(array.shape), from_numpy(array.dtype)))
    pending = iter([given])
    args = tuple(with_operands(x, op, op.parameter(i), pending) for i, x in enumerate(call.args))
    with trace.recording():
        try:
            with located(loc):
                leaves, structure = tree.flatten(op.record(args, call.keywords))
        except Error as error:
            raise as_user_error(error, op.name, call.given, loc) from None
    chains = []
    for leaf in leaves:
        chain = list[Op]()
        value = leaf.value if isinstance(leaf, Tracer) else None
        while value is not None and value.op is not None:
            if not isinstance(value.op, ADDRESSING) and op.view is True:
                return None
            chain.append(value.op)
            value = value.op.operands[0] if value.op.operands else None
        if value is not given.value and op.view is True:
            return None
        chains.append(chain[::-1])
    return ViewKernel(chains, structure)
